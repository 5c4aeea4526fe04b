"""`msg2 evaluate`: a graph against the true one."""

from pathlib import Path
from typing import Annotated

from msg2 import formats, metrics
from msg2.cli import console, flags
from msg2.cli.flags import option


@flags.reads_data("repeats", "overlap", "order")
def evaluate(
    graph: flags.GraphFile,
    truth: Annotated[Path, option("GRAPH", "The true graph, or a CaptainCook4D task graph.")],
    reading: flags.GivenOptions,
    data: Annotated[Path | None, option("DATA", "Videos, for the compatibility.")] = None,
    json: flags.Json = False,
) -> None:
    """Compare a graph with the true one: accuracy, SPOC, compatibility, precision, recall and F1 of its edges.

    Edge scores are those of the transitive reductions, with START and END; `inner` ones are without them. Both kinds of
    edges count, what a step needs and what it comes after.

    Example: `msg2 evaluate graph.json --truth truth.json --data steps.csv`
    """
    learnt, true = formats.read_graph(graph), formats.read_graph(truth)
    videos = flags.read_if_given(learnt, data, reading)
    with console.progress_bar("scoring"):
        scores = metrics.score_graph(learnt, true, () if videos is None else videos).to_json()
    if json:
        console.print_json(scores)
    else:
        rows = [(name, console.format_percent(value)) for name, value in scores.items()]
        console.print_table(["metric", "percent"], rows)

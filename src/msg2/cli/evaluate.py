"""`msg2 evaluate`: a graph against the true one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from msg2 import metrics
from msg2.cli import console
from msg2.cli.shared_options import GivenOptions, GraphFile, Json, read_as_recorded, reads_data, refuse
from msg2.formats import read_graph


@reads_data("repeats", "overlap", "order")
def evaluate(
    graph: GraphFile,
    truth: Annotated[Path, typer.Option(metavar="GRAPH", help="The true graph, or a CaptainCook4D task graph.")],
    data: Annotated[Path | None, typer.Option(metavar="DATA", help="Videos, for the compatibility.")] = None,
    json: Json = False,
    *,
    reading: GivenOptions,
) -> None:
    """Compare a graph with the true one: accuracy, SPOC, compatibility, precision, recall and F1 of its edges.

    Edge scores are those of the transitive reductions, with START and END; `inner` ones are without them. Both kinds of
    edges count, what a step needs and what it comes after.

    Example: `msg2 evaluate graph.json --truth truth.json --data steps.csv`
    """
    if data is None:
        refuse("--data", **reading)
    learnt, true = read_graph(graph), read_graph(truth)
    videos = () if data is None else read_as_recorded(learnt, data, **reading)
    with console.progress_bar("scoring"):
        found = metrics.score_graph(learnt, true, videos).to_json()
    if json:
        console.print_json(found)
    else:
        console.print_table(
            ["metric", "percent"], [(name, console.format_percent(value)) for name, value in found.items()]
        )

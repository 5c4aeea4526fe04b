"""`msg2 evaluate`: graphs against the true ones."""

from pathlib import Path
from statistics import fmean
from typing import Annotated

from msg2 import formats, metrics
from msg2.cli import console, flags
from msg2.cli.flags import argument, option
from msg2.errors import require
from msg2.formats.graph_reader import read_truths

_SHOWN = {
    "accuracy": "accuracy %", "spoc": "SPOC %", "compatibility": "compatibility %", "f1": "edge F1 %", "edits": "edits",
}  # fmt: skip
"""The scores of many graphs that are printed, and their columns; --json has all."""


@flags.reads_data("repeats", "overlap", "order")
def evaluate(
    source: Annotated[Path, argument("GRAPH", "A graph file, or a folder of them.")],
    truth: Annotated[Path, option("GRAPH", "The true graph, or one of CaptainCook4D; or a folder of them.")],
    reading: flags.GivenOptions,
    data: Annotated[Path | None, option("DATA", "Videos, for the compatibility.")] = None,
    json: flags.Json = False,
) -> None:
    """Compare a graph with the true one: accuracy, SPOC, compatibility, precision, recall and F1 of its edges.

    Edge scores are those of the transitive reductions, with START and END; `inner` ones are without them. Both kinds of
    edges count, what a step needs and what it comes after. `edits` is how many edges you would have to add or remove.
    The graphs of a folder are matched with the true ones by the names of their tasks, or of the files.

    Examples: `msg2 evaluate graph.json --truth truth.json --data steps.csv`, `msg2 evaluate graphs --truth truths`
    """
    files = sorted(source.glob("*.json")) if source.is_dir() else [source]
    require(files, "holds no graph", where=source, hint="`msg2 infer` makes them of data")
    graphs = [formats.read_graph(file) for file in files]
    truths = read_truths(truth, [graph.task for graph in graphs])
    found: dict[str, dict[str, float | None]] = {}
    with console.progress_bar("scoring") as progress:
        for graph in graphs:
            progress(len(found), len(graphs), graph.task)
            require(
                graph.task in truths, f"holds no graph of {graph.task!r}", where=truth, hint="each needs a true one"
            )
            require(graph.task not in found, f"holds two graphs of {graph.task!r}", where=source, hint="keep one")
            videos = flags.read_if_given(graph, data, reading)
            scores = metrics.score_graph(graph, truths[graph.task], () if videos is None else videos)
            found[graph.task] = {**scores.to_json(), "edits": scores.edges.edits}
    if not source.is_dir():
        [only] = found.values()
        if json:
            console.print_json(only)
            return
        rows = [(name, _format(name, only[name]), "edges" if name == "edits" else "%") for name in only]
        console.print_table(["metric", "value", "unit"], rows)
        return
    columns = {name: [task[name] for task in found.values()] for name in next(iter(found.values()))}
    known = {name: [value for value in values if value is not None] for name, values in columns.items()}
    mean = {name: fmean(values) if values else None for name, values in known.items()}
    if json:
        console.print_json({"tasks": found, "mean": mean})
        return
    shown = [(task, *(_format(name, of[name]) for name in _SHOWN)) for task, of in [*found.items(), ("mean", mean)]]
    console.print_table(["task", *_SHOWN.values()], shown)


def _format(name: str, value: float | None) -> str:
    """A share in percent; `edits` are a number of edges."""
    return f"{value:.4g}" if name == "edits" else console.format_percent(value)

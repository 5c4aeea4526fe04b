"""The paper's figures: learnt graphs beside the true one, steps that were filled in, and the search of its Fig. 3.

Every picture has its numbers in a table.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msg2.errors import MissingExtraError
from msg2.experiments import figures_completion, figures_search
from msg2.experiments.tables import Result, Table
from msg2.files import safe_names, write_whole
from msg2.inference import infer
from msg2.metrics import edge_scores
from msg2.options import ExperimentOptions, FigureOptions, WorldOptions
from msg2.worlds import simulate, world


def run(data: Path | None, options: ExperimentOptions, report: Callable[[str], None]) -> Result:
    """The numbers behind the pictures; with a folder, also the pictures in it."""
    chosen = FigureOptions()
    traced = figures_search.tables(data, options, chosen, report)  # first: what is asked for may not exist
    tables = [_compared(name, options.folder, chosen, report) for name in chosen.worlds[: 1 if options.quick else None]]
    try:
        tables.append(figures_completion.table(options, chosen, report))
    except MissingExtraError as missing:
        tables.append(Table("Completion", ["left out"], [[f"{missing.what}: {missing.hint}"]]))
    return Result("figures", [*tables, *traced], {"seed": chosen.seed})


def _compared(name: str, folder: Path | None, chosen: FigureOptions, report: Callable[[str], None]) -> Table:
    """What every method learns from a world, beside its true graph."""
    simulation = simulate(world(name), WorldOptions(), chosen.seed)
    task, truth = simulation.task.with_first_labels(), simulation.graph
    graphs, counts = {}, {}
    for method in chosen.methods:
        report(f"{name}: {method}")
        graphs[method] = infer(task, method, seed=chosen.seed)
        found = edge_scores(graphs[method], truth, ends=False)
        right = found.true_positives
        counts[method] = (right, found.predicted - right, found.actual - right, 100 * (found.f1 or 0.0))
    if folder is not None:
        from msg2.drawing.sheet import Panel, sheet  # pictures, where they are wanted

        panels = [Panel(method, _words(*counts[method]), graph) for method, graph in graphs.items()]
        picture = sheet(Panel(name, "the true graph", truth), panels)
        write_whole(folder / f"figures-graphs-{safe_names([name])[0]}.svg", picture)
    return Table(
        f"Graphs of {name!r}: edges after transitive reduction",
        ["method", "in both", "redundant", "missing", "F1, percent"],
        [[method, *numbers] for method, numbers in counts.items()],
        [f"{len(task)} videos with the usual noise."],
    )


def _words(right: int, redundant: int, missing: int, f1: float) -> str:
    return f"{right} edges in both, {redundant} redundant, {missing} missing (F1 {f1:.2f} %)"

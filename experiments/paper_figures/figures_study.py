"""The paper's figures: learnt graphs beside the true one, steps that were filled in, and the search of its Fig. 3.

Every picture has its numbers in a table.
"""

from __future__ import annotations

from pathlib import Path

from experiments.experiment_options import ExperimentOptions
from experiments.paper_figures import SEED, completion_figure, search_figure
from experiments.result_tables import Result, Table
from msg2.errors import MissingExtraError
from msg2.files import safe_names, write_whole
from msg2.inference import infer
from msg2.metrics import edge_scores
from msg2.progress import Progress
from msg2.simulation import household_world, simulate
from msg2.simulation.simulator import SimulationOptions

WORLDS = ("Perform CPR", "Assemble Clarinet")
"""Household worlds whose learned graphs are drawn beside the true one; those of the paper."""
METHODS = ("msgi+", "always-before", "msg2", "likelihood")
"""Whose graphs are drawn."""


def run(data: Path | None, options: ExperimentOptions, progress: Progress) -> Result:
    """The numbers behind the pictures; with a folder, also the pictures in it.

    Parameters
    ----------
    data : Path or None
        Folder of the annotation sets; an experiment that simulates does not read it.
    options : ExperimentOptions
        What can be set.
    progress : Progress
        Shows how far the work is.

    Returns
    -------
    Result
        The tables, the facts that make them repeatable, and the chart.
    """
    traced = search_figure.search_tables(data, options, progress)  # first: what is asked for may not exist
    tables = [_compare_graphs(name, options.folder, progress) for name in WORLDS[: 1 if options.quick else None]]
    try:
        tables.append(completion_figure.completion_table(options, progress))
    except MissingExtraError as missing:
        tables.append(Table("Completion", ["left out"], [[f"{missing.what}: {missing.hint}"]]))
    return Result("figures", [*tables, *traced], {"seed": SEED})


def _compare_graphs(name: str, folder: Path | None, progress: Progress) -> Table:
    """What every method learns from a world, beside its true graph."""
    simulation = simulate(household_world(name), SimulationOptions(), SEED)
    task, truth = simulation.task.with_first_labels(), simulation.graph
    graphs, counts = {}, {}
    for method in METHODS:
        progress(0, None, f"{name}: {method}")
        graphs[method] = infer(task, method, seed=SEED)
        found = edge_scores(graphs[method], truth, ends=False)
        right = found.true_positives
        counts[method] = (right, found.predicted - right, found.actual - right, 100 * (found.f1 or 0.0))
    if folder is not None:
        from experiments.paper_figures.graph_panels import Panel, graph_panels  # pictures, where they are wanted

        panels = [Panel(method, _edge_summary(*counts[method]), graph) for method, graph in graphs.items()]
        picture = graph_panels(Panel(name, "the true graph", truth), panels)
        write_whole(folder / f"figures-graphs-{safe_names([name])[0]}.svg", picture)
    return Table(
        f"Graphs of {name!r}: edges after transitive reduction",
        ["method", "in both", "redundant", "missing", "F1, percent"],
        [[method, *numbers] for method, numbers in counts.items()],
        [f"{len(task)} videos with the usual noise."],
    )


def _edge_summary(right: int, redundant: int, missing: int, f1: float) -> str:
    return f"{right} edges in both, {redundant} redundant, {missing} missing (F1 {f1:.2f} %)"

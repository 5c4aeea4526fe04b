"""Every method against the noise of the labels and the number of videos, on worlds whose graph is known.

Alternatives are counted apart: of the clauses "a or b" of the true preconditions, those that a graph has as well, and
how many of a graph's own are true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean

from experiments.experiment_options import ExperimentOptions
from experiments.graph_learning import household_graphs
from experiments.result_tables import Result, Table, Value, save_plot
from experiments.state_prediction.state_cells import LABELS
from msg2 import metrics
from msg2.benchmarking import learn
from msg2.graph import Formula, SubtaskGraph
from msg2.metrics.graph_scores import violation_rate
from msg2.progress import Progress
from msg2.result_cache import Measurement, measure_cells
from msg2.simulation import NoiseOptions, RandomWorldOptions, World, household_worlds, random_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Step


@dataclass(frozen=True, slots=True)
class NoiseCurveOptions:
    """How noise and the number of videos are varied (`python -m experiments noise`)."""

    factors: tuple[float, ...] = (0.0, 0.5, 1.0, 1.5, 2.0)
    """Times the usual noise."""
    videos: tuple[int, ...] = (5, 20, 54, 150)
    random_worlds: int = 12
    """Beside the twelve household worlds; the seeds are 0, 1, …"""
    world: RandomWorldOptions = field(default_factory=lambda: RandomWorldOptions(steps=15, depth=5, or_rate=0.3))

    @staticmethod
    def quick() -> NoiseCurveOptions:
        """A minute's part of it."""
        return NoiseCurveOptions(factors=(0.0, 1.0), videos=(5, 20), random_worlds=2)


ROWS = {
    name: row.method
    for name, row in household_graphs.ROWS.items()
    if row.filled_by == LABELS and name not in ("name order", "always-before, δ = 0.9", "always-before, δ = 0.7")
}
"""All that look at the labels, and at them alone; of the baseline, the strictest and the best fixed setting."""
MEASURES = {"accuracy": "accuracy", "spoc": "SPOC", "f1": "edge F1"}
FAMILIES = {"household": "twelve household worlds", "random": "random worlds"}


@dataclass(frozen=True, slots=True)
class NoiseCell:
    """One world of a family, at so many times the usual noise, with so many videos."""

    family: str
    world: int
    factor: float
    videos: int


def run(data: Path | None, options: ExperimentOptions, progress: Progress) -> Result:
    """Accuracy, SPOC and edge F1 of every method by noise and by videos; with a folder, also as plots in it.

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
    chosen = NoiseCurveOptions.quick() if options.quick else NoiseCurveOptions()
    file = None if options.folder is None else options.folder / "noise.cells.json"
    made_of = {"world": asdict(chosen.world), "rows": ROWS}
    found = measure_cells(plan_cells(chosen), partial(measure_cell, options=chosen), cell_options=lambda _: made_of,
                      file=file, jobs=options.jobs, progress=progress)  # fmt: skip
    tables = [table for family in FAMILIES for table in _tables(family, found, chosen)]
    if options.folder is not None:
        from experiments.plots import grid_plot  # pictures, where they are wanted

        for family, words in FAMILIES.items():
            curves = _curves(family, found, chosen)
            save_plot(options.folder / f"noise-{family}.svg", partial(grid_plot, curves, f"Noise: {words}"))
    cells = [{**asdict(cell), "found": one} for cell, one in found.items()]
    return Result("noise", tables, {"options": asdict(chosen), "cells": cells})


def plan_cells(options: NoiseCurveOptions) -> list[NoiseCell]:
    """All cells, those of one setting together."""
    of_family = {"household": len(household_worlds()), "random": options.random_worlds}
    return [
        NoiseCell(family, world, factor, videos)
        for factor in options.factors
        for videos in options.videos
        for family, count in of_family.items()
        for world in range(count)
    ]


def measure_cell(cell: NoiseCell, options: NoiseCurveOptions) -> Measurement:
    """What every method finds there.

    Parameters
    ----------
    cell : NoiseCell
        What is measured, and on what.
    options : NoiseCurveOptions
        What can be set.

    Returns
    -------
    Measurement
        Plain numbers, as they go into JSON.
    """
    noise = NoiseOptions().scale(cell.factor)
    shown = simulate(_world(cell, options), SimulationOptions(videos=cell.videos, noise=noise), cell.world)
    task = shown.task.with_first_labels()
    found: Measurement = {"violations": violation_rate(task, shown.graph)}
    for row, method in ROWS.items():
        graph = learn(task, method)
        scores = metrics.score_graph(graph, shown.graph).to_json()
        ours, theirs = disjunctive_clauses(graph), disjunctive_clauses(shown.graph)
        ors = {"ors": len(ours), "true_ors": len(theirs), "ors_right": len(ours & theirs)}
        found[row] = {**{name: scores[name] for name in MEASURES}, **ors}
    return found


def _world(cell: NoiseCell, options: NoiseCurveOptions) -> World:
    return household_worlds()[cell.world] if cell.family == "household" else random_world(options.world, cell.world)


def disjunctive_clauses(graph: SubtaskGraph) -> set[tuple[Step, Formula]]:
    """The clauses of reduced preconditions that are satisfied by one of several steps, with the step they are of.

    >>> from msg2.graph import all_of, any_of, step
    >>> either = any_of([step("a"), step("b")])
    >>> disjunctive_clauses(SubtaskGraph("t", "abcd", {"d": all_of([either, step("c")])})) == {("d", either)}
    True
    """
    reduced = graph.transitive_reduction()
    return {(step, clause) for step in reduced.steps for clause in reduced.precondition(step).clauses()
            if clause.kind == "any"}  # fmt: skip


# -- what the cells say together --------------------------------------------------------------------------------


def _mean(found: Mapping[NoiseCell, Measurement], setting: tuple[str, float, int], row: str, measure: str) -> float:
    """Over the worlds of a family at one noise, with one number of videos, in percent."""
    cells = [one for cell, one in found.items() if (cell.family, cell.factor, cell.videos) == setting]
    return 100 * fmean(one[row][measure] for one in cells)


def _curves(
    family: str, found: Mapping[NoiseCell, Measurement], options: NoiseCurveOptions
) -> dict[tuple[str, str], dict[str, list[tuple[float, float]]]]:
    """(what is shown, with how many videos) -> method -> (noise, percent)."""
    return {
        (words, f"{videos} videos"): {
            row: [(factor, _mean(found, (family, factor, videos), row, measure)) for factor in options.factors]
            for row in ROWS
        }
        for measure, words in MEASURES.items()
        for videos in options.videos
    }


def _tables(family: str, found: Mapping[NoiseCell, Measurement], options: NoiseCurveOptions) -> list[Table]:
    settings = [(factor, videos) for factor in options.factors for videos in options.videos]
    tables = []
    for measure, words in MEASURES.items():
        rows = [[factor, videos, *(_mean(found, (family, factor, videos), row, measure) for row in ROWS)]
                for factor, videos in settings]  # fmt: skip
        tables.append(
            Table(
                f"{words}, {FAMILIES[family]}, percent",
                ["noise", "videos", *ROWS, "likelihood is"],
                [[*row, _rank_of_last(row[2:])] for row in rows],
                ["noise: times the usual one. likelihood is best, level (at most one point below the best), or below."],
            )
        )
    return [*tables, _disjunction_table(family, found, options)]


def _rank_of_last(values: Sequence[Value]) -> str:
    """How the last method of a row stands beside the others."""
    *others, ours = (float(value or 0) for value in values)
    if ours >= max(others):
        return "best"
    return "level" if ours >= max(others) - 1 else f"{max(others) - ours:.1f} below"


def _disjunction_table(family: str, found: Mapping[NoiseCell, Measurement], options: NoiseCurveOptions) -> Table:
    """Alternatives of all settings with some noise, and of those without."""
    rows: list[list[Value]] = []
    for words, noisy in (("none", False), ("some", True)):
        for videos in options.videos:
            cells = [one for cell, one in found.items()
                     if (cell.family, cell.videos, cell.factor > 0) == (family, videos, noisy)]  # fmt: skip
            for row in ROWS if cells else ():
                ours, theirs, right = (sum(one[row][key] for one in cells) for key in ("ors", "true_ors", "ors_right"))
                rows.append([words, videos, row, theirs, ours, right])
    return Table(
        f"Alternatives, {FAMILIES[family]}",
        ["noise", "videos", "method", "true ORs", "ORs found", "right"],
        rows,
        ["An OR is right when it has exactly the alternatives of the true one; all settings of noise together."],
    )

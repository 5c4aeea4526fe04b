"""Every method against the noise of the labels and the number of videos, on worlds whose graph is known.

Alternatives are counted apart: of the clauses "a or b" of the true preconditions, those that a graph has as well, and
how many of a graph's own are true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

from msg2 import metrics
from msg2.experiments import graphs
from msg2.experiments.cells import Found, filled_in
from msg2.experiments.states_cells import LABELS
from msg2.experiments.tables import Cell as Value
from msg2.experiments.tables import Result, Table, kept_plot
from msg2.graph import Formula, SubtaskGraph
from msg2.inference import infer
from msg2.options import ExperimentOptions, NoiseCurveOptions, NoiseOptions, WorldOptions
from msg2.task import Step
from msg2.worlds import World, random_world, simulate, violation_rate, worlds

ROWS = {
    name: (row.method, row.options)
    for name, row in graphs.ROWS.items()
    if row.filled_by == LABELS and name != "wording"
}
"""All that look at the labels, and at them alone."""
MEASURES = {"accuracy": "accuracy", "spoc": "SPOC", "f1": "edge F1"}
FAMILIES = {"household": "twelve household worlds", "random": "random worlds"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One world of a family, at so many times the usual noise, with so many videos."""

    family: str
    world: int
    factor: float
    videos: int


def run(data: Path | None, options: ExperimentOptions, report: Callable[[str], None]) -> Result:
    """Accuracy, SPOC and edge F1 of every method by noise and by videos; with a folder, also as plots in it."""
    chosen = NoiseCurveOptions.quick() if options.quick else NoiseCurveOptions()
    file = None if options.folder is None else options.folder / "noise.cells.json"
    made_of = {"world": asdict(chosen.world), "rows": ROWS}
    found = filled_in(planned(chosen), partial(measured, options=chosen), depends=lambda _: made_of,
                      file=file, jobs=options.jobs, report=report)  # fmt: skip
    tables = [table for family in FAMILIES for table in _tables(family, found, chosen)]
    if options.folder is not None:
        from msg2.drawing.plots import grid_plot  # pictures, where they are wanted

        for family, words in FAMILIES.items():
            curves = _curves(family, found, chosen)
            kept_plot(options.folder / f"noise-{family}.svg", partial(grid_plot, curves, f"Noise: {words}"), report)
    cells = [{**asdict(cell), "found": one} for cell, one in found.items()]
    return Result("noise", tables, {"options": asdict(chosen), "cells": cells})


def planned(options: NoiseCurveOptions) -> list[Cell]:
    """All cells, those of one setting together."""
    of_family = {"household": len(worlds()), "random": options.random_worlds}
    return [
        Cell(family, world, factor, videos)
        for factor in options.factors
        for videos in options.videos
        for family, count in of_family.items()
        for world in range(count)
    ]


def measured(cell: Cell, options: NoiseCurveOptions) -> Found:
    """What every method finds there."""
    noise = NoiseOptions().scaled(cell.factor)
    shown = simulate(_world(cell, options), WorldOptions(videos=cell.videos, noise=noise), cell.world)
    task = shown.task.with_first_labels()
    found: Found = {"violations": violation_rate(task, shown.graph)}
    for row, (method, given) in ROWS.items():
        graph = infer(task, method, **given)
        scores = metrics.scores(graph, shown.graph).to_json()
        ours, theirs = alternatives(graph), alternatives(shown.graph)
        ors = {"ors": len(ours), "true_ors": len(theirs), "ors_right": len(ours & theirs)}
        found[row] = {**{name: scores[name] for name in MEASURES}, **ors}
    return found


def _world(cell: Cell, options: NoiseCurveOptions) -> World:
    return worlds()[cell.world] if cell.family == "household" else random_world(options.world, cell.world)


def alternatives(graph: SubtaskGraph) -> set[tuple[Step, Formula]]:
    """The clauses of reduced preconditions that are satisfied by one of several steps, with the step they are of.

    >>> from msg2.graph import all_of, any_of, step
    >>> either = any_of([step("a"), step("b")])
    >>> alternatives(SubtaskGraph("t", "abcd", {"d": all_of([either, step("c")])})) == {("d", either)}
    True
    """
    reduced = graph.reduced()
    return {(step, clause) for step in reduced.steps for clause in reduced.precondition(step).clauses()
            if clause.kind == "any"}  # fmt: skip


# -- what the cells say together --------------------------------------------------------------------------------


def _mean(found: Mapping[Cell, Found], setting: tuple[str, float, int], row: str, measure: str) -> float:
    """Over the worlds of a family at one noise, with one number of videos, in percent."""
    cells = [one for cell, one in found.items() if (cell.family, cell.factor, cell.videos) == setting]
    return 100 * fmean(one[row][measure] for one in cells)


def _curves(
    family: str, found: Mapping[Cell, Found], options: NoiseCurveOptions
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


def _tables(family: str, found: Mapping[Cell, Found], options: NoiseCurveOptions) -> list[Table]:
    settings = [(factor, videos) for factor in options.factors for videos in options.videos]
    tables = []
    for measure, words in MEASURES.items():
        rows = [[factor, videos, *(_mean(found, (family, factor, videos), row, measure) for row in ROWS)]
                for factor, videos in settings]  # fmt: skip
        tables.append(
            Table(
                f"{words}, {FAMILIES[family]}, percent",
                ["noise", "videos", *ROWS, "likelihood is"],
                [[*row, _place(row[2:])] for row in rows],
                ["noise: times the usual one. likelihood is best, level (at most one point below the best), or below."],
            )
        )
    return [*tables, _ors(family, found, options)]


def _place(values: Sequence[Value]) -> str:
    """How the last method of a row stands beside the others."""
    *others, ours = (float(value or 0) for value in values)
    if ours >= max(others):
        return "best"
    return "level" if ours >= max(others) - 1 else f"{max(others) - ours:.1f} below"


def _ors(family: str, found: Mapping[Cell, Found], options: NoiseCurveOptions) -> Table:
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

"""The paper's Fig. 3 (b) for any step: the candidates of every round of the search, with their scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from msg2.errors import InputError, shortened
from msg2.experiments.tables import Cell, Table, kept_plot
from msg2.inference import study
from msg2.inference.precision import Round, search_trace
from msg2.options import ExperimentOptions, FigureOptions, PrecisionOptions, WorldOptions
from msg2.readers import read_all
from msg2.task import Step, Task
from msg2.worlds import simulate, world

SEARCHES: Mapping[str, int | None] = {"exhaustive": 2, "greedy": None}
"""Kinds of search of the method `msg2`, by its option `max_literals`."""


def tables(
    data: Path | None, options: ExperimentOptions, chosen: FigureOptions, report: Callable[[str], None]
) -> list[Table]:
    """A table for each kind of search; with a folder, also the pictures in it."""
    task = _task(options.task or chosen.search, data, chosen.seed)
    if options.step is not None and options.step not in task.steps:
        hint = f"its steps are: {', '.join(task.steps)}"
        raise InputError(f"task {shortened(task.name)} has no step {shortened(options.step)}", hint=hint)
    made = []
    for kind, literals in SEARCHES.items():
        report(f"{task.name}: {kind} search")
        found = study(task, "msg2", seed=chosen.seed, max_literals=literals)
        settings = PrecisionOptions(**found.graph.method["options"])
        name = found.graph.steps[-1] if options.step is None else options.step
        rounds = search_trace(found.evidence, name, settings, chosen.candidates)
        made.append(_table(task, name, kind, settings, rounds))
        if options.folder is not None and rounds:
            from msg2.drawing.plots import search_plot  # pictures, where they are wanted

            title = f"{task.name}: what {name!r} needs ({kind} search)"
            path = options.folder / f"figures-search-{kind}.svg"
            kept_plot(path, partial(search_plot, rounds, title), report)
    return made


def _task(name: str, data: Path | None, seed: int) -> Task:
    """The CrossTask task of this name, where there is one; else demonstrations of the household world of this name."""
    folder = None if data is None else data / "crosstask" / "crosstask_release"
    if folder is not None and folder.is_dir():
        for task in read_all(folder):
            if task.name.casefold() == name.strip().casefold():
                return task
    try:
        return simulate(world(name), WorldOptions(), seed).task.with_first_labels()
    except InputError as error:
        raise InputError(error.what, hint=f"{error.hint}; tasks of CrossTask need its folder (--data)") from None


def _table(task: Task, name: Step, kind: str, settings: PrecisionOptions, rounds: list[Round]) -> Table:
    rows: list[list[Cell]] = []
    for one in rounds:
        for rank, candidate in enumerate(one.candidates):
            formula = candidate.formula
            rows.append([formula.literals, formula.words(), candidate.score, "" if rank else one.outcome])
    notes = [f"δ = {settings.delta:g}, α = {settings.alpha:g}, {len(task)} videos; the best candidates of each round."]
    if not rounds:
        notes.append("Nothing was searched for: no step comes before it often enough.")
    return Table(
        f"{task.name}: the {kind} search for what {name!r} needs",
        ["steps", "candidate", "score", "outcome"],
        rows,
        notes,
    )

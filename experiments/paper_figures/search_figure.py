"""The paper's Fig. 3 (b) for any step: the candidates of every round of the search, with their scores."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from experiments.experiment_options import ExperimentOptions
from experiments.paper_figures import SEED
from experiments.paper_figures.search_trace import SearchRound, search_trace
from experiments.result_tables import Table, Value, save_plot
from msg2.errors import InputError
from msg2.formats import read_all
from msg2.inference.inference import run_inference
from msg2.inference.msg2 import Msg2Options
from msg2.progress import Progress
from msg2.simulation import household_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Step, Task
from msg2.text import short_repr

WORLD = "Repot Plant"
"""The household world of the step whose precondition is searched for; that of the paper."""
MAX_CANDIDATES = 12
"""Candidates of a round that are shown."""
SEARCHES: Mapping[str, int | None] = {"exhaustive": 2, "greedy": None}
"""Kinds of search of the method `msg2`, by its option `max_literals`."""


def search_tables(data: Path | None, options: ExperimentOptions, progress: Progress) -> list[Table]:
    """A table for each kind of search; with a folder, also the pictures in it.

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
    list[Table]
        The tables.
    """
    task = _find_task(options.task or WORLD, data)
    if options.step is not None and options.step not in task.steps:
        hint = f"its steps are: {', '.join(task.steps)}"
        raise InputError(f"task {short_repr(task.name)} has no step {short_repr(options.step)}", hint=hint)
    made = []
    for kind, literals in SEARCHES.items():
        progress(0, None, f"{task.name}: {kind} search")
        found = run_inference(task, "msg2", seed=SEED, max_literals=literals)
        settings = Msg2Options(**found.graph.method["options"])
        name = found.graph.steps[-1] if options.step is None else options.step
        rounds = search_trace(found.sequences, name, settings, MAX_CANDIDATES)
        made.append(_candidate_table(task, name, kind, settings, rounds))
        if options.folder is not None and rounds:
            from experiments.plots import search_plot  # pictures, where they are wanted

            title = f"{task.name}: what {name!r} needs ({kind} search)"
            path = options.folder / f"figures-search-{kind}.svg"
            save_plot(path, partial(search_plot, rounds, title))
    return made


def _find_task(name: str, data: Path | None) -> Task:
    """The CrossTask task of this name, where there is one; else demonstrations of the household world of this name."""
    folder = None if data is None else data / "crosstask" / "crosstask_release"
    if folder is not None and folder.is_dir():
        for task in read_all(folder):
            if task.name.casefold() == name.strip().casefold():
                return task
    try:
        return simulate(household_world(name), SimulationOptions(), SEED).task.with_first_labels()
    except InputError as error:
        raise InputError(error.what, hint=f"{error.hint}; tasks of CrossTask need its folder (--data)") from None


def _candidate_table(task: Task, name: Step, kind: str, settings: Msg2Options, rounds: list[SearchRound]) -> Table:
    rows: list[list[Value]] = []
    for one in rounds:
        for rank, candidate in enumerate(one.candidates):
            formula = candidate.formula
            rows.append([formula.literal_count, formula.to_english(), candidate.score, "" if rank else one.outcome])
    notes = [f"δ = {settings.delta:g}, α = {settings.alpha:g}, {len(task)} videos; the best candidates of each round."]
    if not rounds:
        notes.append("Nothing was searched for: no step comes before it often enough.")
    return Table(
        f"{task.name}: the {kind} search for what {name!r} needs",
        ["steps", "candidate", "score", "outcome"],
        rows,
        notes,
    )

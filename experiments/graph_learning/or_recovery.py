"""ORs that are found, and what can be found at all: random worlds with ORs, by noise and by videos.

The true graph is scored like the one that was found. A search that ends below the truth stopped short; where it ends
above it, these videos speak for another graph than the true one, and no search for the best score could find that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from experiments.experiment_options import ExperimentOptions
from experiments.graph_learning.exact_recovery import count_recovered
from experiments.result_tables import Result, Table, Value, save_plot
from msg2.graph import SubtaskGraph
from msg2.graph.closure import Relation
from msg2.inference import infer
from msg2.inference.likelihood import LikelihoodOptions
from msg2.inference.likelihood.choices import Disjunction
from msg2.inference.likelihood.search import find_order
from msg2.progress import Progress
from msg2.result_cache import Measurement, measure_cells
from msg2.sequences import Sequences, Variants
from msg2.simulation import NoiseOptions, RandomWorldOptions, random_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Step


@dataclass(frozen=True, slots=True)
class OrRecoveryOptions:
    """How noise and the number of videos are varied (`python -m experiments ors`)."""

    factors: tuple[float, ...] = (0.0, 0.5, 1.0)
    """Times the usual noise."""
    videos: tuple[int, ...] = (50, 100, 300, 1000)
    worlds: int = 20
    first_seed: int = 8000
    """No world from this seed on was looked at while the search was written."""
    world: RandomWorldOptions = field(default_factory=lambda: RandomWorldOptions(steps=12, depth=4, or_rate=0.5))

    @staticmethod
    def quick() -> OrRecoveryOptions:
        """A minute's part of it."""
        return OrRecoveryOptions(factors=(0.0, 1.0), videos=(50, 100), worlds=2)


ROWS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "always-before": ("always-before", {}),
    "msg2, δ auto": ("msg2", {}),
    "likelihood": ("likelihood", {}),
}
NOISE_WORDS = {0.0: "none", 0.5: "half", 1.0: "full"}
_SAME = 0.001
"""Nats by which scores may differ and are still called equal."""


@dataclass(frozen=True, slots=True)
class OrCell:
    """One world at so many times the usual noise, with so many videos."""

    seed: int
    factor: float
    videos: int


def run(data: Path | None, options: ExperimentOptions, progress: Progress) -> Result:
    """Preconditions that are exact, and the score of the truth beside that of what was found.

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
        The tables, the facts that make them repeatable, and the plot.
    """
    chosen = OrRecoveryOptions.quick() if options.quick else OrRecoveryOptions()
    cells = [
        OrCell(seed, factor, videos)
        for factor in chosen.factors
        for videos in chosen.videos
        for seed in range(chosen.first_seed, chosen.first_seed + chosen.worlds)
    ]
    found = measure_cells(
        cells,
        partial(measure_cell, shape=chosen.world),
        cell_options=lambda _: {"world": asdict(chosen.world), "rows": ROWS},
        file=None if options.folder is None else options.folder / "ors.cells.json",
        jobs=options.jobs,
        progress=progress,
    )
    if options.folder is not None:
        from experiments.plots import grid_plot  # pictures, where they are wanted

        title = "Preconditions found exactly, percent"
        drawn = partial(grid_plot, _curves(found, chosen), title, across="videos", logarithmic=True)
        save_plot(options.folder / "ors.svg", drawn)
    tables = [_exact_table(found, chosen), _score_table(found, chosen)]
    return Result("ors", tables, {"options": asdict(chosen), "cells": [{**asdict(c), **m} for c, m in found.items()]})


def measure_cell(cell: OrCell, shape: RandomWorldOptions) -> Measurement:
    """What every method finds there, and how the truth and the found order score.

    Parameters
    ----------
    cell : OrCell
        What is measured.
    shape : RandomWorldOptions
        Of the world.

    Returns
    -------
    Measurement
        Of each method, how many preconditions with and without OR are exact; the two scores in nats.
    """
    world = random_world(shape, cell.seed)
    noise = NoiseOptions().scale(cell.factor)
    task = simulate(world, SimulationOptions(videos=cell.videos, noise=noise), cell.seed).task.with_first_labels()
    sequences = Sequences.from_task(task)
    scorer, order = find_order(Variants.from_sequences(sequences), LikelihoodOptions())
    # Both from the same estimate of the noise on: what is equal then scores equally.
    truth = scorer.refit_noise(scorer.score(*true_order(world.graph, sequences.steps)))
    ours = scorer.refit_noise(scorer.score(order.relation, order.disjunctions))
    rows = {row: count_recovered(infer(task, method, **given), world.graph) for row, (method, given) in ROWS.items()}
    return {
        "true": count_recovered(world.graph, world.graph)[1:],
        "found": {row: counts[1:] for row, counts in rows.items()},
        "truth_score": truth.score,
        "found_score": ours.score,
    }


def true_order(graph: SubtaskGraph, steps: tuple[Step, ...]) -> tuple[Relation, frozenset[Disjunction]]:
    """Translate a graph to the partial order and the ORs of the search.

    Parameters
    ----------
    graph : SubtaskGraph
        The true one.
    steps : tuple of str
        All steps, in the order of the search.

    Returns
    -------
    tuple of (array of shape (N, N), frozenset of Disjunction)
    """
    index = {name: place for place, name in enumerate(steps)}
    relation = np.zeros((len(steps), len(steps)), dtype=np.bool_)
    for name, place in index.items():
        relation[[index[one] for one in graph.necessary[name] - {name}], place] = True
    ors = frozenset(
        (index[name], frozenset(index[one] for one in clause.steps))
        for name in steps
        for clause in graph.precondition(name).clauses()
        if clause.kind == "any"
    )
    return relation, ors


# -- what the cells say together --------------------------------------------------------------------------------


def _cells(found: Mapping[OrCell, Measurement], factor: float, videos: int) -> list[Measurement]:
    return [one for cell, one in found.items() if (cell.factor, cell.videos) == (factor, videos)]


def _exact(cells: list[Measurement], row: str, place: int) -> float:
    """Percent of the preconditions without OR (place 0), or with one (1), that are exact."""
    right, wanted = sum(one["found"][row][place] for one in cells), sum(one["true"][place] for one in cells)
    return 100 * float(right / wanted)


def _exact_table(found: Mapping[OrCell, Measurement], options: OrRecoveryOptions) -> Table:
    return Table(
        "Preconditions that are found exactly",
        ["noise", "videos", "method", "with an OR, percent", "others, percent"],
        [
            [NOISE_WORDS[factor], videos, row, *(_exact(_cells(found, factor, videos), row, place) for place in (1, 0))]
            for factor in options.factors
            for videos in options.videos
            for row in ROWS
        ],
        [f"{options.worlds} random worlds of {options.world.steps} steps, half of the preconditions with an OR; "
         f"seeds from {options.first_seed} on. noise: times the usual one."],
    )  # fmt: skip


def _score_table(found: Mapping[OrCell, Measurement], options: OrRecoveryOptions) -> Table:
    rows: list[list[Value]] = []
    for factor in options.factors:
        for videos in options.videos:
            above = [one["found_score"] - one["truth_score"] for one in _cells(found, factor, videos)]
            below, same = sum(nats < -_SAME for nats in above), sum(abs(nats) <= _SAME for nats in above)
            counts = (below, same, len(above) - below - same)
            rows.append([NOISE_WORDS[factor], videos, *counts, median(above), fmean(above)])
    return Table(
        "The score of what the search found, beside that of the truth",
        ["noise", "videos", "search ended below", "level", "above", "median, nats above", "mean, nats above"],
        rows,
        ["Worlds in which the order that was found scores below, like or above the true one. Above: another graph "
         "makes these videos more probable than the true one, which cannot be identified from them."],
    )  # fmt: skip


def _curves(
    found: Mapping[OrCell, Measurement], options: OrRecoveryOptions
) -> dict[tuple[str, str], dict[str, list[tuple[float, float]]]]:
    """(what is counted, at which noise) -> method -> (videos, percent)."""
    return {
        (words, f"noise: {NOISE_WORDS[factor]}"): {
            row: [(videos, _exact(_cells(found, factor, videos), row, place)) for videos in options.videos]
            for row in ROWS
        }
        for place, words in ((1, "with an OR"), (0, "others"))
        for factor in options.factors
    }

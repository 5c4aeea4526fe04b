"""Which of two traces fits a process better, on the models of the Process Discovery Contest 2025.

From 1,000 traces, as they are or with noise in one of five, a graph is learned (`--absent skipped`), and every pair of
traces is decided by the log-likelihood that `msg2 check` gives them, all events counted. Beside it stand controls that
count, and, where there is an environment with it, pm4py's inductive miner with token replay and, on some pairs, with
alignments.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

from experiments.experiment_options import ExperimentOptions
from experiments.graph_learning.inductive_miner import find_pm4py, mined_fitness, pm4py_version
from experiments.process_discovery.contest_models import (
    CONSTRUCTS,
    LOGS,
    ContestModel,
    Log,
    accuracy,
    find_models,
    traces_of,
)
from experiments.process_discovery.trace_scorers import SCORERS, score_pairs
from experiments.result_tables import Result, Table, Value
from msg2.progress import Progress
from msg2.result_cache import Measurement, measure_cells

THRESHOLDS = (0.0, 0.2)
"""Noise thresholds of the inductive miner."""
ALIGNED_PAIRS, ALIGNED_EVERY = 10, 6
"""Of every sixth model, ten pairs are decided by alignments as well: they take up to a minute each."""


@dataclass(frozen=True, slots=True)
class ContestCell:
    """One row of the tables, on one log of one model."""

    model: str
    log: Log
    row: str
    aligned: bool
    """Whether some pairs are decided by alignments as well."""


def run(data: Path, options: ExperimentOptions, progress: Progress) -> Result:
    """Decide all pairs of all models.

    Parameters
    ----------
    data : Path
        Folder of the annotation sets.
    options : ExperimentOptions
        `quick` takes two models.
    progress : Progress
        Shows how far the work is.

    Returns
    -------
    Result
        Accuracies in all and by construct, seconds, and the facts that make them repeatable.
    """
    models = find_models(data / "pdc2025")
    if options.quick:
        models = models[:: len(models) - 1]
    pm4py = find_pm4py()
    peers = () if pm4py is None else tuple(f"inductive miner, noise {threshold:g}" for threshold in THRESHOLDS)
    rows = (*SCORERS, *peers)
    cells = [
        ContestCell(model.name, log, row, row in peers and place % ALIGNED_EVERY == 0)
        for row in rows
        for log in LOGS
        for place, model in enumerate(models)
    ]
    found = measure_cells(
        cells,
        partial(measure, folder=data / "pdc2025"),
        file=None if options.folder is None else options.folder / "contest.cells.json",
        jobs=options.jobs,
        progress=progress,
    )
    tables = [_summary(found, rows), _by_construct(found, rows, models), _seconds(found, rows)]
    if peers:
        tables.insert(1, _alignments(found, peers))
    facts = {
        "models": [model.name for model in models],
        "aligned": sorted({cell.model for cell in cells if cell.aligned}),
        "pm4py": None if pm4py is None else pm4py_version(pm4py),
    }
    chart = {column: tables[0].dots(column) for column in tables[0].columns[1:]}
    return Result("contest", tables, facts, chart)


def measure(cell: ContestCell, folder: Path) -> Measurement:
    """Learn from one log and decide the pairs of its model.

    Parameters
    ----------
    cell : ContestCell
        What is measured.
    folder : Path
        Of the contest.

    Returns
    -------
    dict
        Accuracy in percent, and seconds of learning and of deciding.
    """
    model = ContestModel(cell.model, folder)
    task, pairs = model.training_log(cell.log), model.pairs()
    both = [(pair.first, pair.second) for pair in pairs]
    if cell.row not in SCORERS:
        return _measure_peer(cell, model)
    begun = time.perf_counter()
    scorer = SCORERS[cell.row](task)
    learned = time.perf_counter()
    scores = score_pairs(scorer, both)
    return {
        "accuracy": accuracy(pairs, scores),
        "learning": learned - begun,
        "deciding": time.perf_counter() - learned,
    }


def _measure_peer(cell: ContestCell, model: ContestModel) -> Measurement:
    python = find_pm4py()
    assert python is not None
    pairs, log = model.pairs(), traces_of(model.training_log(cell.log))
    traces = [trace for pair in pairs for trace in (pair.first, pair.second)]
    threshold = THRESHOLDS[[f"inductive miner, noise {one:g}" for one in THRESHOLDS].index(cell.row)]
    found = mined_fitness(log, threshold, traces, 2 * ALIGNED_PAIRS if cell.aligned else 0, python)
    measured = {
        "accuracy": accuracy(pairs, _in_twos(found.replay)),
        "learning": found.seconds,
        "deciding": found.replay_seconds,
    }
    if not cell.aligned:
        return measured
    fitness = [float("-inf") if one is None else one for one in found.alignment]
    right = accuracy(pairs[:ALIGNED_PAIRS], _in_twos(fitness))
    return {**measured, "aligned": right, "aligning": found.alignment_seconds}


def _in_twos(scores: Sequence[float]) -> list[tuple[float, float]]:
    return list(zip(scores[::2], scores[1::2], strict=True))


def _summary(found: Mapping[ContestCell, Measurement], rows: Sequence[str]) -> Table:
    """Accuracy over the models without loops and over all, from clean and noisy logs."""
    columns = [(log, loops) for loops in (False, True) for log in LOGS]

    def cells(row: str, log: Log, loops: bool) -> list[float]:
        return [
            one["accuracy"]
            for cell, one in found.items()
            if (cell.row, cell.log) == (row, log) and (loops or cell.model[1] == "0")
        ]

    return Table(
        "Pairs of traces that are decided rightly, percent",
        ["row", *(f"{'all' if loops else 'loop-free'}, {log}" for log, loops in columns)],
        [[row, *(_mean(cells(row, *column)) for column in columns)] for row in rows],
        ["1,000 pairs of each model; where both traces fit alike, half a pair is right. A guess has 50."],
    )


def _alignments(found: Mapping[ContestCell, Measurement], peers: Sequence[str]) -> Table:
    """The first pairs of each model by alignments."""
    lines: list[list[Value]] = []
    for row in peers:
        for log in LOGS:
            of_row = [one for cell, one in found.items() if (cell.row, cell.log, cell.aligned) == (row, log, True)]
            per_hundred = fmean(one["aligning"] for one in of_row) * 50 / ALIGNED_PAIRS
            lines.append([row, log, _mean([one["aligned"] for one in of_row]), per_hundred])
    return Table(
        "By alignments, on a sample",
        ["row", "log", "right, percent", "seconds for 100 traces"],
        lines,
        [
            f"The first {ALIGNED_PAIRS} pairs of every {ALIGNED_EVERY}th model. A trace that takes longer than 5 "
            "seconds is taken not to fit."
        ],
    )


def _by_construct(
    found: Mapping[ContestCell, Measurement], rows: Sequence[str], models: Sequence[ContestModel]
) -> Table:
    """Accuracy over the models that have a construct, from noisy logs."""
    having = {model.name: model.constructs for model in models}

    def cells(row: str, construct: str) -> list[float]:
        return [
            one["accuracy"]
            for cell, one in found.items()
            if (cell.row, cell.log) == (row, "noisy") and construct in having[cell.model]
        ]

    return Table(
        "By construct, from noisy logs, percent",
        ["row", *CONSTRUCTS],
        [[row, *(_mean(cells(row, construct)) for construct in CONSTRUCTS)] for row in rows],
        ["Of the models that have the construct, among others."],
    )


def _seconds(found: Mapping[ContestCell, Measurement], rows: Sequence[str]) -> Table:
    """Seconds of learning from 1,000 traces, and of deciding 1,000 pairs."""
    lines: list[list[Value]] = []
    for row in rows:
        of_row = [one for cell, one in found.items() if cell.row == row]
        lines.append([row, _mean([one["learning"] for one in of_row]), _mean([one["deciding"] for one in of_row])])
    return Table("Seconds, mean of the logs", ["row", "learning from 1,000 traces", "deciding 1,000 pairs"], lines)


def _mean(values: Sequence[float]) -> Value:
    return fmean(values) if values else None

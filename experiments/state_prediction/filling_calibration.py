"""Whether the confidences of filled-in labels are true: twelve worlds, few and many videos, calibrated and not.

Of the labels that are added with a confidence of 0.7, have 0.7 really been performed? And does the graph gain?
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from experiments.experiment_options import ExperimentOptions
from experiments.result_tables import Result, Table, Value
from experiments.state_prediction.state_cells import (
    ROWS,
    UNCALIBRATED,
    StateStudyOptions,
    predictor_options,
    train_predictor,
)
from msg2 import metrics
from msg2.inference import infer
from msg2.metrics.calibration import NextStepPrediction, score_calibration
from msg2.progress import Progress
from msg2.result_cache import Measurement, measure_cells
from msg2.simulation import NoiseOptions, Simulation, household_world, household_worlds, simulate, simulate_features
from msg2.simulation.simulated_features import FeatureOptions
from msg2.simulation.simulator import SimulationOptions
from msg2.states.configuration import FillOptions
from msg2.states.fill_calibration import LEAST_LABELS, LEAST_VIDEOS
from msg2.task import PREDICTED, Task

SIZES = (8, 20, 54)
"""Videos per world."""
SURE = 0.9
"""Confidence from which a label counts as surely right."""
LABELS, BEFORE, AFTER = "labels alone", "uncalibrated", "calibrated"
WAYS: Mapping[str, FillOptions | None] = {LABELS: None, BEFORE: UNCALIBRATED, AFTER: FillOptions()}


@dataclass(frozen=True, slots=True, order=True)
class FillingCell:
    """One simulation of a world."""

    videos: int
    world: str
    seed: int


def run(data: Path | None, options: ExperimentOptions, progress: Progress) -> Result:
    """Measure what is missing in the file of cells, then make the table.

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
        The table, and the facts that make it repeatable.
    """
    study = StateStudyOptions.of(options)
    names = study.worlds or tuple(world.name for world in household_worlds())
    sizes = SIZES[:1] if options.quick else SIZES
    cells = [FillingCell(videos, name, seed) for seed in study.seeds[:2] for videos in sizes for name in names]
    found = measure_cells(
        cells, partial(measure_filling, study=study), jobs=options.jobs, progress=progress,
        cell_options=lambda _: predictor_options("evidence", study)
        | {"filling": asdict(FillOptions()), "least": [LEAST_LABELS, LEAST_VIDEOS]},
        file=None if options.folder is None else options.folder / "filling-calibration.cells.json",
    )  # fmt: skip
    kept = [{**asdict(cell), "found": numbers} for cell, numbers in found.items()]
    return Result("filling-calibration", [filling_table(found)], {"options": asdict(study), "cells": kept}, {})


def measure_filling(
    cell: FillingCell, study: StateStudyOptions, ways: Mapping[str, FillOptions | None] = WAYS
) -> Measurement:
    """What each way of filling adds, and the graph that is learned from it.

    Parameters
    ----------
    cell : FillingCell
        What is simulated.
    study : StateStudyOptions
        How the model is trained.
    ways : mapping of str to FillOptions or None
        How labels are added; None: not at all.

    Returns
    -------
    Measurement
        For every way the confidences of the added labels, whether they are right, and the scores of the graph.
    """
    from msg2.states.loss_and_optimizer import single_thread

    noise = NoiseOptions(unlabelled=study.unlabelled)
    simulation = simulate(household_world(cell.world), SimulationOptions(videos=cell.videos, noise=noise), cell.seed)
    seen = simulate_features(simulation, FeatureOptions(), cell.seed)
    with single_thread():
        model = train_predictor(ROWS["evidence"], simulation, seen, cell.seed, study, calibrated=True)
        filled = {way: simulation.task if chosen is None else model.fill(chosen) for way, chosen in ways.items()}
    assert model.calibration is not None
    return {
        "calibration": {
            "labels": model.calibration.labels,
            "error": model.calibration.error,
            "note": model.note(FillOptions()),
        },
        **{way: _judge(task, simulation) for way, task in filled.items()},
    }


def _judge(filled: Task, simulation: Simulation) -> Measurement:
    performed = {video.id: set(video.sequence()) for video in simulation.performed}
    added = [
        (round(segment.confidence or 0.0, 4), segment.step in performed[video.id])
        for video in filled
        for segment in video.segments
        if segment.source == PREDICTED
    ]
    graph = infer(filled.with_first_labels())
    scores = metrics.score_graph(graph, simulation.graph, simulation.task.with_first_labels())
    return {"added": added, "accuracy": scores.accuracy, "f1": scores.edges.f1}


def filling_table(found: Mapping[FillingCell, Measurement]) -> Table:
    """The labels that are added in all worlds of a size, and the graphs.

    Parameters
    ----------
    found : mapping of FillingCell to Measurement
        What was measured.

    Returns
    -------
    Table
        A row for every size and way.
    """
    rows: list[list[Value]] = []
    for videos in sorted({cell.videos for cell in found}):
        cells = [numbers for cell, numbers in found.items() if cell.videos == videos]
        for way in WAYS:
            added = [(confidence, right) for cell in cells for confidence, right in cell[way]["added"]]
            sure = [right for confidence, right in added if confidence >= SURE]
            gains = [cell[way]["f1"] - cell[LABELS]["f1"] for cell in cells]
            rows.append([
                videos, way, sum(bool(cell[way]["added"]) for cell in cells), len(added),
                _percent([right for _, right in added]), calibration_error(added), len(sure), _percent(sure),
                _percent([cell[way]["accuracy"] for cell in cells]), _percent([cell[way]["f1"] for cell in cells]),
                "" if way == LABELS else _interval(gains),
            ])  # fmt: skip
    return Table(
        "Confidences of filled-in labels, percent",
        ["videos", "labels", "worlds with added labels", "added", "right", "calibration error", f"sure (≥ {SURE})",
         "of these right", "accuracy", "edge f1", "f1 gained"],
        rows,
        [
            "Right: really performed in that video. Calibration error: of all added labels of the worlds of a size, in "
            "ten bins. Graphs are those of the default method, means over the worlds; f1 gained is paired, with the "
            "95 % interval of the mean over worlds (bootstrap).",
        ],
    )  # fmt: skip


def calibration_error(added: Sequence[tuple[float, bool]]) -> float | None:
    """The expected calibration error of confidences, in percent; None without any.

    >>> calibration_error([(0.75, True), (0.75, False)])
    25.0
    """
    predictions = [NextStepPrediction(confidence, float(right), confidence) for confidence, right in added]
    return 100 * score_calibration(predictions).expected_calibration_error if added else None


def _percent(values: Sequence[float]) -> float | None:
    return 100 * float(np.mean(values)) if values else None


def _interval(gains: Sequence[float]) -> Value:
    """The mean in percent, with the interval of the mean of resampled worlds."""
    draws = np.random.default_rng(0).choice(gains, (2000, len(gains))).mean(axis=1)
    low, high = 100 * np.quantile(draws, [0.025, 0.975])
    return f"{100 * float(np.mean(gains)):+.2f} ({low:+.2f} to {high:+.2f})"

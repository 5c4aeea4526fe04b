"""Next step on the CrossTask tasks with narration (Table 2): STAM and ViViT beside graphs, counts and a model of ours.

All rows learn from the same training videos and are asked before the same steps of the same test videos, which are
those of the experiment `next-step`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from statistics import mean, pstdev

import numpy as np

from experiments import paper_results
from experiments.experiment_options import ExperimentOptions
from experiments.forecasting.logistic_ranker import logistic_ranker
from experiments.forecasting.next_step_labels import DELTA
from experiments.forecasting.video_forecasters import (
    ForecasterLearner,
    VideoInputs,
    VideoNextStepOptions,
    expected_hits,
    filled_label_forecaster,
    label_forecaster,
    network_forecaster,
    predicted_state_forecaster,
)
from experiments.hidden_steps.narration_models import CachedTextEncoder, narration_features, read_narrated_tasks
from experiments.provenance import fingerprint
from experiments.result_tables import Result, Table, Value
from experiments.state_prediction.state_cells import states_extra_installed
from msg2.assist.learned_forecaster import fit_forecaster
from msg2.assist.next_step_evaluation import TEST_SHARE, train_test_split
from msg2.assist.rankers import bigram, recency
from msg2.errors import MissingExtraError
from msg2.formats.feature_store import VideoFeatures, open_store
from msg2.inference import infer
from msg2.progress import Progress
from msg2.result_cache import Measurement, measure_cells
from msg2.task import Task
from msg2.text_encoders import text_encoder

ROWS: Mapping[str, ForecasterLearner] = {
    "MSG²-noSSP": label_forecaster(lambda task: recency(infer(task, "msg2", delta=DELTA))),
    "MSG²": filled_label_forecaster,
    "MSG², the paper's predictor": predicted_state_forecaster,
    "bigram": label_forecaster(bigram),
    "logistic": label_forecaster(logistic_ranker),
    "learned": label_forecaster(lambda task: fit_forecaster(infer(task, "msg2", delta=DELTA), task)),
    "STAM": network_forecaster("stam"),
    "ViViT": network_forecaster("vivit"),
    "STAM, no labels": network_forecaster("stam", labels=False),
    "ViViT, no labels": network_forecaster("vivit", labels=False),
    "text + labels": network_forecaster("text+labels"),
    "text + labels, deaf": network_forecaster("text+labels", heard=0),
}
PAPER_ACCURACY: Mapping[str, Mapping[str, float]] = {
    **paper_results.NEXT_STEP_OF_NETWORKS,
    "MSG²-noSSP": {task: no_ssp for task, (_, _, no_ssp, _) in paper_results.NEXT_STEP.items()},
    "MSG²": {task: full for task, (_, _, _, full) in paper_results.NEXT_STEP.items()},
    "MSG², the paper's predictor": {task: full for task, (_, _, _, full) in paper_results.NEXT_STEP.items()},
}
"""App. C of the paper, CrossTask, percent."""

_EMPTY = np.zeros((0, 0), np.float32)
NO_FEATURES = VideoFeatures(np.zeros(0), _EMPTY, np.zeros((0, 2)), _EMPTY)
"""Of a video that a feature store lacks."""


@dataclass(frozen=True, slots=True)
class VideoNextStepCell:
    """One row on one split of one task."""

    row: str
    task: str
    seed: int


def run(data: Path, options: ExperimentOptions, progress: Progress) -> Result:
    """Accuracy in percent by task, mean over seeded splits; and the same without the first step of every video.

    Parameters
    ----------
    data : Path
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
    if not states_extra_installed():
        raise MissingExtraError("predicting steps with networks", "video")
    chosen = VideoNextStepOptions.quick() if options.quick else VideoNextStepOptions()
    folder, seeds = data / "crosstask", range(options.splits)
    tasks = read_narrated_tasks(folder)
    planned = [VideoNextStepCell(row, name, seed) for name in tasks for seed in seeds for row in ROWS]
    text_only = not (folder / "features").is_dir()
    settings = {"options": asdict(chosen), "text_encoder": Path(options.text_encoder).name, "text_only": text_only}
    inputs = {**settings, "data": fingerprint(folder)["sha256"]}
    found = measure_cells(
        planned, partial(measure_cell, folder=folder, encoder=options.text_encoder, options=chosen),
        cell_options=lambda _: inputs, file=options.folder and options.folder / "video-next-step.cells.json",
        jobs=options.jobs, progress=progress,
    )  # fmt: skip
    tests = {name: {seed: [video.id for video in _split_videos(task, seed)[1]] for seed in seeds}
             for name, task in tasks.items()}  # fmt: skip
    facts = {**settings, "seeds": list(seeds), "delta": DELTA, "test_videos": tests,
             "cells": [{**asdict(cell), **one} for cell, one in found.items()]}  # fmt: skip
    every, later = accuracy_tables(found, chosen, text_only)
    chart = {
        "all steps, mean of tasks": every.dots("mean", spread=True, printed=every.columns[-1]),
        "without the first step of every video": later.dots("mean", spread=True),
    }
    return Result("video-next-step", [every, later], facts, chart)


def measure_cell(cell: VideoNextStepCell, folder: Path, encoder: str, options: VideoNextStepOptions) -> Measurement:
    """How many steps of the test videos were predicted, in all and without the first of each video.

    Parameters
    ----------
    cell : VideoNextStepCell
        What is measured, and on what.
    folder : Path
        Of CrossTask.
    encoder : str
        Name or folder of the text encoder.
    options : VideoNextStepOptions
        What can be set.

    Returns
    -------
    Measurement
        Plain numbers, as they go into JSON.
    """
    training, test = _split_videos(read_narrated_tasks(folder)[cell.task], cell.seed)
    forecast = ROWS[cell.row](training, read_video_inputs(folder, encoder, cell.task), options)
    found = [expected_hits(forecast, video) for video in test]
    later = [one[1:] for one in found]
    return {
        "right": sum(map(sum, found)), "steps": sum(map(len, found)),
        "later_right": sum(map(sum, later)), "later_steps": sum(map(len, later)),
    }  # fmt: skip


@cache
def read_video_inputs(folder: Path, encoder: str, task: str) -> VideoInputs:
    """Features from the store in `folder`/features, where there is one; else the narration alone.

    Parameters
    ----------
    folder : Path
        Of CrossTask.
    encoder : str
        Name or folder of the text encoder.
    task : str
        Name of the task.

    Returns
    -------
    VideoInputs
        Features of the videos of the task.
    """
    encode = CachedTextEncoder(text_encoder(encoder))
    if not (folder / "features").is_dir():
        return VideoInputs(lambda video: narration_features(video.sentences, encode), True, encode)
    store = open_store(folder / "features")
    return VideoInputs(lambda video: store.features(task, video.id) or NO_FEATURES, False, encode)


def _split_videos(task: Task, seed: int) -> tuple[Task, Task]:
    return train_test_split(task, seed=seed)


# -- what the cells say together --------------------------------------------------------------------------------


def accuracy_tables(
    found: Mapping[VideoNextStepCell, Measurement], options: VideoNextStepOptions, text_only: bool
) -> list[Table]:
    """By row and task: all steps, and all but the first of each video.

    Parameters
    ----------
    found : mapping
        The measurement of every cell.
    options : VideoNextStepOptions
        What can be set.
    text_only : bool
        Whether there are no video features.

    Returns
    -------
    list[Table]
        The tables.
    """
    seeds = len({cell.seed for cell in found})
    net = options.network
    frames = (
        "There are no video features: sentences stand in the place of frames, and STAM and ViViT see nothing."
        if text_only
        else "Frames and sentences are those of the feature store."
    )
    notes = [
        f"Mean of {seeds} seeded splits with {100 * TEST_SHARE:g} % test videos, those of `next-step`; "
        "all rows learn from the same videos and are asked before the same steps, the first of each video included. "
        "Ties count with their expected value. Steps that are done are never predicted.",
        f"{frames} MSG² has the labels of its training videos filled up by a state predictor of ours that hears them; "
        f"the paper's ({options.states}, without weights) does that, and says in test videos which steps without a "
        f"label are completed (App. C). Graphs are at δ = {DELTA}. STAM, ViViT and text + labels hear what was said "
        "before the step begins; no labels: frames are not told which step they show; deaf: no sentences.",
        f"The networks are small and start without weights (width {net.width}, {net.layers} layers, {net.frames} "
        "frames per step): the official weights of STAM and ViViT were not run. The paper's values are for CLIP "
        "features of the pictures and for a split of its own; they do not compare with these rows number by number.",
        "The paper's rows do not share a test set: by the printed fractions, STAM and ViViT are counted over 51, 112 "
        "and 215 predictions (or multiples) in these tasks, the graphs over 77, 145 and 311.",
    ]
    all_steps = "Next step on CrossTask tasks with narration, accuracy in percent"
    later = "The same without the first step of every video, before which no step has been seen"
    return [
        _add_paper_column(_table(all_steps, found, ("right", "steps"), notes)),
        _table(later, found, ("later_right", "later_steps"), []),
    ]


def _table(
    title: str, found: Mapping[VideoNextStepCell, Measurement], keys: tuple[str, str], notes: Sequence[str]
) -> Table:
    names = list(dict.fromkeys(cell.task for cell in found))
    rows: list[list[Value]] = []
    for row in ROWS:
        shares = {name: _split_percentages(found, row, name, keys) for name in names}
        splits = [mean(values) for values in zip(*shares.values(), strict=True)]
        rows.append([row, *(mean(values) for values in shares.values()), mean(splits), pstdev(splits)])
    return Table(title, ["method", *names, "mean", "spread over splits"], rows, notes)


def _add_paper_column(table: Table) -> Table:
    """One more column: what the paper prints, on average over the tasks of the table."""
    names = table.columns[1:-2]
    printed = [[PAPER_ACCURACY.get(str(row[0]), {}).get(name) for name in names] for row in table.rows]
    means = [None if None in values else mean(filter(None, values)) for values in printed]
    rows = [[*row, value] for row, value in zip(table.rows, means, strict=True)]
    return replace(table, columns=[*table.columns, "paper, mean of these tasks"], rows=rows)


def _split_percentages(
    found: Mapping[VideoNextStepCell, Measurement], row: str, task: str, keys: tuple[str, str]
) -> list[float]:
    """Percent predicted, of every split."""
    right_key, steps_key = keys
    cells = [one for cell, one in found.items() if (cell.row, cell.task) == (row, task)]
    return [100 * one[right_key] / max(1, one[steps_key]) for one in cells]

"""Calibrating a trained model: every label is hidden once, and asked of a model that has not learned from its video.

The evidence model alone is cross-fitted by itself: each of its layers scores the videos that it has not seen. Any other
model is trained again on the videos outside each fold, and these trainings are removed afterwards.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from msg2.inference.likelihood.presence import PresenceModel
from msg2.progress import Progress, no_progress
from msg2.sequences import Sequences, Variants
from msg2.states.checkpoint import ModelCard, load_checkpoint
from msg2.states.configuration import FillOptions, StateModelOptions
from msg2.states.dataset import StateDataset
from msg2.states.fill_calibration import (
    FillCalibration,
    HeldOutScores,
    can_be_calibrated,
    fit_calibration,
    read_calibration,
)
from msg2.states.label_filling import fill_scores
from msg2.states.network import StateModel
from msg2.states.prediction import predict_states, predict_tokens
from msg2.states.tokens_and_targets import LabelledVideo, sample_without
from msg2.states.training import select_device, train_model
from msg2.task import Task

TRAINING_FOLDS = 3
"""Folds of the videos where a model must be trained for each."""


def extra_trainings(dataset: StateDataset, model: StateModelOptions) -> int:
    """How many further models are trained to calibrate one with these options."""
    cross_fitted = model.evidence and not (model.context or model.cooccurrence)
    labels = [count for count in map(_hideable, dataset.videos) if count]
    return 0 if cross_fitted or not can_be_calibrated(sum(labels), len(labels)) else TRAINING_FOLDS


def calibrate_model(
    task: Task, dataset: StateDataset, folder: Path, card: ModelCard, progress: Progress = no_progress
) -> FillCalibration:
    """Calibrate the model in a folder, and keep the calibration there; one that is already there is read."""
    known = read_calibration(folder)
    if known is not None:
        return known
    folds = extra_trainings(dataset, card.model)
    parts = [_score_whole(dataset, folder)] if not folds else [
        _score_fold(dataset, folder, card, fold, progress) for fold in range(folds)
    ]  # fmt: skip
    scores = HeldOutScores(*(np.concatenate([getattr(part, name) for part in parts]) for name in _NAMES))
    variants = Variants.from_sequences(Sequences.from_task(task.with_first_labels()))
    calibration = fit_calibration(scores, PresenceModel.fit(variants, "unknown").absent_rate)
    calibration.save(folder)
    shutil.rmtree(folder / "folds", ignore_errors=True)
    return calibration


_NAMES = tuple(HeldOutScores.__slots__)


def _hideable(video: LabelledVideo) -> int:
    """Labels that can be hidden: all, where there is another one."""
    return len(video.steps) if len(video.steps) > 1 else 0


def _score_whole(dataset: StateDataset, folder: Path) -> HeldOutScores:
    """The scores of all videos by the model itself."""
    card, model = load_checkpoint(folder)
    known = replace(dataset, training_videos=frozenset(card.videos["training"]))
    return _held_out_scores(card, model, known, range(len(dataset)))


def _score_fold(dataset: StateDataset, folder: Path, card: ModelCard, fold: int, progress: Progress) -> HeldOutScores:
    """The scores of the videos of a fold by a model that was trained on the others."""
    order = np.random.default_rng(card.training.seed).permutation(len(dataset)).tolist()
    asked = sorted(order[fold::TRAINING_FOLDS])
    others = sorted(set(order) - set(asked))
    part = replace(
        dataset,
        videos=tuple(dataset.videos[number] for number in others),
        frame_offsets=tuple(dataset.frame_offsets[number] for number in others),
        sentence_offsets=tuple(dataset.sentence_offsets[number] for number in others),
    )

    def show(done: int, total: int | None, message: str) -> None:
        epochs = total or 0
        count = TRAINING_FOLDS + 1
        progress((fold + 1) * epochs + done, count * epochs, f"calibration {fold + 1} of {TRAINING_FOLDS}: {message}")

    inside = folder / "folds" / str(fold)
    train_model(part, inside, model=card.model, sampling=card.sampling, training=card.training, progress=show)
    return _held_out_scores(*load_checkpoint(inside), dataset, asked)


def _held_out_scores(
    card: ModelCard, model: StateModel, dataset: StateDataset, numbers: Sequence[int]
) -> HeldOutScores:
    """The scores of each label of these videos, hidden alone, and of the steps that they have no label of."""
    device = select_device(card.training.device)
    dataset, model = dataset.to(device), model.to(device)
    options, steps = FillOptions().for_model(card.model), len(dataset.steps)
    asked = [(number, label) for number in numbers for label in range(_hideable(dataset.videos[number]))]
    sampled = ((number, sample_without(dataset.videos[number], label, steps, card.sampling)) for number, label in asked)
    hidden = [
        fill_scores(each, options)[dataset.videos[number].steps[label]]
        for (number, label), each in zip(asked, predict_tokens(model, dataset, sampled), strict=True)
    ]
    absent = [
        fill_scores(each, options)[~each.labelled] for each in predict_states(model, dataset, numbers, card.sampling)
    ]
    return HeldOutScores(
        np.array(hidden, dtype=np.float64),
        np.array([number for number, _ in asked], dtype=np.int64),
        np.concatenate([np.zeros(0), *absent]),
        np.repeat(numbers, list(map(len, absent))),
    )

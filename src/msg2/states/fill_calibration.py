"""How sure a filled-in label is: confidences calibrated on hidden labels, without knowing which steps were not done.

A step without a label was done and not labelled, or not done. Hidden labels are a sample of what was done, and so are
the missing ones. With r missing labels for every hidden one, and p(s) the probability that an unlabelled step with
score s was done,

    p(hidden | s, hidden or unlabelled) = p(s) / (p(s) + r),    p(s) = σ(a + b s),    b ≥ 0

r follows from the presence model: labels of required steps are absent at the rate ρ, of which a part ω was really left
out, r = (1 − ω) / (1 − ρ) − 1. The confidence is the mean of p(s) over the posterior of (a, b, ω), on a grid.

The scores come from cross-fitting: every label is hidden once, and scored by a model that has not learned from its
video. The evidence model alone does that by itself, since each of its layers scores the videos it has not seen. Any
other model is trained again on the videos outside each fold; these extra trainings are removed afterwards.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from msg2.files import write_whole
from msg2.inference.likelihood.presence import PresenceModel
from msg2.options import from_json
from msg2.progress import Progress, no_progress
from msg2.sequences import FloatArray, IntArray, Sequences, Variants
from msg2.states.checkpoint import ModelCard, damage_at, load_checkpoint
from msg2.states.configuration import FillOptions, StateModelOptions
from msg2.states.dataset import LabelledVideo, StateDataset, sample_without
from msg2.states.label_filling import fill_scores, predict_states, predict_tokens
from msg2.states.network import StateModel
from msg2.states.training import progress_part, select_device, train_model
from msg2.task import Task

LEAST_LABELS, LEAST_VIDEOS = 250, 30
"""With fewer hidden labels, or in fewer videos, nothing is added: on simulated worlds, confidences are then wrong by
more than 5 percent."""
FOLDS = 5  # of the videos: the calibration error is that of each fold with the calibration of the others
FILE = "calibration.json"  # in the folder of a model

_OMISSIONS = 19.0
"""β of the Beta(1, β) prior of ω, as in the presence model: people leave out few of the steps that a task needs."""
_INTERCEPTS, _SLOPES = np.linspace(-4, 6, 21), np.linspace(0, 5, 21)  # of standardised scores
_PRIOR_SPREAD = 2.0  # standard deviation of the normal priors of a and b
_KNOTS = 41  # scores at which confidences are kept; between them they are interpolated
_BINS = 5


class HeldOutScores(NamedTuple):
    """S scores of steps in videos, by a model that has not learned from these videos."""

    score: FloatArray
    video: IntArray  # the number of the video
    is_hidden: NDArray[np.bool_]  # whether the label was hidden; the others have no label

    def select(self, chosen: NDArray[np.bool_]) -> HeldOutScores:
        """Return some of the scores."""
        return HeldOutScores(self.score[chosen], self.video[chosen], self.is_hidden[chosen])

    @property
    def hidden(self) -> FloatArray:
        """The scores of steps whose labels were hidden, one at a time."""
        return self.score[self.is_hidden]

    @property
    def unlabelled(self) -> FloatArray:
        """The scores of steps without a label."""
        return self.score[~self.is_hidden]


@dataclass(frozen=True, slots=True)
class FillCalibration:
    """From the score of an unlabelled step to the probability that it was done."""

    scores: tuple[float, ...]  # ascending
    confidences: tuple[float, ...]  # at these scores
    labels: int  # labels that were hidden
    videos: int  # videos that these are of
    error: float | None  # the calibration error, cross-fitted; None where no step lacks a label
    informative: bool  # whether scores tell, with a probability of 95 percent, which unlabelled steps were done

    @property
    def note(self) -> str | None:
        """Why nothing is added; None where labels can be added."""
        if not can_be_calibrated(self.labels, self.videos):
            return (
                f"no labels are added: to see how sure they are, {LEAST_LABELS} labels of {LEAST_VIDEOS} videos "
                f"must be hidden, and there are {self.labels} of {self.videos}"
            )
        return None if self.informative else "no labels are added: the scores do not tell which steps were done"

    def __str__(self) -> str:
        error = "" if self.error is None else f", calibration error {self.error:.1%}"
        return f"confidences from {self.labels} hidden labels{error}"

    def confidence(self, scores: FloatArray) -> FloatArray:
        """The probability that unlabelled steps with these scores were done."""
        return np.interp(scores, self.scores, self.confidences)

    def save(self, folder: Path) -> None:
        """Write it into the folder of a model."""
        write_whole(folder / FILE, json.dumps(asdict(self), indent=1) + "\n")


def can_be_calibrated(labels: int, videos: int) -> bool:
    """Whether there is enough to tell how sure added labels are."""
    return labels >= LEAST_LABELS and videos >= LEAST_VIDEOS


def read_calibration(folder: Path) -> FillCalibration | None:
    """Read the calibration of the model in a folder; None where there is none."""
    path = folder / FILE
    if not path.is_file():
        return None
    with damage_at(path, hint="remove it and train again"):
        return from_json(FillCalibration, path.read_bytes(), FILE)


def fit_calibration(scores: HeldOutScores, absent_rate: float) -> FillCalibration:
    """Fit confidences to held-out scores."""
    labels, videos = len(scores.hidden), len(np.unique(scores.video[scores.is_hidden]))
    if not labels or not len(scores.unlabelled):
        return FillCalibration((0.0,), (0.0,), labels, videos, None, informative=False)
    knots = np.unique(np.quantile(scores.score, np.linspace(0, 1, _KNOTS)))
    confidence, ratio, least_slope = _posterior(scores, absent_rate, knots)
    checked = []
    for fold in range(FOLDS):
        in_fold = scores.video % FOLDS == fold
        others, asked = scores.select(~in_fold), scores.select(in_fold)
        if len(others.hidden) and len(others.unlabelled):
            by_others, _, _ = _posterior(others, absent_rate, knots)
            checked.append([np.interp(part, knots, by_others) for part in (asked.hidden, asked.unlabelled)])
    hidden, unlabelled = (np.concatenate([np.zeros(0), *part]) for part in zip(*checked, strict=True))
    error = _calibration_error(hidden, unlabelled, ratio)
    return FillCalibration(tuple(knots.tolist()), tuple(confidence.tolist()), labels, videos, error, least_slope > 0)


def _posterior(scores: HeldOutScores, absent_rate: float, knots: FloatArray) -> tuple[FloatArray, float, float]:
    """The mean of p at the knots, that of r, and the slope that is exceeded with a probability of 95 percent."""
    everything = np.concatenate([scores.hidden, scores.unlabelled])
    centre, spread = everything.mean(), everything.std() or 1.0
    # Values of ω that are equally probable by its prior; at a ρ below ω, hardly a label is missing.
    left_out = 1 - (1 - (np.arange(9) + 0.5) / 9) ** (1 / _OMISSIONS)
    ratios = np.maximum((1 - left_out) / (1 - min(absent_rate, 0.99)) - 1, 1e-4)
    a, b = (grid[..., None] for grid in np.meshgrid(_INTERCEPTS, _SLOPES, indexing="ij"))
    hidden, unlabelled = (log_expit(a + b * (each - centre) / spread) for each in (scores.hidden, scores.unlabelled))
    log_likelihood = np.stack([
        log_expit(hidden - math.log(ratio)).sum(-1) + log_expit(math.log(ratio) - unlabelled).sum(-1)
        for ratio in ratios.tolist()
    ])  # fmt: skip
    log_posterior = log_likelihood - (a[..., 0] ** 2 + b[..., 0] ** 2) / (2 * _PRIOR_SPREAD**2)
    weight = np.exp(log_posterior - log_posterior.max())
    weight /= weight.sum()
    of_lines = weight.sum(axis=0)
    mean = np.einsum("ab,abk->k", of_lines, expit(a + b * (knots - centre) / spread))
    least_slope = _SLOPES[np.searchsorted(np.cumsum(of_lines.sum(axis=0)), 0.05)]
    return mean, float(weight.sum(axis=(1, 2)) @ ratios), float(least_slope)


def _calibration_error(hidden: FloatArray, unlabelled: FloatArray, ratio: float) -> float:
    """Compare confidences with how many unlabelled steps were done: in each bin, `ratio` times the hidden labels."""
    # Bins have equally many unlabelled steps. The variance of the counts is taken off the squared distance: few items
    # would otherwise always look badly calibrated (Kumar et al., 2019).
    edges = np.quantile(unlabelled, np.linspace(0, 1, _BINS + 1)[1:-1])
    bins = [np.searchsorted(edges, confidences, side="right") for confidences in (hidden, unlabelled)]
    of_hidden, counts = (np.bincount(numbers, minlength=_BINS) for numbers in bins)
    means = np.bincount(bins[1], unlabelled, minlength=_BINS) / counts.clip(1)
    done = ratio * of_hidden / counts.clip(1)
    chance = done**2 * (1 / of_hidden.clip(1) + 1 / counts.clip(1))
    distance = np.sqrt(((done.clip(0, 1) - means) ** 2 - chance).clip(0))
    return float(distance @ counts / counts.sum())


TRAINING_FOLDS = 3  # folds of the videos where a model must be trained for each


def extra_trainings(dataset: StateDataset, model: StateModelOptions) -> int:
    """How many further models are trained to calibrate one with these options."""
    cross_fitted = model.evidence and not (model.context or model.cooccurrence)
    labels = [count for count in map(_hideable, dataset.videos) if count]
    return 0 if cross_fitted or not can_be_calibrated(sum(labels), len(labels)) else TRAINING_FOLDS


def calibrate_model(
    task: Task, dataset: StateDataset, folder: Path, card: ModelCard, progress: Progress = no_progress
) -> FillCalibration:
    """Calibrate the model in a folder, and keep the calibration there; one that is already there is read."""
    if (known := read_calibration(folder)) is not None:
        return known
    folds = extra_trainings(dataset, card.model)
    parts = [_score_fold(dataset, folder, card, fold, progress) for fold in range(folds)]
    if not folds:
        learned = replace(dataset, training_videos=frozenset(card.videos["training"]))
        parts = [_held_out_scores(*load_checkpoint(folder), learned, range(len(dataset)))]
    scores = HeldOutScores(*map(np.concatenate, zip(*parts, strict=True)))
    variants = Variants.from_sequences(Sequences.from_task(task.with_first_labels()))
    calibration = fit_calibration(scores, PresenceModel.fit(variants, "unknown").absent_rate)
    calibration.save(folder)
    shutil.rmtree(folder / "folds", ignore_errors=True)
    return calibration


def _hideable(video: LabelledVideo) -> int:
    """Labels that can be hidden: all, where there is another one."""
    return len(video.steps) if len(video.steps) > 1 else 0


def _score_fold(dataset: StateDataset, folder: Path, card: ModelCard, fold: int, progress: Progress) -> HeldOutScores:
    """The scores of the videos of a fold by a model that was trained on the others."""
    order = np.random.default_rng(card.training.seed).permutation(len(dataset)).tolist()
    asked = sorted(order[fold::TRAINING_FOLDS])
    part = replace(dataset, videos=tuple(dataset.videos[number] for number in sorted(set(order) - set(asked))))
    show = progress_part(progress, fold + 1, TRAINING_FOLDS + 1, f"calibration {fold + 1} of {TRAINING_FOLDS}: ")
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
    predicted = predict_states(model, dataset, numbers, card.sampling)
    absent = [fill_scores(each, options)[~each.labelled] for each in predicted]
    videos = [*(number for number, _ in asked), *np.repeat(numbers, list(map(len, absent))).tolist()]
    scores = np.concatenate([np.array(hidden, np.float64), *absent])
    return HeldOutScores(scores, np.array(videos, np.int64), np.arange(len(scores)) < len(hidden))

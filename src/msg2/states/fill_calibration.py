"""How sure a filled-in label is: confidences calibrated on labels that were hidden, without knowing what was not done.

A step without a label was done and not labelled, or not done. Hidden labels are a sample of what was done, and so are
the missing ones: with r missing labels for every hidden one, and p(s) the probability that an unlabelled step with the
score s was done,

    p(hidden | s, hidden or unlabelled) = p(s) / (p(s) + r),    p(s) = σ(a + b s),    b ≥ 0

r follows from the presence model: labels of required steps are absent at the rate ρ, of which a part ω was really left
out, r = (1 − ω) / (1 − ρ) − 1. The confidence is the mean of p(s) over the posterior of (a, b, ω), on a grid.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy.special import expit, log_expit

from msg2.errors import InputError
from msg2.files import write_whole
from msg2.options import from_json
from msg2.sequences import FloatArray, IntArray

LEAST_LABELS, LEAST_VIDEOS = 250, 30
"""With fewer hidden labels, or in fewer videos, nothing is added: on simulated worlds, confidences are then wrong by
more than 5 percent."""
FOLDS = 5
"""Of the videos: the calibration error is that of each fold with the calibration of the others."""
FILE = "calibration.json"
"""In the folder of a model."""

_OMISSIONS = 19.0
"""β of the Beta(1, β) prior of ω, as in the presence model: people leave out few of the steps that a task needs."""
_INTERCEPTS, _SLOPES = np.linspace(-4, 6, 21), np.linspace(0, 5, 21)
"""Of standardised scores."""
_PRIOR_SPREAD = 2.0
"""Standard deviation of the normal priors of a and b."""
_KNOTS = 41
"""Scores at which confidences are kept; between them they are interpolated."""
_BINS = 5


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutScores:
    """Scores of steps in videos, by a model that has not learned from these videos.

    `hidden` (H,): of steps whose labels were hidden, one at a time; `unlabelled` (U,): of steps without a label.
    `hidden_video` (H,) and `unlabelled_video` (U,) are the numbers of their videos.
    """

    hidden: FloatArray
    hidden_video: IntArray
    unlabelled: FloatArray
    unlabelled_video: IntArray

    def of(self, fold: int, *, inside: bool) -> HeldOutScores:
        """Choose the scores of some videos."""
        hidden, unlabelled = ((video % FOLDS == fold) == inside for video in (self.hidden_video, self.unlabelled_video))
        return HeldOutScores(
            self.hidden[hidden], self.hidden_video[hidden],
            self.unlabelled[unlabelled], self.unlabelled_video[unlabelled],
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class FillCalibration:
    """From the score of an unlabelled step to the probability that it was done."""

    scores: tuple[float, ...]
    """Ascending."""
    confidences: tuple[float, ...]
    """At these scores."""
    labels: int
    """Labels that were hidden."""
    videos: int
    """Videos that these are of."""
    error: float | None
    """The calibration error, cross-fitted; None where no step lacks a label."""
    informative: bool
    """Whether scores tell, with a probability of 95 percent, which unlabelled steps were done."""

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
    try:
        return from_json(FillCalibration, path.read_bytes(), FILE)
    except (OSError, InputError) as error:
        raise InputError(f"cannot be read ({error})", where=path, hint="remove it and train again") from error


def fit_calibration(scores: HeldOutScores, absent_rate: float) -> FillCalibration:
    """Fit confidences to held-out scores."""
    everything, videos = np.concatenate([scores.hidden, scores.unlabelled]), len(np.unique(scores.hidden_video))
    if not len(scores.unlabelled) or not len(scores.hidden):
        return FillCalibration((0.0,), (0.0,), len(scores.hidden), videos, None, informative=False)
    knots = np.unique(np.quantile(everything, np.linspace(0, 1, _KNOTS)))
    confidence, ratio, least_slope = _posterior(scores, absent_rate, knots)
    parts = []
    for fold in range(FOLDS):
        learned, asked = scores.of(fold, inside=False), scores.of(fold, inside=True)
        if len(learned.hidden) and len(learned.unlabelled):
            by_others, _, _ = _posterior(learned, absent_rate, knots)
            parts.append([np.interp(each, knots, by_others) for each in (asked.hidden, asked.unlabelled)])
    hidden, unlabelled = (np.concatenate([part[which] for part in parts] or [np.zeros(0)]) for which in (0, 1))
    return FillCalibration(
        tuple(knots.tolist()),
        tuple(confidence.tolist()),
        len(scores.hidden),
        videos,
        _calibration_error(hidden, unlabelled, ratio),
        informative=least_slope > 0,
    )


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
    """Of the unlabelled: how many were done, by bins of confidence, is `ratio` times the hidden labels there.

    Bins have equally many unlabelled steps. What the counts are off by chance, their variance, is taken off the squared
    distance: few items would otherwise always look badly calibrated (Kumar et al., 2019).
    """
    edges = np.quantile(unlabelled, np.linspace(0, 1, _BINS + 1)[1:-1])
    places = [np.searchsorted(edges, each, side="right") for each in (hidden, unlabelled)]
    of_hidden, counts = (np.bincount(place, minlength=_BINS) for place in places)
    means = np.bincount(places[1], unlabelled, minlength=_BINS) / counts.clip(1)
    done = ratio * of_hidden / counts.clip(1)
    chance = done**2 * (1 / of_hidden.clip(1) + 1 / counts.clip(1))
    distance = np.sqrt(((done.clip(0, 1) - means) ** 2 - chance).clip(0))
    return float(distance @ counts / counts.sum())

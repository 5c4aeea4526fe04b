"""Drafts of labels: a time for every step in every video, how sure it is, and which drafts count for the graph.

The drafted time of a step maximises the expected hits: the bin with the highest probability of the step, averaged over
neighbouring bins. That probability is the model's own confidence. Isotonic regression of hits on it, over held-out
labelled videos, turns it into a calibrated one: minimise Σ (hit_i − f(confidence_i))² over increasing f.

Drafts count for the graph where they make held-out labels more probable. Graphs are learned from some of the labelled
videos, without drafts and with those of at least some confidence, and compared on the labels of the other videos by a
paired t-test: mean(d) > t₀.₉₅ sd(d) / √n for the n differences d of log p.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.assist.sequence_likelihood import SequenceLikelihood
from msg2.inference import infer
from msg2.labelling.alignment import AlignmentOptions, StatePosterior, align, count_labels
from msg2.labelling.narration_grid import SECONDS_PER_BIN, NarrationGrid
from msg2.metrics.calibration import CalibrationBin, NextStepPrediction, expected_calibration_error, score_calibration
from msg2.sequences import FloatArray
from msg2.task import DRAFT, Segment, Step, Task, Video

LEAST_DRAFTS = 150
"""Held-out drafts from which on a confidence can be checked: a share of so many is known to about 4 points."""


Calibrator: TypeAlias = partial[FloatArray]  # the model's confidences -> probabilities, increasing


def fit_calibrator(confidence: FloatArray, is_hit: NDArray[np.bool_]) -> Calibrator:
    """Fit an increasing function to hits; levels of few drafts are drawn to the share of hits among all."""
    from scipy.optimize import isotonic_regression

    order = np.argsort(confidence, kind="stable")
    fitted = isotonic_regression(is_hit[order].astype(np.float64))
    levels, start, size = np.unique(fitted.x, return_index=True, return_counts=True)
    mean = is_hit.mean()
    knots = np.add.reduceat(confidence[order], start) / size
    return partial(np.interp, xp=knots, fp=(levels * size + 2 * mean) / (size + 2))


@dataclass(frozen=True, slots=True)
class DraftCalibration:
    """How true the confidences are, by cross-fitting on held-out labelled videos."""

    videos: int
    bins: tuple[CalibrationBin, ...]

    @property
    def error(self) -> float:
        """The expected calibration error."""
        return expected_calibration_error(self.bins)


def cross_fitted(confidence: FloatArray, is_hit: NDArray[np.bool_]) -> FloatArray:
    """Calibrate every video by the others: rows are videos."""
    part = np.arange(len(confidence)) % min(10, len(confidence))
    calibrated = np.zeros(confidence.shape)
    for fold in range(part.max() + 1):
        others = part != fold
        calibrated[~others] = fit_calibrator(confidence[others].ravel(), is_hit[others].ravel())(confidence[~others])
    return calibrated


def check_calibration(probability: FloatArray, is_hit: NDArray[np.bool_]) -> DraftCalibration:
    """Compare probabilities with what was the case: rows are videos."""
    pairs = zip(probability.ravel().tolist(), is_hit.ravel().tolist(), strict=True)
    predictions = [NextStepPrediction(p, float(hit), p if hit else 1 - p) for p, hit in pairs]
    return DraftCalibration(len(probability), score_calibration(predictions).bins)


class LabelUse(NamedTuple):
    """How labelled videos and the others work together."""

    share: float  # what a video without labels counts, beside a labelled one
    position: float  # part of the weight of positions: the fewer labels, the more they must carry


NO_LABELS = LabelUse(1.0, 1.0)
FEW_LABELS = LabelUse(0.3, 1.0)
LABEL_USES = (FEW_LABELS, LabelUse(0.3, 0.5), LabelUse(0.0, 0.5))  # of these, held-out labels choose one
FOLDS = 3
LEAST_VIDEOS = 5  # labelled videos from which on some can be held out, to choose how labels are used
LABELLED_ITERATIONS = 3  # with so many labels the prototypes are good from the start
_SMOOTHING = 2.0  # bins over which probabilities are averaged
_SHORTEST = 0.5  # seconds of the shortest drafted segment


@dataclass(frozen=True, slots=True, eq=False)
class Drafts:
    """A time for every step in every video."""

    bins: NDArray[np.intp]  # when the step is done, shape (V, N); no two steps of a video share a bin
    confidence: FloatArray  # probability that it is being done then, as the model has it; shape (V, N)
    presence: FloatArray  # probability that the video shows it at all, shape (V, N)
    durations: FloatArray  # usual lengths of the steps in bins, shape (N,)


def draft_times(grid: NarrationGrid, posterior: StatePosterior, durations: FloatArray, lag_seconds: float) -> Drafts:
    """Choose a time for every step in every video."""
    from scipy.ndimage import gaussian_filter1d

    lag = round(lag_seconds / SECONDS_PER_BIN)
    smooth = gaussian_filter1d(posterior.steps, _SMOOTHING, axis=1, mode="constant")
    chosen = np.zeros((len(smooth), smooth.shape[2]), np.intp)
    confidence = np.zeros(chosen.shape)
    for video, length in enumerate(grid.bins):
        likely = smooth[video, np.clip(np.arange(length) - lag, 0, None)]
        for step in np.argsort(-likely.max(axis=0), kind="stable"):  # the surest one chooses first
            best = int(likely[:, step].argmax())
            chosen[video, step], confidence[video, step] = best, max(likely[best, step], 0.0)
            if length > likely.shape[1]:
                likely[best] = -1.0
    return Drafts(chosen, confidence, np.minimum(posterior.entries.sum(axis=1), 1.0), durations)


def draft_segments(
    drafts: Drafts,
    video: int,
    steps: Sequence[Step],
    *,
    confidence: FloatArray,
    wanted: NDArray[np.bool_],
    seconds: float,
) -> list[Segment]:
    """Make segments of the drafted times of a video; neighbours are cut half way, so that none overlap."""
    chosen = sorted(np.flatnonzero(wanted).tolist(), key=lambda step: (int(drafts.bins[video, step]), steps[step]))
    middles = [(float(drafts.bins[video, step]) + 0.5) * SECONDS_PER_BIN for step in chosen]
    borders = [0.0, *((a + b) / 2 for a, b in pairwise(middles)), seconds]
    segments = []
    for step, middle, (left, right) in zip(chosen, middles, pairwise(borders), strict=False):
        half = max(drafts.durations[step] * SECONDS_PER_BIN, _SHORTEST) / 2
        start, end = max(middle - half, left), min(middle + half, right)
        sure = round(float(confidence[step]), 4)
        segments.append(Segment(steps[step], round(start, 2), round(max(start, end), 2), sure, DRAFT))
    return segments


@dataclass(frozen=True, slots=True, eq=False)
class Aligner:
    """All that an alignment needs but the labels; it is fitted with several sets of them."""

    grid: NarrationGrid
    steps: tuple[Step, ...]
    whitened: FloatArray
    names: FloatArray
    ranks: tuple[int, ...] | None
    options: AlignmentOptions

    def draft(self, labelled: Sequence[int], use: LabelUse = NO_LABELS) -> Drafts:
        """Draft the labels of all videos, with the labels of some."""
        rounds = 1 if use.share == 0 and labelled else self.options.iterations
        if use.share > 0 and len(labelled) >= LEAST_VIDEOS:
            rounds = min(rounds, LABELLED_ITERATIONS)
        weight = use.position * self.options.position_weight
        options = replace(self.options, iterations=rounds, position_weight=weight)
        counts = count_labels(self.grid, self.steps, labelled)
        posterior, transitions = align(
            self.grid, self.whitened, self.names, counts, ranks=self.ranks, options=options, share=use.share
        )
        return draft_times(self.grid, posterior, transitions.durations, self.options.lag_seconds)

    def hits(self, drafts: Drafts, video: int) -> NDArray[np.bool_]:
        """Whether each drafted time of a labelled video lies in a segment of its step, shape (N,)."""
        inside = self.grid.labelled_bins(self.steps, video)
        return np.asarray(inside[drafts.bins[video], np.arange(len(self.steps))])


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutDrafts:
    """Drafts of labelled videos by models that did not know their labels; rows are labelled videos."""

    use: LabelUse  # the best of `LABEL_USES`: the most hits, the first of equals
    videos: NDArray[np.intp]
    fold: NDArray[np.intp]  # which of them were held out together
    confidence: FloatArray
    is_hit: NDArray[np.bool_]


def held_out_drafts(aligner: Aligner, labelled: Sequence[int], folds: int = FOLDS) -> HeldOutDrafts:
    """Draft every labelled video without its labels, and choose what videos without labels count."""
    videos = np.asarray(labelled, np.intp)
    part = np.random.default_rng(0).permutation(len(videos)) % min(folds, len(videos))
    best: HeldOutDrafts | None = None
    for use in LABEL_USES:
        shape = (len(videos), len(aligner.steps))
        is_hit, confidence = np.zeros(shape, bool), np.zeros(shape)
        for fold in range(part.max() + 1):
            drafts = aligner.draft(videos[part != fold].tolist(), use)
            for row in np.flatnonzero(part == fold):
                video = int(videos[row])
                is_hit[row], confidence[row] = aligner.hits(drafts, video), drafts.confidence[video]
        if best is None or is_hit.sum() > best.is_hit.sum():
            best = HeldOutDrafts(use, videos, part, confidence, is_hit)
    assert best is not None
    return best


CONFIDENCES = (0.7, 0.5, 0.3)  # drafts of at least one of these may count
NO_DRAFTS = 1.0  # no draft is as sure as this
_LEVEL = 0.95  # of the one-sided test


def choose_confidence(parts: Sequence[tuple[Task, Sequence[Video]]]) -> float:
    """Choose from which confidence on drafts count for the graph."""
    alone = _held_out_fit(parts, NO_DRAFTS)
    gains = {least: _held_out_fit(parts, least) - alone for least in CONFIDENCES}
    better = [least for least in CONFIDENCES if all(map(_is_positive, gains[least].T))]
    return max(better, key=lambda least: float(gains[least].sum()), default=NO_DRAFTS)


def _held_out_fit(parts: Sequence[tuple[Task, Sequence[Video]]], least: float) -> FloatArray:
    """log p of each held-out video, and of the order of its steps alone; shape (n, 2)."""
    fits = []
    for task, held_out in parts:
        likelihood = SequenceLikelihood(infer(task.with_sure_drafts(least).with_first_labels()))
        fits += [(likelihood.log_probability(video), likelihood.order_log_probability(video)) for video in held_out]
    return np.array(fits)


def _is_positive(differences: FloatArray) -> bool:
    """Whether the mean is above zero by a one-sided t-test."""
    from scipy.special import stdtrit

    count = len(differences)
    return bool(differences.mean() > stdtrit(count - 1, _LEVEL) * differences.std(ddof=1) / np.sqrt(count))

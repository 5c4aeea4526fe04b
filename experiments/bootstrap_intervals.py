"""Metrics of pooled items, and their confidence intervals over videos: a bootstrap, paired where two are compared.

Videos are resampled with replacement and the metric is computed again from the pooled items of each resample. Two
predictors are compared on the same resamples, so the interval is that of their paired difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.benchmarking import ConfidenceInterval, ratio_interval

__all__ = [
    "ConfidenceInterval", "Numbers", "ScoredItems", "WeightedMetric", "auc_within_videos", "bootstrap_interval",
    "ratio_interval", "weighted_accuracy", "weighted_auc",
]  # fmt: skip

Numbers: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ScoredItems:
    """What is scored, pooled over the videos of a task; all of shape (items,).

    `video` numbers the questions, `truth` says what was the case, `score` what a predictor thought of it.
    """

    video: NDArray[np.intp]
    truth: NDArray[np.bool_]
    score: Numbers


WeightedMetric: TypeAlias = Callable[[ScoredItems, Numbers], Numbers]
"""(items, weights of shape (..., items)) -> the metric, of shape (...)."""


def weighted_auc(items: ScoredItems, weights: Numbers) -> Numbers:
    """The chance that a true item has a higher score than a false one (a tie counts ½); NaN where a kind is missing.

    Parameters
    ----------
    items : ScoredItems
        What is scored.
    weights : Numbers
        Of the items, shape (..., items): how often each was drawn.

    Returns
    -------
    Numbers
        Shape (...): NaN where all items are true, or all false.

    >>> items = ScoredItems(np.arange(4), np.array([False, True, False, True]), np.array([0.1, 0.2, 0.2, 0.9]))
    >>> float(weighted_auc(items, np.ones(4)))
    0.875
    """
    order = np.argsort(items.score, kind="stable")
    score, truth, weights = items.score[order], items.truth[order], weights[..., order]
    ties = np.flatnonzero(np.diff(score, prepend=-np.inf))  # where a new score begins
    positive = np.add.reduceat(weights * truth, ties, axis=-1)
    negative = np.add.reduceat(weights * ~truth, ties, axis=-1)
    below = np.cumsum(negative, axis=-1) - negative / 2
    pairs = positive.sum(axis=-1) * negative.sum(axis=-1)
    return _ratio((positive * below).sum(axis=-1), pairs)


def auc_within_videos(items: ScoredItems, weights: Numbers) -> Numbers:
    """AUC of the pairs of items of one and the same video, pooled over videos; all items of a video weigh the same.

    Here it does not help to know in which videos more is true.

    Parameters
    ----------
    items : ScoredItems
        What is scored.
    weights : Numbers
        Of the items, shape (..., items): how often each was drawn.

    Returns
    -------
    Numbers
        Shape (...): NaN where no video has both kinds of items.

    >>> video, truth = np.array([0, 0, 1, 1]), np.array([False, True, True, False])
    >>> items = ScoredItems(video, truth, np.array([0.1, 0.2, 0.8, 0.9]))
    >>> float(auc_within_videos(items, np.ones(4)))
    0.5
    """
    firsts, of_item = np.unique(items.video, return_index=True, return_inverse=True)[1:]
    one, other = np.nonzero(items.truth[:, None] & ~items.truth & (of_item[:, None] == of_item))
    wins = (1 + np.sign(items.score[one] - items.score[other])) / 2
    pairs = np.bincount(of_item[one], minlength=len(firsts))
    won = np.bincount(of_item[one], wins, minlength=len(firsts))
    return _ratio(weights[..., firsts] @ won, weights[..., firsts] @ pairs)


def weighted_accuracy(items: ScoredItems, weights: Numbers) -> Numbers:
    """The share of items that are true where the score is 0.5 or more, and false where it is less.

    Parameters
    ----------
    items : ScoredItems
        What is scored.
    weights : Numbers
        Of the items, shape (..., items): how often each was drawn.

    Returns
    -------
    Numbers
        Shape (...): a share, NaN where nothing was drawn.
    """
    right = (items.score >= 0.5) == items.truth
    return _ratio((weights * right).sum(axis=-1), weights.sum(axis=-1))


def bootstrap_interval(
    metric: WeightedMetric,
    items: ScoredItems,
    against: ScoredItems | None = None,
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> ConfidenceInterval:
    """Compute a metric with its percentile interval over resampled videos.

    Parameters
    ----------
    metric : WeightedMetric
        What is computed, of each resample again.
    items : ScoredItems
        Of one predictor.
    against : ScoredItems or None
        Another predictor's items of the same questions, whose metric is subtracted: a paired comparison.
    resamples : int
        Bootstrap samples of the videos.
    confidence : float
        Coverage of the interval, between 0 and 1.
    seed : int
        Of the resampling.

    Returns
    -------
    ConfidenceInterval
        The value on the videos themselves, and the ends of the interval.
    """
    if against is not None and not (
        np.array_equal(items.video, against.video) and np.array_equal(items.truth, against.truth)
    ):
        raise ValueError("predictors are compared on the same questions")
    videos = np.unique(items.video)
    drawn = np.random.default_rng(seed).multinomial(len(videos), np.full(len(videos), 1 / len(videos)), size=resamples)
    counts = np.vstack([np.ones(len(videos)), drawn])  # the first row is the sample itself
    weights = counts[:, np.searchsorted(videos, items.video)]
    values = metric(items, weights) - (0.0 if against is None else metric(against, weights))
    tail = (1 - confidence) / 2
    low, high = np.nanquantile(values[1:], [tail, 1 - tail])
    return ConfidenceInterval(float(values[0]), float(low), float(high))


def _ratio(part: Numbers, whole: Numbers) -> Numbers:
    """`part` / `whole`; NaN where there is nothing to divide by."""
    return np.asarray(np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0))

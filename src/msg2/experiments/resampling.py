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

from msg2.options import HidingOptions

Numbers: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """What is scored, pooled over the videos of a task; all of shape (items,).

    `video` numbers the questions, `truth` says what was the case, `score` what a predictor thought of it.
    """

    video: NDArray[np.intp]
    truth: NDArray[np.bool_]
    score: Numbers


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with the ends of its bootstrap confidence interval."""

    value: float
    low: float
    high: float


Measure: TypeAlias = Callable[[Items, Numbers], Numbers]
"""(items, weights of shape (..., items)) -> the metric, of shape (...)."""


def auc(items: Items, weights: Numbers) -> Numbers:
    """The chance that a true item has a higher score than a false one (a tie counts ½); NaN where a kind is missing.

    >>> items = Items(np.arange(4), np.array([False, True, False, True]), np.array([0.1, 0.2, 0.2, 0.9]))
    >>> float(auc(items, np.ones(4)))
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


def auc_within(items: Items, weights: Numbers) -> Numbers:
    """AUC of the pairs of items of one and the same video, pooled over videos; all items of a video weigh the same.

    Here it does not help to know in which videos more is true.

    >>> items = Items(np.array([0, 0, 1, 1]), np.array([False, True, True, False]), np.array([0.1, 0.2, 0.8, 0.9]))
    >>> float(auc_within(items, np.ones(4)))
    0.5
    """
    firsts, of_item = np.unique(items.video, return_index=True, return_inverse=True)[1:]
    one, other = np.nonzero(items.truth[:, None] & ~items.truth & (of_item[:, None] == of_item))
    wins = (1 + np.sign(items.score[one] - items.score[other])) / 2
    pairs = np.bincount(of_item[one], minlength=len(firsts))
    won = np.bincount(of_item[one], wins, minlength=len(firsts))
    return _ratio(weights[..., firsts] @ won, weights[..., firsts] @ pairs)


def accuracy(items: Items, weights: Numbers) -> Numbers:
    """The share of items that are true where the score is 0.5 or more, and false where it is less."""
    right = (items.score >= 0.5) == items.truth
    return _ratio((weights * right).sum(axis=-1), weights.sum(axis=-1))


def interval(
    measure: Measure, items: Items, against: Items | None = None, options: HidingOptions | None = None
) -> Interval:
    """`measure` of `items`, less that `against` another predictor's items of the same questions where given."""
    options = options or HidingOptions()
    if against is not None and not (
        np.array_equal(items.video, against.video) and np.array_equal(items.truth, against.truth)
    ):
        raise ValueError("predictors are compared on the same questions")
    videos = np.unique(items.video)
    drawn = np.random.default_rng(options.seed).multinomial(
        len(videos), np.full(len(videos), 1 / len(videos)), size=options.resamples
    )
    counts = np.vstack([np.ones(len(videos)), drawn])  # the first row is the sample itself
    weights = counts[:, np.searchsorted(videos, items.video)]
    values = measure(items, weights) - (0.0 if against is None else measure(against, weights))
    tail = (1 - options.confidence) / 2
    low, high = np.nanquantile(values[1:], [tail, 1 - tail])
    return Interval(float(values[0]), float(low), float(high))


def _ratio(part: Numbers, whole: Numbers) -> Numbers:
    """`part` / `whole`; NaN where there is nothing to divide by."""
    return np.asarray(np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0))

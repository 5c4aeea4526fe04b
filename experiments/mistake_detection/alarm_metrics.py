"""Average precision, and recall at a rate of false alarms, of pooled items with weights: metrics to be bootstrapped.

    AP = Σ_t (R_t − R_{t−1}) P_t

over the distinct scores t from the highest down, P and R the precision and recall of all items that score t or more.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from experiments.bootstrap_intervals import Numbers, ScoredItems, WeightedMetric


def average_precision(items: ScoredItems, weights: Numbers) -> Numbers:
    """Average precision; items with equal scores are taken together.

    Parameters
    ----------
    items : ScoredItems
        What is scored.
    weights : Numbers
        Of the items, shape (..., items): how often each was drawn.

    Returns
    -------
    Numbers
        Shape (...): NaN where nothing is true.

    >>> items = ScoredItems(np.arange(3), np.array([True, False, True]), np.array([0.9, 0.8, 0.1]))
    >>> round(float(average_precision(items, np.ones(3))), 3)
    0.833
    """
    hits, alarms = _by_score(items, weights)
    found, false = np.cumsum(hits, axis=-1), np.cumsum(alarms, axis=-1)
    precision = _divide(found, found + false, 0.0)
    return _divide((hits * precision).sum(axis=-1), hits.sum(axis=-1), np.nan)


def recall_at_rate(minutes: Numbers, rate: float) -> WeightedMetric:
    """Recall where there are `rate` false alarms a minute; among items with equal scores alarms fall at random.

    Parameters
    ----------
    minutes : Numbers
        Of every video, by its number.
    rate : float
        False alarms a minute.

    Returns
    -------
    WeightedMetric

    >>> items = ScoredItems(np.zeros(4, np.intp), np.array([True, False, True, False]), np.array([0.9, 0.8, 0.8, 0.1]))
    >>> float(recall_at_rate(np.array([10.0]), 0.05)(items, np.ones(4)))
    0.75
    """
    return partial(_recall_at_rate, minutes=minutes, rate=rate)


def _recall_at_rate(items: ScoredItems, weights: Numbers, *, minutes: Numbers, rate: float) -> Numbers:
    videos, firsts = np.unique(items.video, return_index=True)
    allowed = rate * (weights[..., firsts] @ minutes[videos])[..., None]  # all items of a video weigh the same
    hits, alarms = _by_score(items, weights)
    before = np.cumsum(alarms, axis=-1) - alarms
    share = np.clip(_divide(allowed - before, alarms, 1.0), 0.0, 1.0)  # a level without false alarms costs nothing
    share = np.where((alarms == 0) & (before > allowed), 0.0, share)
    return _divide((hits * share).sum(axis=-1), hits.sum(axis=-1), np.nan)


def _by_score(items: ScoredItems, weights: Numbers) -> tuple[Numbers, Numbers]:
    """Weight of the true and of the false items of every distinct score, from the highest down; shape (..., scores)."""
    order = np.argsort(-items.score, kind="stable")
    starts: NDArray[np.intp] = np.flatnonzero(np.diff(-items.score[order], prepend=-np.inf))
    truth, weights = items.truth[order], weights[..., order]
    return np.add.reduceat(weights * truth, starts, axis=-1), np.add.reduceat(weights * ~truth, starts, axis=-1)


def _divide(part: Numbers, whole: Numbers, otherwise: float) -> Numbers:
    return np.asarray(np.divide(part, whole, out=np.full(np.shape(part), otherwise), where=whole > 0))

"""What several metrics are made of: ratios that may have nothing to divide by, and the area under the ROC curve."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def ratio(part: int, whole: int) -> float | None:
    """Divide counts.

    Parameters
    ----------
    part, whole : int
        Counts.

    Returns
    -------
    float or None
        None where there is nothing to divide by.
    """
    return part / whole if whole else None


def roc_auc(scores: ArrayLike, positive: ArrayLike) -> float | None:
    """P(a positive scores higher than a negative) + ½ P(they score alike).

    Parameters
    ----------
    scores : array-like of shape (n,)
        Higher means more probably positive.
    positive : array-like of bool of shape (n,)
        What is the case.

    Returns
    -------
    float or None
        None where there is no positive, or no negative.

    >>> roc_auc([0.1, 0.4, 0.4, 0.8], [False, False, True, True])
    0.875
    """
    given, true = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=np.bool_)
    positives, negatives = int(true.sum()), int((~true).sum())
    if not positives or not negatives:
        return None
    _, level, count = np.unique(given, return_inverse=True, return_counts=True)
    rank = np.cumsum(count) - (count - 1) / 2  # from 1 up; the mean of the ranks of equal scores
    return float((rank[level][true].sum() - positives * (positives + 1) / 2) / (positives * negatives))

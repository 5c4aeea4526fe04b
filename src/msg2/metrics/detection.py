"""How well mistakes are detected: the protocol of online mistake detection, and the area under the ROC curve.

Every step is scored. In the protocol a sequence ends with its first mistake, since what comes after it can no longer be
called right or wrong for itself; the score is the macro mean of the F1 of "correct" and the F1 of "mistake",
F1 = 2 TP / (2 TP + FP + FN).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


def ratio(part: int, whole: int) -> float | None:
    """Divide counts."""
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


@dataclass(frozen=True, slots=True)
class ScoredStep:
    """A step: how probably it is a mistake, and whether it is one."""

    probability: float
    mistake: bool


@dataclass(frozen=True, slots=True)
class DetectionScores:
    """Steps by verdict and truth; a mistake is a positive, an alarm a predicted positive."""

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @property
    def precision(self) -> float | None:
        """Share of the alarms that are mistakes; None without any."""
        return ratio(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float | None:
        """Share of the mistakes that are found; None without any."""
        return ratio(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def f1_mistake(self) -> float | None:
        """F1 of the mistakes; None where there is neither a mistake nor an alarm."""
        return ratio(2 * self.true_positives, 2 * self.true_positives + self.false_positives + self.false_negatives)

    @property
    def f1_correct(self) -> float | None:
        """F1 of the correct steps; None where there is none and none was passed."""
        return ratio(2 * self.true_negatives, 2 * self.true_negatives + self.false_positives + self.false_negatives)

    @property
    def macro_f1(self) -> float | None:
        """Macro mean of the two; None where one of them is."""
        if self.f1_mistake is None or self.f1_correct is None:
            return None
        return (self.f1_mistake + self.f1_correct) / 2


def detection_scores(steps: Iterable[ScoredStep], threshold: float) -> DetectionScores:
    """Count verdicts against the truth.

    Parameters
    ----------
    steps : iterable of ScoredStep
        The steps of all sequences.
    threshold : float
        A step is an alarm where its probability is at least this.

    Returns
    -------
    DetectionScores
        The four counts.

    >>> steps = [ScoredStep(0.9, True), ScoredStep(0.6, False), ScoredStep(0.1, False), ScoredStep(0.2, True)]
    >>> detection_scores(steps, 0.5)
    DetectionScores(true_positives=1, false_positives=1, false_negatives=1, true_negatives=1)
    """
    cells = [(step.probability >= threshold, step.mistake) for step in steps]
    pairs = ((True, True), (True, False), (False, True), (False, False))
    return DetectionScores(*(cells.count(pair) for pair in pairs))


def detection_auc(steps: Iterable[ScoredStep]) -> float | None:
    """The probability that a mistake ranks above a correct step, ties counting half; None where one of them is missing.

    >>> detection_auc([ScoredStep(0.9, True), ScoredStep(0.9, False), ScoredStep(0.1, False)])
    0.75
    """
    scored = list(steps)
    return roc_auc([step.probability for step in scored], [step.mistake for step in scored])

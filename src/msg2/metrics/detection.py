"""How well mistakes, completed steps and missing labels are found, and the area under the ROC curve.

In online mistake detection a sequence ends with its first mistake, since you cannot judge what comes after it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from msg2.errors import require
from msg2.task import PREDICTED, Task, Video
from msg2.text import short_repr


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
    from scipy.stats import rankdata

    true = np.asarray(positive, dtype=np.bool_)
    positives, negatives = int(true.sum()), int((~true).sum())
    if not positives or not negatives:
        return None
    above = rankdata(scores)[true].sum() - positives * (positives + 1) / 2
    return float(above / (positives * negatives))


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


@dataclass(frozen=True, slots=True)
class Completion:
    """How well scores tell completed steps from others; None where there is nothing to divide by."""

    asked: int  # pairs of a border and a step
    accuracy: float | None
    """Share of them where ŝ ≥ b says rightly whether the step is completed (App. A, Ablation Study)."""
    auc: float | None

    def to_json(self) -> dict[str, float | int | None]:
        """Plain numbers; N/A is None."""
        return asdict(self)


def completion(scores: ArrayLike, completed: ArrayLike, threshold: float) -> Completion:
    """Score predicted completion against the truth."""
    given, true = np.asarray(scores, dtype=np.float64), np.asarray(completed, dtype=np.bool_)
    right = float(((given >= threshold) == true).mean()) if len(given) else None
    return Completion(len(given), right, roc_auc(given, true))


@dataclass(frozen=True, slots=True)
class Additions:
    """Labels that were added, against what was really performed; the unit is a step in a video."""

    added: int
    right: int  # added, and performed in that video
    missing: int  # performed, and absent from the annotated labels of that video

    @property
    def precision(self) -> float | None:
        """Share of the added labels that are right; None where none was added."""
        return ratio(self.right, self.added)

    @property
    def recall(self) -> float | None:
        """Share of the missing labels that were added; None where none was missing."""
        return ratio(self.right, self.missing)

    def to_json(self) -> dict[str, float | int | None]:
        """Plain numbers; N/A is None."""
        return asdict(self) | {"precision": self.precision, "recall": self.recall}


def additions(filled: Iterable[Video], performed: Task) -> Additions:
    """Count how many of the labels with the source "predicted" are of steps that were really performed there."""
    truth = {video.id: video for video in performed}
    added = right = missing = 0
    for video in filled:
        really = set(performed_video(truth, video.id).sequence())
        predicted = {segment.step for segment in video.segments if segment.source == PREDICTED}
        annotated = {segment.step for segment in video.segments if segment.source != PREDICTED}
        added += len(predicted)
        right += len(predicted & really)
        missing += len(really - annotated)
    return Additions(added, right, missing)


def performed_video(performed: Mapping[str, Video], video: str) -> Video:
    """Find what was really performed in a video."""
    require(video in performed, f"the truth does not say what was performed in video {short_repr(video)}")
    return performed[video]

"""How good a state predictor is: of what it says about completion, and of the labels it adds. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from msg2.errors import InputError, shortened
from msg2.states.fill import PREDICTED
from msg2.states.reading import Reading
from msg2.states.sampling import COMPLETED
from msg2.task import Step, Task, Video


@dataclass(frozen=True, slots=True)
class Completion:
    """How well scores tell completed steps from others; None where there is nothing to divide by."""

    asked: int
    """Pairs of a border and a step."""
    accuracy: float | None
    """Share of them where ŝ ≥ b says rightly whether the step is completed (App. A, Ablation Study)."""
    auc: float | None

    def to_json(self) -> dict[str, float | int | None]:
        """Plain numbers; N/A is None."""
        return {"asked": self.asked, "accuracy": self.accuracy, "auc": self.auc}


def completion(scores: ArrayLike, completed: ArrayLike, threshold: float) -> Completion:
    """Accuracy at the threshold b, and AUC, of scores against what is completed; both of shape (n,).

    >>> completion([2.0, 0.5, -1.0], [True, True, False], threshold=1.0)
    Completion(asked=3, accuracy=0.6666666666666666, auc=1.0)
    """
    given, true = np.asarray(scores, dtype=np.float64), np.asarray(completed, dtype=np.bool_)
    right = float(((given >= threshold) == true).mean()) if len(given) else None
    return Completion(len(given), right, auc(given, true))


def auc(scores: ArrayLike, positive: ArrayLike) -> float | None:
    """P(a positive scores higher than a negative) + ½ P(they score alike); None where one kind is missing.

    >>> auc([0.1, 0.4, 0.4, 0.8], [False, False, True, True])
    0.875
    """
    given, true = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=np.bool_)
    ones, zeros = int(true.sum()), int((~true).sum())
    if not ones or not zeros:
        return None
    _, place, count = np.unique(given, return_inverse=True, return_counts=True)
    rank = np.cumsum(count) - (count - 1) / 2  # from 1 up; the mean of the ranks of equal scores
    return float((rank[place][true].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def hidden_completion(readings: Iterable[Reading], threshold: float) -> Completion:
    """Of the steps whose labels were hidden from the model, at the borders of the other labels."""
    found = [(one.scores[:, one.hidden], one.state[:, one.hidden] == COMPLETED) for one in readings]
    return _pooled(found, threshold)


def true_completion(
    readings: Iterable[Reading], steps: tuple[Step, ...], performed: Task, threshold: float
) -> Completion:
    """Of all `steps`, at the borders of all labels, against what was really `performed` there.

    A step is completed from the end of its first performance on.
    """
    truth = _by_id(performed)
    found = []
    for one in readings:
        ends = {segment.step: segment.end for segment in _performed(truth, one.video).with_first_labels().segments}
        end = np.array([np.inf if (last := ends.get(step)) is None else last for step in steps])
        found.append((one.scores, end <= one.time[:, None]))
    return _pooled(found, threshold)


def _pooled(found: Iterable[tuple[NDArray[np.float64], NDArray[np.bool_]]], threshold: float) -> Completion:
    scores, completed = [np.zeros(0)], [np.zeros(0, dtype=np.bool_)]
    for some, true in found:
        scores.append(some.ravel())
        completed.append(true.ravel())
    return completion(np.concatenate(scores), np.concatenate(completed), threshold)


@dataclass(frozen=True, slots=True)
class Additions:
    """Labels that were added, against what was really performed; the unit is a step in a video."""

    added: int
    right: int
    """Added, and performed in that video."""
    missing: int
    """Performed, and absent from the annotated labels of that video."""

    @property
    def precision(self) -> float | None:
        """Share of the added labels that are right; None where none was added."""
        return self.right / self.added if self.added else None

    @property
    def recall(self) -> float | None:
        """Share of the missing labels that were added; None where none was missing."""
        return self.right / self.missing if self.missing else None

    def to_json(self) -> dict[str, float | int | None]:
        """Plain numbers; N/A is None."""
        return {
            "added": self.added, "right": self.right, "missing": self.missing,
            "precision": self.precision, "recall": self.recall,
        }  # fmt: skip


def additions(filled: Iterable[Video], performed: Task) -> Additions:
    """How many of the labels with the source "predicted" in `filled` are of steps that were really performed there.

    >>> from msg2.task import Segment
    >>> video = Video("v", [Segment("a", 0, 1), Segment("b", 1, 2, 0.9, PREDICTED), Segment("c", 1, 2, 0.6, PREDICTED)])
    >>> truth = Task("t", "abcd", [Video("v", [Segment("a", 0, 1), Segment("b", 1, 2), Segment("d", 3, 4)])])
    >>> additions([video], truth)
    Additions(added=2, right=1, missing=2)
    """
    truth = _by_id(performed)
    added = right = missing = 0
    for video in filled:
        really = set(_performed(truth, video.id).sequence())
        predicted = {segment.step for segment in video.segments if segment.source == PREDICTED}
        annotated = {segment.step for segment in video.segments if segment.source != PREDICTED}
        added += len(predicted)
        right += len(predicted & really)
        missing += len(really - annotated)
    return Additions(added, right, missing)


def _by_id(task: Task) -> dict[str, Video]:
    return {video.id: video for video in task}


def _performed(truth: Mapping[str, Video], video: str) -> Video:
    if video not in truth:
        raise InputError(f"the truth does not say what was performed in video {shortened(video)}")
    return truth[video]

"""How well completed steps are predicted, and how many of the added labels are right. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from msg2.errors import InputError
from msg2.metrics.detection import ratio, roc_auc
from msg2.task import PREDICTED, Task, Video
from msg2.text import short_repr


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
    if video not in performed:
        raise InputError(f"the truth does not say what was performed in video {short_repr(video)}")
    return performed[video]

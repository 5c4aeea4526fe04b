"""Whether probabilities of the next step can be believed: of the steps given 70 %, do 70 % come?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msg2.assist.evaluation import chance
from msg2.assist.next_step import Ranker
from msg2.task import Video

_LEAST = 1e-9
"""A step that was thought impossible counts as this probable: one mistake does not make the loss infinite."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The probability of the most probable step, how right it was (1/k among k equals), and that of what `came`."""

    confidence: float
    right: float
    came: float


@dataclass(frozen=True, slots=True)
class Bin:
    """Predictions with a confidence above `low`, up to `high`: how many, their mean confidence, how many were right."""

    low: float
    high: float
    predictions: int
    confidence: float
    right: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """Predictions by confidence; `ece` = Σ_b |right − confidence| · share of bin b; `log_loss` = −mean log p(came)."""

    bins: tuple[Bin, ...]
    ece: float
    log_loss: float


def predictions(ranker: Ranker, videos: Iterable[Video]) -> list[Prediction]:
    """One for every place of every video, as in `evaluate`.

    >>> from msg2.task import Segment
    >>> predictions(lambda done: {"a": 0.75, "b": 0.25}, [Video("v", [Segment("b")])])
    [Prediction(confidence=0.75, right=0.0, came=0.25)]
    """
    found = []
    for video in videos:
        sequence = video.sequence()
        for place, came in enumerate(sequence):
            chances = ranker(sequence[:place])
            found.append(Prediction(max(chances.values()), chance(chances, came), chances.get(came, 0.0)))
    return found


def reliability(predictions: Sequence[Prediction], bins: int = 10) -> Reliability:
    """The expected calibration error over equally wide bins of confidence; empty bins are left out.

    >>> reliability([Prediction(0.75, 1.0, 0.75), Prediction(0.75, 0.0, 0.25)], bins=2).ece
    0.25
    """
    sorted_in: dict[int, list[Prediction]] = {}
    for one in predictions:
        sorted_in.setdefault(min(max(math.ceil(one.confidence * bins) - 1, 0), bins - 1), []).append(one)
    table = tuple(
        Bin(
            number / bins,
            (number + 1) / bins,
            len(inside),
            math.fsum(one.confidence for one in inside) / len(inside),
            math.fsum(one.right for one in inside) / len(inside),
        )
        for number, inside in sorted(sorted_in.items())
    )
    total = max(len(predictions), 1)
    ece = math.fsum(abs(one.right - one.confidence) * one.predictions for one in table) / total
    loss = -math.fsum(math.log(max(one.came, _LEAST)) for one in predictions) / total
    return Reliability(table, ece, loss)

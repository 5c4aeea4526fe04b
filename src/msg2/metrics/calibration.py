"""Whether probabilities can be believed: of the steps that are given 70 %, do 70 % come?

Predictions are put into equally wide bins b of their confidence; the expected calibration error is
ECE = Σ_b n_b / n · |accuracy_b − confidence_b|, and the log loss −1/n Σ log p(what happened).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

LEAST_PROBABILITY = 1e-9
"""A step that was thought impossible counts as this probable: one mistake does not make the loss infinite."""


@dataclass(frozen=True, slots=True)
class NextStepPrediction:
    """One prediction of the next step, beside what happened."""

    confidence: float  # the probability of the most probable step
    correct: float  # whether that step came: 1 or 0, and 1/k where k steps are equally probable and one of them came
    actual_probability: float  # the probability of the step that came


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """Predictions with a confidence above `low`, up to `high`."""

    low: float
    high: float
    count: int
    confidence: float  # their mean confidence
    accuracy: float  # the share of them that is correct


@dataclass(frozen=True, slots=True)
class CalibrationScores:
    """Predictions by their confidence, empty bins left out, and their log loss in nats."""

    bins: tuple[CalibrationBin, ...]
    log_loss: float

    @property
    def expected_calibration_error(self) -> float:
        """See `expected_calibration_error`."""
        return expected_calibration_error(self.bins)


def score_calibration(predictions: Sequence[NextStepPrediction], bins: int = 10) -> CalibrationScores:
    """Compare the confidence of predictions with how often they are correct.

    Parameters
    ----------
    predictions : sequence of NextStepPrediction
        The predictions, in any order.
    bins : int
        Number of equally wide bins of confidence.

    Returns
    -------
    CalibrationScores
        Without predictions, no bins and a loss of 0.

    >>> predictions = [NextStepPrediction(0.75, 1.0, 0.75), NextStepPrediction(0.75, 0.0, 0.25)]
    >>> score_calibration(predictions, bins=2).expected_calibration_error
    0.25
    """
    members: dict[int, list[NextStepPrediction]] = {}
    for prediction in predictions:
        number = min(max(math.ceil(prediction.confidence * bins) - 1, 0), bins - 1)
        members.setdefault(number, []).append(prediction)
    table = tuple(
        CalibrationBin(
            number / bins,
            (number + 1) / bins,
            len(inside),
            fmean(prediction.confidence for prediction in inside),
            fmean(prediction.correct for prediction in inside),
        )
        for number, inside in sorted(members.items())
    )
    losses = (math.log(max(prediction.actual_probability, LEAST_PROBABILITY)) for prediction in predictions)
    return CalibrationScores(table, -math.fsum(losses) / max(len(predictions), 1))


def expected_calibration_error(bins: Sequence[CalibrationBin]) -> float:
    """The mean distance of accuracy and confidence, weighted by the size of the bins; 0 without predictions."""
    total = max(sum(members.count for members in bins), 1)
    return math.fsum(abs(members.accuracy - members.confidence) * members.count for members in bins) / total

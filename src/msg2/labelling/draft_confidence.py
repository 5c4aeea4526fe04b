"""Confidence that is true: isotonic regression of hits on the model's own confidence, over held-out labelled videos.

minimise over increasing f:   Σ (hit_i − f(confidence_i))²
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from msg2.arrays import FloatArray
from msg2.metrics.calibration import CalibrationBin, NextStepPrediction, expected_calibration_error, score_calibration

LEAST_DRAFTS = 150
"""Held-out drafts from which on a confidence can be checked: a share of so many is known to about 4 points."""


@dataclass(frozen=True, slots=True, eq=False)
class Calibrator:
    """An increasing function from the model's confidence to a probability: linear between its knots."""

    confidence: FloatArray
    probability: FloatArray

    def __call__(self, confidence: FloatArray) -> FloatArray:
        """Probabilities, of the same shape."""
        return np.interp(confidence, self.confidence, self.probability)


def fit_calibrator(confidence: FloatArray, is_hit: NDArray[np.bool_]) -> Calibrator:
    """Fit an increasing function to hits; levels of few drafts are drawn to the share of hits among all.

    Parameters
    ----------
    confidence : array of shape (n,)
        The model's own.
    is_hit : array of shape (n,)
        What was the case.

    Returns
    -------
    Calibrator

    >>> fit_calibrator(np.array([0.2, 0.4, 0.6, 0.8]), np.array([False, True, False, True]))(np.array([0.5])).round(2)
    array([0.5])
    """
    from scipy.optimize import isotonic_regression

    order = np.argsort(confidence, kind="stable")
    fitted = isotonic_regression(is_hit[order].astype(np.float64))
    levels, start, size = np.unique(fitted.x, return_index=True, return_counts=True)
    mean = is_hit.mean()
    knots = np.add.reduceat(confidence[order], start) / size
    return Calibrator(knots, (levels * size + 2 * mean) / (size + 2))


@dataclass(frozen=True, slots=True)
class DraftCalibration:
    """How true the confidences are, by cross-fitting on held-out labelled videos."""

    videos: int
    bins: tuple[CalibrationBin, ...]

    @property
    def error(self) -> float:
        """The expected calibration error."""
        return expected_calibration_error(self.bins)


def cross_fitted(confidence: FloatArray, is_hit: NDArray[np.bool_]) -> FloatArray:
    """Calibrate every video by the others: rows are videos.

    Parameters
    ----------
    confidence : array of shape (videos, N)
        The model's own.
    is_hit : array of shape (videos, N)

    Returns
    -------
    array of shape (videos, N)
        Probabilities.
    """
    part = np.arange(len(confidence)) % min(10, len(confidence))
    found = np.zeros(confidence.shape)
    for fold in range(part.max() + 1):
        others = part != fold
        found[~others] = fit_calibrator(confidence[others].ravel(), is_hit[others].ravel())(confidence[~others])
    return found


def check_calibration(probability: FloatArray, is_hit: NDArray[np.bool_]) -> DraftCalibration:
    """Compare probabilities with what was the case: rows are videos.

    Parameters
    ----------
    probability : array of shape (videos, N)
    is_hit : array of shape (videos, N)

    Returns
    -------
    DraftCalibration
    """
    pairs = zip(probability.ravel().tolist(), is_hit.ravel().tolist(), strict=True)
    predictions = [NextStepPrediction(p, float(hit), p if hit else 1 - p) for p, hit in pairs]
    return DraftCalibration(len(probability), score_calibration(predictions).bins)

"""Calibration of next-step predictions, by hand."""

from __future__ import annotations

import math

import pytest

from msg2.metrics.calibration import NextStepPrediction, score_calibration


def test_reliability_by_hand() -> None:
    made = [
        NextStepPrediction(0.95, 1, 0.95),
        NextStepPrediction(0.95, 0, 0.05),
        NextStepPrediction(0.5, 1, 0.5),
        NextStepPrediction(1.0, 1, 1.0),
    ]
    found = score_calibration(made)
    assert [(b.low, b.high, b.count) for b in found.bins] == [(0.4, 0.5, 1), (0.9, 1.0, 3)]
    assert found.expected_calibration_error == pytest.approx((0.5 * 1 + 3 * abs(2.9 / 3 - 2 / 3)) / 4)
    assert found.log_loss == pytest.approx(-math.log(0.95 * 0.05 * 0.5) / 4)
    assert score_calibration([]).expected_calibration_error == 0

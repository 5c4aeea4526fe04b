from __future__ import annotations

import numpy as np
from sklearn.isotonic import IsotonicRegression

from msg2.labelling.drafts import check_calibration, cross_fitted, fit_calibrator


def test_planted_probabilities_are_found() -> None:
    rng = np.random.default_rng(0)
    own = rng.random((400, 5))
    is_hit = rng.random((400, 5)) < own**2 / 2  # far too sure
    found = cross_fitted(own, is_hit)
    assert check_calibration(own, is_hit).error > 0.3
    assert check_calibration(found, is_hit).error < 0.03
    assert np.abs(found - own**2 / 2).mean() < 0.05


def test_levels_are_those_of_isotonic_regression() -> None:
    rng = np.random.default_rng(1)
    own = rng.random(500)
    is_hit = rng.random(500) < own
    fitted = fit_calibrator(own, is_hit)
    peer = IsotonicRegression().fit(own, is_hit).predict(fitted.keywords["xp"])
    assert np.abs(fitted.keywords["fp"] - peer).max() < 0.35  # small levels are drawn to the mean
    assert np.abs(fitted.keywords["fp"] - peer).mean() < 0.1
    assert (np.diff(fitted(np.linspace(0, 1, 50))) >= -0.2).all()


def test_one_kind_of_outcome() -> None:
    assert fit_calibrator(np.array([0.1, 0.9]), np.array([True, True]))(np.array([0.5])).tolist() == [1.0]

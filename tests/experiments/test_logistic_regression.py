"""The regression against scikit-learn's, and the choice of its penalty."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from experiments.logistic_regression import BaselineOptions, RegressionData, fit_cross_validated, fit_weights


def rows_at_random(seed: int, videos: int = 30, noise: float = 1.0) -> RegressionData:
    rng = np.random.default_rng(seed)
    features = rng.normal(3, 2, (videos * 5, 6))
    truth = features[:, 0] - features[:, 1] + rng.normal(0, noise, len(features)) > 0
    return RegressionData(features, truth, np.repeat(np.arange(videos), 5))


@pytest.mark.parametrize("penalty", [0.1, 1.0, 30.0])
def test_fitted_is_scikit_learn(penalty: float) -> None:
    rows = rows_at_random(0)
    weights = fit_weights(rows.features, rows.truth, penalty)
    theirs = LogisticRegression(C=1 / penalty, tol=1e-8, max_iter=10_000).fit(rows.features, rows.truth)
    assert weights == pytest.approx(np.append(theirs.coef_[0], theirs.intercept_), abs=2e-3)


def test_held_out_log_odds_are_of_regressions_without_the_video() -> None:
    rows = rows_at_random(1)
    options = BaselineOptions(penalties=(3.0,), folds=3)
    found = fit_cross_validated([rows], options)
    standard = (rows.features - rows.features.mean(axis=0)) / rows.features.std(axis=0)
    inside = rows.video % 3 == 1
    theirs = LogisticRegression(C=1 / 3, tol=1e-8).fit(standard[~inside], rows.truth[~inside])
    assert found.held_out[0][inside] == pytest.approx(theirs.decision_function(standard[inside]), abs=0.02)
    whole = LogisticRegression(C=1 / 3, tol=1e-8).fit(standard, rows.truth)
    assert found.regressions[0].log_odds(rows.features) == pytest.approx(whole.decision_function(standard), abs=0.02)


def test_clear_data_get_a_weak_penalty_and_noise_a_strong_one() -> None:
    clear, noise = rows_at_random(2, noise=0.3), rows_at_random(3)
    noise = RegressionData(noise.features, np.random.default_rng(0).random(len(noise.truth)) < 0.5, noise.video)
    options = BaselineOptions()
    assert fit_cross_validated([clear], options).penalty <= 1
    assert fit_cross_validated([noise], options).penalty >= 100


def test_a_group_without_rows_says_nothing() -> None:
    none = RegressionData(np.zeros((0, 6)), np.zeros(0, np.bool_), np.zeros(0, np.intp))
    found = fit_cross_validated([rows_at_random(4), none], BaselineOptions())
    assert found.regressions[1].log_odds(np.ones((2, 6))).tolist() == [0, 0]

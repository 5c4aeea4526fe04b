"""The conditional logit against scikit-learn and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from msg2.assist.conditional_logit import (
    ChoiceSets,
    ObservedChoices,
    Penalty,
    best_penalty,
    fit_conditional_logit,
    minimize_lbfgs,
)


def random_choices(
    rng: np.random.Generator, rows: int = 60, features: int = 2, all_open: bool = False
) -> ObservedChoices:
    open_ = np.ones((rows, 3), dtype=bool) if all_open else rng.random((rows, 3)) < 0.7
    came = rng.integers(0, 3, rows)
    open_[np.arange(rows), came] = True
    return ObservedChoices(ChoiceSets(rng.normal(size=(rows, 4)), rng.normal(size=(rows, 3, features)), open_), came)


def test_terms_are_scikit_learns_multinomial_regression() -> None:
    from sklearn.linear_model import LogisticRegression

    choices = random_choices(np.random.default_rng(0), features=0, all_open=True)
    theirs = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-8, max_iter=1000)
    theirs.fit(choices.choice_sets.context, choices.chosen)
    ours = fit_conditional_logit(choices, Penalty(2.0, 1.0), np.zeros(0))
    assert ours.terms == pytest.approx(theirs.coef_.T, abs=1e-3)


def test_weights_of_two_candidates_are_scikit_learns_binary_regression() -> None:
    """With two open candidates, the choice is a logistic regression on the difference of their features."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(1)
    features, came = rng.normal(size=(50, 2, 3)), rng.integers(0, 2, 50)
    choices = ObservedChoices(ChoiceSets(np.zeros((50, 0)), features, np.ones((50, 2), dtype=bool)), came)
    theirs = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-8).fit(features[:, 1] - features[:, 0], came)
    assert fit_conditional_logit(choices, Penalty(1.0, 1.0), np.zeros(3)).weights == pytest.approx(
        theirs.coef_[0], abs=1e-3
    )


def test_a_fit_is_where_the_penalised_likelihood_is_highest() -> None:
    rng = np.random.default_rng(2)
    choices, prior = random_choices(rng), np.array([1.0, -1.0])
    best = fit_conditional_logit(choices, Penalty(3.0, 2.0), prior)

    def cost(terms: np.ndarray, weights: np.ndarray) -> float:
        total = 1.5 * (terms**2).sum() + ((weights - prior) ** 2).sum()
        sets = choices.choice_sets
        for x, phi, is_open, came in zip(sets.context, sets.features, sets.available, choices.chosen, strict=True):
            utility = [x @ terms[:, n] + phi[n] @ weights for n in range(3)]
            total -= utility[came] - math.log(sum(math.exp(u) for u, o in zip(utility, is_open, strict=True) if o))
        return float(total)

    least = cost(best.terms, best.weights)
    for _ in range(20):
        away = cost(best.terms + rng.normal(0, 0.05, best.terms.shape), best.weights + rng.normal(0, 0.05, 2))
        assert least < away
    held = fit_conditional_logit(choices, Penalty(1e9, 1e9), prior)
    assert held.weights == pytest.approx(prior, abs=1e-4)
    assert np.abs(held.terms).max() < 1e-4


def test_the_penalty_with_the_best_held_out_likelihood_is_chosen() -> None:
    rng = np.random.default_rng(3)
    trials = [(random_choices(rng), random_choices(rng)) for _ in range(2)]
    grid = [Penalty(terms, weights) for terms in (100.0, 1.0) for weights in (100.0, 1.0)]
    likelihood = [sum(fit_conditional_logit(a, p, np.zeros(2)).log_likelihood(b) for a, b in trials) for p in grid]
    assert best_penalty(trials, np.zeros(2), grid)[0] == grid[int(np.argmax(likelihood))]
    assert best_penalty([], np.zeros(2), grid) == (Penalty(100.0, 100.0), None)


def test_the_minimum_of_a_parabola() -> None:
    target = np.array([1.0, -2.0, 0.5])

    def loss_and_gradient(values: np.ndarray) -> tuple[float, np.ndarray]:
        away = values - target
        return float(away @ away), 2 * away

    assert minimize_lbfgs(loss_and_gradient, np.zeros(3), 1e-12) == pytest.approx(target, abs=1e-6)

"""L-BFGS against SciPy's, and its line search against the Wolfe conditions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, rosen, rosen_der

from msg2.assist.conditional_logit import ChoiceSets, ConditionalLogit, ObservedChoices, Penalty, fit_conditional_logit
from msg2.assist.lbfgs import minimize_lbfgs
from msg2.assist.line_search import LinePoint, Objective, find_step

Array = np.ndarray


class Counted:
    """A function that counts how often it is asked."""

    def __init__(self, objective: Objective) -> None:
        self.objective, self.calls = objective, 0

    def __call__(self, x: Array) -> tuple[float, Array]:
        self.calls += 1
        return self.objective(x)


def softmax_loss(rng: np.random.Generator, rows: int, contexts: int, candidates: int) -> Objective:
    """The penalised loss of a multinomial regression, written down anew."""
    x, chosen = rng.normal(size=(rows, contexts)), rng.integers(0, candidates, rows)
    weight = 10 ** rng.uniform(-3, 2)

    def loss(flat: Array) -> tuple[float, Array]:
        terms = flat.reshape(contexts, candidates)
        utility = x @ terms
        log_sum = np.logaddexp.reduce(utility, axis=1)
        residual = np.exp(utility - log_sum[:, None])
        residual[np.arange(rows), chosen] -= 1
        value = log_sum.sum() - utility[np.arange(rows), chosen].sum() + weight / 2 * (flat @ flat)
        return float(value), (x.T @ residual + weight * terms).ravel()

    return loss


@pytest.mark.parametrize("seed", range(12))
def test_it_goes_the_way_of_scipys(seed: int) -> None:
    """The same point, to far more digits than the tolerance asks for, from as many evaluations."""
    rng = np.random.default_rng(seed)
    rows, contexts, candidates = rng.integers([20, 2, 2], [400, 30, 12])
    objective = Counted(softmax_loss(rng, rows, contexts, candidates))
    start = rng.normal(size=contexts * candidates)
    theirs = minimize(objective.objective, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-10, "gtol": 1e-5})
    ours = minimize_lbfgs(objective, start, 1e-10)
    assert objective(ours)[0] == pytest.approx(theirs.fun, rel=1e-12)
    assert ours == pytest.approx(theirs.x, abs=1e-7)
    assert abs(objective.calls - 1 - theirs.nfev) <= 2


@settings(max_examples=50)
@given(st.lists(st.floats(-3, 3), min_size=2, max_size=6))
def test_a_curved_valley_that_is_not_convex_has_the_end_that_scipy_finds(start: list[float]) -> None:
    ours = minimize_lbfgs(lambda x: (float(rosen(x)), rosen_der(x)), np.array(start), 0.0, 1e-8)
    theirs = minimize(rosen, start, jac=rosen_der, method="L-BFGS-B", options={"ftol": 0.0, "gtol": 1e-8})
    assert rosen(ours) == pytest.approx(theirs.fun, abs=1e-9)
    assert ours == pytest.approx(theirs.x, abs=1e-4)


def test_probabilities_of_a_conditional_logit_are_those_of_a_tight_search() -> None:
    rng = np.random.default_rng(0)
    context, features = rng.normal(size=(80, 5)), rng.normal(size=(80, 4, 3))
    available, chosen = rng.random((80, 4)) < 0.7, rng.integers(0, 4, 80)
    available[np.arange(80), chosen] = True
    choices = ObservedChoices(ChoiceSets(context, features, available), chosen)
    prior = np.array([1.0, 0.0, -1.0])

    def model(flat: Array) -> ConditionalLogit:
        return ConditionalLogit(flat[:20].reshape(5, 4), flat[20:])

    def loss(flat: Array) -> float:
        away = flat - np.concatenate([np.zeros(20), prior])
        return float(away @ away) - model(flat).log_likelihood(choices)

    tight = minimize(loss, np.zeros(23), method="BFGS", options={"gtol": 1e-6})
    ours = fit_conditional_logit(choices, Penalty(2.0, 2.0), prior)
    assert loss(np.concatenate([ours.terms.ravel(), ours.weights])) == pytest.approx(tight.fun, abs=1e-6)
    expected = np.exp(model(tight.x).log_probabilities(choices.choice_sets))
    assert np.exp(ours.log_probabilities(choices.choice_sets)) == pytest.approx(expected, abs=1e-4)


LINES: dict[str, Callable[[float], tuple[float, float]]] = {
    "parabola": lambda t: ((t - 3) ** 2, 2 * (t - 3)),
    "flat far away": lambda t: (-t / (t * t + 2), (t * t - 2) / (t * t + 2) ** 2),
    "steep": lambda t: (np.exp(5 * t) - 500 * t, 5 * np.exp(5 * t) - 500),
    "bend": lambda t: (float(np.hypot(t - 0.3, 0.1)), (t - 0.3) / float(np.hypot(t - 0.3, 0.1))),
    "wavy": lambda t: (-t + 0.3 * np.sin(7 * t), -1 + 2.1 * np.cos(7 * t)),
    "quartic": lambda t: ((t - 0.1) ** 4 - t, 4 * (t - 0.1) ** 3 - 1),
}


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("first", [1e-3, 0.1, 1.0, 10.0])
def test_a_step_meets_the_wolfe_conditions(name: str, first: float) -> None:
    def objective(x: Array) -> tuple[float, Array]:
        value, slope = LINES[name](float(x[0]))
        return value, np.array([slope])

    (value, gradient), one = objective(np.zeros(1)), np.ones(1)
    direction = one if gradient[0] < 0 else -one
    found = find_step(objective, np.zeros(1), direction, LinePoint(0.0, value, gradient), first)
    assert found is not None
    slope = float(gradient @ direction)
    assert found.value <= value + 1e-3 * found.step * slope
    assert abs(float(found.gradient @ direction)) <= 0.9 * abs(slope)
    assert (found.value, found.gradient.tolist()) == (
        objective(found.step * direction)[0], objective(found.step * direction)[1].tolist()
    )  # fmt: skip


def test_a_function_without_a_minimum_ends_the_search() -> None:
    far = minimize_lbfgs(lambda x: (float(-x[0] - x @ x), -2 * x - [1.0, 0.0]), np.array([0.0, 0.0]))
    assert far[0] >= 0
    assert np.isfinite(far).all()


def test_at_the_minimum_and_without_variables_nothing_moves() -> None:
    assert minimize_lbfgs(lambda x: (float(x @ x), 2 * x), np.zeros(3)).tolist() == [0, 0, 0]
    assert minimize_lbfgs(lambda x: (1.0, x), np.zeros(0)).tolist() == []


def test_a_kink_ends_the_search_near_it() -> None:
    """The slope is 0.9 of the first one, or less, on a thousandth of the line only: a narrow interval is enough."""

    def objective(x: Array) -> tuple[float, Array]:
        return float(np.hypot(x[0] - 0.3, 1e-3)), (x - 0.3) / np.hypot(x - 0.3, 1e-3)

    found = find_step(objective, np.zeros(1), np.ones(1), LinePoint(0.0, *objective(np.zeros(1))), 1e-3)
    assert found is not None
    assert found.step == pytest.approx(0.3, abs=0.03)

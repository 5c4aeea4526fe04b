"""Whether what some videos do is a mistake: against integrals, and expectation maximisation against its posterior."""

from __future__ import annotations

from itertools import pairwise
from math import fsum, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta

from msg2.assist import requirement_model
from msg2.assist.requirement_model import PRIOR_MISTAKE_RATE, RequirementModel, mistake_probability, sum_of_inverses

MODELS = st.builds(RequirementModel, st.floats(0.01, 0.99), st.floats(1, 200), st.sampled_from([1.0, 0.5, 0.2]))
COUNTS = st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
RULES = st.lists(COUNTS, max_size=8)


def probability_by_integrals(k: int, n: int, model: RequirementModel, up_to: float = 1.0) -> float:
    """The rate of a habit is uniform, with the density 1 / `highest`; that of a mistake is Beta(1, b)."""
    w, b = model.genuine, model.rarity
    peak = [k / n] if 0 < k < n and k / n < up_to else None
    habit = quad(lambda x: x**k * (1 - x) ** (n - k), 0, up_to, points=peak)[0] / model.highest
    mistake = quad(lambda x: x**k * (1 - x) ** (n - k) * beta.pdf(x, 1, b), 0, 1, points=[0.01, 0.1])[0]
    return w * mistake / (w * mistake + (1 - w) * habit)


@given(COUNTS, MODELS)
def test_the_probability_is_that_of_the_two_integrals(counts: tuple[int, int], model: RequirementModel) -> None:
    expected = probability_by_integrals(*counts, model)
    assert mistake_probability(*counts, model) == pytest.approx(expected, abs=1e-5)


@given(st.integers(20, 80), st.floats(0, 0.25), st.floats(0.05, 0.95), st.floats(1, 200))
def test_the_highest_rate_of_a_habit_cuts_off_what_hardly_counts(n: int, share: float, w: float, b: float) -> None:
    """Where a rule is broken clearly less often than that, the integral up to it is the whole one."""
    k, model = int(n * share), RequirementModel(w, b, highest=0.5)
    exact = probability_by_integrals(k, n, model, up_to=0.5)
    assert mistake_probability(k, n, model) == pytest.approx(exact, abs=0.005)


@given(COUNTS, MODELS)
def test_the_more_videos_have_it_the_less_it_is_a_mistake(counts: tuple[int, int], model: RequirementModel) -> None:
    (k, n) = counts
    probabilities = [mistake_probability(times, n, model) for times in range(n + 1)]
    assert all(0 <= p <= 1 for p in probabilities)
    assert all(one >= other - 1e-12 for one, other in pairwise(probabilities))
    assert mistake_probability(k, n, model) <= mistake_probability(k, n + 1, model) + 1e-12  # one more without it


@given(COUNTS, st.floats(0.01, 0.99), st.floats(1, 200))
def test_a_habit_within_narrower_bounds_explains_more_of_what_is_rare(
    counts: tuple[int, int], w: float, b: float
) -> None:
    chances = [mistake_probability(*counts, RequirementModel(w, b, highest)) for highest in (1.0, 0.5, 0.1)]
    assert chances == sorted(chances, reverse=True)


def log_posterior(model: RequirementModel, rules: list[tuple[int, int]]) -> float:
    """Of the model, up to a constant: what expectation maximisation climbs."""
    w, b, believed = model.genuine, model.rarity, 1 / PRIOR_MISTAKE_RATE - 1
    grid = (np.arange(4000) + 0.5) / 4000
    total = log(w) + log(1 - w) + log(b) - b / believed
    for k, n in rules:
        seen = grid**k * (1 - grid) ** (n - k)
        total += log(np.mean(seen * (w * b * (1 - grid) ** (b - 1) + (1 - w) / model.highest)))
    return total


@given(RULES, st.sampled_from([1.0, 0.5]), st.sampled_from([1.0, 19.0]))
def test_the_model_becomes_more_probable_with_every_round(
    rules: list[tuple[int, int]], highest: float, least: float
) -> None:
    heights = []
    for rounds in (1, 2, 3, 10, 50):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(requirement_model, "EM_ROUNDS", rounds)
            model = RequirementModel.fit(rules, least, highest)
        assert model.rarity >= least
        assert model.highest == highest
        heights.append(log_posterior(model, rules))
    assert all(later >= earlier - 1e-6 for earlier, later in pairwise(heights))


def test_without_a_rule_it_is_what_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirement_model, "PRIOR_MISTAKE_RATE", 0.1)
    assert RequirementModel.fit([]) == RequirementModel(0.5, pytest.approx(9))


def test_rules_that_nobody_breaks_are_real_and_those_that_half_break_are_not() -> None:
    """What is broken more often than one time in 20 is no mistake."""
    kept, broken = (RequirementModel.fit([(times, 50)] * 20, least_rarity=19) for times in (0, 25))
    assert kept.genuine > 0.9 > 0.1 > broken.genuine
    assert mistake_probability(1, 51, kept) > 0.9
    assert mistake_probability(26, 51, broken) < 0.01
    mixed = RequirementModel.fit([(0, 50)] * 10 + [(25, 50)] * 10, least_rarity=19)
    assert mixed.genuine == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("first", [1.0, 1.5, 40.25, 1e5])
@pytest.mark.parametrize("count", [1, 999, 1000, 1001, 50_000])
def test_sums_of_inverses(first: float, count: int) -> None:
    assert sum_of_inverses(first, count) == pytest.approx(fsum(1 / (first + j) for j in range(count)), rel=1e-12)

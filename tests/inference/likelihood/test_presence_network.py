"""The network of presences: it adds up to one, finds what was planted, and says what was counted."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays

from msg2.inference.likelihood.presence import fit_presence_network


def probability(network: list[tuple[list[int], np.ndarray]], steps: tuple[bool, ...]) -> float:
    chance = 1.0
    for step, (given_steps, rates) in enumerate(network):
        context = 0
        for one in given_steps:
            context = 2 * context + steps[one]
        chance *= rates[context] if steps[step] else 1 - rates[context]
    return chance


@given(arrays(bool, (12, 4)))
def test_it_adds_up_to_one(shown: np.ndarray) -> None:
    network = fit_presence_network(shown, np.ones(12, dtype=np.int64), [2, 0, 3, 1])
    assert sum(probability(network, steps) for steps in product([False, True], repeat=4)) == pytest.approx(1)
    order = [2, 0, 3, 1]
    for step in range(4):
        assert set(network[step][0]) <= set(order[: order.index(step)])


def test_what_was_planted_is_found() -> None:
    """b is there exactly with a; one of c and d; e needs b and c, and is then there in half of the runs."""
    rng = np.random.default_rng(0)
    a, c, half = (rng.random(2000) < rate for rate in (0.6, 0.5, 0.5))
    shown = np.column_stack([a, a, c, ~c, a & c & half])
    network = fit_presence_network(shown, np.ones(2000, dtype=np.int64), range(5))
    assert [given for given, _ in network[:4]] == [[], [0], [], [2]]
    assert set(network[4][0]) in ({0, 2}, {1, 2}, {0, 3}, {1, 3})
    assert network[0][1] == pytest.approx([0.6], abs=0.04)
    assert network[1][1] == pytest.approx([0, 1], abs=0.001)
    assert sorted(network[4][1]) == pytest.approx([0, 0, 0, 0.5], abs=0.05)


def test_weights_stand_for_copies() -> None:
    sets = np.array([[True, True, False], [True, False, True], [False, False, False]])
    weight = np.array([5, 20, 9])
    one = fit_presence_network(sets, weight, range(3))
    other = fit_presence_network(np.repeat(sets, weight, axis=0), np.ones(34, dtype=np.int64), range(3))
    for (given_steps, rates), (others, other_rates) in zip(one, other, strict=True):
        assert given_steps == others
        assert (rates == other_rates).all()

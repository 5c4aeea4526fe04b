from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from msg2.labelling.alignment import Transitions, forward_backward


def _transitions(adjacent: float = 0.3) -> Transitions:
    order = np.array([[0.1, 0.9], [0.6, 0.4], [0.7, 0.3]])
    return Transitions(order, np.array([2.0, 3.0]), np.array([2.0, 4.0, 3.0]), adjacent)


def _enumerate_paths(evidence: np.ndarray, transitions: Transitions) -> tuple[np.ndarray, float]:
    """Posterior of steps and log-likelihood of one video, by all paths through the states."""
    bins, steps = evidence.shape
    matrix, states = transitions.matrix(), 2 * steps + 1
    posterior, total = np.zeros((bins, steps)), 0.0
    for path in product(range(states), repeat=bins):
        weight = float(path[0] == states - 1)
        for before, after in pairwise(path):
            weight *= matrix[before, after]
        for place, state in enumerate(path):
            weight *= np.exp(evidence[place, state]) if state < steps else 1.0
        total += weight
        for place, state in enumerate(path):
            if state < steps:
                posterior[place, state] += weight
    return posterior / total, float(np.log(total))


def test_rows_of_the_matrix_are_probabilities() -> None:
    assert np.allclose(_transitions().matrix().sum(axis=1), 1)


@pytest.mark.parametrize("adjacent", [0.0, 0.3])
def test_equals_the_sum_over_all_paths(adjacent: float) -> None:
    evidence = np.random.default_rng(0).normal(size=(2, 6, 2))
    bins = np.array([4, 6])
    found = forward_backward(evidence, bins, _transitions(adjacent))
    for video, length in enumerate(bins):
        posterior, total = _enumerate_paths(evidence[video, :length], _transitions(adjacent))
        assert np.allclose(found.steps[video, :length], posterior)
        assert found.log_likelihood[video] == pytest.approx(total)
    assert not found.steps[0, 4:].any()


def test_baum_welch_of_the_order_never_loses_likelihood() -> None:
    evidence = np.random.default_rng(1).normal(size=(8, 30, 2)) * 2
    bins = np.full(8, 30)
    transitions, before = _transitions(0.0), -np.inf
    for _ in range(10):
        found = forward_backward(evidence, bins, transitions)
        assert found.log_likelihood.sum() >= before - 1e-9
        before = found.log_likelihood.sum()
        counts = found.entries.sum(axis=0)
        transitions = Transitions(counts / counts.sum(axis=1, keepdims=True), transitions.durations, transitions.pauses)


def test_order_of_videos_only_reorders() -> None:
    evidence = np.random.default_rng(2).normal(size=(4, 9, 2))
    bins = np.array([9, 3, 7, 5])
    found = forward_backward(evidence, bins, _transitions())
    back = forward_backward(evidence[::-1], bins[::-1], _transitions())
    assert np.allclose(found.steps, back.steps[::-1])
    assert np.allclose(found.entries, back.entries[::-1])

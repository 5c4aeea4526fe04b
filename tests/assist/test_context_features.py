"""Features of the next step, by hand and by brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.assist.contexts import (
    COUNT_FEATURES,
    GraphFeatures,
    PastChoices,
    count_features,
    count_transitions,
    encode_contexts,
    similarity_features,
)
from msg2.graph import SubtaskGraph
from tests.assist.deviation_examples import graphs_of_all_kinds
from tests.assist.forecast_examples import GRAPH, NAMES


def test_counts_by_hand() -> None:
    found = count_transitions([(0, 1, 2), (1, 0)], 3)
    assert found.shown.tolist() == [2, 2, 1]
    assert found.after.tolist() == [[0, 1, 0], [1, 0, 1], [0, 0, 0], [1, 1, 0]]
    assert found.second.tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0], [1, 1, 0]]
    assert found.before.tolist() == [[0, 1, 1], [1, 0, 1], [0, 0, 0]]
    assert found.positions.tolist() == pytest.approx([1 / 6 + 3 / 4, 1 / 2 + 1 / 4, 5 / 6])


def test_counted_features_by_hand() -> None:
    features = count_features(encode_contexts([(0,)], 3), count_transitions([(0, 1, 2), (0, 2), (1, 0)], 3))[0]
    share = [3.5 / 4, 2.5 / 4, 2.5 / 4]
    assert features[0].tolist() == [0] * len(COUNT_FEATURES)  # done
    after, second, log_share, after_done, before_left, position = features[1]
    assert after == pytest.approx(math.log((1 + 2 * 0.5) / (2 + 2)))  # a → b once of twice, backed off to one half
    assert second == pytest.approx(math.log((1 + 2 * 0.5) / (3 + 2 - 1)))  # from the start: b, c, and a, which is done
    assert log_share == pytest.approx(math.log(share[1]))
    assert after_done == pytest.approx(math.log((1 + 0.5) / (2 + 1)))
    assert before_left == pytest.approx(math.log((1 + 0.5) / (1 + 1)) * share[2] / (share[1] + share[2]))
    assert position == pytest.approx(-abs(1.5 / sum(share) - (1 / 2 + 1 / 4 + 0.5) / 3))


def test_similar_situations_by_brute_force() -> None:
    past = PastChoices.from_sequences([(0, 1, 2), (1, 0, 3)], 4)
    found = similarity_features(encode_contexts([(0,)], 4), past, decay=0.4)[0, :, 0]
    weights = np.zeros(4)
    for prefix, outcome in zip(past.contexts.prefixes, past.chosen, strict=True):
        apart = len({0} ^ set(prefix)) + (not prefix or prefix[-1] != 0)
        weights[outcome] += 0.4**apart
    weights += (np.bincount(past.chosen, minlength=4) + 0.5) / (len(past.chosen) + 2)
    weights[0] = 0
    assert np.exp(found[1:]) == pytest.approx(weights[1:] / weights.sum())


def test_the_graph_as_features() -> None:
    features = GraphFeatures(GRAPH, rho=0.5).of(encode_contexts([(0,), (0, 1)], 4))
    of = {name: GRAPH.steps.index(name) for name in NAMES}
    assert features[0, of["c"]].tolist() == [0, 0, 1]  # b is missing
    assert features[1, of["c"]].tolist() == [1, 1, 0]
    assert features[1, of["d"]].tolist() == [1, 0.25, 0]
    assert features[1, of["a"]].tolist() == [0, 0, 0]


@given(graphs_of_all_kinds(), st.data())
def test_features_of_many_contexts_are_those_that_the_tracker_finds_one_by_one(
    graph: SubtaskGraph, data: st.DataObject
) -> None:
    size = len(graph.steps)
    orders = data.draw(st.lists(st.permutations(range(size)), min_size=1, max_size=4))
    contexts = encode_contexts([tuple(order[:length]) for order in orders for length in range(size)], size)
    features = GraphFeatures(graph, rho=0.9)
    if graph.preconditions:
        one_by_one = np.array([features._row(prefix) for prefix in contexts.prefixes])
        assert features.of(contexts) == pytest.approx(one_by_one)

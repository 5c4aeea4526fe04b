"""GRProp: the gradient against finite differences, and what the policy prefers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msg2.assist.rankers import grprop, softened_reward
from msg2.errors import InputError
from msg2.graph import FALSE, TRUE, SubtaskGraph, all_of, any_of, negation, step

NAMES = "abcdef"


def best(probabilities: dict[str, float]) -> str:
    return max(probabilities, key=probabilities.__getitem__)


@st.composite
def graphs(draw: st.DrawFn) -> SubtaskGraph:
    preconditions = {}
    for place, name in enumerate(NAMES[1:], start=1):
        preconditions[name] = draw(
            st.recursive(
                st.sampled_from([TRUE, *map(step, NAMES[:place])]),
                lambda inner: (
                    st.lists(inner, max_size=3).map(all_of)
                    | st.lists(inner, min_size=1, max_size=3).map(any_of)
                    | inner.map(negation)
                ),
                max_leaves=5,
            )
        )
    return SubtaskGraph("task", NAMES, preconditions)


@settings(max_examples=40)
@given(graphs(), st.sets(st.sampled_from(NAMES)), st.lists(st.floats(0.1, 1.0), min_size=6, max_size=6))
def test_gradient_is_that_of_finite_differences(graph: SubtaskGraph, done: set[str], rewards: list[float]) -> None:
    completion = np.array([float(name in done) for name in graph.steps])
    weights = np.array(rewards)
    _, slope = softened_reward(graph, completion, weights)
    tiny = 1e-6
    for place, name in enumerate(graph.steps):
        if name not in done:  # a completed step is done: only what is left has a slope to follow
            up, down = completion.copy(), completion.copy()
            up[place] += tiny
            down[place] -= tiny
            above, _ = softened_reward(graph, up, weights)
            below, _ = softened_reward(graph, down, weights)
            assert slope[place] == pytest.approx((above - below) / (2 * tiny), abs=1e-6)


def test_reward_of_a_chain_by_hand() -> None:
    """x̃_a = 0.8 at the start and x̃_b = 0.8 · 0.8; ∂U/∂x_a = 0.2 (r_a + 0.8 r_b), ∂U/∂x_b = 0.2 r_b."""
    chain = SubtaskGraph("t", "ab", {"b": step("a")})
    reward, slope = softened_reward(chain, np.zeros(2), np.array([1.0, 0.5]))
    assert reward == pytest.approx(0.8 + 0.5 * 0.64)
    assert slope.tolist() == pytest.approx([0.2 * (1 + 0.8 * 0.5), 0.2 * 0.5])


def test_only_a_completed_step_blocks() -> None:
    """A negated step that is merely possible leaves an AND open; a completed one closes it."""
    graph = SubtaskGraph("t", "abc", {"c": all_of([step("a"), negation(step("b"))])})
    only_c = np.array([0.0, 0.0, 1.0])
    assert softened_reward(graph, np.array([1.0, 0.0, 0.0]), only_c)[0] == pytest.approx(0.8, abs=1e-3)
    assert softened_reward(graph, np.array([1.0, 1.0, 0.0]), only_c)[0] == pytest.approx(0.0, abs=1e-3)


@settings(max_examples=40)
@given(graphs(), st.lists(st.sampled_from(NAMES), unique=True))
def test_probability_lies_on_what_can_come_next(graph: SubtaskGraph, done: list[str]) -> None:
    probabilities = grprop(graph)(done)
    left = set(NAMES) - set(done)
    allowed = (graph.eligible(done) & left) or left
    assert set(probabilities) == left
    assert sum(probabilities.values()) == pytest.approx(1 if left else 0)
    assert all(probabilities[name] == 0 for name in left - allowed)


def test_prefers_the_step_that_opens_more() -> None:
    graph = SubtaskGraph("t", "abcde", {"c": step("b"), "d": step("b"), "e": step("a")})
    assert best(grprop(graph)([])) == "b"


def test_prefers_what_completes_an_and_to_what_an_or_no_longer_needs() -> None:
    graph = SubtaskGraph("t", "abcgh", {"g": all_of([step("a"), step("b")]), "h": any_of([step("a"), step("c")])})
    probabilities = grprop(graph)(["a"])
    assert probabilities["b"] > probabilities["c"]


def test_avoids_a_step_that_blocks_another() -> None:
    graph = SubtaskGraph("t", "abcd", {"d": all_of([step("c"), negation(step("a"))])})
    probabilities = grprop(graph)(["c"])
    assert probabilities["a"] < probabilities["b"]


def test_prefers_what_became_possible_recently() -> None:
    graph = SubtaskGraph("t", "abc", {"c": step("b")})
    assert best(grprop(graph)(["b"])) == "c"


def test_nothing_eligible_and_nothing_left() -> None:
    graph = SubtaskGraph("t", "ab", {"a": FALSE, "b": FALSE})
    assert grprop(graph)([]) == pytest.approx({"a": 0.5, "b": 0.5})
    assert grprop(graph)(["a", "b"]) == {}


def test_many_blocked_steps_do_not_overflow() -> None:
    names = [f"{i:03}" for i in range(200)]
    graph = SubtaskGraph("t", [*names, "z"], {"z": all_of(negation(step(name)) for name in names)})
    assert sum(grprop(graph)(names[:150]).values()) == pytest.approx(1)


def test_an_unknown_step_is_named() -> None:
    with pytest.raises(InputError, match="'z' is not a step of the graph"):
        grprop(SubtaskGraph("t", "a", {}))(["z"])

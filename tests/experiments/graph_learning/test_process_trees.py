"""Process trees: kinds against all traces of small trees, noise at its rate, the same log for the same seed."""

from __future__ import annotations

from itertools import combinations, permutations, product

import numpy as np
import pytest

from experiments.graph_learning import kind_suite, process_trees
from experiments.graph_learning.kind_suite import DEVELOPMENT, HELD_OUT, suite_tree, tree_log
from experiments.graph_learning.process_trees import (
    DEEPEST_CHOICE,
    LEAST_SHARE,
    ProcessTree,
    Trace,
    activity,
    disturb,
    random_tree,
    sample_trace,
    simulate_log,
    tree_kinds,
)
from msg2.graph import PairKind


def interleavings(first: Trace, second: Trace) -> set[Trace]:
    found = set()
    for places in combinations(range(len(first) + len(second)), len(first)):
        left, right = iter(first), iter(second)
        found.add(tuple(next(left) if i in places else next(right) for i in range(len(first) + len(second))))
    return found


def language(tree: ProcessTree) -> set[Trace]:
    """All traces."""
    if tree.operator == "activity":
        return {(tree.label,)}
    parts = [language(child) for child in tree.children]
    if tree.operator == "optional":
        return {(), *parts[0]}
    if tree.operator == "choice":
        return set().union(*parts)
    traces: set[Trace] = {()}
    for part in parts:
        if tree.operator == "sequence":
            traces = {(*a, *b) for a, b in product(traces, part)}
        else:
            traces = {trace for a, b in product(traces, part) for trace in interleavings(a, b)}
    return traces


def kinds_by_definition(traces: set[Trace], steps: tuple[str, ...]) -> dict[tuple[str, str], PairKind]:
    kinds: dict[tuple[str, str], PairKind] = {}
    for a, b in permutations(steps, 2):
        with_b = [trace for trace in traces if b in trace]
        together = [trace for trace in with_b if a in trace]
        if not together:
            kinds[a, b] = "exclusive"
        elif any(trace.index(b) < trace.index(a) for trace in together):
            kinds[a, b] = "free"
        else:
            kinds[a, b] = "needs" if len(together) == len(with_b) else "after"
    return kinds


@pytest.mark.parametrize("seed", range(40))
def test_kinds_are_those_of_the_language(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_trees, "OPTIONAL_RATE", 0.4)
    tree = random_tree(np.random.default_rng(seed), activities=(3, 7))
    assert tree_kinds(tree) == kinds_by_definition(language(tree), tree.activities)


def test_samples_are_traces_and_all_are_drawn() -> None:
    tree = ProcessTree(
        "parallel",
        (
            ProcessTree("sequence", (activity("a"), activity("b"))),
            ProcessTree("choice", (activity("c"), ProcessTree("optional", (activity("d"),), shares=(0.5,))),
                        shares=(0.3, 0.7)),
        ),
    )  # fmt: skip
    rng = np.random.default_rng(0)
    drawn = [sample_trace(tree, rng) for _ in range(6000)]
    assert set(drawn) == language(tree)
    assert sum("c" in trace for trace in drawn) / 6000 == pytest.approx(0.3, abs=0.03)
    # Of a, b and one more, all three places are equally probable.
    assert sum(trace == ("a", "c", "b") for trace in drawn) / 6000 == pytest.approx(0.1, abs=0.02)


def test_a_disturbed_trace_differs_by_one_operation() -> None:
    rng = np.random.default_rng(0)
    seen = {disturb(("a", "b"), "ab", rng) for _ in range(300)}
    assert seen == {("a",), ("b",), ("b", "a"), ("a", "a", "b"), ("b", "a", "b"), ("a", "b", "a"), ("a", "b", "b")}
    assert {disturb((), "ab", rng) for _ in range(50)} == {("a",), ("b",)}


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.5])
def test_noise_has_its_rate(noise: float) -> None:
    tree = ProcessTree("sequence", tuple(map(activity, "abcdef")))
    log = simulate_log(tree, 4000, noise, seed=3)
    assert sum(trace != tuple("abcdef") for trace in log) / 4000 == pytest.approx(noise, abs=0.03)


def test_more_cases_leave_the_earlier_ones() -> None:
    tree = suite_tree(5)
    assert simulate_log(tree, 30, 0.1, 5) == simulate_log(tree, 100, 0.1, 5)[:30]
    assert simulate_log(tree, 30, 0.1, 5) != simulate_log(tree, 30, 0.1, 6)
    assert tree_log(5, 30, 0.1) == tree_log(5, 30, 0.1)


def deepest_choice(tree: ProcessTree) -> int:
    here = tree.operator in ("choice", "optional")
    return here + max(map(deepest_choice, tree.children), default=0)


@pytest.mark.parametrize("seed", DEVELOPMENT.trees)
def test_the_trees_keep_to_their_description(seed: int) -> None:
    tree = suite_tree(seed)
    low, high = process_trees.ACTIVITIES
    assert low <= len(tree.activities) == len(set(tree.activities)) <= high
    assert tree.operator in ("sequence", "parallel")
    assert deepest_choice(tree) <= DEEPEST_CHOICE
    nodes = [tree]
    for node in nodes:
        nodes.extend(node.children)
        assert all(child.operator != node.operator for child in node.children)
        assert all(LEAST_SHARE <= share <= 1 - LEAST_SHARE for share in node.shares)
        assert node.operator != "choice" or sum(node.shares) == pytest.approx(1)


def test_the_two_sets_have_no_seed_in_common() -> None:
    assert (len(HELD_OUT.trees), len(HELD_OUT.worlds)) == (len(DEVELOPMENT.trees), len(DEVELOPMENT.worlds)) == (30, 20)
    assert set(HELD_OUT.trees).isdisjoint(DEVELOPMENT.trees)
    assert set(HELD_OUT.worlds).isdisjoint(DEVELOPMENT.worlds)
    assert HELD_OUT.household != DEVELOPMENT.household
    assert kind_suite.NOISE[0] == kind_suite.MISSING[0] == 0

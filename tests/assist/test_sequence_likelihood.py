"""How probable a video is: against the definition, choice by choice, and adding up to one over all videos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from math import exp, log, prod

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from msg2.assist.following import first_spans
from msg2.assist.sequence_likelihood import SequenceLikelihood
from msg2.graph import SubtaskGraph, all_of, any_of, step
from msg2.inference import infer
from msg2.task import Segment, Video
from tests.assist.deviation_examples import CHAIN, TEA, graphs_of_all_kinds, orders, task, untimed

SMALL = "abcd"
LEVELS, SHARES = (0.01, 0.2), (0.75, 0.25)
NOISE = {"model": {"extra_rate": 0.02, "disorder": {"levels": LEVELS, "shares": SHARES}}}
NO_REPEATS = 1e-4
"""The least rate of repetitions."""


def with_noise(graph: SubtaskGraph) -> SubtaskGraph:
    return SubtaskGraph(
        graph.task, graph.steps, graph.preconditions, NOISE, graph.evidence,
        order=graph.order, exclusive=graph.exclusive, optional=graph.optional, repeats=graph.repeats,
    )  # fmt: skip


IMPOSSIBLE = SubtaskGraph(
    "t", SMALL, {"b": step("a"), "c": any_of([step("a"), step("b")])}, NOISE,
    order=[("c", "d")], exclusive=[("a", "d")],
)  # fmt: skip
"""c and d in an order, though c needs what d excludes."""
NOISY_GRAPHS = graphs_of_all_kinds(SMALL).map(with_noise)


def spans(order: Sequence[str]) -> dict[str, Segment]:
    return first_spans(untimed(order).segments)


def chance_of_order(
    graph: SubtaskGraph, order: Sequence[str], excused: frozenset[tuple[str, str]] = frozenset()
) -> float:
    """p of the order of what a video shows: at every choice, one of those that may come next, or any that is left."""

    def is_first(a: str, b: str) -> bool:
        return graph.kind(a, b) in ("needs", "after") and (a, b) not in excused

    by_level = []
    for level in LEVELS:
        chances = []
        for place, name in enumerate(order):
            begun, left = order[:place], order[place:]
            waiting = [a for a in left if not any(is_first(a, b) for b in begun)]  # what is late blocks nobody
            ors = {b: [c.steps & set(order) for c in graph.precondition(b).clauses() if c.kind == "any"] for b in left}
            may_come = [
                b for b in left
                if not any(is_first(a, b) for a in waiting)
                and all(set(begun) & group or not set(left) & group for group in ors[b])
            ]  # fmt: skip
            orderly = 1 / len(may_come) if name in may_come else 0.0
            chances.append((1 - level) * orderly + level / len(left))
        by_level.append(prod(chances))
    return float(np.dot(SHARES, by_level))


def chance_of_presence(graph: SubtaskGraph, shown: set[str], rates: Mapping[str, float]) -> float:
    """p of what a video shows: each step at its rate if it is possible after those before it, else as one too many."""
    chances = []
    for place, name in enumerate(graph.steps):
        needed = {a for a in graph.steps if graph.kind(a, name) == "needs"}
        possible = needed <= shown and not shown & set(graph.steps[:place]) & graph.partners(name)
        rate = rates[name] if possible else 0.02
        chances.append(rate if name in shown else 1 - rate)
    return prod(chances)


@settings(max_examples=25)
@given(NOISY_GRAPHS, st.lists(st.sampled_from(SMALL), unique=True))
def test_it_is_the_definition(graph: SubtaskGraph, order: list[str]) -> None:
    assume(not any(graph.kind(a, b) == "exclusive" for b in SMALL for a in graph.parents(b)))  # nobody can do b
    rates = {name: 0.5 if name in graph.optional else 0.95 for name in SMALL}  # the graph does not say
    expected = log(chance_of_order(graph, order)) + log(chance_of_presence(graph, set(order), rates))
    found = SequenceLikelihood(graph).log_probability(untimed(order))
    assert found == pytest.approx(expected + len(order) * log(1 - NO_REPEATS), abs=1e-9)


@settings(max_examples=25)
@given(NOISY_GRAPHS)
@example(IMPOSSIBLE)
def test_over_all_orders_of_all_sets_it_adds_up_to_one(graph: SubtaskGraph) -> None:
    """Where nothing is repeated: each shown step is not done again, but for one time in 10,000."""
    likelihood = SequenceLikelihood(graph)
    logs = {order: likelihood.log_probability(untimed(order)) for order in orders(SMALL)}
    assert sum(map(exp, logs.values())) == pytest.approx(1, abs=4 * NO_REPEATS)
    assert sum(exp(value) / (1 - NO_REPEATS) ** len(order) for order, value in logs.items()) == pytest.approx(1)


def test_over_all_repetitions_it_adds_up_to_one() -> None:
    graph = SubtaskGraph("t", "ab", {"b": step("a")}, NOISE, optional="b", repeats={"a": 0.3})
    likelihood = SequenceLikelihood(graph)
    total = exp(likelihood.log_probability(untimed("")))
    for again in range(60):  # the place of a repetition says nothing
        for order in ("a", "b", "ab", "ba"):
            if "a" in order or not again:
                total += exp(likelihood.log_probability(untimed([*order, *["a"] * again])))
    assert total == pytest.approx(1, abs=2 * NO_REPEATS)


def test_over_all_ways_back_it_adds_up_to_one() -> None:
    back = {"a": {"times": 9, "again": {"a": 1}}, "b": {"times": 9, "again": {"a": 2}}, "c": {"times": 3, "again": {}}}
    presence = {
        "a": {"given": [], "rates": [0.9]},
        "b": {"given": ["a"], "rates": [0.2, 0.7]},
        "c": {"given": ["b", "a"], "rates": [0.1, 0.3, 0.5, 0.8]},
    }
    model = {**NOISE["model"], "repetitions": back, "presence": presence}
    likelihood = SequenceLikelihood(SubtaskGraph("t", "abc", {"b": step("a")}, {"model": model}))
    total, longest = 0.0, 8
    for length in range(longest + 1):
        total += sum(exp(likelihood.log_probability(untimed(order))) for order in product("abc", repeat=length))
    assert total < 1
    assert total == pytest.approx(1, abs=0.03)  # what is longer than eight
    # b is there, a and c are not; b is done again twice.
    again = log((1 / 6) / 10) * 2 + log(1 - (1 / 6) / 10)
    expected = log(0.1) + log(0.2) + log(1 - 0.5) + again
    assert likelihood.log_probability(untimed("bbb")) == pytest.approx(expected)


def test_each_repetition_costs_its_rate() -> None:
    likelihood = SequenceLikelihood(TEA)
    logs = [likelihood.log_probability(untimed(["boil", "bag", "pour", *["stir"] * times])) for times in (1, 2, 3)]
    assert [later - earlier for earlier, later in pairwise(logs)] == pytest.approx([log(0.3)] * 2)


@settings(max_examples=25)
@given(NOISY_GRAPHS, st.permutations(SMALL))
def test_what_broken_pairs_cost(graph: SubtaskGraph, order: list[str]) -> None:
    broken = frozenset(
        (late, early)
        for place, early in enumerate(order)
        for late in order[place + 1 :]
        if graph.kind(late, early) in ("needs", "after")
    )
    cost = SequenceLikelihood(graph).violation_cost(spans(order), broken)
    assert cost == pytest.approx(log(chance_of_order(graph, order) / chance_of_order(graph, order, broken)), abs=1e-9)
    assert SequenceLikelihood(graph).violation_cost(spans(order), []) == 0


@settings(max_examples=25)
@given(st.permutations(SMALL), st.floats(1e-4, 0.9), st.integers(0, 2))
def test_a_reversed_pair_costs_unless_the_rule_explains_more_of_a_disorderly_video(
    order: list[str], level: float, place: int
) -> None:
    """b, which needs a, comes right before it: all that came earlier was one choice the likelier for that b waited."""
    early, late = order[place : place + 2]
    noise = {"model": {"disorder": {"levels": [level], "shares": [1.0]}}}
    graph = SubtaskGraph("t", SMALL, {early: step(late)}, noise)
    cost = SequenceLikelihood(graph).violation_cost(spans(order), [(late, early)])
    explained = sum(log((1 - level) * left / (left - 1) + level) for left in range(4, 4 - place, -1))
    assert cost == pytest.approx(log(level) + explained)
    if place == 0:
        assert cost <= 0
    if level <= 0.2:
        assert cost < 0


def test_a_very_disorderly_video_can_speak_for_the_rule_that_it_breaks() -> None:
    others = [f"other {number}" for number in range(12)]
    noise = {"model": {"disorder": {"levels": [0.4], "shares": [1.0]}}}
    graph = SubtaskGraph("t", ["a", "b", *others], {"b": step("a")}, noise)
    assert SequenceLikelihood(graph).violation_cost(spans([*others, "b", "a"]), [("a", "b")]) > 0


def test_what_an_unmet_or_costs() -> None:
    graph = SubtaskGraph("t", "abc", {"c": any_of([step("a"), step("b")])}, NOISE)
    free = SubtaskGraph("t", "abc", {}, NOISE)
    for order in ("cab", "acb", "ab"):
        expected = log(chance_of_order(graph, order) / chance_of_order(free, order))
        assert SequenceLikelihood(graph).unmet_cost(spans(order), "c") == pytest.approx(expected, abs=1e-12)
    assert SequenceLikelihood(graph).unmet_cost(spans("cab"), "c") < 0


def test_steps_that_overlap_are_no_choice_between_them() -> None:
    likelihood = SequenceLikelihood(CHAIN)
    both_ways = [
        Video("v", [Segment("whisk", 0, 9), Segment("dip", 5, 12), Segment("fry", 20, 21)]),
        Video("v", [Segment("whisk", 5, 12), Segment("dip", 0, 9), Segment("fry", 20, 21)]),
    ]
    one, other = map(likelihood.log_probability, both_ways)
    assert one == other
    after = likelihood.log_probability(
        Video("v", [Segment("dip", 0, 4), Segment("whisk", 5, 9), Segment("fry", 20, 21)])
    )
    assert after < one


def test_rates_are_those_of_the_videos_that_the_graph_was_learned_from() -> None:
    seen = task(SubtaskGraph("t", "abc", {}), *["abc"] * 30, *["ac"] * 10)
    graph = infer(seen, "likelihood", absent="skipped")
    assert graph.optional == {"b"}
    noise = graph.method["model"]["disorder"]
    likelihood = SequenceLikelihood(graph)

    def rate(count: int, of: int) -> float:
        usual = (count + 0.5) / (of + 1)
        return round((count + usual) / (of + 1), 6)  # as the graph file has it

    presence = log(rate(40, 40)) * 2 + log(1 - rate(30, 40))  # a and c are there, b is not
    choice = log(
        sum(share * (1 - level + level / 2) for level, share in zip(noise["levels"], noise["shares"], strict=True))
    )
    expected = presence + choice + 2 * log(1 - NO_REPEATS)
    assert likelihood.log_probability(untimed("ac")) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        None,
        "words",
        {"extra_rate": "many", "disorder": 3},
        {"extra_rate": -1, "disorder": {"levels": [0.1], "shares": [0.5, 0.5]}},
        {"extra_rate": True, "disorder": {"levels": [0.0, 2.0], "shares": [0.5, 0.5]}},
        {"disorder": {"levels": ["a"], "shares": [1]}},
        {"disorder": {"levels": [0.1], "shares": [0]}},
        {"disorder": {"shares": [1]}},
        {"presence": {"a": {"given": ["z"], "rates": [0.1, 0.2]}}, "repetitions": {"a": 3}},
        {"presence": {"a": {"given": [], "rates": [0.1, 0.2]}}, "repetitions": {"a": {"times": 1, "again": []}}},
        {"presence": [], "repetitions": "often"},
    ],
)
def test_a_graph_from_elsewhere_is_given_a_little_of_each(model: object) -> None:
    graph = SubtaskGraph("t", "ab", {"b": step("a")}, {"model": model, "videos": "many"})
    found = SequenceLikelihood(graph).log_probability(untimed("ba"))
    assert found == pytest.approx(2 * log(0.95) + log(0.05 / 2) + 2 * log(1 - NO_REPEATS))


def test_no_labels_and_steps_that_no_video_showed() -> None:
    seen = task(SubtaskGraph("t", "abz", {}), *["ab"] * 9)
    graph = infer(seen, "likelihood")
    likelihood = SequenceLikelihood(graph)
    logs = [likelihood.log_probability(untimed(order)) for order in ("", "z", "ab", "abz")]
    assert all(np.isfinite(logs))
    assert max(logs) == logs[2]


def test_needs_that_cannot_be_met_together() -> None:
    """c needs both of an exclusive pair: nobody can do it rightly, and a video that does has a finite likelihood."""
    graph = SubtaskGraph("t", "abc", {"c": all_of([step("a"), step("b")])}, NOISE, exclusive=["ab"])
    assert all(np.isfinite(SequenceLikelihood(graph).log_probability(untimed(order))) for order in orders("abc"))

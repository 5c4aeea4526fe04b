"""What two graphs differ in, against the runs that they allow."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.graph import PAIR_KINDS, SubtaskGraph, all_of, any_of, step
from msg2.graph.graph_file import Loop
from msg2.metrics import compare_graphs
from tests.graph.test_pair_kinds import graphs

same_steps = st.tuples(graphs(), graphs()).filter(lambda pair: set(pair[0].steps) == set(pair[1].steps))


@given(same_steps)
def test_every_pair_counts_once_and_differences_are_told_both_ways(pair: tuple[SubtaskGraph, SubtaskGraph]) -> None:
    first, second = pair
    found, back = compare_graphs(first, second), compare_graphs(second, first)
    size = len(first.steps)
    assert sum(counts.first for counts in found.kinds.values()) == size * (size - 1) / 2
    assert [back.kinds[kind].first for kind in PAIR_KINDS] == [found.kinds[kind].second for kind in PAIR_KINDS]
    assert back.agreement == found.agreement
    told = {frozenset((p.before, p.after)) for p in found.pairs}
    for a, b in combinations(first.steps, 2):
        differ = first.kind(a, b) != second.kind(a, b) or first.kind(b, a) != second.kind(b, a)
        assert (frozenset((a, b)) in told) == differ
    assert {p.step for p in found.preconditions} == {p.step for p in back.preconditions}


def test_what_must_follow_and_what_is_done_again_is_compared() -> None:
    loops = [Loop(steps=["b", "c"], back=[], share=0.2), Loop(steps=["d"], back=[], share=0.2)]
    first = SubtaskGraph(
        "t", "abcd", {}, responses=[("a", step("b")), ("a", any_of([step("c"), step("d")]))], loops=loops
    )
    found = compare_graphs(first, SubtaskGraph("t", "abc", {}, responses=[("a", step("b")), ("b", step("c"))]))
    # What only one graph has the steps for is left out.
    assert (found.said_in_first, found.said_in_second) == (("again and again: 'b', 'c'",), ("after 'b' comes 'c'",))
    same = compare_graphs(first, first)
    assert (same.said_in_first, same.said_in_second) == ((), ())


@given(graphs())
def test_a_graph_does_not_differ_from_itself(graph: SubtaskGraph) -> None:
    found = compare_graphs(graph, graph)
    assert (found.pairs, found.preconditions, found.optional_in_first, found.optional_in_second) == ((), (), (), ())
    assert found.agreement == 1


def test_what_only_follows_is_no_difference() -> None:
    chain = {"b": step("a"), "c": step("b")}
    found = compare_graphs(
        SubtaskGraph("t", "abc", chain), SubtaskGraph("t", "abc", {**chain, "c": all_of([step("a"), step("b")])})
    )
    assert (found.pairs, found.preconditions) == ((), ())


def test_what_differs_is_named() -> None:
    steps = ["grind", "open", "pour", "stir", "sugar"]
    first = SubtaskGraph(
        "coffee", steps, {"pour": any_of([step("grind"), step("open")]), "stir": step("pour")},
        order=[("sugar", "stir")], exclusive=[["grind", "open"]], optional=["sugar"],
    )  # fmt: skip
    second = SubtaskGraph(
        "coffee", ["Grind ", *steps[1:]], {"pour": all_of([step("Grind "), step("stir")])}, optional=["sugar", "open"]
    )
    found = compare_graphs(first, second)
    assert {(p.before, p.after): (p.first, p.second) for p in found.pairs} == {
        ("grind", "open"): ("exclusive", "free"),
        ("grind", "pour"): ("after", "needs"),
        ("grind", "stir"): ("after", "free"),
        ("open", "pour"): ("after", "free"),
        ("open", "stir"): ("after", "free"),
        ("pour", "stir"): ("needs", "free"),
        ("stir", "pour"): ("free", "needs"),
        ("sugar", "stir"): ("after", "free"),
    }
    assert (found.optional_in_both, found.optional_in_first, found.optional_in_second) == (("sugar",), (), ("open",))
    assert [(p.step, str(p.first), str(p.second)) for p in found.preconditions] == [
        ("pour", "grind | open", "grind & stir"), ("stir", "pour", "true"),
    ]  # fmt: skip
    assert {(p.before, p.after) for p in found.pairs} - {(p.before, p.after) for p in found.edges} == {
        ("grind", "stir"), ("open", "stir"),
    }  # fmt: skip
    assert (found.kinds["needs"].first, found.kinds["needs"].second, found.kinds["needs"].both) == (1, 2, 0)
    assert found.to_json()["preconditions"][1] == {"step": "stir", "first": "pour", "second": True}


def test_of_two_data_sets_the_common_steps_are_compared() -> None:
    first = SubtaskGraph("t", "abx", {"x": step("a"), "b": step("x")}, optional=["x"])
    second = SubtaskGraph("t", ["A", "b", "y"], {"b": step("y")})
    found = compare_graphs(first, second)
    assert (found.steps_in_first, found.steps_in_second) == (("x",), ("y",))
    assert [(p.before, p.after, p.first, p.second) for p in found.pairs] == [("a", "b", "needs", "free")]
    assert found.edges == ()  # through x
    assert (found.optional_in_first, found.agreement) == ((), 0)
    with pytest.raises(InputError, match="do not share two steps"):
        compare_graphs(first, SubtaskGraph("t", "bcd", {}))


def test_a_third_graph_says_who_is_right() -> None:
    free, chain = SubtaskGraph("t", "abc", {}), SubtaskGraph("t", "abc", {"b": step("a"), "c": step("b")})
    found = compare_graphs(free, chain, SubtaskGraph("t", ["A", "b", "c", "d"], {"b": step("A")}))
    assert {(p.before, p.after): p.truth for p in found.edges} == {("a", "b"): "needs", ("b", "c"): "free"}
    assert (found.right_in_first, found.right_in_second) == (2 / 3, 1 / 3)
    assert compare_graphs(free, chain).right_in_first is None
    with pytest.raises(InputError, match="the truth lacks 'c'"):
        compare_graphs(free, chain, SubtaskGraph("t", "ab", {}))

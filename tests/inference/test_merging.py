"""Graphs of several people merged by majority, against what can really be done in which order."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.graph import Formula, SubtaskGraph, all_of, any_of, are_equivalent, negation, step
from msg2.inference.merging import conjunctive_normal_form, merge_graphs
from msg2.task import Step
from tests.graph.test_pair_kinds import allowed_runs
from tests.inference.test_constraints import preconditions

STEPS = "abcde"


def reachable(graph: SubtaskGraph) -> set[frozenset[Step]]:
    """Every set of completed steps that some order of doing them leads to."""
    found, left = {frozenset[Step]()}, [frozenset[Step]()]
    while left:
        done = left.pop()
        for name in graph.eligible(done) - done:
            if (more := done | {name}) not in found:
                found.add(more)
                left.append(more)
    return found


def needs(graph: SubtaskGraph, name: Step, clause: Formula) -> bool:
    """Whether the clause holds in every reachable state in which the step can be done."""
    return all(clause.evaluate(done) for done in reachable(graph) if name not in done and name in graph.eligible(done))


graphs = st.lists(preconditions(STEPS, kinds="and or"), min_size=1, max_size=5).map(
    lambda many: [SubtaskGraph("t", STEPS, formulas) for formulas in many]
)


@given(graphs, st.randoms(use_true_random=False))
def test_what_is_kept_has_a_majority_and_the_order_of_people_means_nothing(
    many: list[SubtaskGraph], randomness
) -> None:  # type: ignore[no-untyped-def]
    found = merge_graphs(many)
    for vote in found.votes:
        voters = sum(needs(graph, vote.step, vote.clause) for graph in many)
        assert len(vote.voters) <= voters  # a vote is never invented
        if vote.outcome == "kept":
            assert 2 * voters > len(many)
        elif vote.outcome == "tie":
            assert 2 * len(vote.voters) == len(many)
    mixed = merge_graphs(randomness.sample(many, len(many)))
    assert mixed.graph.preconditions == found.graph.preconditions
    assert mixed.graph.evidence == found.graph.evidence


@given(graphs)
def test_a_step_that_most_put_first_comes_first(many: list[SubtaskGraph]) -> None:
    found = merge_graphs(many)
    contradicted = {(vote.step, vote.clause) for vote in found.votes if vote.outcome == "contradiction"}
    for before, after in combinations(STEPS, 2):
        voters = sum(needs(graph, after, step(before)) for graph in many)
        if 2 * voters > len(many) and not contradicted:
            assert needs(found.graph, after, step(before))


@given(preconditions(STEPS, kinds="and or"), st.integers(1, 4))
def test_people_who_agree_are_left_as_they_are(formulas: dict[Step, Formula], people: int) -> None:
    graph = SubtaskGraph("t", STEPS, formulas)
    found = merge_graphs([graph] * people)
    assert reachable(found.graph) == reachable(graph)
    assert found.disagreements == ()


@given(preconditions(STEPS, kinds="and or not"))
def test_conjuncts_are_the_formula(formulas: dict[Step, Formula]) -> None:
    for formula in formulas.values():
        clauses = conjunctive_normal_form(formula)
        assert are_equivalent(all_of(clauses), formula)
        assert all(clause.kind in ("step", "not", "any") for clause in clauses)


def test_formulas_that_mean_the_same_vote_together() -> None:
    a, b, c = map(step, "abc")
    ways = [any_of([a, all_of([b, c])]), all_of([any_of([a, b]), any_of([a, c])])]
    found = merge_graphs([SubtaskGraph("t", "abcd", {"d": formula}) for formula in ways])
    assert found.disagreements == ()
    assert are_equivalent(found.graph.precondition("d"), ways[0])


def test_a_tie_is_named_and_dropped() -> None:
    found = merge_graphs([SubtaskGraph("t", "ab", {"b": step("a")}), SubtaskGraph("t", "ab", {})])
    assert [(vote.outcome, vote.voters, vote.agreement) for vote in found.votes] == [("tie", (0,), 0.5)]
    assert found.graph.edge_pairs() == frozenset()
    assert found.graph.evidence["b"]["clauses"] == [{"clause": "a", "agreement": 0.5, "outcome": "tie"}]


def test_majorities_that_run_in_a_circle_are_named() -> None:
    orders = ["abc", "bca", "cab"]
    many = [SubtaskGraph("t", "abc", {o[1]: step(o[0]), o[2]: step(o[1])}) for o in orders]
    found = merge_graphs(many)
    assert [vote.outcome for vote in found.votes].count("contradiction") == 1
    assert len(found.graph.edges()) == 2


def test_a_not_is_a_clause_as_well() -> None:
    wanted = negation(step("a"))
    found = merge_graphs([SubtaskGraph("t", "ab", {"b": formula}) for formula in (wanted, wanted, step("a"))])
    assert found.graph.precondition("b") == wanted


def test_the_names_of_steps_are_matched() -> None:
    one, other = SubtaskGraph("t", ["Boil", "pour"], {"pour": step("Boil")}), SubtaskGraph("t", ["boil ", "pour"], {})
    assert merge_graphs([one, other]).graph.steps == ("Boil", "pour")
    with pytest.raises(InputError, match="graph 2: has not the steps of the first graph: 'x' is in one of them only"):
        merge_graphs([one, SubtaskGraph("t", ["Boil", "pour", "x"], {})])
    with pytest.raises(InputError, match="no graphs"):
        merge_graphs([])


# -- order, exclusive, optional, repeats --------------------------------------------------------------------------


@st.composite
def related(draw: st.DrawFn) -> SubtaskGraph:
    """A graph with relations of all kinds, in which every step can be done."""
    formulas = draw(preconditions(STEPS, kinds="and or"))
    plain = SubtaskGraph("t", STEPS, formulas)
    forward = list(combinations(plain.steps, 2))
    order = draw(st.lists(st.sampled_from(forward), max_size=3))
    exclusive = draw(st.lists(st.sampled_from(forward), max_size=2))
    optional = draw(st.sets(st.sampled_from(STEPS)))
    graph = SubtaskGraph("t", STEPS, formulas, order=order, exclusive=exclusive, optional=optional)
    assume(frozenset(STEPS) == frozenset().union(*reachable(graph)))
    return graph


@given(st.lists(related(), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_votes_on_pairs_are_those_of_their_kinds(many: list[SubtaskGraph], randomness: random.Random) -> None:
    found = merge_graphs(many)
    for vote in found.votes:
        if vote.kind == "after":
            says = [graph.kind(vote.clause.name, vote.step) in ("needs", "after") for graph in many]
        elif vote.kind == "exclusive":
            says = [graph.kind(vote.clause.name, vote.step) == "exclusive" for graph in many]
        elif vote.kind == "optional":
            says = [vote.step in graph.optional for graph in many]
            assert (vote.step in found.graph.optional) == (2 * sum(says) > len(many))
        else:
            continue
        assert vote.voters == tuple(place for place, voter in enumerate(says) if voter)
        if vote.outcome == "kept" and vote.kind != "optional":
            assert found.graph.kind(vote.clause.name, vote.step) != "free"
    mixed = merge_graphs(randomness.sample(many, len(many)))
    assert mixed.graph.to_json() | {"method": {}} == found.graph.to_json() | {"method": {}}


@given(related(), st.integers(1, 3))
def test_people_who_agree_on_all_kinds_are_left_as_they_are(graph: SubtaskGraph, people: int) -> None:
    found = merge_graphs([graph] * people)
    assert set(allowed_runs(found.graph)) == set(allowed_runs(graph))
    assert found.graph.optional == graph.optional
    assert found.disagreements == ()


def test_an_order_may_have_a_majority_where_the_need_has_none() -> None:
    many = [
        SubtaskGraph("t", "abc", {"b": step("a"), "c": step("b")}),
        SubtaskGraph("t", "abc", {"c": step("b")}, order=["ab"]),
        SubtaskGraph("t", "abc", {"c": step("b")}),
    ]
    found = merge_graphs(many)
    assert found.graph.order == (("a", "b"),)
    assert found.graph.preconditions == {"c": step("b")}
    assert [(v.kind, v.step, str(v.clause), v.voters, v.outcome) for v in found.disagreements] == [
        ("needs", "b", "a", (0,), "dropped"),
        ("after", "b", "a", (0, 1), "kept"),
    ]
    assert found.graph.evidence["b"]["clauses"][1] == {
        "kind": "after", "clause": "a", "agreement": 0.666667, "outcome": "kept",
    }  # fmt: skip


def test_majorities_of_both_kinds_that_run_in_a_circle_are_named() -> None:
    need = {"b": step("a")}
    rings = [
        SubtaskGraph("t", "abc", need, order=["bc"]),
        SubtaskGraph("t", "abc", {}, order=["bc", "ca"]),
        SubtaskGraph("t", "abc", need, order=["ca"]),
    ]
    found = merge_graphs(rings)
    assert (found.graph.preconditions, found.graph.order) == (need, (("b", "c"),))
    assert [(v.kind, v.step) for v in found.votes if v.outcome == "contradiction"] == [("after", "a")]
    found = merge_graphs([*rings, *rings, rings[1]])  # the need has four votes of seven, each order five
    assert (found.graph.preconditions, found.graph.order) == ({}, (("b", "c"), ("c", "a")))


def test_exclusive_pairs_become_the_largest_groups() -> None:
    groups = [[["a", "b", "c"]], [["a", "b"], ["b", "c"], ["a", "c"], ["c", "d"]], [["a", "b", "c", "d"]]]
    found = merge_graphs([SubtaskGraph("t", "abcd", {}, exclusive=each) for each in groups])
    assert found.graph.exclusive == (("a", "b", "c"), ("c", "d"))
    assert {(v.step, str(v.clause)): len(v.voters) for v in found.votes} == {
        ("a", "b"): 3, ("a", "c"): 3, ("b", "c"): 3, ("c", "d"): 2, ("a", "d"): 1, ("b", "d"): 1,
    }  # fmt: skip


def test_majorities_that_leave_a_step_impossible_are_named() -> None:
    many = [
        SubtaskGraph("t", "abc", {"c": all_of([step("a"), step("b")])}),
        SubtaskGraph("t", "abc", {"c": step("a")}, exclusive=["ab"]),
        SubtaskGraph("t", "abc", {"c": step("b")}, exclusive=["ab"]),
    ]
    found = merge_graphs(many)
    assert [(v.kind, v.step) for v in found.votes if v.outcome == "contradiction"] == [("exclusive", "a")]
    assert found.graph.exclusive == ()
    assert are_equivalent(found.graph.precondition("c"), all_of([step("a"), step("b")]))


def test_repeats_are_the_mean_of_a_majority() -> None:
    shares = [{"a": 0.1, "b": 0.5}, {"a": 0.3}, {}]
    found = merge_graphs([SubtaskGraph("t", "ab", {}, repeats=each) for each in shares])
    assert found.graph.repeats == {"a": 0.2}


def test_what_would_be_thousands_of_clauses_is_refused() -> None:
    pairs = [all_of([step(f"a{n}"), step(f"b{n}")]) for n in range(12)]
    steps = ["z", *(f"{side}{n}" for side in "ab" for n in range(12))]
    graphs = [SubtaskGraph("t", steps, {"z": any_of(pairs)}), SubtaskGraph("t", steps, {})]
    with pytest.raises(InputError, match="graph 1: what 'z' needs is more than 64 statements"):
        merge_graphs(graphs)
    few = SubtaskGraph("t", steps, {"z": any_of(pairs[:3])})
    assert are_equivalent(merge_graphs([few, few]).graph.precondition("z"), few.precondition("z"))

"""Next-step prediction against App. C, spelled out."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.assist import next_steps
from msg2.assist.rankers import bigram, recency
from msg2.errors import InputError
from msg2.graph import FALSE, SubtaskGraph, all_of, any_of, negation, step
from msg2.task import Segment, Task, Video
from tests.assist.deviation_examples import TEA, graphs_of_all_kinds

NAMES = "abcde"


@st.composite
def graphs(draw: st.DrawFn) -> SubtaskGraph:
    preconditions = {}
    for place, name in enumerate(NAMES[1:], start=1):
        literals = st.sampled_from(NAMES[:place]).map(step)
        operands = st.lists(literals | literals.map(negation), max_size=3)
        preconditions[name] = draw(operands.map(all_of) | operands.map(any_of))
    return SubtaskGraph("task", NAMES, preconditions)


def appendix_c(graph: SubtaskGraph, done: tuple[str, ...], rho: float) -> dict[str, float]:
    history = [graph.eligible(done[:t]) for t in range(len(done) + 1)]
    left = [name for name in NAMES if name not in done]
    mask = [name for name in left if name in history[-1]]
    weights = {}
    for name in left:
        first = next((t for t, eligible in enumerate(history) if name in eligible), None)
        weights[name] = rho ** (len(done) - first) if name in mask and first is not None else 0.0
    if not mask:
        weights = dict.fromkeys(left, 1.0)
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


DONE = st.lists(st.sampled_from(NAMES), unique=True).map(tuple)


@given(graphs() | graphs_of_all_kinds(), DONE, st.floats(0.1, 1.0))
def test_ranking_is_appendix_c(graph: SubtaskGraph, done: tuple[str, ...], rho: float) -> None:
    expected = appendix_c(graph, done, rho)
    ranked = next_steps(graph, done, recency(graph, rho))
    assert {r.step: r.probability for r in ranked} == pytest.approx(expected)
    assert recency(graph, rho)(done) == pytest.approx(expected)
    assert [r.probability for r in ranked] == sorted((r.probability for r in ranked), reverse=True)
    assert {r.step for r in ranked if r.eligible} == graph.eligible(done) - set(done)


@given(graphs_of_all_kinds(), DONE)
def test_what_is_not_eligible_lacks_something_or_is_ruled_out(graph: SubtaskGraph, done: tuple[str, ...]) -> None:
    completed = set(done)
    for ranked in next_steps(graph, done):
        name = ranked.step
        partners = {one for group in graph.exclusive if name in group for one in group if one != name}
        successors = {after for before, after in graph.order if before == name}
        assert ranked.ruled_out_by == tuple(sorted(completed & (partners | successors)))
        assert ranked.unmet == tuple(c for c in graph.precondition(name).clauses() if not c.evaluate(completed))
        assert ranked.eligible == (name in graph.eligible(done)) == (not ranked.unmet and not ranked.ruled_out_by)
        to_come = {
            before
            for before, after in graph.order
            if after == name and before not in completed | graph.optional
            if not any(before in group and completed & set(group) for group in graph.exclusive)
        }
        assert ranked.awaited == tuple(sorted(to_come))
        assert (name in graph.due(done)) == (ranked.eligible and not ranked.awaited)


def test_what_came_in_its_place_or_should_have_come_later_rules_a_step_out() -> None:
    ranked = {one.step: one for one in next_steps(TEA, ["boil", "bag", "pour", "stir"])}
    assert (ranked["leaves"].ruled_out_by, ranked["leaves"].unmet) == (("bag",), ())
    assert ranked["sugar"].ruled_out_by == ("stir",)
    assert not ranked["leaves"].eligible
    before = {one.step: one for one in next_steps(TEA, ["boil", "bag", "pour"], recency(TEA))}
    assert before["leaves"].probability == 0
    assert before["sugar"].ruled_out_by == ()
    assert before["sugar"].eligible
    assert before["stir"].eligible


@given(graphs(), DONE)
def test_a_repeated_step_counts_once(graph: SubtaskGraph, done: tuple[str, ...]) -> None:
    assert next_steps(graph, done + done[:1]) == next_steps(graph, done)


def test_recently_opened_steps_come_first() -> None:
    graph = SubtaskGraph("t", "abcd", {"c": step("b"), "d": all_of([step("a"), step("c")])})
    first, second, third = next_steps(graph, ["b"], recency(graph))
    assert [(r.step, r.waited) for r in (first, second, third)] == [("c", 0), ("a", 1), ("d", None)]
    assert first.probability / second.probability == pytest.approx(1 / 0.9)
    assert third.unmet == (step("a"), step("c"))


def test_another_ranker_decides_the_order() -> None:
    graph = SubtaskGraph("t", "abc", {"c": step("b")})
    ranked = next_steps(graph, ["b"], lambda done: {"a": 0.75, "c": 0.25})
    assert [(r.step, r.probability, r.waited) for r in ranked] == [("a", 0.75, 1), ("c", 0.25, 0)]


@given(graphs() | graphs_of_all_kinds(), DONE)
def test_the_rule_ranks_and_tells_no_probability(graph: SubtaskGraph, done: tuple[str, ...]) -> None:
    found, weighed = next_steps(graph, done), next_steps(graph, done, recency(graph))
    assert [(r.step, r.rank) for r in found] == [(r.step, r.rank) for r in weighed]
    assert [r.rank for r in found] == list(range(1, len(found) + 1))
    assert {r.probability for r in found} <= {None}
    weights, place = appendix_c(graph, done, 0.9), {name: number for number, name in enumerate(graph.steps)}
    for one, other in pairwise(found):  # equals are in the order of the graph
        gap = weights[one.step] - weights[other.step]
        assert gap > -1e-9
        assert abs(gap) > 1e-9 or place[one.step] < place[other.step]


def test_eligibility_is_latched() -> None:
    """`c` was eligible at the start, not after a, and again after b: its age counts from the start."""
    graph = SubtaskGraph("t", "abcd", {"c": any_of([negation(step("a")), step("b")]), "d": step("b")})
    ranked = {r.step: r for r in next_steps(graph, ["a"], recency(graph))}
    assert (ranked["c"].eligible, ranked["c"].probability) == (False, 0.0)
    ranked = {r.step: r for r in next_steps(graph, ["a", "b"])}
    assert (ranked["c"].waited, ranked["d"].waited) == (2, 0)


def test_nothing_eligible_is_uniform() -> None:
    graph = SubtaskGraph("t", "ab", {"a": FALSE, "b": FALSE})
    ranked = next_steps(graph, (), recency(graph))
    assert [(r.step, r.probability, r.eligible) for r in ranked] == [("a", 0.5, False), ("b", 0.5, False)]


def test_a_long_wait_does_not_make_the_impossible_likely() -> None:
    names = [f"{i:03}" for i in range(400)]
    graph = SubtaskGraph("t", [*names, "y", "z"], {"z": step("y")})
    ranked = next_steps(graph, names, recency(graph, rho=0.1))
    assert [(r.step, r.probability) for r in ranked] == [("y", 1.0), ("z", 0.0)]


def test_nothing_is_left_when_all_is_done() -> None:
    assert next_steps(SubtaskGraph("t", "ab", {}), "ab") == []


def test_an_unknown_step_is_named() -> None:
    with pytest.raises(InputError, match="'fip bread' is not a step of the graph") as caught:
        next_steps(SubtaskGraph("t", ["flip bread"], {}), ["fip bread"])
    assert caught.value.hint == "did you mean 'flip bread'?"


def test_bigram_counts_pairs() -> None:
    videos = [Video(f"v{i}", map(Segment, s)) for i, s in enumerate(["abc", "abd", "acb"])]
    ranker = bigram(Task("t", "abcde", videos))
    total = 1 + 9
    after_a = {"b": 2 + 3 / total, "c": 1 + 2 / total, "d": 1 / total, "e": 0.0}
    assert ranker(["a"]) == pytest.approx({name: w / sum(after_a.values()) for name, w in after_a.items()})
    first = ranker([])
    assert max(first, key=first.__getitem__) == "a"
    assert set(ranker(["a", "b"])) == set("cde")


def test_bigram_of_nothing_is_uniform() -> None:
    assert bigram(Task("t", "ab", []))([]) == {"a": 0.5, "b": 0.5}


@pytest.mark.parametrize("rho", [0.0, -1.0, 1.5, float("nan")])
def test_rho_is_checked(rho: float) -> None:
    with pytest.raises(InputError, match="rho is"):
        recency(SubtaskGraph("t", "a", {}), rho=rho)

"""What is known beforehand is obeyed exactly by every method, and little else changes."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.graph import TRUE, Formula, SubtaskGraph, all_of, any_of, negation, step
from msg2.inference import METHODS, Constraints, infer
from msg2.inference.constraints import apply_constraints
from msg2.simulation import household_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Segment, Step, Task, Video
from tests.inference.conftest import tasks

Pairs = frozenset[tuple[Step, Step]]


@st.composite
def knowledge(draw: st.DrawFn, steps: tuple[Step, ...]) -> Constraints:
    """Required pairs follow some order of the steps; forbidden ones are none that follow from these."""
    order = draw(st.permutations(steps))
    forward, backward = list(combinations(order, 2)), [(b, a) for a, b in combinations(order, 2)]
    required = draw(st.sets(st.sampled_from(forward), max_size=3)) if forward else set()
    follows = networkx.transitive_closure(networkx.DiGraph(list(required))).edges
    free = [pair for pair in [*forward, *backward] if pair not in follows]
    forbidden = draw(st.sets(st.sampled_from(free), max_size=3)) if free else set()
    return Constraints(required, forbidden)


@st.composite
def preconditions(draw: st.DrawFn, steps: str = "abcdef", kinds: str = "and or not") -> dict[Step, Formula]:
    """Random formulas over the steps that come before in some order."""
    order = draw(st.permutations(steps))
    found = {}
    for place, name in enumerate(order):
        below = [step(one) for one in order[:place]]
        if not below:
            continue
        leaves = st.sampled_from(below)
        if "not" in kinds:
            leaves |= st.sampled_from(below).map(negation)
        parts = st.lists(leaves, max_size=3)
        if "or" in kinds:
            parts = st.lists(leaves | st.lists(leaves, min_size=1, max_size=3).map(any_of), max_size=3)
        found[name] = all_of(draw(parts))
    return found


def closed(pairs: set[tuple[Step, Step]] | Pairs) -> set[tuple[Step, Step]]:
    return set(networkx.transitive_closure(networkx.DiGraph(sorted(pairs))).edges)


def ancestors(graph: SubtaskGraph) -> set[tuple[Step, Step]]:
    return closed(graph.edge_pairs())


def assert_obeyed(graph: SubtaskGraph, known: Constraints) -> None:
    """By walking through all states that can be reached, and along all edges."""
    assert not ancestors(graph) & known.forbidden
    assert closed(known.required) <= ancestors(graph)
    reached, queue = {frozenset[Step]()}, [frozenset[Step]()]
    for state in queue:
        ready = graph.eligible(state) - state
        assert not {(a, b) for a, b in known.required if b in ready and a not in state}
        queue += new if (new := [state | {one} for one in ready if state | {one} not in reached]) else []
        reached.update(new)


NOTHING = np.zeros((6, 6), dtype=np.int64)


@settings(deadline=None, max_examples=150)
@given(preconditions(), knowledge(tuple("abcdef")))
def test_any_formulas_are_repaired(learnt: dict[Step, Formula], known: Constraints) -> None:
    found = SubtaskGraph("t", "abcdef", apply_constraints(tuple("abcdef"), learnt, known, NOTHING))
    assert_obeyed(found, known)


@settings(deadline=None, max_examples=100)
@given(preconditions(), knowledge(tuple("abcdef")), st.randoms(use_true_random=False))
def test_what_is_obeyed_already_stays_as_it_is(
    learnt: dict[Step, Formula], known: Constraints, randomness: random.Random
) -> None:
    once = apply_constraints(tuple("abcdef"), learnt, known, NOTHING)
    assert apply_constraints(tuple("abcdef"), once, known, NOTHING) == once
    unchanged = apply_constraints(tuple("abcdef"), learnt, Constraints(), NOTHING)
    assert unchanged == {name: learnt.get(name, TRUE) for name in "abcdef"}
    mixed = dict(randomness.sample(list(learnt.items()), len(learnt)))
    assert apply_constraints(tuple("abcdef"), mixed, known, NOTHING) == once


@settings(deadline=None, max_examples=150)
@given(preconditions(kinds="and"), knowledge(tuple("abcdef")), st.integers(0, 2**32 - 1))
def test_no_relation_goes_that_could_have_stayed(learnt: dict[Step, Formula], known: Constraints, seed: int) -> None:
    before = np.random.default_rng(seed).integers(0, 9, (6, 6))
    steps = tuple("abcdef")
    had = ancestors(SubtaskGraph("t", steps, learnt))
    has = ancestors(SubtaskGraph("t", steps, apply_constraints(steps, learnt, known, before)))
    assert has <= closed(had | known.required)
    for pair in had - has:
        together = closed(has | {pair})
        assert together & known.forbidden or any(a == b for a, b in together)


def test_of_two_relations_the_clearer_one_stays() -> None:
    chain = {"b": step("a"), "c": step("b")}
    before = np.array([[0, 3, 9], [0, 0, 5], [0, 0, 0]])
    found = apply_constraints(tuple("abc"), chain, Constraints(forbidden=[("a", "c")]), before)
    assert found == {"a": TRUE, "b": TRUE, "c": step("b")}
    before[0, 1] = 6
    found = apply_constraints(tuple("abc"), chain, Constraints(forbidden=[("a", "c")]), before)
    assert found == {"a": TRUE, "b": step("a"), "c": TRUE}


def test_what_only_followed_is_written_out() -> None:
    chain = {"b": any_of([step("x"), step("y")]), "c": step("b"), "d": step("c")}
    steps = ("b", "c", "d", "x", "y")
    found = apply_constraints(steps, chain, Constraints(forbidden=[("b", "c")]), np.zeros((5, 5), dtype=np.int64))
    assert found["c"] == any_of([step("x"), step("y")])
    assert found["d"] == all_of([step("b"), step("c")])


def test_an_or_is_kept_or_dropped_as_a_whole() -> None:
    formula = {"c": all_of([step("d"), any_of([step("a"), step("b")])])}
    found = apply_constraints(
        tuple("abcd"), formula, Constraints(forbidden=[("a", "c")]), np.zeros((4, 4), dtype=np.int64)
    )
    assert found["c"] == step("d")
    found = apply_constraints(
        tuple("abcd"), formula, Constraints(required=[("a", "c")]), np.zeros((4, 4), dtype=np.int64)
    )
    assert found["c"] == all_of([step("a"), step("d")])


# -- methods ----------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@pytest.mark.parametrize("method", METHODS)
@given(task=tasks(repeats=True), more=st.data(), randomness=st.randoms(use_true_random=False))
def test_every_method_obeys(method: str, task: Task, more: st.DataObject, randomness: random.Random) -> None:
    known = more.draw(knowledge(task.steps))
    options: dict[str, Any] = {"delta": 0.6} if method == "msg2" else {}
    graph = infer(task, method, constraints=known, **options)
    assert_obeyed(graph, known)
    videos = randomness.sample(task.videos, len(task))
    mixed = Task(task.name, randomness.sample(task.steps, len(task.steps)), videos)
    assert infer(mixed, method, constraints=known, **options).dumps() == graph.dumps()
    assert infer(task, method, constraints=Constraints(), **options).dumps() == infer(task, method, **options).dumps()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_obeys_in_a_noisy_world(method: str) -> None:
    task = simulate(household_world("Make Coffee"), SimulationOptions(videos=12), seed=7).task
    learnt = infer(task, method)
    order = list(reversed(learnt.steps))
    wrong = [(order[0], order[-1]), (order[1], order[-2])]  # last steps first
    gone = sorted(ancestors(learnt) - {(b, a) for a, b in wrong})[:2]
    known = Constraints(required=wrong, forbidden=[pair for pair in gone if pair not in closed(frozenset(wrong))])
    graph = infer(task, method, constraints=known)
    assert_obeyed(graph, known)
    assert graph.method["knowledge"] == known.to_json()


def test_a_repaired_precondition_has_no_score() -> None:
    task = Task("t", "abc", [Video(f"v{n}", map(Segment, "abc")) for n in range(6)])
    graph = infer(task, delta=0.9, constraints=Constraints(forbidden=[("a", "c"), ("b", "c")]))
    assert graph.edge_pairs() == {("a", "b")}
    assert "score" in graph.evidence["b"]
    assert graph.evidence["c"] == {"videos": 6, "holds": 6}


def test_hints_weigh_as_many_videos_and_are_not_counted_as_such() -> None:
    videos = [Video(f"v{n}", map(Segment, "ab" if n < 3 else "ba")) for n in range(6)]
    task = Task("t", "ab", videos)
    assert infer(task, "always-before", delta=0.7).edge_pairs() == set()
    told = infer(task, "always-before", delta=0.7, constraints=Constraints(hints=[("a", "b", 5)]))  # 8 of 11 now
    assert told.edge_pairs() == {("a", "b")}
    assert told.evidence["b"]["edges"]["a"] == {"before": 3, "together": 6}
    assert told.method["videos"] == [video.id for video in videos]
    assert told.method["knowledge"] == {"hints": [["a", "b", 5]]}
    assert infer(task, "always-before", delta=0.7, constraints=Constraints(hints=[("a", "b", 4)])).edge_pairs() == set()


# -- contradictions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("required", "forbidden", "complaint"),
    [
        (["AB", "BC", "CA"], [], "runs in a circle: A<B, B<C, C<A"),
        (["AB", "BA"], [], "runs in a circle: A<B, B<A"),
        (["AB", "BC"], ["AC"], "A<C is forbidden, but it follows from what is required: A<B, B<C"),
        (["AB"], ["AB"], "A<B is forbidden, but it follows from what is required: A<B"),
        (["AA"], [], "A<A speaks of one step only"),
        ([], ["AA"], "A<A speaks of one step only"),
    ],
)
def test_contradictions_are_named(required: list[str], forbidden: list[str], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Constraints([(a, b) for a, b in required], [(a, b) for a, b in forbidden])


@given(st.sets(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), max_size=5), st.data())
def test_contradictions_are_found(pairs: set[tuple[Step, Step]], more: st.DataObject) -> None:
    forbidden = more.draw(st.sets(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), max_size=2))
    alone = any(a == b for a, b in pairs | forbidden)
    bad = alone or any(a == b for a, b in closed(pairs)) or bool(closed(pairs) & forbidden)
    try:
        Constraints(pairs, forbidden)
    except InputError:
        assert bad
    else:
        assert not bad


def test_unknown_steps_and_no_weight_are_refused() -> None:
    task = Task("tea", "ab", [Video("v", map(Segment, "ab"))])
    with pytest.raises(InputError, match="'z' is required, forbidden or hinted at, but no step of 'tea'"):
        infer(task, "always-before", constraints=Constraints(required=[("a", "z")]))
    with pytest.raises(InputError, match="a<b has the weight 0"):
        Constraints(hints=[("a", "b", 0)])

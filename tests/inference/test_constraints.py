"""What is known beforehand is obeyed exactly by every method, and little else changes."""

from __future__ import annotations

import random
from itertools import combinations, permutations
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from msg2.errors import InputError
from msg2.graph import TRUE, Formula, SubtaskGraph, all_of, any_of, negation, step
from msg2.inference import METHODS, Constraints, infer
from msg2.inference.constraints import apply_constraints
from msg2.inference.result import LearnedPreconditions
from msg2.simulation import household_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Segment, Step, Task, Video
from tests.graph.test_pair_kinds import allowed_runs
from tests.inference.conftest import tasks

Pairs = frozenset[tuple[Step, Step]]


@st.composite
def knowledge(draw: st.DrawFn, steps: tuple[Step, ...], kinds: bool = False) -> Constraints:
    """Required pairs follow some order of the steps; forbidden ones are none that follow from these."""
    order = draw(st.permutations(steps))
    forward, backward = list(combinations(order, 2)), [(b, a) for a, b in combinations(order, 2)]

    def some(pairs: list[tuple[Step, Step]], wanted: bool = True) -> set[tuple[Step, Step]]:
        return draw(st.sets(st.sampled_from(pairs), max_size=3)) if pairs and wanted else set()

    required = some(forward)
    required_order = some(forward, kinds)
    forbidden = some([pair for pair in [*forward, *backward] if pair not in closed(required)])
    together = closed(required | required_order)
    forbidden_order = some([pair for pair in [*forward, *backward] if pair not in together], kinds)
    return Constraints(required, forbidden, required_order=required_order, forbidden_order=forbidden_order)


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
    assert not closed(graph.edge_pairs()) & known.forbidden_order
    needs = closed({(parent, name) for name in graph.steps for parent in graph.parents(name)})
    assert not needs & known.forbidden
    assert closed(known.required) <= needs
    assert all(graph.kind(*pair) in ("needs", "after") for pair in known.required_order)
    reached, queue = {frozenset[Step]()}, [frozenset[Step]()]
    for state in queue:
        ready = graph.eligible(state) - state
        assert not {(a, b) for a, b in known.required if b in ready and a not in state}
        queue += new if (new := [state | {one} for one in ready if state | {one} not in reached]) else []
        reached.update(new)


NOTHING = np.zeros((6, 6), dtype=np.int64)


def repair(
    steps: str, learnt: dict[Step, Formula], known: Constraints, before: NDArray[np.int64] | None = None
) -> dict[Step, Formula]:
    """What becomes of preconditions where the method knows of nothing else."""
    counts = np.zeros((len(steps), len(steps)), dtype=np.int64) if before is None else before
    found = apply_constraints(tuple(steps), LearnedPreconditions(learnt), known, counts)
    assert (found.order, found.exclusive, found.optional) == ((), (), ())
    return dict(found.preconditions)


@given(preconditions(), knowledge(tuple("abcdef"), kinds=True))
def test_any_formulas_are_repaired(learnt: dict[Step, Formula], known: Constraints) -> None:
    found = apply_constraints(tuple("abcdef"), LearnedPreconditions(learnt), known, NOTHING)
    assert_obeyed(found.graph("abcdef"), known)
    assert set(found.order) <= known.required_order


@given(preconditions(), knowledge(tuple("abcdef")), st.randoms(use_true_random=False))
def test_what_is_obeyed_already_stays_as_it_is(
    learnt: dict[Step, Formula], known: Constraints, randomness: random.Random
) -> None:
    once = repair("abcdef", learnt, known)
    assert repair("abcdef", once, known) == once
    unchanged = repair("abcdef", learnt, Constraints())
    assert unchanged == {name: learnt.get(name, TRUE) for name in "abcdef"}
    mixed = dict(randomness.sample(list(learnt.items()), len(learnt)))
    assert repair("abcdef", mixed, known) == once


@given(preconditions(kinds="and"), knowledge(tuple("abcdef")), st.integers(0, 2**32 - 1))
@example({"b": step("d"), "d": step("f"), "e": step("d")}, Constraints(required=[("e", "d"), ("b", "f")]), 0)
def test_no_relation_goes_that_could_have_stayed(learnt: dict[Step, Formula], known: Constraints, seed: int) -> None:
    before = np.random.default_rng(seed).integers(0, 9, (6, 6))
    had = ancestors(SubtaskGraph("t", "abcdef", learnt))
    has = ancestors(SubtaskGraph("t", "abcdef", repair("abcdef", learnt, known, before)))
    assert has <= closed(had | known.required)
    for pair in had - has:
        together = closed(has | {pair})
        assert together & known.forbidden or any(a == b for a, b in together)


def test_of_two_relations_the_clearer_one_stays() -> None:
    chain = {"b": step("a"), "c": step("b")}
    before = np.array([[0, 3, 9], [0, 0, 5], [0, 0, 0]])
    found = repair("abc", chain, Constraints(forbidden=[("a", "c")]), before)
    assert found == {"a": TRUE, "b": TRUE, "c": step("b")}
    before[0, 1] = 6
    found = repair("abc", chain, Constraints(forbidden=[("a", "c")]), before)
    assert found == {"a": TRUE, "b": step("a"), "c": TRUE}


def test_what_only_followed_is_written_out() -> None:
    chain = {"b": any_of([step("x"), step("y")]), "c": step("b"), "d": step("c")}
    found = repair("bcdxy", chain, Constraints(forbidden=[("b", "c")]))
    assert found["c"] == any_of([step("x"), step("y")])
    assert found["d"] == all_of([step("b"), step("c")])


def test_an_or_is_kept_or_dropped_as_a_whole() -> None:
    formula = {"c": all_of([step("d"), any_of([step("a"), step("b")])])}
    assert repair("abcd", formula, Constraints(forbidden=[("a", "c")]))["c"] == step("d")
    assert repair("abcd", formula, Constraints(required=[("a", "c")]))["c"] == all_of([step("a"), step("d")])


# -- order, exclusive and optional steps ------------------------------------------------------------------------------


@st.composite
def learnt_kinds(draw: st.DrawFn) -> LearnedPreconditions:
    """What a method that tells kinds may learn of five steps."""
    formulas = draw(preconditions("abcde", kinds="and or"))
    forward = list(combinations(SubtaskGraph("t", "abcde", formulas).steps, 2))
    order = draw(st.sets(st.sampled_from(forward), max_size=3))
    exclusive = draw(st.sets(st.sampled_from(forward), max_size=2))
    optional = draw(st.sets(st.sampled_from("abcde")))
    learnt = LearnedPreconditions(
        formulas, order=sorted(order), exclusive=sorted(exclusive), optional=sorted(optional), repeats={"a": 0.5},
        model={"absent_rate": 0.1},
    )  # fmt: skip
    needed = learnt.graph("abcde").necessary
    assume(not any(learnt.graph("abcde").kind(a, b) == "exclusive" for b in "abcde" for a in needed[b]))
    return learnt


FIVE = np.zeros((5, 5), dtype=np.int64)


@given(learnt_kinds(), knowledge(tuple("abcde"), kinds=True))
def test_all_kinds_are_repaired(learnt: LearnedPreconditions, known: Constraints) -> None:
    found = apply_constraints(tuple("abcde"), learnt, known, FIVE)
    graph = found.graph("abcde")
    assert_obeyed(graph, known)
    assert all(graph.kind(*pair) == "needs" for pair in known.required)
    for run in allowed_runs(graph):
        assert not {(a, b) for a, b in known.required_order if a in run and b in run and run.index(a) > run.index(b)}
    assert not any(graph.kind(*pair) == "needs" for pair in known.forbidden)
    assert not any(graph.kind(*pair) in ("after", "needs") for pair in known.forbidden_order)
    assert not {a for a, b in known.required if b in graph.required} & graph.optional
    assert graph.optional <= set(learnt.optional)
    assert (found.repeats, found.model) == (learnt.repeats, learnt.model)
    again = apply_constraints(tuple("abcde"), found, known, FIVE)
    assert again.graph("abcde") == graph


@given(learnt_kinds(), knowledge(tuple("abcde"), kinds=True))
def test_no_kind_goes_that_could_have_stayed(learnt: LearnedPreconditions, known: Constraints) -> None:
    before, graph = learnt.graph("abcde"), apply_constraints(tuple("abcde"), learnt, known, FIVE).graph("abcde")
    said = {(a, b) for a, b in permutations("abcde", 2) if before.kind(a, b) in ("needs", "after")}
    left = {(a, b) for a, b in said if graph.kind(a, b) == "free"}
    first = known.required | known.required_order | closed(graph.edge_pairs())
    for pair in left:  # not even as an order
        together = closed(first | {pair})
        assert together & known.forbidden_order or any(a == b for a, b in together)
    assert apply_constraints(tuple("abcde"), learnt, Constraints(hints=[("a", "b", 1)]), FIVE).graph("abcde") == before


def test_a_need_that_is_forbidden_stays_as_an_order() -> None:
    learnt = LearnedPreconditions({"b": step("a"), "c": step("b")}, model={"absent_rate": 0.1})
    found = apply_constraints(tuple("abc"), learnt, Constraints(forbidden=[("b", "c")]), NOTHING[:3, :3])
    assert (found.preconditions, found.order) == ({"a": TRUE, "b": step("a"), "c": step("a")}, (("b", "c"),))
    found = apply_constraints(tuple("abc"), learnt, Constraints(forbidden_order=[("b", "c")]), NOTHING[:3, :3])
    assert (found.preconditions["c"], found.order) == (step("a"), ())


def test_a_step_that_is_required_for_a_required_one_is_not_optional() -> None:
    learnt = LearnedPreconditions({"b": step("x")}, optional=("a", "b", "x"))
    found = apply_constraints(tuple("abcx"), learnt, Constraints(required=[("a", "b")]), NOTHING[:4, :4])
    assert found.optional == ["a", "b", "x"]
    found = apply_constraints(tuple("abcx"), learnt, Constraints(required=[("a", "b"), ("b", "c")]), NOTHING[:4, :4])
    assert found.optional == []  # x neither: b needs it


def test_steps_that_are_required_in_order_do_not_exclude_each_other() -> None:
    learnt = LearnedPreconditions({"d": step("b")}, exclusive=[("a", "b", "c")])
    found = apply_constraints(tuple("abcd"), learnt, Constraints(required_order=[("a", "d")]), NOTHING[:4, :4])
    assert (found.exclusive, found.order) == ((("a", "c"), ("b", "c")), (("a", "d"),))


# -- methods ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@given(task=tasks(repeats=True), more=st.data(), randomness=st.randoms(use_true_random=False))
def test_every_method_obeys(method: str, task: Task, more: st.DataObject, randomness: random.Random) -> None:
    known = more.draw(knowledge(task.steps, kinds=True))
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
    graph = infer(task, "msg2", delta=0.9, constraints=Constraints(forbidden=[("a", "c"), ("b", "c")]))
    assert graph.edge_pairs() == {("a", "b")}
    assert "score" in graph.evidence["b"]
    assert graph.evidence["c"] == {"videos": 6, "holds": 6}


def test_hints_weigh_as_many_videos_and_are_not_counted_as_such() -> None:
    videos = [Video(f"v{n}", map(Segment, "ab" if n < 3 else "ba")) for n in range(6)]
    task = Task("t", "ab", videos)
    assert infer(task, "always-before", delta=0.7).edge_pairs() == set()
    told = infer(task, "always-before", delta=0.7, constraints=Constraints(hints=[("a", "b", 5)]))  # 8 of 11 now
    assert told.edge_pairs() == {("a", "b")}
    assert told.evidence["b"]["edges"]["a"] == {"before": 3, "together": 6, "weak": True}
    assert told.method["videos"] == [video.id for video in videos]
    assert told.method["knowledge"] == {"hints": [["a", "b", 5]]}
    assert infer(task, "always-before", delta=0.7, constraints=Constraints(hints=[("a", "b", 4)])).edge_pairs() == set()


def test_hints_make_no_step_optional() -> None:
    task = Task("t", "abcd", [Video(f"v{n}", map(Segment, "abcd" if n % 2 else "bacd")) for n in range(20)])
    assert infer(task, "likelihood").kind("a", "b") == "free"
    told = infer(task, "likelihood", constraints=Constraints(hints=[("a", "b", 200)]))
    assert told.kind("a", "b") in ("needs", "after")
    assert told.optional == frozenset()
    back = Task("t", "abcd", [Video(f"v{n}", map(Segment, "bacd")) for n in range(20)])
    assert infer(back, "likelihood").kind("b", "a") == "needs"
    told = infer(back, "likelihood", constraints=Constraints(hints=[("a", "b", 15)], forbidden=[("a", "c")]))
    assert told.kind("b", "a") == "free"
    assert told.kind("a", "c") == "after"


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


@pytest.mark.parametrize(
    ("constraints", "complaint"),
    [
        ({"required": ["AB"], "required_order": ["BC", "CA"]}, "runs in a circle: A<B, B<<C, C<<A"),
        ({"required": ["AB"], "required_order": ["BA"], "forbidden": ["BA"]}, "runs in a circle: A<B, B<<A"),
        ({"required": ["AB"], "required_order": ["BC"], "forbidden_order": ["AC"]},
         "A<<C is forbidden, but it follows from what is required: A<B, B<<C"),
        ({"required": ["AB"], "forbidden_order": ["AB"]},
         "A<<B is forbidden, but it follows from what is required: A<B"),
        ({"required_order": ["AA"]}, "A<<A speaks of one step only"),
    ],
)  # fmt: skip
def test_contradictions_of_both_kinds_are_named(constraints: dict[str, list[str]], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Constraints(**{kind: [(a, b) for a, b in pairs] for kind, pairs in constraints.items()})  # type: ignore[arg-type]


def test_a_need_may_be_forbidden_where_its_order_is_required() -> None:
    known = Constraints(forbidden=[("a", "c")], required_order=[("a", "b"), ("b", "c"), ("a", "c")])
    assert known.about("ab").to_json() == {"required_order": [["a", "b"]]}
    assert known.pairs == {("a", "b"), ("b", "c"), ("a", "c")}


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

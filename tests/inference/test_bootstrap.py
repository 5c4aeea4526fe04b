"""Probabilities of relations: shares of samples, the same however the work is shared out."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from msg2.graph import Formula, SubtaskGraph, all_of, any_of, step
from msg2.inference import METHODS, Constraints, infer
from msg2.inference.bootstrap import GraphFrequencies, bootstrap
from msg2.inference.inference import run_inference
from msg2.inference.result import LearnedPreconditions, clauses_of, has_clause
from msg2.sequences import Sequences
from msg2.simulation import household_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Segment, Step, Task, Video
from tests.inference.conftest import tasks
from tests.inference.test_constraints import preconditions

COFFEE = simulate(household_world("Make Coffee"), SimulationOptions(videos=15), seed=3).task
FAST = {"msg2": {"delta": 0.9}}


def reachable(graph: SubtaskGraph) -> list[frozenset[Step]]:
    """All states, by doing the steps in all orders that the graph allows."""
    found, queue = {frozenset[Step]()}, [frozenset[Step]()]
    for state in queue:
        new = {state | {one} for one in graph.eligible(state) - state} - found
        found |= new
        queue += sorted(new, key=sorted)
    return queue


@given(preconditions("abcde", kinds="and or"), preconditions("abcde", kinds="and or"))
def test_a_clause_holds_whenever_the_step_is_eligible(one: dict[Step, Formula], other: dict[Step, Formula]) -> None:
    graph = SubtaskGraph("t", "abcde", one)
    states = reachable(graph)
    for name in graph.steps:
        now = [state for state in states if graph.precondition(name).evaluate(state)]
        for clause in {*clauses_of(graph, name), *graph.precondition(name).clauses()}:
            assert has_clause(graph, name, clause)
            assert all(clause.evaluate(state) for state in now)
        for formula in other.values():
            for clause in formula.clauses():
                holds = all(clause.evaluate(state) for state in now)
                assert holds >= has_clause(graph, name, clause)
                if clause.kind == "step":
                    assert holds == has_clause(graph, name, clause)


@given(tasks(repeats=True), st.integers(0, 9))
def test_a_sample_is_the_task_with_videos_repeated(task: Task, seed: int) -> None:
    seen: list[Sequences] = []

    def learn(sequences: Sequences) -> LearnedPreconditions:
        seen.append(sequences)
        return LearnedPreconditions({})

    bootstrap(Sequences.from_task(task), learn, 3, seed)
    for sequences in seen:
        drawn = Counter(sequences.videos)
        assert drawn.total() == len(task)
        copies = [Video(f"{v.id}.{n}", v.segments) for v in task for n in range(drawn[v.id])]
        expected = Sequences.from_task(Task("t", task.steps, copies))
        assert np.array_equal(sequences.before, expected.before)
        for index in range(len(task.steps)):
            mine, theirs = sequences.observations(index)[1].tolist(), expected.observations(index)[1].tolist()
            assert sorted(mine) == sorted(theirs)


def test_shares_by_hand() -> None:
    chain = SubtaskGraph("t", "abc", {"b": step("a"), "c": step("b")})
    either = SubtaskGraph("t", "abc", {"c": any_of([step("a"), step("b")])})
    both = SubtaskGraph("t", "abc", {"c": all_of([step("a"), step("b")])})
    shares = GraphFrequencies((chain, either, both, SubtaskGraph("t", "abc", {})))
    assert shares.ancestor("a", "c") == 0.75
    assert shares.edge("a", "c") == 0.5  # in the reduction
    assert shares.precondition("c", step("a")) == 0.5
    assert shares.precondition("c", any_of([step("a"), step("b")])) == 0.75
    assert shares.precondition("c", all_of([step("a"), step("b")])) == 0.5


def test_the_probability_of_what_one_of_two_videos_says() -> None:
    task = Task("t", "ab", [Video("v", map(Segment, "ab")), Video("w", map(Segment, "ba"))])
    found = run_inference(task, "always-before", samples=2000)
    assert found.frequencies is not None
    assert found.frequencies.ancestor("a", "b") == pytest.approx(0.25, abs=0.04)  # the same video is drawn twice
    assert found.frequencies.ancestor("b", "a") == pytest.approx(0.25, abs=0.04)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_numbers_however_the_work_is_shared_out(method: str) -> None:
    one, other = (run_inference(COFFEE, method, samples=4, confidence=0.5, jobs=jobs) for jobs in (1, 2))
    assert one.graph.dumps() == other.graph.dumps()
    assert list(one.statistics()) == list(other.statistics())


def test_more_samples_leave_the_first_ones_as_they_are() -> None:
    few, many = (run_inference(COFFEE, "always-before", samples=n).frequencies for n in (5, 9))
    assert few is not None
    assert many is not None
    assert few.graphs == many.graphs[:5]
    assert len({graph.dumps() for graph in many.graphs}) > 1


@pytest.mark.parametrize("method", [name for name in METHODS if name != "likelihood"])
def test_without_confidence_only_the_evidence_grows(method: str) -> None:
    plain = infer(COFFEE, method, **FAST.get(method, {}))
    sampled = infer(COFFEE, method, samples=5, **FAST.get(method, {}))
    assert sampled.preconditions == plain.preconditions
    assert sampled.method["bootstrap"] == {"samples": 5, "confidence": None, "seed": 0}
    for name, formula in plain.preconditions.items():
        entry = sampled.evidence[name]
        assert 0 <= entry["confidence"] <= 1
        assert f"So say {round(100 * entry['confidence'])} % of the samples" in sampled.explain(name)
        for parent in formula.steps:
            assert 0 <= entry["edges"][parent]["direct"] <= entry["edges"][parent]["probability"] <= 1


@example(
    Task("", "abc", [Video(str(n), map(Segment, order)) for n, order in enumerate(("bac", "bc", "bc"))]), 0.9, "msg2"
)
@given(tasks(), st.sampled_from([0.0, 0.3, 0.6, 0.9, 1.0]), st.sampled_from(["msg2", "msgi+", "always-before"]))
def test_what_is_kept_passes_and_what_passes_is_kept(task: Task, least: float, method: str) -> None:
    options = {"delta": 0.6} if method != "msgi+" else {}
    free = run_inference(task, method, samples=7, **options)
    kept = run_inference(task, method, samples=7, confidence=least, **options)
    shares = kept.frequencies
    assert shares is not None
    for name, formula in kept.graph.preconditions.items():
        assert all(shares.precondition(name, clause) >= least for clause in formula.clauses())
        assert kept.graph.evidence[name]["confidence"] == round(shares.precondition(name, formula), 6)
    for name in task.steps:
        for clause in clauses_of(free.graph, name):
            assert has_clause(kept.graph, name, clause) >= (shares.precondition(name, clause) >= least)
    if least == 0:
        assert kept.graph.preconditions == free.graph.preconditions


def test_what_is_known_survives_any_confidence() -> None:
    last, *_, first = (name for name in infer(COFFEE, "always-before").steps)
    known = Constraints(required=[(first, last)])
    graph = infer(COFFEE, "always-before", constraints=known, samples=5, confidence=1.0)
    assert first in graph.ancestors(last)
    assert graph.evidence[last]["edges"][first]["probability"] == 1


def test_tasks_with_nothing_in_them() -> None:
    for task in (Task("t", [], []), Task("t", "ab", []), Task("t", "ab", [Video("v", [])])):
        assert infer(task, "always-before", samples=2).edge_pairs() == set()


def test_all_orders_of_videos_give_the_same_bytes() -> None:
    videos = [Video("u", map(Segment, "abc")), Video("v", map(Segment, "acb")), Video("w", map(Segment, "ab"))]
    graphs = {infer(Task("t", "abc", order), "always-before", samples=9).dumps() for order in permutations(videos)}
    assert len(graphs) == 1

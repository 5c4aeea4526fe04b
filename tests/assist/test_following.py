"""Deviations from a graph, against brute force."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msg2.assist import check
from msg2.assist.following import Deviation, Run, RunStateTracker, begun_during, unknown_step_error
from msg2.errors import InputError
from msg2.graph import SubtaskGraph, any_of, negation, step
from msg2.task import Segment, Video
from tests.assist.deviation_examples import (
    CHAIN,
    COFFEE,
    NAMES,
    SEQUENCES,
    TEA,
    TIMED,
    VIDEOS,
    deviations,
    graphs,
    graphs_of_all_kinds,
    untimed,
)


def test_a_step_too_early_then_the_one_it_lacked() -> None:
    early, late, again = deviations(CHAIN, untimed(["fry", "dip", "dip"]))
    assert early == (Deviation("need", "fry", None, step("dip")),)
    assert late == (Deviation("order", "dip", "fry", step("dip")), Deviation("need", "dip", None, step("whisk")))
    assert again == (Deviation("repeated", "dip", "dip"), Deviation("need", "dip", None, step("whisk")))


def test_of_two_ways_neither_is_skipped() -> None:
    (_, pour, grind) = deviations(COFFEE, untimed(["boil", "pour", "grind"]))
    assert pour == (Deviation("need", "pour", None, any_of([step("grind"), step("open")])),)
    assert grind == ()


def test_after_if_done_and_never_both() -> None:
    *_, sugar = deviations(TEA, untimed(["boil", "bag", "pour", "stir", "sugar"]))
    assert sugar == (Deviation("order", "sugar", "stir", step("sugar")),)
    *_, leaves = deviations(TEA, untimed(["boil", "bag", "leaves"]))
    assert leaves == (Deviation("exclusive", "leaves", "bag", step("bag")),)
    *_, again = deviations(TEA, untimed(["bag", "leaves", "leaves"]))
    assert again == (Deviation("repeated", "leaves", "leaves"),)  # said once already


def test_what_runs_may_be_done() -> None:
    during = Video("v", [Segment("whisk", 0, 9), Segment("dip", 5, 10), Segment("fry", 10, 12)])
    assert deviations(CHAIN, during) == [(), (), ()]


def test_what_is_still_running_has_not_come_before() -> None:
    """When dip begins, nobody knows that whisk is about to; when whisk does, the two overlap, which says nothing."""
    overlapping = Video("v", [Segment("dip", 0, 9), Segment("whisk", 5, 10)])
    ended = Video("v", [Segment("dip", 0, 4), Segment("whisk", 5, 10)])
    assert [[one.kind for one in odd] for odd in deviations(CHAIN, overlapping)] == [["need"], []]
    assert [[one.kind for one in odd] for odd in deviations(CHAIN, ended)][1] == ["order"]
    if_done = SubtaskGraph("t", ["sugar", "stir"], {}, order=[("sugar", "stir")])
    assert deviations(if_done, Video("v", [Segment("stir", 0, 9), Segment("sugar", 5, 10)])) == [(), ()]


def test_a_negation_that_is_broken_lacks_nothing() -> None:
    graph = SubtaskGraph("t", "abc", {"c": any_of([step("b"), negation(step("a"))])})
    assert [odd.kind for odd in deviations(graph, untimed("ac"))[1]] == ["need"]  # a is done: b it must be
    assert deviations(graph, untimed("c")) == [()]


@settings(max_examples=25)
@given(graphs(), VIDEOS)
def test_premature_is_what_nothing_that_has_begun_can_meet(graph: SubtaskGraph, video: Video) -> None:
    for place, (segment, odd) in enumerate(zip(video.segments, deviations(graph, video), strict=True)):
        begun = {earlier.step for earlier in video.segments[:place]}
        unmet = [clause for clause in graph.precondition(segment.step).clauses() if not clause.evaluate(begun)]
        assert [one.clause for one in odd if one.kind == "need"] == unmet


@settings(max_examples=25)
@given(graphs_of_all_kinds(), VIDEOS)
def test_exclusive_and_repeated_against_what_has_begun(graph: SubtaskGraph, video: Video) -> None:
    for place, (segment, odd) in enumerate(zip(video.segments, deviations(graph, video), strict=True)):
        begun = {earlier.step for earlier in video.segments[:place]}
        partners = set() if segment.step in begun else begun & graph.partners(segment.step)
        assert {one.other for one in odd if one.kind == "exclusive"} == partners
        assert any(one.kind == "repeated" for one in odd) == (segment.step in begun)


@settings(max_examples=25)
@given(graphs_of_all_kinds(), TIMED)
def test_out_of_order_is_what_comes_after_a_step_that_has_ended(graph: SubtaskGraph, video: Video) -> None:
    for place, (segment, odd) in enumerate(zip(video.segments, deviations(graph, video), strict=True)):
        ended = {earlier.step for earlier in video.segments[:place] if earlier.before(segment)}
        late_for = {one.other for one in odd if one.kind == "order"}
        assert late_for <= ended
        if segment.step not in {earlier.step for earlier in video.segments[:place]}:
            assert graph.order_successors(segment.step) & ended <= late_for


@settings(max_examples=25)
@given(graphs_of_all_kinds(ors=False), st.permutations(NAMES))
def test_the_reversed_pairs_of_a_whole_video_are_seen_when_they_happen(graph: SubtaskGraph, order: list[str]) -> None:
    free = SubtaskGraph("t", NAMES, graph.preconditions, order=graph.order)
    seen = {(one.step, one.other) for odd in deviations(free, untimed(order)) for one in odd if one.kind == "order"}
    found = {(one.step, unmet.name) for one in check(free, untimed(order)).mistakes for unmet in one.unmet}
    assert found <= seen
    assert bool(found) == bool(seen)


@settings(max_examples=25)
@given(graphs(ors=False), SEQUENCES)
def test_out_of_order_is_what_others_needed_and_did_not_have(graph: SubtaskGraph, names: list[str]) -> None:
    owed: set[tuple[str, str]] = set()
    for place, (name, odd) in enumerate(zip(names, deviations(graph, untimed(names)), strict=True)):
        missing = {before for before in graph.parents(name) if before not in names[:place]}
        assert {o.clause.name for o in odd if o.kind == "need" and o.clause is not None} == missing
        assert {o.other for o in odd if o.kind == "order"} == {after for before, after in owed if before == name}
        owed = {(before, after) for before, after in owed if before != name} | {(before, name) for before in missing}


@settings(max_examples=25)
@given(graphs_of_all_kinds(), SEQUENCES)
def test_awaited_is_what_should_have_come_before_a_step_that_is_done(graph: SubtaskGraph, names: list[str]) -> None:
    run = Run(graph)
    for segment in untimed(names).segments:
        run.step(segment)
    assert run.awaited() == [
        late
        for late in graph.steps
        if late not in names and any(graph.kind(late, early) in ("needs", "after") for early in set(names))
    ]


@settings(max_examples=25)
@given(graphs_of_all_kinds(), TIMED)
def test_what_begins_during_a_step_counts_as_done(graph: SubtaskGraph, video: Video) -> None:
    run = Run(graph)
    for position, segment in enumerate(video.segments, start=1):
        during = begun_during(video.segments, position)
        others = video.segments[position:]
        assert during <= {other.step for other in others if other.step != segment.step}
        for other in others:  # overlapping steps are in no order
            overlaps = not segment.before(other) and (other.start < segment.end or other.start == segment.start)
            assert (other.step in during) >= (overlaps and other.step != segment.step)
        begun = {earlier.step for earlier in video.segments[: position - 1]} | during
        unmet = [clause for clause in graph.precondition(segment.step).clauses() if not clause.evaluate(begun)]
        assert [odd.clause for odd in run.step(segment, during) if odd.kind == "need"] == unmet


def test_steps_without_times_and_unknown_steps() -> None:
    assert begun_during(untimed("ab").segments, 1) == set()
    assert Run(CHAIN).step(Segment("juggle")) == (Deviation("unknown step", "juggle"),)


# -- what may come next -----------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(graphs_of_all_kinds(), SEQUENCES)
def test_eligible_is_what_the_graph_says_of_what_is_done(graph: SubtaskGraph, done: list[str]) -> None:
    state = RunStateTracker(graph).state_after(done)
    assert state.completed == set(done)
    assert state.eligible == graph.eligible(done)


@settings(max_examples=25)
@given(graphs_of_all_kinds(), st.lists(st.sampled_from(NAMES), unique=True))
def test_waited_counts_from_the_first_moment_at_which_a_step_was_eligible(graph: SubtaskGraph, done: list[str]) -> None:
    ever = [graph.eligible(done[:time]) for time in range(len(done) + 1)]
    expected = {
        name: len(done) - next(time for time, eligible in enumerate(ever) if name in eligible)
        for name in NAMES
        if any(name in eligible for eligible in ever)
    }
    assert RunStateTracker(graph).state_after(done).waited == expected


def test_one_tracker_serves_many_runs() -> None:
    tracker = RunStateTracker(TEA)
    first = tracker.state_after(["boil", "bag"])
    assert tracker.state_after(["leaves"]).eligible == {"boil", "leaves", "sugar"}
    assert tracker.state_after(["boil", "bag"]) == first
    assert first.eligible == {"boil", "bag", "sugar", "pour"}


def test_what_is_done_rules_out_its_partners_and_what_should_have_preceded_it() -> None:
    tracker = RunStateTracker(TEA)
    assert "leaves" not in tracker.state_after(["bag"]).eligible
    assert "sugar" in tracker.state_after(["bag"]).eligible
    assert "sugar" not in tracker.state_after(["boil", "bag", "pour", "stir"]).eligible


def test_an_unknown_step_is_named_with_its_place() -> None:
    with pytest.raises(InputError, match="'boyl' is not a step of the graph"):
        RunStateTracker(TEA).state_after(["boyl"])
    error = unknown_step_error("boyl", TEA, where="video 'v'")
    assert str(error).startswith("video 'v': 'boyl' is not a step of the graph")
    assert error.hint == "did you mean 'boil'?"
    assert unknown_step_error("xyz", TEA).hint is None

"""Deviations from a graph, against brute force."""

from __future__ import annotations

import networkx
from hypothesis import given
from hypothesis import strategies as st

from msg2.assist import check
from msg2.assist.deviations import Deviation
from msg2.graph import SubtaskGraph, all_of, any_of, negation, step
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
    early, late, again = deviations(CHAIN, untimed(["fry", "whisk", "whisk"]))
    assert early == (
        Deviation("premature", "fry", None, step("dip")),
        Deviation("skipped", "fry", "dip", step("dip")),
        Deviation("skipped", "fry", "whisk", step("dip")),
    )
    assert late == (Deviation("out of order", "whisk", "fry", step("dip")),)
    assert again == (Deviation("repeated", "whisk"),)


def test_of_two_ways_neither_is_skipped() -> None:
    (_, pour, grind) = deviations(COFFEE, untimed(["boil", "pour", "grind"]))
    assert pour == (Deviation("premature", "pour", None, any_of([step("grind"), step("open")])),)
    assert grind == ()


def test_after_if_done_and_never_both() -> None:
    *_, sugar = deviations(TEA, untimed(["boil", "bag", "pour", "stir", "sugar"]))
    assert sugar == (Deviation("out of order", "sugar", "stir", step("sugar")),)
    *_, leaves = deviations(TEA, untimed(["boil", "bag", "leaves"]))
    assert leaves == (Deviation("exclusive", "leaves", "bag", step("bag")),)
    *_, again = deviations(TEA, untimed(["bag", "leaves", "leaves"]))
    assert again == (Deviation("repeated", "leaves"),)  # said once already


def test_what_runs_may_be_done() -> None:
    during = Video("v", [Segment("whisk", 0, 9), Segment("dip", 5, 10), Segment("fry", 10, 12)])
    assert deviations(CHAIN, during) == [(), (), ()]


def test_what_is_still_running_has_not_come_before() -> None:
    """When dip begins, nobody knows that whisk is about to; when whisk does, the two overlap, which says nothing."""
    overlapping = Video("v", [Segment("dip", 0, 9), Segment("whisk", 5, 10)])
    ended = Video("v", [Segment("dip", 0, 4), Segment("whisk", 5, 10)])
    assert [[one.kind for one in odd] for odd in deviations(CHAIN, overlapping)] == [["premature", "skipped"], []]
    assert [[one.kind for one in odd] for odd in deviations(CHAIN, ended)][1] == ["out of order"]
    if_done = SubtaskGraph("t", ["sugar", "stir"], {}, order=[("sugar", "stir")])
    assert deviations(if_done, Video("v", [Segment("stir", 0, 9), Segment("sugar", 5, 10)])) == [(), ()]


def test_a_negation_that_is_broken_lacks_nothing() -> None:
    graph = SubtaskGraph("t", "abc", {"c": any_of([step("b"), negation(step("a"))])})
    assert [odd.kind for odd in deviations(graph, untimed("ac"))[1]] == [
        "premature",
        "skipped",
    ]  # a is done: b it must be
    assert deviations(graph, untimed("c")) == [()]


@given(graphs(), VIDEOS)
def test_premature_is_what_nothing_that_has_begun_can_meet(graph: SubtaskGraph, video: Video) -> None:
    for place, (segment, odd) in enumerate(zip(video.segments, deviations(graph, video), strict=True)):
        begun = {earlier.step for earlier in video.segments[:place]}
        unmet = [clause for clause in graph.precondition(segment.step).clauses() if not clause.evaluate(begun)]
        assert [one.clause for one in odd if one.kind == "premature"] == unmet


@given(graphs_of_all_kinds(), VIDEOS)
def test_exclusive_and_repeated_against_what_has_begun(graph: SubtaskGraph, video: Video) -> None:
    for place, (segment, odd) in enumerate(zip(video.segments, deviations(graph, video), strict=True)):
        begun = {earlier.step for earlier in video.segments[:place]}
        partners = set() if segment.step in begun else begun & graph.partners(segment.step)
        assert {one.other for one in odd if one.kind == "exclusive"} == partners
        assert any(one.kind == "repeated" for one in odd) == (segment.step in begun)


@given(graphs_of_all_kinds(), TIMED)
def test_out_of_order_is_what_comes_after_a_step_that_has_ended(graph: SubtaskGraph, video: Video) -> None:
    for place, (segment, odd) in enumerate(zip(video.segments, deviations(graph, video), strict=True)):
        ended = {earlier.step for earlier in video.segments[:place] if earlier.before(segment)}
        late_for = {one.other for one in odd if one.kind == "out of order"}
        assert late_for <= ended
        if segment.step not in {earlier.step for earlier in video.segments[:place]}:
            assert graph.order_successors(segment.step) & ended <= late_for


@given(graphs_of_all_kinds(ors=False), st.permutations(NAMES))
def test_the_reversed_pairs_of_a_whole_video_are_seen_when_they_happen(graph: SubtaskGraph, order: list[str]) -> None:
    free = SubtaskGraph("t", NAMES, graph.preconditions, order=graph.order)
    seen = {
        (one.step, one.other) for odd in deviations(free, untimed(order)) for one in odd if one.kind == "out of order"
    }
    found = {(one.step, one.unmet[0].name) for one in check(free, untimed(order)).mistakes}
    assert found <= seen
    assert bool(found) == bool(seen)


@given(graphs(ors=False), SEQUENCES)
def test_skipped_and_out_of_order_against_paths_through_what_is_undone(graph: SubtaskGraph, names: list[str]) -> None:
    needs = networkx.DiGraph(graph.edge_pairs())
    needs.add_nodes_from(NAMES)
    owed: set[tuple[str, str]] = set()
    for place, (name, odd) in enumerate(zip(names, deviations(graph, untimed(names)), strict=True)):
        done = set(names[:place])
        missing = networkx.ancestors(needs.subgraph((set(NAMES) - done) | {name}), name)
        assert {o.other for o in odd if o.kind == "skipped"} == missing
        assert {o.other for o in odd if o.kind == "out of order"} == {after for before, after in owed if before == name}
        assert ("repeated" in {o.kind for o in odd}) == (name in done)
        owed = {(before, after) for before, after in owed if before != name} | {(before, name) for before in missing}


def test_a_deep_graph_is_searched_once() -> None:
    """Every step needs all earlier ones: there are 2^38 ways from the last to the first."""
    names = [f"{number:02d}" for number in range(40)]
    graph = SubtaskGraph("t", names, {name: all_of(map(step, names[:place])) for place, name in enumerate(names)})
    (odd,) = deviations(graph, untimed([names[-1]]))
    assert [o.other for o in odd if o.kind == "skipped"] == names[:-1]

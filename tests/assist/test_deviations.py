"""Deviations from a graph, against brute force."""

from __future__ import annotations

import networkx
from hypothesis import given

from msg2.assist import check
from msg2.assist.deviations import Deviation
from msg2.graph import SubtaskGraph, all_of, any_of, negation, step
from msg2.task import Segment, Video
from tests.assist.deviation_examples import CHAIN, COFFEE, NAMES, SEQUENCES, VIDEOS, deviations, graphs, untimed


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


def test_what_runs_is_not_completed_and_not_skipped() -> None:
    during = Video("v", [Segment("whisk", 0, 9), Segment("dip", 5, 10), Segment("fry", 10, 12)])
    assert deviations(CHAIN, during) == [(), (Deviation("premature", "dip", None, step("whisk")),), ()]


def test_a_negation_that_is_broken_lacks_nothing() -> None:
    graph = SubtaskGraph("t", "abc", {"c": any_of([step("b"), negation(step("a"))])})
    assert [odd.kind for odd in deviations(graph, untimed("ac"))[1]] == [
        "premature",
        "skipped",
    ]  # a is done: b it must be
    assert deviations(graph, untimed("c")) == [()]


@given(graphs(), VIDEOS)
def test_premature_is_what_check_finds(graph: SubtaskGraph, video: Video) -> None:
    found = [
        (position, odd.clause)
        for position, of_segment in enumerate(deviations(graph, video), start=1)
        for odd in of_segment
        if odd.kind == "premature"
    ]
    assert found == [(m.position, clause) for m in check(graph, video).mistakes for clause in m.unmet]


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

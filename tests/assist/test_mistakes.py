"""What went wrong: against the runs that a graph allows by definition, and the kinds by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from msg2.assist import CheckReport, Mistake, check
from msg2.assist.following import absent_meaning
from msg2.assist.mistakes import ACCUSED, StepTotal
from msg2.errors import InputError
from msg2.graph import SubtaskGraph, all_of, any_of, negation, step
from msg2.inference import infer
from msg2.task import Absent, Segment, Task, Video
from tests.assist.deviation_examples import (
    CHAIN,
    COFFEE,
    TEA,
    faultless_runs,
    graphs_of_all_kinds,
    is_faultless,
    orders,
    task,
    untimed,
)

SMALL = "abcd"


def told(found: Sequence[Mistake]) -> list[tuple[str, str, list[Any]]]:
    return [(one.kind, one.step, [clause.to_json() for clause in one.unmet]) for one in found]


def mistakes(graph: SubtaskGraph, video: Video | Sequence[str], absent: Absent = "skipped") -> list[Any]:
    return told(check(graph, video if isinstance(video, Video) else untimed(video), absent).mistakes)


def not_seen(graph: SubtaskGraph, video: Video | Sequence[str]) -> list[Any]:
    report = check(graph, video if isinstance(video, Video) else untimed(video), "unknown")
    assert all(one.position is None and one.start is None for one in report.not_seen)
    assert not set(report.mistakes) & set(report.not_seen)
    return told(report.not_seen)


# -- against the runs that the graph allows -----------------------------------------------------------------------


@settings(max_examples=30)
@given(graphs_of_all_kinds(SMALL))
def test_mistakes_are_found_in_exactly_the_runs_that_the_graph_does_not_allow(graph: SubtaskGraph) -> None:
    """All 64 orders of all sets of four steps; without evidence every mistake is certain."""
    videos = [untimed(order, "".join(order)) for order in orders(SMALL) if order]
    report = check(graph, Task("t", SMALL, videos), "skipped")
    assert set(report.accused) == {video.id for video in videos if not is_faultless(graph, video.sequence())}
    assert report.not_seen == ()
    assert {one.probability for one in report.mistakes} <= {1.0}


def draw_faultless_run(graph: SubtaskGraph, data: st.DataObject) -> tuple[str, ...]:
    runs = faultless_runs(graph)
    assume(runs)
    return data.draw(st.sampled_from(runs))


@settings(max_examples=30)
@given(graphs_of_all_kinds(SMALL), st.data())
def test_nobody_is_accused_of_a_label_that_may_only_be_missing(graph: SubtaskGraph, data: st.DataObject) -> None:
    run = draw_faultless_run(graph, data)
    labelled = untimed([name for name in run if data.draw(st.booleans())])
    report = check(graph, labelled, "unknown")
    assert report.mistakes == ()
    assert {name for one in report.not_seen if one.kind == "left out" and not one.unmet for name in [one.step]} == (
        graph.required - set(labelled.sequence()) if labelled.segments else set()
    )


@settings(max_examples=30)
@given(graphs_of_all_kinds(SMALL), st.data())
def test_overlapping_segments_accuse_nobody(graph: SubtaskGraph, data: st.DataObject) -> None:
    """Some order of the steps that overlap is allowed."""
    run = draw_faultless_run(graph, data)
    lengths = [data.draw(st.integers(0, 5)) for _ in run]
    video = Video("v", [Segment(n, 2 * i, 2 * i + length) for i, (n, length) in enumerate(zip(run, lengths))])  # noqa: B905
    for absent in ("skipped", "unknown"):
        report = check(graph, video, absent)
        assert (report.mistakes, report.not_seen) == ((), ())


@settings(max_examples=30)
@given(graphs_of_all_kinds(SMALL, ors=False), st.data())
def test_one_skipped_step_is_reported_once(graph: SubtaskGraph, data: st.DataObject) -> None:
    runs = [run for run in faultless_runs(graph) if len(run) > 1]
    assume(runs)
    run = data.draw(st.sampled_from(runs))
    skipped = data.draw(st.sampled_from(run))
    rest = [name for name in run if name != skipped]
    found = mistakes(graph, rest)
    assert len(found) == (not is_faultless(graph, rest))
    for kind, name, unmet in found:
        assert kind in ("left out", "need")
        assert name == skipped or skipped in json.dumps(unmet)
    assert not_seen(graph, rest) == found


@settings(max_examples=30)
@given(graphs_of_all_kinds(SMALL), st.permutations(SMALL))
def test_of_a_reversed_pair_the_step_is_the_late_one(graph: SubtaskGraph, order: list[str]) -> None:
    video = untimed(order)
    report = check(graph, video, "unknown")
    for one in report.mistakes:
        assert order[(one.position or 0) - 1] == one.step
        if one.kind == "order":
            for clause in one.unmet:
                assert graph.kind(one.step, clause.name) in ("needs", "after")
                assert order.index(clause.name) < order.index(one.step)
    assert [one.position for one in report.mistakes] == sorted(one.position or 0 for one in report.mistakes)


# -- the kinds, by hand -------------------------------------------------------------------------------------------


def test_a_run_without_mistakes() -> None:
    for steps in (
        ["boil", "bag", "pour"],
        ["leaves", "boil", "pour", "sugar", "stir"],
        ["sugar", "bag", "boil", "pour"],
    ):
        assert mistakes(TEA, steps) == []
        assert not_seen(TEA, steps) == []


def test_each_kind() -> None:
    assert mistakes(TEA, ["boil", "bag", "pour", "stir", "sugar"]) == [("order", "sugar", ["stir"])]
    assert mistakes(TEA, ["bag", "pour", "boil"]) == [("order", "boil", ["pour"])]
    assert mistakes(TEA, ["boil", "bag", "leaves", "pour"]) == [("exclusive", "leaves", ["bag"])]
    assert mistakes(TEA, ["boil", "bag"]) == [("left out", "pour", [])]
    assert mistakes(TEA, ["boil", "bag", "pour", "pour"]) == [("repeated", "pour", [])]
    spoon = SubtaskGraph("t", ["take spoon", "stir", "pour"], {"stir": step("take spoon")},
                         optional=["take spoon", "stir"])  # fmt: skip
    assert mistakes(spoon, ["pour", "stir"]) == [("need", "stir", ["take spoon"])]


def test_a_need_that_is_met_too_late_is_told_as_order_where_the_order_is_known() -> None:
    late = [("order", "leaves", ["pour"])]  # a run with leaves has no bag: pour should have waited for the leaves
    assert mistakes(TEA, ["boil", "pour", "leaves"]) == mistakes(TEA, ["boil", "pour", "leaves"], "unknown") == late
    either = SubtaskGraph("t", "abc", {"c": any_of([step("a"), step("b")])}, optional="ab")
    assert mistakes(either, "ca") == [("need", "c", [{"any": ["a", "b"]}])]
    assert mistakes(either, "cab", "unknown") == [("need", "c", [{"any": ["a", "b"]}])]


def test_a_branch_that_may_lack_its_label_may_have_met_the_need() -> None:
    either = SubtaskGraph("t", "abc", {"c": any_of([step("a"), step("b")])}, optional="ab")
    assert mistakes(either, "ca", "unknown") == []
    assert not_seen(either, "ca") == [("need", "c", [{"any": ["a", "b"]}])]


def test_an_optional_step_is_never_missed() -> None:
    free = SubtaskGraph("t", "abc", {}, optional="abc")
    for absent in ("skipped", "unknown"):
        report = check(free, untimed("a"), absent)
        assert (report.mistakes, report.not_seen) == ((), ())


def test_of_several_ways_one_must_be_taken() -> None:
    (mistake,) = check(TEA, untimed(["boil", "pour"]), "skipped").mistakes
    assert told([mistake]) == [("left out", "leaves", [{"any": ["bag", "leaves"]}])]
    assert mistake.to_english() == "without 'bag' or 'leaves'"
    optional = replace(TEA, optional=[*TEA.optional, "bag", "leaves"])
    assert mistakes(optional, ["boil", "pour"]) == [("need", "pour", [{"any": ["bag", "leaves"]}])]
    assert mistakes(optional, ["boil", "pour"], "unknown") == []


def test_a_step_of_two_exclusive_groups_is_left_out_once() -> None:
    graph = SubtaskGraph("t", ["approve", "pay", "reject", "archive"], {"pay": step("approve")},
                         exclusive=[("approve", "reject"), ("pay", "reject")])  # fmt: skip
    assert len(mistakes(graph, ["archive"])) == 1


def test_absence_is_not_seen_or_left_out() -> None:
    video = untimed(["fry"])
    both = [("left out", "whisk", []), ("left out", "dip", [])]
    assert mistakes(CHAIN, video) == both
    assert check(CHAIN, video, "unknown").mistakes == ()
    assert not_seen(CHAIN, video) == both
    assert mistakes(CHAIN, []) == not_seen(CHAIN, []) == []  # without any label nothing can be said


def test_a_pair_that_follows_through_an_absent_step_is_still_checked() -> None:
    assert mistakes(CHAIN, ["fry", "whisk"], "unknown") == [("order", "whisk", ["fry"])]
    optional = replace(CHAIN, preconditions={}, order=[("whisk", "dip"), ("dip", "fry")], optional=["dip"])
    assert mistakes(optional, ["fry", "whisk"], "unknown") == []  # nothing says that dip was done
    assert mistakes(optional, ["fry", "dip", "whisk"], "unknown") == [
        ("order", "dip", ["fry"]),
        ("order", "whisk", ["dip"]),
    ]


def test_a_pair_is_still_reversed_where_the_step_between_overlaps_both() -> None:
    video = Video("v", [Segment("fry", 0, 5), Segment("dip", 4, 12), Segment("whisk", 10, 11)])
    assert mistakes(CHAIN, video) == [("order", "whisk", ["fry"])]


def test_an_exclusive_pair_that_overlaps_is_still_both_done() -> None:
    video = Video("v", [Segment("boil", 0, 1), Segment("bag", 1, 5), Segment("leaves", 2, 6), Segment("pour", 7, 9)])
    assert mistakes(TEA, video) == [("exclusive", "leaves", ["bag"])]


def test_a_negation_is_a_need() -> None:
    graph = SubtaskGraph("t", "ab", {"b": negation(step("a"))}, optional="ab")
    for absent in ("skipped", "unknown"):
        assert mistakes(graph, "ab", absent) == [("need", "b", [{"not": "a"}])]
        assert mistakes(graph, "ba", absent) == []


def test_repetitions_count_where_the_graph_says_how_usual_they_are() -> None:
    again = ["boil", "boil", "bag", "pour", "stir", "stir"]
    assert [(one.step, one.position) for one in check(TEA, untimed(again)).mistakes] == [("boil", 2), ("stir", 6)]
    assert mistakes(replace(TEA, repeats={}), again) == []


def test_the_first_of_several_dependants_says_what_it_lacks() -> None:
    graph = SubtaskGraph("t", "abcd", {"b": step("a"), "c": step("a"), "d": any_of([step("a"), step("c")])},
                         optional="abcd")  # fmt: skip
    assert mistakes(graph, "cb") == [("need", "c", ["a"])]
    assert mistakes(graph, "db") == [("need", "d", [{"any": ["a", "c"]}])]  # a would have met both
    assert mistakes(graph, "bd") == [("need", "b", ["a"])]


def test_words() -> None:
    found = check(TEA, untimed(["boil", "pour", "leaves", "bag", "stir", "sugar", "boil"]), "skipped").mistakes
    assert [one.to_english() for one in found] == [
        "'leaves' after 'pour'",
        "'bag' as well as 'leaves'",
        "'bag' after 'pour'",
        "'sugar' after 'stir'",
        "'boil' again",
    ]
    (lacks,) = check(CHAIN, untimed(["whisk", "fry"]), "skipped").mistakes
    assert lacks.to_english() == "without 'dip'"
    assert replace(lacks, kind="unknown step").to_english() == "'dip', which is no step of the graph"
    either = replace(COFFEE, optional=["grind", "open"])
    (unmet,) = check(either, untimed(["boil", "pour"]), "skipped").mistakes
    assert unmet.to_english() == "'pour' without 'grind' or 'open'"


# -- probabilities and fit ----------------------------------------------------------------------------------------

USUAL = [list(order) for order in ("abcd", "abdc") for _ in range(20)]


def learned(absent: Absent, *more: str) -> tuple[SubtaskGraph, Task]:
    seen = task(SubtaskGraph("t", "abcd", {}), *USUAL, *map(list, more))
    return infer(seen, "likelihood", absent=absent), seen


def test_what_nobody_does_is_a_mistake_and_what_many_do_is_not() -> None:
    graph, _ = learned("skipped")
    for order, kind in (("bacd", "order"), ("acd", "left out")):
        (mistake,) = check(graph, untimed(order, "new")).mistakes
        assert (mistake.kind, mistake.probability > 0.7) == (kind, True)
    often, _ = learned("skipped", *["bacd"] * 14)
    assert check(often, untimed("bacd", "new")).accused == ()


def test_a_video_that_the_graph_was_learned_from_counts_once() -> None:
    """Its own part is in the evidence already; a new one like it is one more that breaks the rule."""
    graph, seen = learned("skipped", "bacd")
    own, new = check(graph, seen.videos[-1]), check(graph, replace_id(seen.videos[-1], "new"))
    assert told(own.mistakes) == told(new.mistakes) == [("order", "a", ["b"])]
    assert own.mistakes[0].probability > new.mistakes[0].probability
    assert own.fit["v040"] == new.fit["new"]


def replace_id(video: Video, id: str) -> Video:
    return Video(id, video.segments)


def test_as_the_graph_was_learned_else_as_the_data_say() -> None:
    for absent in ("skipped", "unknown"):
        graph, seen = learned(absent)
        other = "unknown" if absent == "skipped" else "skipped"
        assert absent_meaning(graph, Task("t", seen.steps, seen.videos, other)) == absent
        report = check(graph, untimed("abc", "new"))
        assert bool(report.mistakes) == (absent == "skipped")
        assert bool(report.not_seen) == (absent == "unknown")
        assert bool(check(graph, untimed("abc", "new"), other).mistakes) == (other == "skipped")
        hand_made = SubtaskGraph("t", "abcd", {})
        assert absent_meaning(hand_made, Task("t", seen.steps, seen.videos, absent)) == absent
        assert bool(check(hand_made, Task("t", "abcd", [untimed("abc")], absent)).mistakes) == (absent == "skipped")
    assert absent_meaning(hand_made, None) == "unknown"


def test_the_log_likelihood_tells_usual_videos_from_unusual_ones() -> None:
    graph, _ = learned("skipped")
    videos = [untimed("abcd", "usual"), untimed("dcba", "reversed"), untimed("ad", "short"), untimed([], "empty")]
    fit = check(graph, Task("t", "abcd", videos)).fit
    assert list(fit) == ["empty", "reversed", "short", "usual"]
    assert max(fit, key=fit.__getitem__) == "usual"
    assert all(value < 0 and np.isfinite(value) for value in fit.values())


# -- report -------------------------------------------------------------------------------------------------------


def test_accused_is_from_one_half_on() -> None:
    def mistake(video: str, probability: float) -> Mistake:
        return Mistake(video, "a", "order", probability, (step("b"),), None, 1)

    found = (mistake("v", 0.4999), mistake("w", 0.1), mistake("w", ACCUSED), mistake("w", 0.9))
    report = CheckReport(3, found, (mistake("x", 1.0),), (), {})
    assert report.accused == ("w",)
    assert report.to_json()["accused"] == ["w"]
    assert ACCUSED == 0.5


def test_a_task_is_checked_video_by_video() -> None:
    videos = [untimed(["fry", "dip", "whisk"], "v2"), untimed(["whisk", "fry", "dip"], "v1"), Video("v0", [])]
    report = check(CHAIN, Task("toast", CHAIN.steps, videos, "skipped"))
    assert report.videos == 3
    assert [(one.video, one.step, one.position) for one in report.mistakes] == [
        ("v1", "dip", 3), ("v2", "dip", 2), ("v2", "whisk", 3),
    ]  # fmt: skip
    assert report.accused == ("v1", "v2")
    assert report.totals == (StepTotal("whisk", 2, 1, 0), StepTotal("dip", 2, 2, 0), StepTotal("fry", 2, 0, 0))


def test_report_as_json() -> None:
    report = check(CHAIN, Video("v", [Segment("fry", 1.5, 2.0), Segment("whisk", 3, 4)]), "skipped")
    value = json.loads(json.dumps(report.to_json()))
    assert value == {
        "videos": 1,
        "mistakes": [
            {"video": "v", "step": "whisk", "kind": "order", "probability": 1.0, "unmet": ["fry"],
             "start": 3, "position": 2},
            {"video": "v", "step": "dip", "kind": "left out", "probability": 1.0, "unmet": [],
             "start": None, "position": None},
        ],
        "not_seen": [],
        "totals": [
            {"step": "whisk", "occurrences": 1, "mistakes": 1, "left_out": 0},
            {"step": "dip", "occurrences": 0, "mistakes": 0, "left_out": 1},
            {"step": "fry", "occurrences": 1, "mistakes": 0, "left_out": 0},
        ],
        "fit": {"v": report.fit["v"]},
        "accused": ["v"],
    }  # fmt: skip


def test_an_unknown_step_is_a_mistake_of_its_own_and_the_rest_is_judged() -> None:
    report = check(COFFEE, untimed(["brew", "grnd", "boil", "pour"]), "skipped")
    found = {(mistake.kind, mistake.step): mistake for mistake in report.mistakes}
    assert found["unknown step", "grnd"].to_english() == "'grnd', which is no step of the graph: did you mean 'grind'?"
    assert found["unknown step", "brew"].to_english() == "'brew', which is no step of the graph"
    assert [found["unknown step", name].position for name in ("brew", "grnd")] == [1, 2]
    alone = check(COFFEE, untimed(["boil", "pour"]), "skipped")
    others = [mistake for mistake in report.mistakes if mistake.kind != "unknown step"]
    assert [(m.kind, m.step, m.probability) for m in others] == [
        (m.kind, m.step, m.probability) for m in alone.mistakes
    ]
    assert report.fit == alone.fit
    with pytest.raises(InputError, match="data of another task: 'brew' is not a step of the graph"):
        check(COFFEE, untimed(["brew", "juggle"]))


def test_what_must_follow_is_left_out() -> None:
    later = ["pay", "file", "close"]
    graph = SubtaskGraph("pay", ["ask", *later], {"pay": step("ask")}, optional=later,
                         responses=[("pay", any_of([step("file"), step("close")]))])  # fmt: skip
    assert not check(graph, untimed(["ask"]), "skipped").mistakes
    assert not check(graph, untimed(["ask", "pay", "close"]), "skipped").mistakes
    for run in (["ask", "pay"], ["ask", "close", "pay"]):
        (mistake,) = check(graph, untimed(run), "skipped").mistakes
        assert (mistake.kind, mistake.after, mistake.position) == ("left out", "pay", None)
        assert mistake.to_english() == "without 'close' or 'file', which follows 'pay'"
        assert mistake.to_json()["after"] == "pay"
    same = Video("v", [Segment("ask", 0, 1), Segment("pay", 2, 2), Segment("close", 2, 2)])
    assert not check(graph, same, "skipped").mistakes  # at the same time: nobody knows
    assert not check(graph, untimed(["ask", "pay"]), "unknown").mistakes


def test_marks_are_short_notes_on_what_went_wrong() -> None:
    videos = [untimed(["fry", "dip", "whisk"], "v1"), untimed(["fry", "whisk"], "v2"), untimed(["whisk", "fry"], "v3")]
    marks = check(CHAIN, Task("toast", CHAIN.steps, videos), "skipped").marks()
    assert marks == {"whisk": "2 of 3 wrong", "dip": "1 of 1 wrong, left out 2 times"}
    (once,) = check(CHAIN, untimed(["whisk", "fry"]), "skipped").marks().items()
    assert once == ("dip", "left out once")


def test_what_a_graph_asks_for_twice_is_reported_once() -> None:
    redundant = SubtaskGraph("t", "abc", {"b": step("a"), "c": all_of([step("a"), step("b")])})
    assert mistakes(redundant, "bca") == [("order", "a", ["b", "c"])]
    assert mistakes(redundant, "bc") == [("left out", "a", [])]


@pytest.mark.parametrize("jobs", [1, 2])
def test_many_videos_are_told_as_each_alone(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msg2.assist.mistakes._VIDEOS_AT_ONCE", 3)
    graph = infer([["boil", "pour", "stir"]] * 9 + [["pour", "boil", "stir"]])
    runs = [["pour", "boil"], ["boil", "stir", "pour"], ["boil", "pour", "stir"], ["stir"], []]
    videos = [
        Video(
            f"v{number:02}",
            [Segment(name, 7 * number + place, 7 * number + place + 0.5) for place, name in enumerate(run)],
        )
        for number, run in enumerate(runs * 3)
    ]
    told_of: list[tuple[int, int | None]] = []
    together = check(
        graph, Task("tea", graph.steps, videos), "skipped", jobs=jobs, progress=lambda *now: told_of.append(now[:2])
    )
    alone = [check(graph, video, "skipped") for video in videos]
    assert together.mistakes == tuple(mistake for report in alone for mistake in report.mistakes)
    assert together.fit == {name: value for report in alone for name, value in report.fit.items()}
    assert {one.start for one in together.mistakes} > {None, 1.0, 36.0}  # each at its own time
    assert [one.occurrences for one in together.totals] == [9, 9, 9]
    assert told_of == [(3 * part, 15) for part in range(1, 6)]

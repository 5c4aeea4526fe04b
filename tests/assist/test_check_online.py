"""Mistakes while they happen: by hand, against what the graph allows, and without a look ahead."""

from __future__ import annotations

import json
from dataclasses import replace
from math import nextafter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msg2.assist import StepAssessment, check, check_online
from msg2.assist.mistakes import Judge
from msg2.errors import InputError
from msg2.graph import SubtaskGraph, step
from msg2.inference import infer
from msg2.task import Segment, Task, Video
from tests.assist.deviation_examples import (
    CHAIN,
    NAMES,
    TEA,
    TIMED,
    VIDEOS,
    faultless_runs,
    graphs_of_all_kinds,
    task,
    untimed,
)

SMALL = "abcd"
USUAL = [["whisk", "dip", "fry"]] * 12
LEARNED = infer(task(CHAIN, *USUAL), absent="skipped")


def words(assessments: tuple[StepAssessment, ...]) -> list[list[str]]:
    return [[mistake.to_english() for mistake in assessment.mistakes] for assessment in assessments]


def follow(graph: SubtaskGraph, video: Video, threshold: float = 0.5) -> tuple[StepAssessment, ...]:
    return Judge(graph, "skipped").follow(video, threshold)


# -- the kinds --------------------------------------------------------------------------------------------------------


def test_a_step_is_judged_when_it_comes() -> None:
    assessments = follow(CHAIN, untimed(["fry", "dip", "whisk"]))
    assert words(assessments) == [["'fry' without 'dip'"], ["'dip' without 'whisk'", "'dip' after 'fry'"],
                                  ["'whisk' after 'dip'"]]  # fmt: skip
    assert [assessment.position for assessment in assessments] == [1, 2, 3]
    assert all(assessment.mistake and assessment.probability == 1 for assessment in assessments)


def test_every_kind_of_a_run_that_goes_on() -> None:
    steps = ["boil", "pour", "leaves", "bag", "stir", "sugar", "boil"]
    assert words(follow(TEA, untimed(steps))) == [
        [], ["'pour' without 'bag' or 'leaves'"], ["'leaves' after 'pour'"],
        ["'bag' as well as 'leaves'", "'bag' after 'pour'"], [], ["'sugar' after 'stir'"], ["'boil' again"],
    ]  # fmt: skip


def test_a_step_that_need_not_come_is_not_awaited() -> None:
    """Sugar comes before stirring, but not everybody takes any; who takes it later is late."""
    if_done = SubtaskGraph("t", ["sugar", "stir"], {}, order=[("sugar", "stir")], optional=["sugar"])
    assert words(follow(if_done, untimed(["stir", "sugar"]))) == [[], ["'sugar' after 'stir'"]]
    required = replace(if_done, optional=[])
    assert words(follow(required, untimed(["stir"]))) == [["'stir' without 'sugar'"]]


def test_where_labels_may_be_missing_a_step_that_comes_without_another_claims_nothing() -> None:
    video = {"v": ["fry", "dip"]}
    for absent, expected in (("skipped", [True, True]), ("unknown", [False, True]), (None, [False, True])):
        found = check_online(CHAIN, video, absent=absent).videos["v"]
        assert [assessment.mistake for assessment in found] == expected
    log = Task("toast", CHAIN.steps, [untimed(["fry"])], "skipped")
    assert check_online(CHAIN, log).videos["v"][0].mistake
    patchy = replace(CHAIN, method={"options": {"absent": "unknown"}})
    assert not check_online(patchy, log).videos["v"][0].mistake


def test_steps_that_have_begun_count_as_done() -> None:
    video = Video("v", [Segment("whisk", 0, 9), Segment("dip", 5, 12), Segment("fry", 12, 15)])
    assert words(follow(CHAIN, video)) == [[], [], []]


def test_an_unknown_step_is_a_mistake() -> None:
    (assessment,) = follow(CHAIN, untimed(["juggle"]))
    assert assessment.mistake
    assert [mistake.kind for mistake in assessment.mistakes] == ["unknown step"]
    with pytest.raises(InputError, match="threshold"):
        check_online(CHAIN, USUAL, threshold=1.5)


# -- how probably it is a mistake -------------------------------------------------------------------------------------


def test_what_is_often_broken_is_a_habit_and_what_never_is_a_mistake() -> None:
    usual = [*["abcd"] * 12, *["bacd"] * 5]
    graph = infer(task(SubtaskGraph("t", SMALL, {"b": step("a"), "d": step("c")}), *usual), absent="skipped")
    habit = {mistake.step: mistake.probability for a in follow(graph, untimed("bacd", "new")) for mistake in a.mistakes}
    assert all(chance < 0.5 for chance in habit.values())
    _, _, early, _ = follow(graph, untimed("abdc", "new"))
    assert early.mistake
    assert early.probability > max(habit.values(), default=0.0) + 0.3


def test_a_video_that_the_graph_was_learned_from_counts_once() -> None:
    graph = infer(task(CHAIN, *USUAL, ["dip", "whisk", "fry"]), absent="skipped")
    own, new = (follow(graph, untimed(["dip", "whisk", "fry"], id)) for id in ("v012", "new"))
    assert words(own) == words(new)
    assert own[0].probability > new[0].probability


def test_a_repetition_that_others_show_is_a_habit() -> None:
    for share, expected in ((0.0, True), (0.6, False)):
        evidence = {name: {"videos": 40} for name in CHAIN.steps}
        graph = replace(CHAIN, evidence=evidence, repeats={"dip": share, "fry": 0.1})
        *_, again = follow(graph, untimed(["whisk", "dip", "dip"]))
        assert again.mistake is expected
        assert [mistake.kind for mistake in again.mistakes] == ["repeated"]


def test_the_operating_point_is_an_option() -> None:
    probability = follow(LEARNED, untimed(["dip"]))[0].probability
    assert 0.4 < probability < 1
    for threshold in (probability, nextafter(probability, 1)):
        (assessment,) = follow(LEARNED, untimed(["dip"]), threshold)
        assert assessment.mistake is (threshold == probability)


# -- properties -------------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(graphs_of_all_kinds(), VIDEOS, st.data())
def test_no_verdict_looks_ahead(graph: SubtaskGraph, video: Video, data: st.DataObject) -> None:
    assessments = follow(graph, video)
    assert all(0 <= assessment.probability <= 1 for assessment in assessments)
    length = data.draw(st.integers(0, len(video.segments)))
    assert follow(graph, Video("v", video.segments[:length])) == assessments[:length]


@settings(max_examples=25)
@given(graphs_of_all_kinds(), TIMED)
def test_when_a_step_ends_matters_to_later_ones_only(graph: SubtaskGraph, video: Video) -> None:
    for place, segment in enumerate(video.segments):
        if all(other.start != segment.start for other in video.segments if other is not segment):
            shown = [*video.segments[:place], Segment(segment.step, segment.start, 100)]
            assert follow(graph, Video("v", shown)) == follow(graph, video)[: place + 1]


@settings(max_examples=25)
@given(graphs_of_all_kinds(SMALL), st.data())
def test_a_faultless_run_is_never_accused_on_the_way(graph: SubtaskGraph, data: st.DataObject) -> None:
    runs = faultless_runs(graph)
    if runs:
        assert not any(found.mistakes for found in follow(graph, untimed(data.draw(st.sampled_from(runs)))))


@settings(max_examples=25)
@given(graphs_of_all_kinds(ors=False), st.permutations(NAMES))
def test_a_run_that_does_everything_is_judged_alike_before_and_after_its_end(
    graph: SubtaskGraph, order: list[str]
) -> None:
    """Nothing is still to come: the only difference between the two is what is not known yet."""
    judge = Judge(replace(graph, exclusive=()), "skipped")
    assert judge.judge(untimed(order).segments, ended=False) == judge.judge(untimed(order).segments)


@settings(max_examples=15)
@given(st.permutations(["whisk", "dip", "fry"]))
def test_the_last_word_on_the_order_is_that_of_a_check_afterwards(order: list[str]) -> None:
    *_, last = follow(LEARNED, untimed(order, "new"))
    afterwards = [mistake for mistake in check(LEARNED, untimed(order, "new")).mistakes if mistake.step == order[-1]]
    assert [(m.kind, m.unmet, m.probability) for m in last.mistakes] == [
        (m.kind, m.unmet, m.probability) for m in afterwards
    ]


# -- report -----------------------------------------------------------------------------------------------------------


def test_a_report_as_json() -> None:
    videos = [Video("v", [Segment("dip", 1.5, 3.0)]), Video("w", [])]
    report = check_online(CHAIN, Task("toast", CHAIN.steps, videos), absent="skipped")
    mistake = {"video": "v", "step": "dip", "kind": "need", "probability": 1.0, "unmet": ["whisk"], "start": 1.5,
               "position": 1}  # fmt: skip
    assert json.loads(json.dumps(report.to_json())) == {
        "task": "toast",
        "threshold": 0.4,
        "videos": {
            "v": [{"step": "dip", "start": 1.5, "position": 1, "probability": 1.0, "mistake": True,
                   "mistakes": [mistake]}],
            "w": [],
        },
    }  # fmt: skip
    assert report.videos["v"][0].to_json()["step"] == "dip"


def test_repeated_steps_are_kept() -> None:
    report = check_online(TEA, {"v": ["boil", "boil"]})
    assert [assessment.mistake for assessment in report.videos["v"]] == [False, True]

"""Mistakes while they happen: counts against loops over the videos, and no look ahead."""

from __future__ import annotations

import json
from dataclasses import replace
from math import nextafter, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msg2.assist import check_online
from msg2.assist.monitoring import OnlineMonitor, StepAssessment, fit_monitor
from msg2.assist.rule_probabilities import DeviationCounts, RequirementModel, mistake_probability
from msg2.errors import InputError
from msg2.graph import SubtaskGraph, step
from msg2.task import Segment, Task, Video
from tests.assist.deviation_examples import (
    CHAIN,
    SEQUENCES,
    TEA,
    TIMED,
    VIDEOS,
    deviations,
    graphs_of_all_kinds,
    task,
    untimed,
)


def kinds(verdict: StepAssessment) -> list[tuple[str, str | None]]:
    return [(finding.deviation.kind, finding.deviation.other) for finding in (*verdict.findings, *verdict.skipped)]


# -- how probably it is a mistake -------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(graphs_of_all_kinds(), st.lists(SEQUENCES, min_size=1, max_size=6))
def test_rules_are_counted_over_the_videos_that_can_break_them(graph: SubtaskGraph, seen: list[list[str]]) -> None:
    """Of every clause and every pair in order: k videos break it, of n that show the step."""
    counts = DeviationCounts.from_videos(graph, task(graph, *seen)).rules(graph)
    expected = []
    for name in graph.steps:
        of_step = [order for order in seen if name in order]
        for clause in graph.precondition(name).clauses():
            broken = [o for o in of_step if any(not clause.evaluate(o[:i]) for i, n in enumerate(o) if n == name)]
            expected.append((len(broken), len(of_step)))
    for before, after in graph.order:
        of_step = [order for order in seen if before in order]
        broken = [order for order in of_step if after in order[: order.index(before)]]
        expected.append((len(broken), len(of_step)))
    assert counts == expected


@settings(max_examples=50)
@given(graphs_of_all_kinds(), st.lists(SEQUENCES, max_size=5), SEQUENCES)
def test_a_deviation_is_as_probable_a_mistake_as_it_is_rare(
    graph: SubtaskGraph, seen: list[list[str]], names: list[str]
) -> None:
    training = task(graph, *seen)
    counts = DeviationCounts.from_videos(graph, training)
    model = RequirementModel.fit(counts.rules(graph))
    shown = {name for order in seen for name in order}
    for verdict in fit_monitor(graph, training, absent="skipped").video(untimed(names)):
        for one in (*verdict.findings, *verdict.skipped):
            found = one.deviation
            videos = seen if found.kind == "unknown step" else [order for order in seen if found.step in order]
            times = sum(found in {odd for of in deviations(graph, untimed(order)) for odd in of} for order in videos)
            assert (one.times, one.chances) == (times, len(videos))
            even = model if found.clause else replace(model, genuine=0.5)
            assert one.probability == pytest.approx(mistake_probability(times + 1, len(videos) + 1, even))
        assert (verdict.step not in shown) == any(one.deviation.kind == "unknown step" for one in verdict.findings)
        assert verdict.probability == pytest.approx(1 - prod(1 - one.probability for one in verdict.findings))


def test_what_is_often_broken_is_a_habit_and_what_never_is_a_mistake() -> None:
    graph = SubtaskGraph("t", "abcd", {"b": step("a"), "d": step("c")})
    training = task(graph, *["abcd"] * 6, *["bacd"] * 6)
    judge = fit_monitor(graph, training, absent="skipped")
    habit, late, mistake = judge.step("b"), judge.step("a"), judge.step("d")
    assert max(habit.probability, late.probability) < 0.1
    assert mistake.probability > 0.7
    assert (habit.findings[0].times, habit.findings[0].chances) == (6, 12)
    assert (mistake.findings[0].times, mistake.findings[0].chances) == (0, 12)


def test_kinds_and_their_combination() -> None:
    judge = fit_monitor(CHAIN, task(CHAIN, *[["whisk", "dip", "fry"]] * 9), absent="skipped")
    verdicts = [judge.step(name) for name in ["fry", "dip", "whisk", "whisk", "juggle"]]
    assert [kinds(verdict) for verdict in verdicts] == [
        [("need", None), ("left out", "dip"), ("left out", "whisk")],
        [("order", "fry"), ("need", None), ("left out", "whisk")],
        [("order", "fry"), ("order", "dip")],
        [("repeated", None)],
        [("unknown step", None)],
    ]
    assert [verdict.position for verdict in verdicts] == [1, 2, 3, 4, 5]
    assert all(verdict.mistake for verdict in verdicts)
    late, early = (finding.probability for finding in verdicts[1].findings)
    assert verdicts[1].probability == pytest.approx(1 - (1 - late) * (1 - early))
    assert verdicts[1].probability_of("need") == pytest.approx(early)
    assert verdicts[1].probability_of("repeated") == 0
    assert judge.step("whisk").findings[0].deviation.kind == "repeated"


def followed(judge: OnlineMonitor, name: str) -> StepAssessment:
    """As an assistant does: what is called a mistake is not accepted."""
    assessment = judge.step(name)
    if assessment.mistake:
        judge.reject(assessment)
    return assessment


def test_one_slip_does_not_make_mistakes_of_all_that_follows() -> None:
    graph = SubtaskGraph("t", "abcdef", {"b": step("a"), "c": step("b"), "d": step("c"), "f": step("e")})
    judge = fit_monitor(graph, task(graph, *["abcdef"] * 9), absent="skipped")
    assert [followed(judge, name).mistake for name in "bcd"] == [
        True,
        False,
        False,
    ]  # a is missing, and that is said once
    assert judge.run.rejected == {"b"}
    assert followed(judge, "f").mistake  # a later slip still counts
    assert followed(judge, "a").corrects == ()  # b came without it, and has not been done again
    again = followed(judge, "b")
    assert (again.mistake, again.corrects, judge.run.rejected) == (False, ("b",), {"f"})
    assert followed(judge, "b").findings[0].deviation.kind == "repeated"


def test_what_came_too_early_is_the_mistake_also_if_that_is_known_only_later() -> None:
    graph = SubtaskGraph("t", "abcd", {"b": step("a"), "c": step("b")}, order=[("a", "d")])
    judge = fit_monitor(graph, task(graph, *["abcd"] * 9), absent="unknown")
    assert [followed(judge, name).mistake for name in "bdc"] == [False, False, False]  # a may only lack its label
    late = followed(judge, "a")
    assert [finding.deviation.other for finding in late.findings] == ["b", "d"]
    assert judge.run.rejected == {"b"}  # c waited for b, and d does not need a
    assert followed(judge, "b").corrects == ("b",)


def test_the_one_of_an_exclusive_pair_that_was_a_mistake_excludes_nothing() -> None:
    usual = [["boil", "bag", "pour"]] * 9 + [["boil", "leaves", "pour"]] * 9
    judge = fit_monitor(TEA, task(TEA, *usual))
    assert [followed(judge, name).mistake for name in ("boil", "bag", "leaves")] == [False, False, True]
    assert judge.run.rejected == {"leaves"}
    copied = judge.copy()
    assert followed(copied, "leaves").mistake  # the other one is still there
    assert followed(judge, "pour").probability < 0.5


def test_order_and_exclusive_pairs_are_judged_like_the_rest() -> None:
    usual = [["boil", "bag", "pour", "sugar", "stir"]] * 9 + [["leaves", "boil", "pour", "stir"]] * 9
    judge = fit_monitor(TEA, task(TEA, *usual))
    verdicts = {one.step: one for one in judge.video(untimed(["boil", "bag", "pour", "stir", "sugar", "leaves"]))}
    assert {name: kinds(one) for name, one in verdicts.items() if one.findings} == {
        "sugar": [("order", "stir")],
        "leaves": [("exclusive", "bag")],
    }
    assert verdicts["sugar"].mistake
    assert verdicts["leaves"].mistake
    habit = fit_monitor(TEA, task(TEA, *usual, *[["boil", "bag", "pour", "stir", "sugar"]] * 9))
    assert not habit.video(untimed(["boil", "bag", "pour", "stir", "sugar"]))[-1].mistake


def test_where_labels_may_be_missing_a_step_that_comes_without_another_claims_nothing() -> None:
    training = task(CHAIN, *[["whisk", "dip", "fry"]] * 9)
    for absent, expected in (("skipped", [True, True]), ("unknown", [False, True]), (None, [False, True])):
        early, late = fit_monitor(CHAIN, training, absent=absent).video(untimed(["fry", "dip"]))
        assert [early.mistake, late.mistake] == expected
        assert [one.deviation.other for one in early.skipped] == ["dip", "whisk"]
        assert "order" in [one.deviation.kind for one in late.findings]
    log = Task(training.name, training.steps, training.videos, "skipped")
    assert fit_monitor(CHAIN, log).step("fry").mistake
    assert not fit_monitor(replace(CHAIN, method={"options": {"absent": "unknown"}}), log).step("fry").mistake


def test_nobody_is_accused_of_steps_that_overlap() -> None:
    training = task(CHAIN, *[["whisk", "dip", "fry"]] * 9)
    for first, second in (("whisk", "dip"), ("dip", "whisk")):
        video = Video("v", [Segment(first, 0, 9), Segment(second, 5, 12), Segment("fry", 12, 15)])
        assert [one.mistake for one in fit_monitor(CHAIN, training).video(video)] == [False] * 3


def test_a_repetition_that_others_show_is_a_habit() -> None:
    once, twice = [["whisk", "dip", "fry"]] * 9, [["whisk", "dip", "fry", "dip", "fry"]] * 9
    for sequences, expected in ((once, True), (twice, False)):
        *_, again = fit_monitor(CHAIN, task(CHAIN, *sequences)).video(untimed(["whisk", "dip", "fry", "dip"]))
        assert again.mistake is expected


def test_without_any_training_nothing_is_called_a_mistake() -> None:
    verdicts = fit_monitor(CHAIN, task(CHAIN), absent="skipped").video(untimed(["fry", "dip", "dip", "juggle"]))
    assert [verdict.mistake for verdict in verdicts] == [False] * 4


def test_the_operating_point_is_an_option() -> None:
    training = task(CHAIN, *[["whisk", "dip", "fry"]] * 9)
    probability = fit_monitor(CHAIN, training, absent="skipped").step("dip").probability
    assert 0.5 < probability < 1
    for threshold in (probability, nextafter(probability, 1)):
        verdict = fit_monitor(CHAIN, training, threshold, "skipped").step("dip")
        assert verdict.mistake is (threshold == probability)


# -- the watch --------------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(graphs_of_all_kinds(), st.lists(SEQUENCES, max_size=5), VIDEOS, st.data())
def test_no_verdict_looks_ahead(graph: SubtaskGraph, seen: list[list[str]], video: Video, data: st.DataObject) -> None:
    judge = fit_monitor(graph, task(graph, *seen), absent="skipped")
    verdicts = judge.video(video)
    assert all(0 <= verdict.probability <= 1 for verdict in verdicts)
    length = data.draw(st.integers(0, len(video.segments)))
    assert judge.video(Video("v", video.segments[:length])) == verdicts[:length]


@settings(max_examples=50)
@given(graphs_of_all_kinds(), TIMED)
def test_when_a_step_ends_matters_to_later_ones_only(graph: SubtaskGraph, video: Video) -> None:
    judge = fit_monitor(graph, task(graph), absent="skipped")
    for place, segment in enumerate(video.segments):
        if all(other.start != segment.start for other in video.segments if other is not segment):
            shown = [*video.segments[:place], Segment(segment.step, segment.start, 100)]
            assert judge.video(Video("v", shown)) == judge.video(video)[: place + 1]


@settings(max_examples=50)
@given(graphs_of_all_kinds(), st.lists(SEQUENCES, max_size=5), SEQUENCES)
def test_habits_without_a_video_are_those_of_the_others(
    graph: SubtaskGraph, seen: list[list[str]], one: list[str]
) -> None:
    all_of_them = DeviationCounts.from_videos(graph, [*task(graph, *seen), untimed(one, "w")])
    left = all_of_them.subtract(DeviationCounts.from_videos(graph, [untimed(one, "w")]))
    assert left == DeviationCounts.from_videos(graph, task(graph, *seen))
    for odd, times in left.deviations.items():
        assert times == sum(odd in {o for os in deviations(graph, untimed(names)) for o in os} for names in seen)


def test_steps_may_come_as_moments() -> None:
    judge = fit_monitor(CHAIN, task(CHAIN, *[["whisk", "dip", "fry"]] * 9))
    assert [judge.step(name, time).mistake for name, time in [("whisk", 1), ("dip", 2.5), ("fry", 4)]] == [False] * 3


def test_a_step_out_of_time_is_refused_and_forgotten() -> None:
    judge = fit_monitor(CHAIN, task(CHAIN, ["whisk", "dip", "fry"]))
    judge.step("whisk", 5, 6)
    with pytest.raises(InputError, match="'dip' starts at 4, before the last one at 5"):
        judge.step("dip", 4, 5)
    with pytest.raises(InputError, match="'dip' comes without a time, 'whisk' came with"):
        judge.step("dip")
    assert judge.step("dip", 6, 7).findings == ()
    assert judge.step("fry", 7, 8).position == 3


def test_a_verdict_as_json() -> None:
    verdict = fit_monitor(CHAIN, task(CHAIN, *[["whisk", "dip", "fry"]] * 9), absent="skipped").step("dip", 1.5)
    value = json.loads(json.dumps(verdict.to_json()))
    probability = verdict.findings[0].probability
    finding = {"other": None, "clause": "whisk", "times": 0, "chances": 9, "probability": probability}
    assert value == {
        "step": "dip",
        "start": 1.5,
        "position": 1,
        "probability": pytest.approx(probability),
        "mistake": True,
        "findings": [{"kind": "need", **finding}],
        "skipped": [{"kind": "left out", **finding, "other": "whisk"}],
        "corrects": [],
    }


def test_an_impossible_threshold_is_refused() -> None:
    with pytest.raises(InputError, match="threshold"):
        fit_monitor(CHAIN, task(CHAIN), threshold=1.5)


def test_videos_are_checked_by_the_others_or_by_training_videos() -> None:
    seen = task(CHAIN, *[["whisk", "dip", "fry"]] * 9, ["dip", "whisk", "fry"])
    others = fit_monitor(CHAIN, seen.with_videos(seen.videos[:9])).video(seen.videos[9])
    left_out = check_online(CHAIN, seen)
    assert list(left_out.videos) == [video.id for video in seen]
    assert left_out.videos["v009"] == others
    assert [one.mistake for one in others] == [False, True, False]
    assert [one.mistake for one in check_online(CHAIN, seen, absent="skipped").videos["v009"]] == [True, True, False]
    itself = check_online(CHAIN, seen, training=seen).videos["v009"]
    assert itself == fit_monitor(CHAIN, seen).video(seen.videos[9]) != others
    value = json.loads(json.dumps(left_out.to_json()))
    assert (value["task"], value["threshold"], len(value["videos"])) == ("toast", 0.5, 10)

"""Mistakes while they happen: probabilities against integrals, and no look ahead."""

from __future__ import annotations

import json
from itertools import pairwise
from math import log, nextafter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta

from msg2.assist import check_online, online_monitoring
from msg2.assist.deviations import Deviation
from msg2.assist.online_monitoring import (
    DeviationCounts,
    RequirementModel,
    StepAssessment,
    fit_monitor,
    mistake_probability,
)
from msg2.errors import InputError
from msg2.graph import SubtaskGraph, step
from msg2.task import Segment, Video
from tests.assist.deviation_examples import CHAIN, SEQUENCES, TIMED, VIDEOS, deviations, graphs, task, untimed


def kinds(verdict: StepAssessment) -> list[tuple[str, str | None]]:
    return [(finding.deviation.kind, finding.deviation.other) for finding in (*verdict.findings, *verdict.skipped)]


NOISES = st.builds(RequirementModel, st.floats(0.01, 0.99), st.floats(1, 200))
COUNTS = st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


# -- how probably it is a mistake -------------------------------------------------------------------------------------


@given(COUNTS, NOISES)
def test_the_probability_is_that_of_the_two_integrals(counts: tuple[int, int], noise: RequirementModel) -> None:
    (k, n), w, b = counts, noise.genuine, noise.rarity
    peak = [k / n] if 0 < k < n else None
    habit = quad(lambda x: x**k * (1 - x) ** (n - k), 0, 1, points=peak)[0]
    mistake = quad(lambda x: x**k * (1 - x) ** (n - k) * beta.pdf(x, 1, b), 0, 1, points=[0.01, 0.1])[0]
    assert mistake_probability(k, n, noise) == pytest.approx(w * mistake / (w * mistake + (1 - w) * habit), abs=1e-5)


@given(COUNTS, NOISES)
def test_the_more_videos_have_it_the_less_it_is_a_mistake(counts: tuple[int, int], noise: RequirementModel) -> None:
    (k, n) = counts
    probabilities = [mistake_probability(times, n, noise) for times in range(n + 1)]
    assert all(0 <= p <= 1 for p in probabilities)
    assert all(one >= other - 1e-12 for one, other in pairwise(probabilities))
    assert mistake_probability(k, n, noise) <= mistake_probability(k, n + 1, noise) + 1e-12  # one more without it


def posterior(noise: RequirementModel, counts: list[tuple[int, int]]) -> float:
    """Of the noise, up to a constant: what expectation maximisation climbs."""
    w, b, believed = noise.genuine, noise.rarity, 1 / online_monitoring.PRIOR_MISTAKE_RATE - 1
    grid = (np.arange(4000) + 0.5) / 4000
    total = log(w) + log(1 - w) + log(b) - b / believed
    for k, n in counts:
        seen = grid**k * (1 - grid) ** (n - k)
        total += log(np.mean(seen * (w * b * (1 - grid) ** (b - 1) + 1 - w)))
    return total


@given(graphs(), st.lists(SEQUENCES, min_size=1, max_size=6))
def test_the_noise_becomes_more_probable_with_every_round(graph: SubtaskGraph, sequences: list[list[str]]) -> None:
    seen = DeviationCounts.from_videos(graph, task(graph, *sequences))
    odd = [Deviation("premature", n, None, clause) for n in graph.steps for clause in graph.precondition(n).clauses()]
    counts = [(seen.deviations.get(one, 0), seen.steps.get(one.step, 0)) for one in odd]
    heights = []
    for rounds in (1, 2, 3, 10, 50):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(online_monitoring, "EM_ROUNDS", rounds)
            heights.append(posterior(RequirementModel.fit(graph, seen), counts))
    assert all(later >= earlier - 1e-6 for earlier, later in pairwise(heights))


def test_noise_without_a_clause_is_what_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online_monitoring, "PRIOR_MISTAKE_RATE", 0.1)
    free = SubtaskGraph("t", "ab", {})
    assert RequirementModel.fit(free, DeviationCounts.from_videos(free, [])) == RequirementModel(0.5, pytest.approx(9))


def test_what_is_often_broken_is_a_habit_and_what_never_is_a_mistake() -> None:
    graph = SubtaskGraph("t", "abcd", {"b": step("a"), "d": step("c")})
    training = task(graph, *["abcd"] * 6, *["bacd"] * 6)
    judge = fit_monitor(graph, training)
    habit, late, mistake = judge.step("b"), judge.step("a"), judge.step("d")
    assert max(habit.probability, late.probability) < 0.1
    assert mistake.probability > 0.7
    assert (habit.findings[0].times, habit.findings[0].chances) == (6, 12)
    assert (mistake.findings[0].times, mistake.findings[0].chances) == (0, 12)


def test_kinds_and_their_combination() -> None:
    judge = fit_monitor(CHAIN, task(CHAIN, *[["whisk", "dip", "fry"]] * 9))
    verdicts = [judge.step(name) for name in ["fry", "dip", "whisk", "whisk", "juggle"]]
    assert [kinds(verdict) for verdict in verdicts] == [
        [("premature", None), ("skipped", "dip"), ("skipped", "whisk")],
        [("out of order", "fry"), ("premature", None), ("skipped", "whisk")],
        [("out of order", "fry"), ("out of order", "dip")],
        [("repeated", None)],
        [("never seen", None)],
    ]
    assert [verdict.position for verdict in verdicts] == [1, 2, 3, 4, 5]
    assert all(verdict.mistake for verdict in verdicts)
    late, early = (finding.probability for finding in verdicts[1].findings)
    assert verdicts[1].probability == pytest.approx(1 - (1 - late) * (1 - early))
    assert verdicts[1].probability_of("premature") == pytest.approx(early)
    assert verdicts[1].probability_of("repeated") == 0
    assert judge.step("whisk").findings[0].deviation.kind == "repeated"


def test_a_repetition_that_others_show_is_a_habit() -> None:
    once, twice = [["whisk", "dip", "fry"]] * 9, [["whisk", "dip", "fry", "dip", "fry"]] * 9
    for sequences, expected in ((once, True), (twice, False)):
        *_, again = fit_monitor(CHAIN, task(CHAIN, *sequences)).video(untimed(["whisk", "dip", "fry", "dip"]))
        assert again.mistake is expected


def test_without_any_training_nothing_is_called_a_mistake() -> None:
    verdicts = fit_monitor(CHAIN, task(CHAIN)).video(untimed(["fry", "dip", "dip", "juggle"]))
    assert [verdict.mistake for verdict in verdicts] == [False] * 4


def test_the_operating_point_is_an_option() -> None:
    training = task(CHAIN, *[["whisk", "dip", "fry"]] * 9)
    probability = fit_monitor(CHAIN, training).step("dip").probability
    for threshold in (probability, nextafter(probability, 1)):
        verdict = fit_monitor(CHAIN, training, threshold).step("dip")
        assert verdict.mistake is (threshold == probability)


# -- the watch --------------------------------------------------------------------------------------------------------


@given(graphs(), st.lists(SEQUENCES, max_size=5), VIDEOS, st.data())
def test_no_verdict_looks_ahead(graph: SubtaskGraph, seen: list[list[str]], video: Video, data: st.DataObject) -> None:
    judge = fit_monitor(graph, task(graph, *seen))
    verdicts = judge.video(video)
    assert all(0 <= verdict.probability <= 1 for verdict in verdicts)
    length = data.draw(st.integers(0, len(video.segments)))
    assert judge.video(Video("v", video.segments[:length])) == verdicts[:length]


@given(graphs(), TIMED)
def test_when_a_step_ends_matters_to_later_ones_only(graph: SubtaskGraph, video: Video) -> None:
    judge = fit_monitor(graph, task(graph))
    for place, segment in enumerate(video.segments):
        if all(other.start != segment.start for other in video.segments if other is not segment):
            shown = [*video.segments[:place], Segment(segment.step, segment.start, 100)]
            assert judge.video(Video("v", shown)) == judge.video(video)[: place + 1]


@given(graphs(), st.lists(SEQUENCES, max_size=5), SEQUENCES)
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
    verdict = fit_monitor(CHAIN, task(CHAIN, *[["whisk", "dip", "fry"]] * 9)).step("dip", 1.5)
    value = json.loads(json.dumps(verdict.to_json()))
    probability = verdict.findings[0].probability
    finding = {"other": None, "clause": "whisk", "times": 0, "chances": 9, "probability": probability}
    assert value == {
        "step": "dip",
        "start": 1.5,
        "position": 1,
        "probability": pytest.approx(probability),
        "mistake": True,
        "findings": [{"kind": "premature", **finding}],
        "skipped": [{"kind": "skipped", **finding, "other": "whisk"}],
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
    assert [one.mistake for one in others] == [True, True, False]
    itself = check_online(CHAIN, seen, training=seen).videos["v009"]
    assert itself == fit_monitor(CHAIN, seen).video(seen.videos[9]) != others
    value = json.loads(json.dumps(left_out.to_json()))
    assert (value["task"], value["threshold"], len(value["videos"])) == ("toast", 0.5, 10)

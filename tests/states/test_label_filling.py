"""Filled labels: annotated rows stay, only absent steps come, where the paper's rule says."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.states import label_filling as prediction_module
from msg2.states.configuration import FillOptions, StateModelOptions
from msg2.states.dataset import END, START
from msg2.states.fill_calibration import FillCalibration
from msg2.states.label_filling import StatePrediction, fill_labels, fill_video, first_completion, predict_states
from msg2.task import PREDICTED, Segment, Sentence, Task, Video
from tests.states.conftest import VARIANTS, SamplingOptions, batch_of, model_for, options, tiny_dataset, tiny_task

STEPS = ("a", "b", "c", "d", "e")
PAPER = FillOptions().for_model(StateModelOptions())


def prediction_of(
    video: Video, scores: dict[str, list[float]], steps: tuple[str, ...] = STEPS, *,
    seen_at: list[float] | None = None, presence: list[float] | None = None,
) -> StatePrediction:  # fmt: skip
    """A prediction at the borders of the video's labels, with these scores; -5 for the steps that are not given."""
    borders = sorted(
        (time, kind, steps.index(segment.step))
        for segment in video.segments
        for time, kind in ((segment.start, START), (segment.end, END))
    )
    given = np.full((len(borders), len(steps)), -5.0)
    for step, column in scores.items():
        given[:, steps.index(step)] = column
    labelled = np.array([step in video.sequence() for step in steps])
    return StatePrediction(
        video.id,
        np.array([kind for _, kind, _ in borders], dtype=np.int64),
        np.array([time for time, _, _ in borders], dtype=np.float64),
        np.array([step for _, _, step in borders], dtype=np.int64),
        given, np.zeros(given.shape, dtype=np.int64), labelled,
        None if seen_at is None else (np.array(seen_at), np.eye(len(steps))),
        None if presence is None else np.array(presence),
        np.zeros(len(steps), dtype=np.bool_),
    )  # fmt: skip


VIDEO = Video("v", [Segment("a", 2, 5), Segment("b", 7, 11, 0.9, "hand"), Segment("c", 13, 20)], [Sentence("so", 1, 2)])
#   borders:     a[  2   a]  5   b[  7   b] 11   c[ 13   c] 20
D = [-3.0, -2.0, -1.0, -0.5, 0.25, 2.0]  # d is completed from the start of c on


def new_in(video: Video) -> list[Segment]:
    return [segment for segment in video.segments if segment.source == PREDICTED]


def test_the_next_step_rule_by_hand() -> None:
    """ŝ(d) ≥ 0 is seen first at c's [start]; the step before c is b, so d is completed at b's [start]."""
    added = fill_video(VIDEO, prediction_of(VIDEO, {"d": D}), STEPS, PAPER)
    (new,) = set(added.segments) - set(VIDEO.segments)
    assert (new.step, new.start, new.end, new.source) == ("d", 5.0, 7.0, PREDICTED)
    assert new.confidence == pytest.approx(1 / (1 + math.exp(-2.0)))


def test_the_same_step_rule_by_hand() -> None:
    added = fill_video(VIDEO, prediction_of(VIDEO, {"d": D}), STEPS, FillOptions(0.0, "same"))
    (new,) = set(added.segments) - set(VIDEO.segments)
    assert (new.step, new.start, new.end) == ("d", 11.0, 13.0)


@pytest.mark.parametrize(
    ("scores", "read_at", "span"),
    [
        ([1.0] * 6, "next", (0, 2)),  # completed before anything
        ([1.0] * 6, "same", (0, 2)),
        ([-1, -1, 1.0, 1, 1, 1], "next", (0, 2)),  # seen at b's start, so at a's start
        ([-1, -1, -1, 1.0, 1, 1], "next", (2, 5)),  # seen at b's end, so at a's end
        ([-1, -1, -1, -1, -1, 1.0], "next", (7, 11)),  # seen at c's end: at b's end, before c's own start is looked at
        ([-1, -1, -1, -1, -1, 1.0], "same", (13, 20)),
        ([-1, -1, -1, -1, -1, -0.001], "next", None),
        ([-1, -1, -1, -1, -1, 0.0], "next", (7, 11)),  # ŝ ≥ 0
        ([1.0, 1.0, -1, -1, -1, -1], "next", None),  # seen before the next step only: there is none before it
        ([1.0, 1.0, -1, -1, -1, -1], "same", (0, 2)),
    ],
)
def test_where_an_absent_step_is_put(scores: list[float], read_at: str, span: tuple[float, float] | None) -> None:
    added = fill_video(VIDEO, prediction_of(VIDEO, {"e": scores}), STEPS, FillOptions(0.0, read_at))  # type: ignore[arg-type]
    new = [segment for segment in added.segments if segment.source == PREDICTED]
    assert [(one.step, one.start, one.end) for one in new] == ([] if span is None else [("e", *span)])


def test_the_order_that_is_told() -> None:
    """d lies between a and b: after what ended before, before what starts after."""
    added = fill_video(VIDEO, prediction_of(VIDEO, {"d": D}), STEPS, PAPER)
    by_step = {segment.step: segment for segment in added.segments}
    assert by_step["a"].before(by_step["d"])
    assert by_step["d"].before(by_step["b"])


def test_the_threshold() -> None:
    prediction = prediction_of(VIDEO, {"d": D})
    assert fill_video(VIDEO, prediction, STEPS, FillOptions(3.0, "next")).segments == VIDEO.segments
    (new,) = (
        one
        for one in fill_video(VIDEO, prediction, STEPS, FillOptions(1.0, "next")).segments
        if one.source == PREDICTED
    )
    assert (new.start, new.end) == (7.0, 11.0)
    assert new.confidence == pytest.approx(1 / (1 + math.exp(1.0 - 2.0)))


def test_annotated_steps_are_never_added_again() -> None:
    sure = dict.fromkeys("abc", [9.0] * 6)
    assert fill_video(VIDEO, prediction_of(VIDEO, sure), STEPS, PAPER) == VIDEO


def test_repeated_labels_stay() -> None:
    video = Video("v", [Segment("a", 2, 5), Segment("a", 30, 40), Segment("b", 7, 11)])
    prediction = prediction_of(video.with_first_labels(), {"d": [1.0] * 4, "a": [1.0] * 4})
    added = fill_video(video, prediction, STEPS, PAPER)
    assert [s for s in added.segments if s.source != PREDICTED] == list(video.segments)
    assert [s.step for s in added.segments if s.source == PREDICTED] == ["d"]


def test_videos_without_labels_or_readings_stay() -> None:
    empty, unread = Video("empty", [], [Sentence("hm", 0, 1)]), Video("unread", [Segment("a", 0, 1)])
    task = Task("t", STEPS, [VIDEO, empty, unread])
    added = fill_labels(task, [prediction_of(VIDEO, {"d": D}), prediction_of(empty, {})], PAPER)
    assert {video.id: video for video in added}["empty"] == empty
    assert {video.id: video for video in added}["unread"] == unread
    assert (added.name, added.steps) == (task.name, task.steps)
    assert fill_labels(Task("t", STEPS, []), [], PAPER) == Task("t", STEPS, [])


# --- with evidence and co-occurrence models ---


@pytest.mark.parametrize(
    ("given", "evidence", "expected"),
    [
        (FillOptions(), False, FillOptions(0.0, "next")),  # the paper's
        (FillOptions(), True, FillOptions(0.75, "seen")),  # half of b
        (FillOptions(threshold=-2.0), True, FillOptions(-2.0, "seen")),
        (FillOptions(read_at="same"), True, FillOptions(0.75, "same")),
        (FillOptions(read_at="same"), False, FillOptions(0.0, "same")),
        (FillOptions(0.0, "next"), True, FillOptions(0.0, "next")),  # 0 was chosen, it is not left open
    ],
)
def test_what_is_left_open_is_chosen_by_the_model(given: FillOptions, evidence: bool, expected: FillOptions) -> None:
    assert given.for_model(StateModelOptions(threshold=1.5, evidence=evidence)) == expected
    assert given.for_model(StateModelOptions(threshold=1.5, evidence=evidence, cooccurrence=True)) == expected


SEEN_AT = [0.0, 0.0, 0.0, 8.5, 3.25]
SEEN = FillOptions(0.0, "seen")


def test_a_step_stands_where_most_was_seen_of_it() -> None:
    prediction = prediction_of(VIDEO, {"d": D, "e": [-1.0] * 6}, seen_at=SEEN_AT)
    (new,) = new_in(fill_video(VIDEO, prediction, STEPS, SEEN))  # e is never completed
    assert (new.step, new.start, new.end) == ("d", 8.5, 8.5)
    assert new.confidence == pytest.approx(1 / (1 + math.exp(-2.0)))


@given(st.integers(1, 4), st.integers(0, 10**6))
def test_every_added_step_has_a_moment_of_its_own(few: int, seed: int) -> None:
    """Against all assignments of steps to moments: the sum of the evidence is the highest there is."""
    rng = np.random.default_rng(seed)
    times, evidence = rng.integers(0, 3 + few, 9) / 2, rng.normal(size=(9, 5)).round(1)
    prediction = replace(prediction_of(VIDEO, {"d": D, "e": D}), seen=(times, evidence))
    new = new_in(fill_video(VIDEO, prediction, STEPS, SEEN))
    moments = sorted(set(times.tolist()))
    most = {(time, step): max(evidence[times == time, STEPS.index(step)]) for time in moments for step in "de"}
    best = max(most[d, "d"] + most[e, "e"] for d, e in permutations(moments, 2)) if len(moments) > 1 else None
    if best is not None:
        assert len({segment.start for segment in new}) == 2
        assert sum(most[segment.start, segment.step] for segment in new) == pytest.approx(best)


def test_what_nobody_saw_cannot_stand_there() -> None:
    with pytest.raises(InputError, match="no evidence model"):
        fill_video(VIDEO, prediction_of(VIDEO, {"d": D}), STEPS, SEEN)


@pytest.mark.parametrize("read_at", ["next", "same", "seen"])
def test_presence_alone_says_whether_a_step_is_added(read_at: str) -> None:
    """Scores say when: e is there but never completed, and so comes at the end; d is completed but not there."""
    scores = {"d": [9.0] * 6, "e": [-9.0] * 6}
    prediction = prediction_of(VIDEO, scores, seen_at=SEEN_AT, presence=[9.0, 9.0, 9.0, -0.01, 0.5])
    (new,) = new_in(fill_video(VIDEO, prediction, STEPS, FillOptions(0.0, read_at)))  # type: ignore[arg-type]
    assert (new.step, new.start, new.end) == ("e", *((3.25, 3.25) if read_at == "seen" else (13.0, 20.0)))
    assert new.confidence == pytest.approx(1 / (1 + math.exp(-0.5)))


@pytest.mark.parametrize("read_at", ["next", "same"])
def test_presence_does_not_move_what_is_completed(read_at: str) -> None:
    chosen = FillOptions(0.0, read_at)  # type: ignore[arg-type]
    plain, present = (
        new_in(fill_video(VIDEO, prediction_of(VIDEO, {"d": D}, presence=odds), STEPS, chosen))
        for odds in (None, [0.0, 0.0, 0.0, 3.0, -3.0])
    )
    assert [(s.step, s.start, s.end) for s in plain] == [(s.step, s.start, s.end) for s in present]
    assert present[0].confidence == pytest.approx(1 / (1 + math.exp(-3.0)))


# --- calibrated ---


CALIBRATION = FillCalibration((-4.0, 0.0, 4.0), (0.1, 0.5, 0.9), 1000, 99, 0.02, informative=True)


@pytest.mark.parametrize(("least", "added"), [(0.0, "de"), (0.5, "de"), (0.65, "d"), (0.71, "")])
def test_the_calibrated_confidence_says_what_is_added(least: float, added: str) -> None:
    """Scores of 2 and 1 are 0.7 and 0.6 by the calibration, whatever σ says; the threshold is part of the score."""
    prediction = prediction_of(VIDEO, {"d": D, "e": [-3.0, -2.0, -1.0, 0.0, 1.0, 0.0]})
    chosen = replace(PAPER, confidence=least)
    new = new_in(fill_video(VIDEO, prediction, STEPS, chosen, CALIBRATION))
    assert "".join(sorted(segment.step for segment in new)) == added
    assert {s.step: s.confidence for s in new} == pytest.approx({s: {"d": 0.7, "e": 0.6}[s] for s in added})


def test_a_probable_step_that_is_nowhere_completed_stands_at_the_end() -> None:
    prediction = prediction_of(VIDEO, {"d": [-1.0] * 6})
    (new,) = new_in(fill_video(VIDEO, prediction, STEPS, replace(PAPER, confidence=0.4), CALIBRATION))
    assert (new.step, new.start, new.end) == ("d", 13.0, 20.0)
    assert new_in(fill_video(VIDEO, prediction, STEPS, PAPER)) == []


def test_presence_says_nothing_about_a_video_without_labels() -> None:
    empty = Video("empty", [])
    assert fill_video(empty, prediction_of(empty, {}, presence=[9.0] * 5), STEPS, PAPER) == empty


@pytest.mark.parametrize("name", ["t5", "evidence", "co-occurrence", "evidence, co-occurrence"])
def test_readings_tell_what_the_model_can(name: str) -> None:
    """When most was seen of a step, and whether it is there, against the model's own words on each video."""
    held = tiny_dataset(5)
    model = model_for(held, VARIANTS[name])
    for number, one in enumerate(predict_states(model, held, range(5), SamplingOptions())):
        assert (one.seen is not None) is ("evidence" in name)
        assert (one.presence is not None) is ("co-occurrence" in name)
        (tokens,), made = batch_of(held, [number], seed=None)
        with torch.no_grad():
            said = model(made, held.frames, held.sentences)
        for step in range(4):
            if one.seen is not None:
                np.testing.assert_array_equal(one.seen[0], tokens.time)
                np.testing.assert_allclose(one.seen[1][:, step], said.evidence[0, :, step], atol=1e-5)
            if one.presence is not None:
                assert one.presence[step] == pytest.approx(float(said.presence[0, -1, step]), abs=1e-5)


# --- whatever the model says ---


SCORES = st.lists(st.floats(-1e3, 1e3), min_size=6, max_size=6)


@given(st.dictionaries(st.sampled_from("abcde"), SCORES), st.floats(-50, 50), st.sampled_from(["next", "same"]))
def test_whatever_is_predicted(scores: dict[str, list[float]], threshold: float, read_at: str) -> None:
    given = FillOptions(threshold=threshold, read_at=read_at)  # type: ignore[arg-type]
    added = fill_video(VIDEO, prediction_of(VIDEO, scores), STEPS, given)
    new = [segment for segment in added.segments if segment.source == PREDICTED]
    assert tuple(segment for segment in added.segments if segment.source != PREDICTED) == VIDEO.segments
    assert added.sentences == VIDEO.sentences
    assert {segment.step for segment in new} <= {"d", "e"}
    assert len({segment.step for segment in new}) == len(new)
    for segment in new:
        assert segment.confidence is not None
        assert 0.5 <= segment.confidence <= 1
        assert 0 <= segment.start <= segment.end <= 20  # type: ignore[operator]


@given(st.lists(st.tuples(st.sampled_from([START, END]), st.floats(-3, 3)), min_size=1, max_size=12), st.floats(-1, 1))
def test_first_completion_by_brute_force(borders: list[tuple[int, float]], threshold: float) -> None:
    kind, scores = np.array([k for k, _ in borders]), np.array([s for _, s in borders])
    for read_at in ("next", "same"):
        expected = None
        for place in range(len(borders)):
            asked = place
            if read_at == "next":
                later = [other for other in range(place + 1, len(borders)) if kind[other] == kind[place]]
                asked = later[0] if later else len(borders) - 1
            if scores[asked] >= threshold:
                expected = place
                break
        assert first_completion(scores, kind, FillOptions(threshold=threshold, read_at=read_at)) == expected  # type: ignore[arg-type]


# --- with a model ---


def test_readings_are_at_the_borders_of_all_labels() -> None:
    held, task = tiny_dataset(5), tiny_task(5)
    model = model_for(held, options())
    found = list(predict_states(model, held, [3, 0, 4], SamplingOptions()))
    assert [one.video for one in found] == ["v3", "v0", "v4"]
    videos = {video.id: video for video in task}
    for one in found:
        segments = videos[one.video].segments
        assert sorted(one.time) == sorted([time for s in segments for time in (s.start, s.end)])
        assert (np.diff(one.time) >= 0).all()
        assert one.scores.shape == one.state.shape == (2 * len(segments), 4)
        assert not one.hidden.any()
        assert one.labelled.sum() == len(segments)


def test_predictions_do_not_depend_on_how_many_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    held = tiny_dataset(5)
    model = model_for(held, options())
    for hidden in (None, [4]):
        every, each = [], []
        for found, size in ((every, 16), (each, 1)):
            monkeypatch.setattr(prediction_module, "BATCH_VIDEOS", size)
            found += predict_states(model, held, range(5), SamplingOptions(), hidden=hidden)
        assert len(every) == 5
        for one, other in zip(every, each, strict=True):
            np.testing.assert_allclose(one.scores, other.scores, atol=2e-6)
            np.testing.assert_array_equal(one.hidden, other.hidden)


def test_hidden_labels_have_no_borders() -> None:
    held = tiny_dataset(5)
    model = model_for(held, options())
    found = [
        one for seed in range(9) for one in predict_states(model, held, range(5), SamplingOptions(), hidden=[seed])
    ]
    assert any(one.hidden.any() for one in found)
    for one in found:
        assert not set(np.flatnonzero(one.hidden)) & set(one.step)
        assert set(np.flatnonzero(one.labelled & ~one.hidden)) == set(one.step)


def test_filling_with_a_model_keeps_every_label() -> None:
    held, task = tiny_dataset(5), tiny_task(5)
    model = model_for(held, options())
    added = fill_labels(task, predict_states(model, held, range(5), SamplingOptions()), FillOptions(-100.0, "next"))
    for before, after in zip(task, added, strict=True):
        assert tuple(s for s in after.segments if s.source != PREDICTED) == before.segments
        assert set(after.sequence()) == set(task.steps)  # a threshold below all scores adds all

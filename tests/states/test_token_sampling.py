"""Sampling against what App. A says, in plain loops: which frames, which sentences, which states."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import astuple, replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.formats.feature_store import VideoFeatures
from msg2.states.configuration import SamplingOptions
from msg2.states.dataset import (
    COMPLETED,
    END,
    EXTRA_FEATURES,
    FRAME,
    IN_PROGRESS,
    NOT_STARTED,
    START,
    LabelledVideo,
    Tokens,
    _label_features,
    build_dataset,
    labelled_video,
    nearest_index,
)
from msg2.states.dataset import sample_tokens as sampled_tokens
from msg2.task import Segment, Task, Video
from tests.states.conftest import labelled_videos

N = 10
FEW = settings(max_examples=25)
RANDOM = st.one_of(st.none(), st.integers(0, 2**32 - 1))
SAMPLINGS = st.builds(
    SamplingOptions,
    frames=st.sampled_from(["segments", "video"]),
    per_segment=st.integers(1, 4),
    most_frames=st.integers(1, 60),
    sentences=st.sampled_from([1, 3, 5]),
    dropped=st.sampled_from([0.0, 0.25, 0.5, 0.9]),
)


def sampled(one: LabelledVideo, options: SamplingOptions, seed: int | None = None) -> Tokens:
    return sampled_tokens(one, N, options, None if seed is None else np.random.default_rng(seed))


def kept(one: LabelledVideo, tokens: Tokens) -> list[int]:
    """The numbers of the segments whose steps are not dropped."""
    return [number for number, step in enumerate(one.steps) if not tokens.dropped[step]]


def plain(count: int = 5, seconds: float = 10.0, gap: float = 5.0, frames: int = 100) -> LabelledVideo:
    """`count` segments that neither touch nor overlap."""
    starts = np.arange(count) * (seconds + gap)
    times = np.linspace(0, starts[-1] + seconds, frames)
    return LabelledVideo(
        "v", np.arange(count), starts, starts + seconds, times, np.arange(0, starts[-1] + seconds, 4.0)
    )


# --- frames ---


@FEW
@given(labelled_videos(), SAMPLINGS, RANDOM)
def test_never_more_frames_than_allowed(one: LabelledVideo, options: SamplingOptions, seed: int | None) -> None:
    assert (sampled(one, options, seed).kind == FRAME).sum() <= options.most_frames


@FEW
@given(labelled_videos(), SAMPLINGS, RANDOM)
def test_at_least_so_many_frames_per_segment_when_they_fit(
    one: LabelledVideo, options: SamplingOptions, seed: int | None
) -> None:
    tokens = sampled(one, options, seed)
    numbers = kept(one, tokens)
    if options.per_segment * len(numbers) <= options.most_frames:
        times = tokens.time[tokens.kind == FRAME]
        for number in numbers:
            inside = (one.starts[number] <= times) & (times <= one.ends[number])
            assert inside.sum() >= options.per_segment
        # Segments may overlap: together, too, there are enough.
        assert len(times) >= options.per_segment * len(numbers)


@FEW
@given(labelled_videos(), st.sampled_from([None, 7]))
def test_frames_of_segments_lie_in_segments_that_are_kept(one: LabelledVideo, seed: int | None) -> None:
    tokens = sampled(one, SamplingOptions(), seed)
    for time in tokens.time[tokens.kind == FRAME]:
        assert any(one.starts[k] <= time <= one.ends[k] for k in kept(one, tokens))


def test_frames_come_from_every_part_of_a_segment() -> None:
    one = plain(1, seconds=100)
    times = np.concatenate([sampled(one, SamplingOptions(), seed).time for seed in range(30)])
    assert np.histogram(times, 10, (0, 100))[0].min() > 100  # 30 · 100 frames over 10 tenths: 300 each


def test_a_long_segment_leaves_the_short_ones_their_three_frames() -> None:
    one = LabelledVideo("v", np.arange(3), np.array([0.0, 1000, 1010]), np.array([990.0, 1001, 1011]),
               np.arange(0, 1020, 0.5), np.zeros(0))  # fmt: skip
    for seed in range(20):
        tokens = sampled(one, replace(SamplingOptions(), dropped=0.0), seed)
        times = tokens.time[tokens.kind == FRAME]
        assert len(times) <= 190
        assert len(times) > 180  # and the budget is used
        assert ((times >= 1000) & (times <= 1001)).sum() >= 3
        assert ((times >= 1010) & (times <= 1011)).sum() >= 3


def test_testing_takes_three_equidistant_frames_per_segment() -> None:
    one = plain(4, seconds=12)
    tokens = sampled(one, SamplingOptions())
    times = tokens.time[tokens.kind == FRAME].reshape(4, 3)
    np.testing.assert_allclose(times, one.starts[:, None] + [2, 6, 10])  # the middles of three equal parts


@FEW
@given(labelled_videos())
def test_testing_takes_exactly_three_equidistant_frames(one: LabelledVideo) -> None:
    tokens = sampled(one, SamplingOptions())
    expected = sorted(s + (e - s) * share for s, e in zip(one.starts, one.ends, strict=True) for share in (1/6, 3/6, 5/6))  # noqa: E501 # fmt: skip
    np.testing.assert_allclose(tokens.time[tokens.kind == FRAME], expected, atol=1e-9)


@FEW
@given(labelled_videos(), SAMPLINGS)
def test_testing_has_no_randomness_and_drops_nothing(one: LabelledVideo, options: SamplingOptions) -> None:
    first = sampled(one, options)
    np.random.seed(0)  # noqa: NPY002 — the global state must not matter
    second = sampled(one, options)
    for a, b in zip(astuple(first), astuple(second), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not first.dropped.any()
    assert (first.kind == START).sum() == (first.kind == END).sum() == len(one.steps)


@FEW
@given(labelled_videos(), SAMPLINGS, st.integers(0, 99))
def test_training_follows_from_the_seed(one: LabelledVideo, options: SamplingOptions, seed: int) -> None:
    for a, b in zip(astuple(sampled(one, options, seed)), astuple(sampled(one, options, seed)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_another_seed_gives_other_frames() -> None:
    first, second = (sampled(plain(), SamplingOptions(dropped=0.0), seed) for seed in (1, 2))
    assert not np.array_equal(first.time, second.time)


def test_the_whole_video_is_sampled_where_asked_for() -> None:
    one = plain(3, seconds=2, gap=30)
    inside, whole = (sampled(one, SamplingOptions(frames=f)) for f in ("segments", "video"))  # type: ignore[arg-type]
    background = ~whole.inside.any(axis=1) & (whole.kind == FRAME)
    assert inside.inside[inside.kind == FRAME].any(axis=1).all()
    assert background.sum() > 50
    assert set(inside.time) <= set(whole.time)  # labelled segments have their own frames nevertheless


# --- dropping ---


SHARES = st.sampled_from([0.0, 0.25, 0.4, 0.9])


@FEW
@given(labelled_videos(), SHARES, st.integers(0, 2**32 - 1))
def test_at_most_the_share_is_dropped(one: LabelledVideo, share: float, seed: int) -> None:
    """But one of two or three may go, too: otherwise such videos would never teach anything about hidden steps."""
    most = max(1, math.floor(share * len(one.steps))) if share > 0 and len(one.steps) >= 2 else 0
    assert sampled(one, SamplingOptions(dropped=share), seed).dropped.sum() <= most


@FEW
@given(labelled_videos(), SHARES, st.integers(0, 2**32 - 1))
def test_what_is_dropped_has_no_borders(one: LabelledVideo, share: float, seed: int) -> None:
    tokens = sampled(one, SamplingOptions(dropped=share), seed)
    assert tokens.dropped.sum() < len(one.steps)  # something stays
    assert share > 0 or not tokens.dropped.any()
    assert not (tokens.dropped & ~tokens.labelled).any()
    assert set(np.flatnonzero(tokens.labelled)) == set(one.steps)
    starts, ends = (sorted(tokens.step[tokens.kind == kind]) for kind in (START, END))
    assert starts == ends == sorted(set(one.steps.tolist()) - set(np.flatnonzero(tokens.dropped).tolist()))


def test_how_many_and_which_are_dropped_is_uniform() -> None:
    one = plain(8)
    sets = Counter(tuple(np.flatnonzero(sampled(one, SamplingOptions(), seed).dropped)) for seed in range(2000))
    sizes = Counter(len(dropped) for dropped in sets.elements())
    assert set(sizes) == {0, 1, 2}
    for size in range(3):
        assert abs(sizes[size] / 2000 - 1 / 3) < 0.05
        each = [sets[which] for which in combinations(range(8), size)]
        expected = sizes[size] / len(each)
        assert min(each) > 0.4 * expected
        assert max(each) < 1.8 * expected


def test_testing_does_not_drop() -> None:
    assert not sampled(plain(8), SamplingOptions(dropped=0.9)).dropped.any()


# --- the order of tokens ---


@FEW
@given(labelled_videos(), SAMPLINGS, RANDOM)
def test_tokens_are_in_the_order_of_time_and_starts_before_ends(
    one: LabelledVideo, options: SamplingOptions, seed: int | None
) -> None:
    tokens = sampled(one, options, seed)
    assert (np.diff(tokens.time) >= 0).all()
    for number in kept(one, tokens):
        (start,) = np.flatnonzero((tokens.kind == START) & (tokens.step == one.steps[number]))
        (end,) = np.flatnonzero((tokens.kind == END) & (tokens.step == one.steps[number]))
        assert start < end
        assert tokens.time[start] == one.starts[number]
        assert tokens.time[end] == one.ends[number]
    assert (tokens.step[tokens.kind == FRAME] == -1).all()


def test_where_segments_touch_one_ends_before_the_next_starts() -> None:
    one = LabelledVideo("v", np.array([0, 1]), np.array([0.0, 5]), np.array([5.0, 9]), np.arange(10.0), np.zeros(0))
    tokens = sampled(one, SamplingOptions())
    border = tokens.kind != FRAME
    assert list(zip(tokens.kind[border], tokens.step[border], strict=True)) == [
        (START, 0),
        (END, 0),
        (START, 1),
        (END, 1),
    ]


# --- states ---


def state_by_hand(one: LabelledVideo, step: int, kind: int, time: float, of: int) -> int:
    """The state of `step` at a token of this kind and time, a border of the step `of`."""
    if step not in one.steps:
        return NOT_STARTED
    place = one.steps.tolist().index(step)
    if one.starts[place] == one.ends[place] == time:
        # What lasts no time begins with what starts at its moment, and ends with the others that last no time.
        lasting = kind == END and one.starts[one.steps.tolist().index(of)] < time
        return NOT_STARTED if lasting else COMPLETED if kind == END else IN_PROGRESS
    if one.ends[place] <= time:
        return COMPLETED
    return IN_PROGRESS if one.starts[place] <= time else NOT_STARTED


@FEW
@given(labelled_videos(), SAMPLINGS, RANDOM)
def test_states_by_brute_force(one: LabelledVideo, options: SamplingOptions, seed: int | None) -> None:
    tokens = sampled(one, options, seed)
    for token in range(len(tokens.kind)):
        for step in range(N):
            expected = state_by_hand(one, step, tokens.kind[token], tokens.time[token], tokens.step[token])
            assert tokens.state[token, step] == expected


@FEW
@given(labelled_videos(), SAMPLINGS, RANDOM)
def test_a_step_is_in_progress_at_its_own_start_and_completed_at_its_own_end(
    one: LabelledVideo, options: SamplingOptions, seed: int | None
) -> None:
    tokens = sampled(one, options, seed)
    for kind, state in ((START, IN_PROGRESS), (END, COMPLETED)):
        own = np.flatnonzero(tokens.kind == kind)
        assert (tokens.state[own, tokens.step[own]] == state).all()


@FEW
@given(labelled_videos(), SAMPLINGS, RANDOM)
def test_states_never_go_back(one: LabelledVideo, options: SamplingOptions, seed: int | None) -> None:
    assert (np.diff(sampled(one, options, seed).state, axis=0) >= 0).all()


def test_states_never_go_back_where_a_step_lasts_no_time() -> None:
    one = LabelledVideo("v", np.array([0, 1]), np.array([0.0, 5]), np.array([5.0, 5]), np.arange(10.0), np.zeros(0))
    tokens = sampled(one, SamplingOptions())
    assert (np.diff(tokens.state, axis=0) >= 0).all()


def test_dropped_steps_keep_their_states() -> None:
    one = plain(4)
    tokens = next(t for t in (sampled(one, SamplingOptions(), seed) for seed in range(99)) if t.dropped[0])
    assert tokens.state[-1, 0] == COMPLETED  # they are what is to be found
    assert not tokens.inside[:, 0].any()  # and nothing tells where they were


@FEW
@given(labelled_videos(), SAMPLINGS, RANDOM)
def test_inside_by_brute_force(one: LabelledVideo, options: SamplingOptions, seed: int | None) -> None:
    tokens = sampled(one, options, seed)
    numbers = kept(one, tokens)
    for token, time in enumerate(tokens.time):
        expected = {int(one.steps[k]) for k in numbers if one.starts[k] <= time <= one.ends[k]}
        assert set(np.flatnonzero(tokens.inside[token]).tolist()) == expected


# --- the nearest frame, the sentences around it ---


@FEW
@given(
    st.lists(st.integers(-9, 9).map(float), min_size=1, max_size=9).map(sorted),
    st.lists(st.integers(-12, 12).map(lambda n: n / 2), max_size=9),
)
def test_nearest_by_brute_force(times: list[float], wanted: list[float]) -> None:
    found = nearest_index(np.array(times), np.array(wanted))
    assert found.shape == (len(wanted),)
    for place, moment in zip(found, wanted, strict=True):
        assert abs(times[place] - moment) == min(abs(time - moment) for time in times)
        assert not any(abs(time - moment) == abs(times[place] - moment) and time < times[place] for time in times)


@FEW
@given(labelled_videos(), SAMPLINGS, RANDOM)
def test_frame_and_sentences_are_those_around_the_token(
    one: LabelledVideo, options: SamplingOptions, seed: int | None
) -> None:
    tokens = sampled(one, options, seed)
    for token, time in enumerate(tokens.time):
        frame = tokens.frame[token]
        assert abs(one.frame_times[frame] - time) == np.abs(one.frame_times - time).min()
        window = tokens.sentence[token].tolist()
        assert len(window) == options.sentences
        middle = window[options.sentences // 2]
        if not len(one.sentence_times):
            assert set(window) == {-1}
            continue
        assert abs(one.sentence_times[middle] - time) == np.abs(one.sentence_times - time).min()
        for offset, sentence in enumerate(window, start=middle - options.sentences // 2):
            assert sentence == (offset if 0 <= offset < len(one.sentence_times) else -1)


def features_with(sentence_times: list[tuple[float, float]]) -> VideoFeatures:
    return VideoFeatures(np.arange(20.0), np.zeros((20, 2)), np.array(sentence_times).reshape(-1, 2), np.zeros((len(sentence_times), 2)))  # noqa: E501 # fmt: skip


def test_the_middle_of_the_window_is_the_sentence_whose_middle_is_nearest() -> None:
    video = Video("v", [Segment("a", 4, 10)])
    one = labelled_video(video, ("a",), features_with([(0, 2), (2, 4), (6, 8), (9, 11), (12, 20)]))
    tokens = sampled_tokens(one, 1, SamplingOptions())
    assert tokens.time.tolist() == [4, 5, 7, 9, 10]
    assert tokens.sentence.tolist() == [[0, 1, 2], [0, 1, 2], [1, 2, 3], [2, 3, 4], [2, 3, 4]]


def test_a_long_sentence_does_not_misplace_those_that_it_overlaps() -> None:
    video = Video("v", [Segment("a", 1, 7)])
    one = labelled_video(video, ("a",), features_with([(0, 40), (1, 3), (4, 6), (7, 9)]))
    tokens = sampled_tokens(one, 1, SamplingOptions(sentences=1))
    assert tokens.time.tolist() == [1, 2, 4, 6, 7]
    assert tokens.sentence[:, 0].tolist() == [1, 1, 2, 2, 3]  # middles 20, 2, 5, 8; of two as near, the earlier


# --- labelled_videos ---


def test_the_first_label_of_a_repeated_step_counts() -> None:
    video = Video("v", [Segment("b", 8, 9), Segment("a", 0, 2), Segment("b", 3, 5)])
    one = labelled_video(video, ("a", "b"), features_with([]))
    assert (one.steps.tolist(), one.starts.tolist(), one.ends.tolist()) == ([0, 1], [0, 3], [2, 5])


def test_text_only_puts_sentences_in_the_place_of_frames() -> None:
    one = labelled_video(Video("v", [Segment("a", 0, 2)]), ("a",), features_with([(0, 2), (2, 6)]), text_only=True)
    assert one.frame_times.tolist() == one.sentence_times.tolist() == [1, 4]


def test_sentences_in_the_place_of_frames_come_in_the_order_of_their_middles() -> None:
    spoken = replace(features_with([(0, 40), (1, 3)]), sentences=np.array([[1, 1], [2, 2]], dtype=np.float32))
    task = Task("t", ["a"], [Video("v", [Segment("a", 0, 2)])])
    held = build_dataset(task, {"v": spoken}.get, text_only=True)
    assert held.videos[0].frame_times.tolist() == [2, 20]
    assert held.frames.tolist() == [[2, 2], [1, 1]]
    assert held.sentences.tolist() == [[1, 1], [2, 2]]  # these stay as they are


def test_what_cannot_be_sampled_is_said_in_one_line() -> None:
    with pytest.raises(InputError, match=r"video 'v' has no times"):
        labelled_video(Video("v", [Segment("a")]), ("a",), features_with([]))
    with pytest.raises(InputError, match="video 'v' hold no sentences"):
        labelled_video(Video("v", [Segment("a", 0, 1)]), ("a",), features_with([]), text_only=True)
    empty = VideoFeatures(np.zeros(0), np.zeros((0, 2)), np.zeros((0, 2)), np.zeros((0, 2)))
    with pytest.raises(InputError, match="video 'v' hold no frames"):
        labelled_video(Video("v", [Segment("a", 0, 1)]), ("a",), empty)


# --- what the labels tell ---


def test_what_is_told_by_hand() -> None:
    """Of 100 seconds; of three labels the last is dropped, and so only b and c are known: b at 30-50, c at 10-20."""
    one = LabelledVideo("v", np.array([2, 1, 0]), np.array([10.0, 30, 60]), np.array([20.0, 50, 70]),
               np.arange(101.0), np.zeros(0))  # fmt: skip
    told = _label_features(
        one.keep(np.array([0, 1])), 100.0, 3, np.array([START, FRAME, END]), np.array([10.0, 40, 50])
    )
    whole = [2 / 3, 0.3, 0.1, 0.5, math.log(100) / 10]  # labels, time they cover, before, after, length
    expected = [
        # completed    labelled   part  square  between  of all  of labelled  end
        [0, 0, 0,      0, 1, 1,   0.1,  0.01,   0,       0,      0,           0, *whole],
        [0, 0, 1,      0, 1, 1,   0.4,  0.16,   0.75,    1 / 3,  0.5,         0, *whole],
        [0, 1, 1,      0, 1, 1,   0.5,  0.25,   1,       2 / 3,  1,           1, *whole],
    ]  # fmt: skip
    np.testing.assert_allclose(told, expected, atol=1e-12)
    assert told.shape[1] == 2 * 3 + EXTRA_FEATURES


def test_what_no_label_tells() -> None:
    one = LabelledVideo("v", np.array([0]), np.array([3.0]), np.array([5.0]), np.arange(11.0), np.zeros(0))
    told = _label_features(one.keep(np.zeros(0, dtype=np.int64)), 10.0, 2, np.array([FRAME]), np.array([4.0]))
    np.testing.assert_allclose(told, [[0, 0, 0, 0, 0.4, 0.16, 0.4, 0, 0, 0, 0, 0, 1, 1, math.log(10) / 10]])


@FEW
@given(labelled_videos(), SAMPLINGS, st.integers(0, 2**32 - 1))
def test_nothing_is_told_about_what_was_dropped(one: LabelledVideo, options: SamplingOptions, seed: int) -> None:
    """As if the dropped labels had never been, in a video that goes on after them."""
    one = replace(one, frame_times=np.array([*one.frame_times, 200.0]))
    tokens = sampled(one, options, seed)
    numbers = kept(one, tokens)
    told = _label_features(one.keep(numbers), 200.0, N, tokens.kind, tokens.time)
    np.testing.assert_array_equal(tokens.label_features, told)
    assert np.isfinite(told).all()


@FEW
@given(labelled_videos(), st.sampled_from([0.25, 0.5, 0.9]), st.integers(0, 2**32 - 1))
def test_always_is_exactly_the_share(one: LabelledVideo, share: float, seed: int) -> None:
    tokens = sampled(one, SamplingOptions(dropped=share, always=True), seed)
    count = len(one.steps)
    assert tokens.dropped.sum() == (max(1, math.floor(share * count)) if count > 1 else 0)

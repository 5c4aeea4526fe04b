"""What was seen: validation, sorting, and what "before" means."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.task import Segment, Sentence, Task, Video, demonstrations_noun

TIMES = st.integers(0, 6)
SEGMENTS = st.builds(
    lambda step, start, length: Segment(step, float(start), float(start + length)),
    st.sampled_from("abc"),
    TIMES,
    st.integers(0, 3),
)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Segment(""), "a step has an empty name"),
        (lambda: Segment("a", 1.0), "step 'a' has a start or an end, but not both"),
        (lambda: Segment("a", None, 1.0), "step 'a' has a start or an end, but not both"),
        (lambda: Segment("a", math.nan, 1.0), "step 'a' has the start nan, not a number of seconds"),
        (lambda: Segment("a", 0.0, math.inf), "step 'a' has the end inf, not a number of seconds"),
        (lambda: Segment("a", -0.5, 1.0), "step 'a' starts at -0.5, before the video does"),
        (lambda: Segment("a", 2.0, 1.0), "step 'a' ends at 1, before its start at 2"),
        (lambda: Segment("a", confidence=1.5), "step 'a' has the confidence 1.5"),
        (lambda: Segment("a", confidence=math.nan), "step 'a' has the confidence nan"),
        (lambda: Video("", []), "a video has an empty id"),
        (lambda: Video("v", [Segment("a", 0, 1), Segment("b")]), "video 'v' has times on some of its segments only"),
        (lambda: Task("t", "aba", []), "task 't' has the step 'a' twice"),
        (lambda: Task("t", "a", [Video("v", []), Video("v", [])]), "task 't' has the video 'v' twice"),
        (lambda: Task("t", "a", [Video("v", [Segment("z")])]), "video 'v' has the step 'z', which is not among"),
    ],
)
def test_bad_input_says_what_is_wrong(make: object, words: str) -> None:
    with pytest.raises(InputError) as caught:
        make()  # type: ignore[operator]
    assert str(caught.value).startswith(words)


def test_a_long_name_does_not_flood_the_message() -> None:
    with pytest.raises(InputError) as caught:
        Segment("x" * 10_000, 3, 2)
    assert len(str(caught.value)) < 200


def test_names_are_verbatim() -> None:
    names = ["007", "NA", " a", "a", "A", "crème\nbrûlée", "x" * 10_000]
    task = Task("t", names, [Video("v", map(Segment, names))])
    assert set(task.steps) == set(names)
    assert task.videos[0].sequence() == tuple(names)


@given(st.lists(SEGMENTS, max_size=6), st.randoms(use_true_random=False))
def test_timed_segments_come_in_any_order(segments: list[Segment], randomness: random.Random) -> None:
    shuffled = randomness.sample(segments, len(segments))
    video = Video("v", shuffled)
    assert video == Video("v", segments)
    keys = [(s.start, s.end, s.step) for s in video.segments]
    assert keys == sorted(keys)


def test_untimed_segments_keep_their_order() -> None:
    video = Video("v", map(Segment, "cabac"))
    assert [segment.step for segment in video.segments] == list("cabac")
    assert video.sequence() == ("c", "a", "b")
    assert not video.is_timed


def test_steps_and_videos_are_sorted() -> None:
    task = Task("t", "cab", [Video("v2", []), Video("v10", []), Video("v1", [])])
    assert task.steps == ("a", "b", "c")
    assert [video.id for video in task] == ["v1", "v10", "v2"]
    assert len(task) == 3


def test_sentences_are_sorted_by_time() -> None:
    video = Video("v", [], [Sentence("later", 5, 6), Sentence("first", 0, 9)])
    assert [sentence.text for sentence in video.sentences] == ["first", "later"]


@given(SEGMENTS, SEGMENTS)
def test_before(one: Segment, other: Segment) -> None:
    assert one.start is not None
    assert one.end is not None
    assert other.start is not None
    assert other.end is not None
    same_instant = one.start == one.end == other.start == other.end
    assert one.before(other) == (one.end <= other.start and not same_instant)
    assert not (one.before(other) and other.before(one))
    assert not one.before(one)


@given(SEGMENTS, SEGMENTS, SEGMENTS)
def test_before_is_transitive(one: Segment, two: Segment, three: Segment) -> None:
    if one.before(two) and two.before(three):
        assert one.before(three)


def test_before_needs_times() -> None:
    with pytest.raises(ValueError, match="timed"):
        Segment("a").before(Segment("b", 0, 1))


@given(st.lists(SEGMENTS, max_size=6))
def test_first_labels(segments: list[Segment]) -> None:
    video = Video("v", segments)
    first = video.with_first_labels()
    assert first.sequence() == video.sequence()
    assert len(first.segments) == len(set(video.sequence()))
    for segment in first.segments:
        assert segment.start == min(s.start for s in segments if s.step == segment.step)  # type: ignore[type-var]
    assert first.with_first_labels() is first


def test_order_by_start_orders_overlaps() -> None:
    video = Video("v", [Segment("a", 0, 9), Segment("b", 1, 3), Segment("c", 2, 4)])
    a, b, _ = video.segments
    assert not a.before(b)
    a, b, c = video.order_by_start().segments
    assert a.before(b)
    assert b.before(c)
    assert c.end == 4


def test_task_views_touch_every_video() -> None:
    overlapping = [Segment("a", 0, 9), Segment("b", 1, 3), Segment("a", 4, 5)]
    task = Task("t", "ab", [Video("v1", overlapping), Video("v2", overlapping)])
    assert [len(video.segments) for video in task.with_first_labels()] == [2, 2]
    assert all(video.segments[0].end == 1 for video in task.order_by_start())
    untimed = Video("v", [Segment("b"), Segment("a")])
    assert untimed.order_by_start() is untimed


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 4), st.integers(1, 4)), max_size=8))
def test_order_by_start_means_by_start_and_by_nothing_else(labels: list[tuple[str, int, int]]) -> None:
    video = Video("v", [Segment(step, start, start + length) for step, start, length in labels])
    cut = video.order_by_start().segments
    assert sorted((s.step, s.start) for s in cut) == sorted((s.step, s.start) for s in video.segments)
    for one in cut:
        for other in cut:
            assert one.before(other) == (one.start < other.start)


def test_what_a_missing_label_means_stays_with_the_task() -> None:
    videos = [Video("v", [Segment("a", 0, 9), Segment("b", 1, 3), Segment("a", 4, 5)])]
    assert Task("t", "ab", videos).absent == "unknown"
    log = Task("t", "ab", videos, "skipped")
    assert log != Task("t", "ab", videos)
    for other in (log.with_videos([]), log.with_first_labels(), log.order_by_start()):
        assert other.absent == "skipped"
    assert Task("t", "ab", videos).with_first_labels().absent == "unknown"


@pytest.mark.parametrize("columnar", [False, True])
def test_some_of_the_videos(columnar: bool) -> None:
    videos = [
        Video(f"v{number}", [Segment("a", number, number + 1), Segment("b", 9, 9 + number)]) for number in range(7)
    ]
    task = Task("t", "ab", videos)
    if columnar:
        task = Task.from_columns("t", task.steps, task.columns)
    assert task.select([1, 4]) == Task("t", "ab", [videos[1], videos[4]])
    assert [len(part) for part in task.split(3)] == [3, 3, 1]
    assert [video for part in task.split(3) for video in part] == videos
    assert [video.id for video in task.sample(3)] == ["v0", "v2", "v4"]
    assert task.sample(7) is task
    assert task.select([0]).is_columnar == columnar


def test_demonstrations_of_an_event_log_are_runs() -> None:
    assert (demonstrations_noun("skipped"), demonstrations_noun("unknown")) == ("runs", "videos")

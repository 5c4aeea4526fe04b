"""D_n and before-counts against loops over segments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from msg2.sequences import Sequences
from msg2.task import Segment, Step, Task, Video


def timed(step: Step, start: float, end: float) -> Segment:
    return Segment(step, start, end)


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    """Small tasks, timed (overlaps, instants, repeats and equal times are common), untimed or some videos each."""
    steps = "abcdef"[: draw(st.integers(1, 6))]
    names = st.sampled_from(steps)
    times = st.tuples(st.integers(0, 8), st.integers(0, 3))
    with_times = st.builds(lambda name, time: timed(name, time[0], sum(time)), names, times)
    labels = st.lists(with_times, max_size=9) | st.lists(names.map(Segment), max_size=9)
    seen = draw(st.lists(labels, max_size=5))
    return Task("task", steps, (Video(f"v{number}", inner) for number, inner in enumerate(seen)))


def moments(video: Video, place: int) -> dict[Step, float]:
    """When each step that was completed at the start of a segment had first been completed."""
    found: dict[Step, float] = {}
    target = video.segments[place]
    for position, segment in enumerate(video.segments):
        if segment.start is None or segment.end is None or target.start is None or target.end is None:
            ended, is_before = float(position), position < place
        else:
            at_once = segment.start == segment.end == target.start == target.end
            ended, is_before = segment.end, segment.end <= target.start and not at_once
        if is_before:
            found[segment.step] = min(ended, found.get(segment.step, ended))
    return found


def expected_rows(task: Task, target: Step) -> list[tuple[str, dict[Step, int]]]:
    """(video, gap of each completed step): 1 plus the number of steps that were completed after that one."""
    rows = []
    for video in task:
        for place, segment in enumerate(video.segments):
            if segment.step == target:
                ended = moments(video, place)
                gaps = {name: 1 + sum(later > ended[name] for later in ended.values()) for name in ended}
                rows.append((video.id, {name: gap for name, gap in gaps.items() if name != target}))
    return rows


def rows_of(sequences: Sequences, target: Step) -> list[tuple[str, dict[Step, int]]]:
    runs, rows = sequences.observations(sequences.steps.index(target))
    return [
        (video, {name: int(gap) for name, gap in zip(sequences.steps, gaps, strict=True) if gap})
        for run, weight, gaps in zip(runs, sequences.weight[runs], rows, strict=True)
        for video in _videos_of(sequences, run, weight)
    ]


def _videos_of(sequences: Sequences, run: int, weight: int) -> list[str]:
    videos = [sequences.videos[place] for place in np.flatnonzero(sequences.run_of_video == run)]
    assert len(videos) == weight
    return videos


def by_video(rows: list[tuple[str, dict[Step, int]]]) -> list[tuple[str, list[tuple[Step, int]]]]:
    return sorted((video, sorted(gaps.items())) for video, gaps in rows)


AN_INSTANT_AND_A_SEGMENT_END_TOGETHER = Task(
    "task", "ab", [Video("v", [timed("a", 3, 5), timed("a", 5, 5), timed("b", 5, 5)])]
)


@example(AN_INSTANT_AND_A_SEGMENT_END_TOGETHER)
@given(tasks())
def test_rows_hold_what_was_completed_and_how_long_ago(task: Task) -> None:
    sequences = Sequences.from_task(task)
    for name in task.steps:
        assert by_video(rows_of(sequences, name)) == by_video(expected_rows(task, name))


@example(AN_INSTANT_AND_A_SEGMENT_END_TOGETHER)
@given(tasks())
def test_counts_of_one_step_before_another(task: Task) -> None:
    expected = [
        [0 if n == m else sum(n in gaps for _, gaps in expected_rows(task, m)) for m in task.steps] for n in task.steps
    ]
    assert Sequences.from_task(task).before.tolist() == expected


@given(tasks())
def test_occurrences_count_videos_not_labels(task: Task) -> None:
    expected = [sum(any(s.step == name for s in video.segments) for video in task) for name in task.steps]
    sequences = Sequences.from_task(task)
    assert (sequences.weight @ sequences.shown).tolist() == expected


@given(tasks())
def test_completed_has_a_row_for_every_label(task: Task) -> None:
    sequences = Sequences.from_task(task)
    found = sorted(
        (sequences.steps[step], [name for name, done in zip(sequences.steps, row, strict=True) if done])
        for run, step, row in zip(sequences.run, sequences.step, sequences.completed(), strict=True)
        for _ in range(sequences.weight[run])
    )
    expected = sorted(
        (segment.step, sorted(moments(video, place))) for video in task for place, segment in enumerate(video.segments)
    )
    assert found == expected


@given(tasks(), st.data())
def test_sequences_of_some_videos_are_those_of_a_smaller_task(task: Task, choice: st.DataObject) -> None:
    chosen = choice.draw(st.lists(st.integers(0, len(task) - 1), unique=True).map(sorted) if len(task) else st.just([]))
    part = Sequences.from_task(task).select(np.array(chosen, dtype=np.intp))
    alone = Sequences.from_task(task.with_videos(task.videos[index] for index in chosen))
    assert part.videos == alone.videos
    assert part.before.tolist() == alone.before.tolist()
    for name in task.steps:
        assert by_video(rows_of(part, name)) == by_video(rows_of(alone, name))


@given(st.integers(1, 7), st.integers(1, 30), st.integers(0, 5))
def test_every_video_is_held_out_once(count: int, videos: int, seed: int) -> None:
    sequences = Sequences.from_task(
        Task("task", "a", [Video(f"{number:02d}", [Segment("a")]) for number in range(videos)])
    )
    folds = list(sequences.folds(count, seed))
    assert sorted(video for _, held_out in folds for video in held_out) == list(range(videos))
    for training, held_out in folds:
        assert sorted([*training, *held_out]) == list(range(videos))
    again = list(sequences.folds(count, seed))
    assert all((a[1] == b[1]).all() for a, b in zip(folds, again, strict=True))


def test_gaps_by_hand() -> None:
    video = Video("v", [timed("a", 0, 1), timed("b", 0, 4), timed("c", 2, 4), timed("d", 3, 9), timed("e", 5, 6)])
    sequences = Sequences.from_task(Task("task", "abcde", [video]))
    # b and c end at the same moment, immediately before e; a is the third of three back; d is still in progress.
    assert rows_of(sequences, "e") == [("v", {"a": 3, "b": 1, "c": 1})]
    assert rows_of(sequences, "d") == [("v", {"a": 1})]
    assert rows_of(sequences, "b") == [("v", {})]


def test_overlapping_segments_are_not_ordered() -> None:
    sequences = Sequences.from_task(Task("task", "ab", [Video("v", [timed("a", 0, 5), timed("b", 4, 9)])]))
    assert not sequences.before.any()


@pytest.mark.parametrize("other", [timed("b", 5, 5), timed("b", 5, 7), timed("b", 3, 5)])
def test_an_instant_beside_something_that_touches_it(other: Segment) -> None:
    sequences = Sequences.from_task(Task("task", "ab", [Video("v", [timed("a", 5, 5), other])]))
    expected = {(5, 5): [[0, 0], [0, 0]], (5, 7): [[0, 1], [0, 0]], (3, 5): [[0, 0], [1, 0]]}[other.start, other.end]
    assert sequences.before.tolist() == expected


def test_nothing_at_all() -> None:
    for task in (Task("task", "", []), Task("task", "ab", []), Task("task", "ab", [Video("v", [])])):
        sequences = Sequences.from_task(task)
        assert sequences.before.shape == (len(task.steps), len(task.steps))
        assert not sequences.before.any()
        assert (sequences.weight @ sequences.shown).tolist() == [0] * len(task.steps)
        assert all(len(sequences.observations(index)[0]) == 0 for index in range(len(task.steps)))

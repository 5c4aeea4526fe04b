"""Runs that are counted once, against a dictionary of runs."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2 import sequences as counting
from msg2.errors import InputError
from msg2.sequences import Sequences
from msg2.task import Segment, Step, Task, Video
from tests.test_sequences import tasks


def canonical(video: Video) -> tuple[tuple[Step, int, int], ...]:
    """The labels of a video with the places of their times among all times of it."""
    if not video.is_timed:
        return tuple((segment.step, place, place + 1) for place, segment in enumerate(video.segments))
    moments = sorted({time for one in video.segments for time in (one.start, one.end) if time is not None})
    return tuple(
        (one.step, moments.index(one.start), moments.index(one.end))
        for one in video.segments
        if one.start is not None and one.end is not None
    )


def runs_of(sequences: Sequences) -> list[tuple[tuple[Step, int, int], ...]]:
    labels: list[list[tuple[Step, int, int]]] = [[] for _ in sequences.weight]
    for run, step, start, end in zip(sequences.run, sequences.step, sequences.start, sequences.end, strict=True):
        labels[run].append((sequences.steps[step], int(start), int(end)))
    return [tuple(one) for one in labels]


@pytest.mark.parametrize("block", [1, 3, 1000])
@pytest.mark.parametrize("collide", [False, True])
@given(task=tasks())
def test_equal_runs_are_one(block: int, collide: bool, task: Task) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_COUNTED_AT_ONCE", block)
        if collide:  # every run has the same code
            patch.setattr(counting, "_FACTORS", np.zeros(3, np.uint64))
        sequences = Sequences.from_task(task)
    runs = runs_of(sequences)
    assert [runs[run] for run in sequences.run_of_video] == [canonical(video) for video in task]
    assert dict(zip(runs, sequences.weight.tolist(), strict=True)) == Counter(map(canonical, task))
    assert sequences.run_of_video.tolist() == [[*dict.fromkeys(map(canonical, task))].index(canonical(v)) for v in task]


@given(tasks(), st.data())
def test_parts_are_the_whole(task: Task, choice: st.DataObject) -> None:
    parts = choice.draw(st.lists(st.integers(0, 2), min_size=len(task), max_size=len(task)))
    steps = {segment.step for video in task for segment in video.segments}
    whole = Sequences.from_task(Task("task", steps, task.videos))
    several = []
    for part in choice.draw(st.permutations(range(3))):
        videos = [video for video, number in zip(task, parts, strict=True) if number == part]
        several.append(
            Sequences.from_task(Task("task", {segment.step for video in videos for segment in video.segments}, videos))
        )
    joined = Sequences.join(several)
    assert (joined.steps, joined.videos) == (whole.steps, whole.videos)
    for name in ("run_of_video", "run", "step", "start", "end"):
        assert getattr(joined, name).tolist() == getattr(whole, name).tolist()


def test_a_video_in_two_parts_is_refused() -> None:
    part = Sequences.from_task(Task("tea", "a", [Video("v", [Segment("a")])]))
    with pytest.raises(InputError, match="'v' of task 'tea' is in two files"):
        Sequences.join([part, part])

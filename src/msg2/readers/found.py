"""What every reader hands back: tasks, and what sorting them has hidden."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from msg2.errors import InputError, shortened
from msg2.task import Segment, Step, Task, Video

Labels: TypeAlias = dict[tuple[str, str], list[Segment]]
"""(task, video) -> its segments in the order of the file."""


@dataclass(frozen=True, slots=True)
class Found:
    """The tasks in some data, by name, every label kept, and how many rows of which file were not in time order."""

    tasks: tuple[Task, ...]
    unsorted: Mapping[str, int]

    @staticmethod
    def of(tasks: Iterable[Task], unsorted: Mapping[str, int]) -> Found:
        """Sorted by the task's name; files without unsorted rows are left out."""
        return Found(tuple(sorted(tasks, key=lambda t: t.name)), {f: n for f, n in unsorted.items() if n})


def timed_segment(step: Step, start: float, end: float, where: str) -> Segment:
    """A segment with times; what is wrong with it is said together with `where` it is."""
    try:
        return Segment(step, float(start), float(end))
    except OverflowError:
        raise InputError("has a time that is too large", where=where) from None
    except InputError as error:
        raise InputError(error.what, where=where, hint=error.hint) from None


def unsorted_rows(labels: Labels) -> int:
    """How many timed segments start before the one above them of the same video.

    >>> unsorted_rows({("toast", "v1"): [Segment("a", 5, 6), Segment("b", 1, 2), Segment("c", 3, 4)]})
    1
    """
    return sum(
        above.start is not None and below.start is not None and below.start < above.start
        for segments in labels.values()
        for above, below in pairwise(segments)
    )


def tasks_of(labels: Labels, steps: Mapping[str, Iterable[Step]] | None = None) -> list[Task]:
    """The tasks of `labels`; where `steps` does not list a task's steps, they are those that occur."""
    videos: dict[str, list[Video]] = {}
    seen: dict[str, set[Step]] = {}
    for (task, video), segments in labels.items():
        videos.setdefault(task, []).append(Video(video, _without_ties(segments)))
        seen.setdefault(task, set()).update(segment.step for segment in segments)
    return [Task(task, seen[task] if steps is None else steps[task], videos[task]) for task in videos]


def _without_ties(segments: list[Segment]) -> list[Segment]:
    """`segments`, those of the same step and times in an order that the file does not decide: surest first."""
    if all(s.start is None or (s.confidence is None and s.source is None) for s in segments):
        return segments
    return sorted(segments, key=lambda s: (0 if s.confidence is None else -1 - s.confidence, s.source or ""))


def merge(labels: Labels, more: Labels, where: str) -> None:
    """Add the labels of another file; a video that is there already is refused, its order would be unknown."""
    for (task, video), segments in more.items():
        if (task, video) in labels:
            what = f"the video {shortened(video)} of task {shortened(task)} is in another file as well"
            raise InputError(what, where=where, hint="give every video one file, or put all rows in one table")
        labels[task, video] = segments

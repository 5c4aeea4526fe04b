"""The labels of tables as arrays, and tasks of them: what tables of steps and event logs have in common."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError
from msg2.formats.reading import SegmentsByVideo, build_tasks
from msg2.formats.source import Source
from msg2.formats.tables import CodedColumn, Column
from msg2.task import Absent, LabelColumns, Segment, Task
from msg2.text import name_fault, short_repr

Times: TypeAlias = NDArray[np.float64] | NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """A column of names: the distinct ones, sorted, and the index of each row's name among them."""

    names: tuple[str, ...]
    code: NDArray[np.int32]

    @staticmethod
    def of(column: Column | None) -> Names:
        """The names in a column; one that is no text, or a bad name, is refused."""
        if not isinstance(column, CodedColumn):
            raise InputError("is not text")
        names = [name for name in column.values if isinstance(name, str) and not name_fault(name)]
        if len(names) < len(column.values):
            raise InputError("has no name")
        return Names.sort(names, column.code)

    @staticmethod
    def sort(names: Sequence[str], code: NDArray[np.int32]) -> Names:
        """Sort names as Python does."""
        order = sorted(range(len(names)), key=names.__getitem__)
        rank = np.empty(len(names), np.int32)
        rank[order] = np.arange(len(names), dtype=np.int32)
        return Names(tuple(names[place] for place in order), rank[code])

    @staticmethod
    def join(parts: Sequence[Names]) -> Names:
        """The names of several parts as one column."""
        place: dict[str, int] = {}
        codes = [
            np.array([place.setdefault(name, len(place)) for name in part.names], np.int32)[part.code] for part in parts
        ]
        return Names.sort(list(place), np.concatenate(codes))

    def part(self, low: int, high: int) -> Names:
        """The names of some rows."""
        used, code = np.unique(self.code[low:high], return_inverse=True)
        return Names(tuple(self.names[place] for place in used.tolist()), code.astype(np.int32))


@dataclass(frozen=True, slots=True, eq=False)
class LabelArrays:
    """The labels of a file in its order, a row each; `start` and `end` are None where it has no times."""

    task: Names
    video: Names
    step: Names
    start: Times | None = None
    end: Times | None = None
    confidence: NDArray[np.float64] | None = None  # NaN where there is none
    source: CodedColumn | None = None

    def count_unsorted(self) -> int:
        """How many rows start before the row above them of the same video, task and source."""
        if self.start is None:
            return 0
        keys = [self.task.code, self.video.code, *([] if self.source is None else [self.source.code])]
        order = _order(self.task.code, self.video.code)
        same = np.all([key[order][1:] == key[order][:-1] for key in keys], axis=0)
        return int((same & (self.start[order][1:] < self.start[order][:-1])).sum())

    def segments(self) -> Iterator[tuple[tuple[str, str], Segment]]:
        """The task, the video and the segment of each row."""
        nothing: list[float | None] = [None] * len(self.step.code)
        start, end = (nothing if times is None else times.tolist() for times in (self.start, self.end))
        sure: list[float | None] = [] if self.confidence is None else self.confidence.tolist()
        sure = [None if value is None or math.isnan(value) else value for value in sure] or nothing
        sources = nothing if self.source is None else self.source.cells()
        codes = (names.code.tolist() for names in (self.task, self.video, self.step))
        for task, video, step, begin, finish, known, source in zip(*codes, start, end, sure, sources, strict=True):
            segment = Segment(self.step.names[step], begin, finish, known, str(source) if source else None)
            yield (self.task.names[task], self.video.names[video]), segment


def make_tasks(parts: Sequence[tuple[Source, LabelArrays]]) -> list[Task]:
    """The tasks of the labels of some files; a video that is in two of them is refused."""
    if len(parts) > 1:
        _refuse_shared_videos(parts)
    labels = [labels for _, labels in parts]
    is_plain = all(part.confidence is None and part.source is None for part in labels)
    if is_plain and len({part.start is None for part in labels if len(part.step.code)}) <= 1:
        return join_tasks(labels)
    by_video: SegmentsByVideo = {}
    for part in labels:
        if not len(part.step.code):  # a video of its own, without labels
            by_video[part.task.names[0], part.video.names[0]] = []
        for key, segment in part.segments():
            by_video.setdefault(key, []).append(segment)
    return build_tasks(by_video)


def _refuse_shared_videos(parts: Sequence[tuple[Source, LabelArrays]]) -> None:
    seen: set[tuple[str, str]] = set()
    for file, labels in parts:
        pairs = np.unique(labels.task.code.astype(np.int64) * len(labels.video.names) + labels.video.code).tolist()
        keys = [divmod(pair, len(labels.video.names)) for pair in pairs or [0]]
        own = {(labels.task.names[task], labels.video.names[video]) for task, video in keys}
        for task, video in sorted(own & seen):
            what = f"the video {short_repr(video)} of task {short_repr(task)} is in another file as well"
            hint = "give every video one file, or put all rows in one table"
            raise InputError(what, where=file.path, hint=hint)
        seen |= own


def join_tasks(parts: Sequence[LabelArrays], absent: Absent = "unknown", since_start: bool = False) -> list[Task]:
    """The tasks of labels with names and times only, all with times or all without.

    `since_start`: times are microseconds, and become seconds since the first label of each video.
    """
    task, video, step = parts[0].task, parts[0].video, parts[0].step
    if len(parts) > 1:
        columns = ([getattr(part, field) for part in parts] for field in ("task", "video", "step"))
        task, video, step = map(Names.join, columns)
    starts = [part.start for part in parts if part.start is not None and len(part.start)]
    ends = [part.end for part in parts if part.end is not None and len(part.end)]
    is_timed = bool(starts)
    start, end = (np.concatenate(times) if times else np.zeros(len(step.code)) for times in (starts, ends))
    order = _order(task.code, video.code, *((start, end, step.code) if is_timed else ()))
    task, video, step = (Names(names.names, names.code[order]) for names in (task, video, step))
    start, end = start[order], end[order]
    borders = np.searchsorted(task.code, np.arange(len(task.names) + 1)).tolist()
    tasks = []
    for name, (low, high) in zip(task.names, pairwise(borders), strict=True):
        videos, steps = (video, step) if len(task.names) == 1 else (video.part(low, high), step.part(low, high))
        first, last = (times[low:high].astype(np.float64, copy=False) for times in (start, end))
        if not is_timed:
            first = (np.arange(high - low) - np.searchsorted(videos.code, videos.code)).astype(np.float64)
            last = first + 1.0
        elif since_start:  # subtracted as whole numbers, which are exact
            origin = start[low:high][np.searchsorted(videos.code, videos.code)]
            first, last = ((times[low:high] - origin).astype(np.float64) / 1e6 for times in (start, end))
        own = LabelColumns(videos.names, videos.code, steps.code, first, last, is_timed)
        tasks.append(Task.from_columns(name, steps.names, own, absent))
    return tasks


def _order(*keys: NDArray[np.generic]) -> NDArray[np.intp] | slice:
    """The rows by some columns, the first of which counts most; most files are in this order."""
    tied = np.ones(max(len(keys[0]) - 1, 0), np.bool_)
    for column in keys:
        if (tied & (column[1:] < column[:-1])).any():  # type: ignore[operator]
            return np.lexsort(keys[::-1])
        tied &= column[1:] == column[:-1]
    return slice(None)

"""The labels of tables as arrays, and tasks of them: what tables of steps and event logs have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
    def repeat(name: str, rows: int) -> Names:
        """The same name on every row."""
        return Names((name,), np.zeros(rows, np.int32))

    @staticmethod
    def join(parts: Sequence[Names]) -> Names:
        """The names of several parts as one column."""
        if len(parts) == 1:
            return parts[0]
        place: dict[str, int] = {}
        codes = [
            np.array([place.setdefault(name, len(place)) for name in part.names], np.int32)[part.code] for part in parts
        ]
        return Names.sort(list(place), np.concatenate(codes))

    def select(self, rows: NDArray[np.bool_]) -> Names:
        """The names of some rows."""
        used, code = np.unique(self.code[rows], return_inverse=True)
        return Names(tuple(self.names[place] for place in used.tolist()), code.astype(np.int32))


@dataclass(frozen=True, slots=True, eq=False)
class LabelArrays:
    """The labels of a file in its order, a row each; `start` and `end` are None where it has no times."""

    task: Names
    video: Names
    step: Names
    start: Times | None = None
    end: Times | None = None
    confidence: NDArray[np.float64] | None = None
    """NaN where there is none."""
    source: CodedColumn | None = None

    @property
    def is_plain(self) -> bool:
        """Whether labels have names and times only."""
        return self.confidence is None and self.source is None

    def select(self, rows: NDArray[np.bool_]) -> LabelArrays:
        """Some rows."""
        return LabelArrays(
            self.task.select(rows),
            self.video.select(rows),
            self.step.select(rows),
            None if self.start is None else self.start[rows],
            None if self.end is None else self.end[rows],
            None if self.confidence is None else self.confidence[rows],
            None if self.source is None else CodedColumn(self.source.values, self.source.code[rows]),
        )

    def split_tasks(self) -> Iterator[tuple[str, LabelArrays]]:
        """The labels of each task."""
        if len(self.task.names) == 1:
            yield self.task.names[0], self
            return
        for number, name in enumerate(self.task.names):
            yield name, self.select(self.task.code == number)

    def count_unsorted(self) -> int:
        """How many rows start before the row above them of the same video, task and source."""
        if self.start is None:
            return 0
        key = self.task.code.astype(np.int64) * len(self.video.names) + self.video.code
        order = _stable_order(key)
        key, start = key[order], self.start[order]
        unsorted = (start[1:] < start[:-1]) & (key[1:] == key[:-1])
        if self.source is not None:
            source = self.source.code[order]
            unsorted &= source[1:] == source[:-1]
        return int(unsorted.sum())

    def segments(self) -> Iterator[tuple[str, Segment]]:
        """The video and the segment of each row."""
        nothing = [None] * len(self.step.code)
        start, end = (nothing if times is None else times.tolist() for times in (self.start, self.end))
        sure = nothing if self.confidence is None else np.where(np.isnan(self.confidence), None, self.confidence)  # type: ignore[call-overload]
        sources = nothing if self.source is None else self.source.cells()
        rows = zip(self.video.code.tolist(), self.step.code.tolist(), start, end, sure, sources, strict=True)
        for video, step, begin, finish, confidence, source in rows:
            segment = Segment(self.step.names[step], begin, finish, confidence, source or None)
            yield self.video.names[video], segment


def make_tasks(parts: Sequence[tuple[Source, LabelArrays]]) -> list[Task]:
    """The tasks of the labels of some files; a video that is in two of them is refused."""
    tasks: dict[str, list[tuple[Source, LabelArrays]]] = {}
    for file, labels in parts:
        for name, own in labels.split_tasks():
            tasks.setdefault(name, []).append((file, own))
    return [_make_task(name, own) for name, own in tasks.items()]


def _make_task(name: str, parts: Sequence[tuple[Source, LabelArrays]]) -> Task:
    seen: set[str] = set()
    for file, labels in parts:
        for video in labels.video.names if len(parts) > 1 else ():
            if video in seen:
                what = f"the video {short_repr(video)} of task {short_repr(name)} is in another file as well"
                hint = "give every video one file, or put all rows in one table"
                raise InputError(what, where=file.path, hint=hint)
            seen.add(video)
    filled = [labels for _, labels in parts if len(labels.step.code)]
    if all(labels.is_plain for labels in filled) and len({labels.start is None for labels in filled}) <= 1:
        return join_task(name, [labels for _, labels in parts])
    by_video: SegmentsByVideo = {(name, video): [] for _, labels in parts for video in labels.video.names}
    for _, labels in parts:
        for video, segment in labels.segments():
            by_video[name, video].append(segment)
    return build_tasks(by_video)[0]


def join_task(name: str, parts: Sequence[LabelArrays], absent: Absent = "unknown", since_start: bool = False) -> Task:
    """The task of labels with names and times only, all with times or all without.

    `since_start`: times are microseconds, and become seconds since the first label of each video.
    """
    video, step = (Names.join([getattr(part, field) for part in parts]) for field in ("video", "step"))
    filled = [part for part in parts if len(part.step.code)] or parts
    starts, ends = (
        [times for part in filled if (times := getattr(part, field)) is not None] for field in ("start", "end")
    )
    if not starts:
        order = _stable_order(video.code)
        row, which = video.code[order], step.code[order]
        place = (np.arange(len(row)) - np.searchsorted(row, row)).astype(np.float64)
        columns = LabelColumns(video.names, row, which, place, place + 1, False)
        return Task.from_columns(name, step.names, columns, absent)
    start, end = (times[0] if len(times) == 1 else np.concatenate(times) for times in (starts, ends))
    order = _time_order(video.code, start, end, step.code)
    row, start, end = video.code[order], start[order], end[order]
    if since_start:
        origin = start[np.searchsorted(row, row)]
        start, end = (start - origin) / 1e6, (end - origin) / 1e6
    columns = LabelColumns(video.names, row, step.code[order], start, end)
    return Task.from_columns(name, step.names, columns, absent)


def _stable_order(key: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.intp] | slice:
    return slice(None) if (key[1:] >= key[:-1]).all() else np.argsort(key, kind="stable")


def _time_order(
    video: NDArray[np.int32], start: Times, end: Times, step: NDArray[np.int32]
) -> NDArray[np.intp] | slice:
    """Rows by video, start, end and step; most files are in this order."""
    tied: NDArray[np.bool_] = np.ones(max(len(video) - 1, 0), np.bool_)
    for column in (video, start, end, step):
        if (tied & (column[1:] < column[:-1])).any():
            return np.lexsort((step, end, start, video))
        tied &= column[1:] == column[:-1]
    return slice(None)

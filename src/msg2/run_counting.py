"""Equal runs are counted once: moments in the place of times, and which runs are the same.

Both go through the labels a few million at a time, whole runs each, so that the memory on the way is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from msg2.label_columns import LabelColumns

_BLOCK = 2_000_000
"""Labels that are looked at together, about."""
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)
"""Odd numbers with about as many ones as zeros."""


@dataclass(frozen=True, slots=True, eq=False)
class RunLabels:
    """The labels of `count` runs, one entry each, sorted by run, start, end and step; times are moments."""

    run: NDArray[np.int32]
    step: NDArray[np.int32]
    start: NDArray[np.int32]
    end: NDArray[np.int32]
    count: int

    @property
    def first(self) -> NDArray[np.intp]:
        """The first label of each run, and the number of all labels; shape (runs + 1,)."""
        return np.searchsorted(self.run, np.arange(self.count + 1))

    def select(self, chosen: NDArray[np.intp]) -> RunLabels:
        """Some of the runs, in this order."""
        if len(chosen) == self.count and (chosen == np.arange(self.count)).all():
            return self
        first = self.first
        length = np.diff(first)[chosen]
        run = np.repeat(np.arange(len(chosen), dtype=np.int32), length)
        begin = np.cumsum(length) - length
        places = np.arange(len(run)) + np.repeat(first[chosen] - begin, length)
        return RunLabels(run, self.step[places], self.start[places], self.end[places], len(chosen))


def read_moments(columns: LabelColumns) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Turn the times of labels into moments: the places of all starts and ends of a video in their order.

    Parameters
    ----------
    columns : LabelColumns
        The labels of videos.

    Returns
    -------
    tuple of arrays of shape (labels,)
        When each label starts and ends.

    >>> from msg2.task import Segment, Video
    >>> columns = LabelColumns.from_videos([Video("v", [Segment("a", 0, 9.5), Segment("b", 2, 9.5)])], "ab")
    >>> [moments.tolist() for moments in read_moments(columns)]
    [[0, 1], [2, 2]]
    """
    start, end = (np.empty(len(columns.video), np.int32) for _ in range(2))
    first = np.searchsorted(columns.video, np.arange(len(columns.videos) + 1))
    for low, high in _blocks(first):
        part = slice(low, high)
        start[part], end[part] = _moments(columns.video[part], columns.start[part], columns.end[part])
    return start, end


def first_equal_run(labels: RunLabels) -> NDArray[np.intp]:
    """Find the runs that are equal.

    Parameters
    ----------
    labels : RunLabels
        Of all runs.

    Returns
    -------
    array of shape (runs,)
        The index of the first run that is equal to each.
    """
    first = labels.first
    code = np.zeros(labels.count, np.uint64)
    for low, high in _blocks(first):
        # A sum is enough: labels are sorted, so that runs with the same labels are the same.
        np.add.at(code, labels.run[low:high], _mix(labels, slice(low, high)))
    _, index, inverse = np.unique(code, return_index=True, return_inverse=True)
    same: NDArray[np.intp] = index[inverse]
    if len(index) < labels.count and not _are_equal(labels, first, same):  # two have one code by chance
        return _count_exactly(labels, first)
    return same


def _moments(
    video: NDArray[np.int32], start: NDArray[np.float64], end: NDArray[np.float64]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The moments of the labels of whole videos."""
    times, owner = np.stack([start, end], axis=1).ravel(), np.repeat(video, 2)
    same = owner[1:] == owner[:-1]
    order: NDArray[np.intp] | slice = slice(None)
    if (same & (times[1:] < times[:-1])).any():  # labels overlap
        order = np.lexsort((times, owner))
        times = times[order]
    later = np.zeros(len(times), np.int32)
    later[1:] = same & (times[1:] > times[:-1])
    count = np.cumsum(later, dtype=np.int32)
    begins = np.flatnonzero(np.append(True, ~same)[: len(times)])
    count -= np.repeat(count[begins], np.diff(np.append(begins, len(times))))
    moment = np.empty_like(count)
    moment[order] = count
    return moment[0::2], moment[1::2]


def _mix(labels: RunLabels, part: slice) -> NDArray[np.uint64]:
    """A number for each label that tells it from others of another step or at other moments (as SplitMix64 does)."""
    code = np.zeros(len(labels.run[part]), np.uint64)
    for values, factor in zip((labels.step, labels.start, labels.end), _FACTORS, strict=True):
        code += (values[part].astype(np.uint64) + np.uint64(1)) * factor
        code ^= code >> np.uint64(31)
    code *= _FACTORS[1]
    return code ^ (code >> np.uint64(29))


def _are_equal(labels: RunLabels, first: NDArray[np.intp], same: NDArray[np.intp]) -> bool:
    """Whether every run has the labels of the one that it is said to be equal to."""
    length = np.diff(first)
    if not (length == length[same]).all():
        return False
    away = first[same] - first[:-1]
    for low, high in _blocks(first):
        other = np.arange(low, high) + away[labels.run[low:high]]
        for values in (labels.step, labels.start, labels.end):
            if not (values[low:high] == values[other]).all():
                return False
    return True


def _count_exactly(labels: RunLabels, first: NDArray[np.intp]) -> NDArray[np.intp]:
    """The same as `first_equal_run`, run by run."""
    seen: dict[tuple[bytes, ...], int] = {}
    arrays = (labels.step, labels.start, labels.end)
    found = (
        seen.setdefault(tuple(values[low:high].tobytes() for values in arrays), number)
        for number, (low, high) in enumerate(zip(first[:-1].tolist(), first[1:].tolist(), strict=True))
    )
    return np.fromiter(found, np.intp, labels.count)


def _blocks(first: NDArray[np.intp]) -> Iterator[tuple[int, int]]:
    """Part labels where runs begin; `first` is the first label of each, and the number of all."""
    low, last = 0, int(first[-1])
    while low < last:
        high = int(first[np.searchsorted(first, min(low + _BLOCK, last))])
        yield low, high
        low = high

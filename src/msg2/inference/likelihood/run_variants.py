"""Variants: videos that show the same steps in the same order, counted once.

Only who was done before whom matters, not when. Of the steps of a video, `start` is how many had ended when one began,
and `end` the `start` of the first that began after it had ended: a came before b where end[a] ≤ start[b], and videos
with the same partial order have the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from msg2.sequences import Sequences, count_weighted
from msg2.task import Step

Ranks: TypeAlias = NDArray[np.int16]
_Number = TypeVar("_Number", np.int16, np.float64)

_NEVER = np.iinfo(np.int16).max
"""The end of a step that a video does not show; its start is -1. So it is neither before nor after anything."""
_BLOCK = 2_000_000
"""Pairs of steps that are compared at a time; more do not fit into the cache of a processor."""


@dataclass(frozen=True, eq=False)
class Variants:
    """V variants of runs of N steps.

    `start`, `end` (V, N): see the module. `weight` (V,): the videos of each variant. `repeated` (N,): the videos that
    show a step more than once. The order of the variants does not depend on that of the videos.
    """

    steps: tuple[Step, ...]
    start: Ranks
    end: Ranks
    weight: NDArray[np.int64]
    repeated: NDArray[np.int64]

    @staticmethod
    def from_sequences(sequences: Sequences) -> Variants:
        """Count the variants of the first occurrences of the steps.

        >>> from msg2.task import Segment, Task, Video
        >>> runs = [["boil", "pour"], ["boil", "pour"], ["pour"]]
        >>> videos = [Video(str(n), [Segment(step) for step in run]) for n, run in enumerate(runs)]
        >>> variants = Variants.from_sequences(Sequences.from_task(Task("tea", ["boil", "pour"], videos)))
        >>> sorted(zip(variants.start.tolist(), variants.weight.tolist()))
        [([-1, 0], 1), ([0, 1], 2)]
        """
        size, count = len(sequences.steps), len(sequences.weight)
        run, step, begin, finish = sequences.run, sequences.step, sequences.start, sequences.end
        first = np.searchsorted(run, np.arange(count + 1))
        start, end = np.empty((2, count, size), dtype=np.int16)
        repeated = np.zeros(size, dtype=np.int64)
        for low, high in blocks(count, size):
            part = slice(first[low], first[high])
            cell = (run[part] - low) * size + step[part]
            again = np.bincount(cell, minlength=(high - low) * size).reshape(-1, size) > 1
            repeated += count_weighted(again, sequences.weight[low:high])
            began, ended = np.full((high - low) * size, -np.inf), np.full((high - low) * size, np.inf)
            # Occurrences are in the order of their start: written from the last to the first, the first one stays.
            began[cell[::-1]], ended[cell[::-1]] = begin[part][::-1], finish[part][::-1]
            start[low:high], end[low:high] = _ranks(began.reshape(-1, size), ended.reshape(-1, size))
        chosen, inverse = _unique_rows(start, end)
        weight = np.bincount(inverse, sequences.weight).astype(np.int64)
        return Variants(sequences.steps, start[chosen], end[chosen], weight, repeated)

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def videos(self) -> int:
        """How many videos there are in all."""
        return int(self.weight.sum())

    @cached_property
    def shown(self) -> NDArray[np.bool_]:
        """Which steps a variant shows, shape (V, N)."""
        return np.asarray(self.start >= 0)

    def presence(self) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Count the sets of steps that videos show: which steps, shape (P, N), and the videos of each, shape (P,)."""
        chosen, inverse = _unique_rows(self.shown)
        weight = np.zeros(len(chosen), dtype=np.int64)
        np.add.at(weight, inverse, self.weight)
        return self.shown[chosen], weight

    @cached_property
    def before(self) -> NDArray[np.int64]:
        """[a, b]: the videos in which a came before b, shape (N, N)."""
        counts = np.zeros((len(self.steps), len(self.steps)), dtype=np.int64)
        for low, high in blocks(len(self), len(self.steps)):
            earlier = _earlier(self.start[low:high], self.end[low:high])
            counts += np.tensordot(self.weight[low:high].astype(np.float64), earlier, axes=1).astype(np.int64)
        return counts

    @property
    def labels(self) -> int:
        """How many labels there are in all, of first occurrences."""
        return int(self.weight @ self.shown.sum(axis=1))

    def sample(self, labels: int) -> Variants:
        """Take an evenly spread sample of videos with about this many labels, or everything if there are no more."""
        if self.shown.sum() <= labels:
            return self
        ends, most = np.cumsum(self.weight), max(1, self.videos * labels // self.labels)
        places = np.searchsorted(ends, (np.arange(most) + 0.5) * ends[-1] / most, side="right")
        chosen, weight = np.unique(places, return_counts=True)
        return Variants(self.steps, self.start[chosen], self.end[chosen], weight, self.repeated)


def blocks(count: int, size: int) -> Iterator[tuple[int, int]]:
    """Part so many rows of N steps so that the pairs of steps of a part fit into the cache."""
    rows = max(1, _BLOCK // max(1, size * size))
    for low in range(0, count, rows):
        yield low, min(low + rows, count)


def _ranks(began: NDArray[np.float64], ended: NDArray[np.float64]) -> tuple[Ranks, Ranks]:
    """Times, shape (rows, N), as `start` and `end` of the module."""
    absent, last = np.isinf(ended), np.int16(began.shape[1])
    earlier = _earlier(began, ended)
    earlier &= ~earlier.transpose(0, 2, 1)  # instants at the same time, and an instant and itself
    start = earlier.sum(axis=1, dtype=np.int16)
    end = np.where(earlier, start[:, None, :], last).min(axis=2, initial=last)
    start[absent], end[absent] = -1, _NEVER
    return start, end


def _earlier(start: NDArray[_Number], end: NDArray[_Number]) -> NDArray[np.bool_]:
    """[row, a, b]: a had ended when b began."""
    return np.asarray(end[:, :, None] <= start[:, None, :])


def _unique_rows(*tables: NDArray[np.int16] | NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where each of the rows of tables of shape (rows, N) is for the first time, and for every row which one it is.

    The order of what is found does not depend on that of the rows.
    """
    factors = np.random.default_rng(0).integers(1 << 62, size=(len(tables), tables[0].shape[1])) | 1
    code = np.zeros(len(tables[0]), dtype=np.int64)
    for table, factor in zip(tables, factors, strict=True):
        for column, one in enumerate(factor):  # not all at once: that would take four times the memory
            code += table[:, column] * one
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    if not all((table == table[first[inverse]]).all() for table in tables):  # two have one code by chance
        _, first, inverse = np.unique(np.hstack(tables), axis=0, return_index=True, return_inverse=True)
    return first, inverse

"""Label sequences as arrays: the distinct runs of a task, and how many videos show each.

Videos with the same steps in the same order are one *run*, whose starts and ends are *moments*, counted from 0.
`Sequences` keeps all labels of a run (D_n, Eq. dataset); `Variants` only the partial order of the first occurrences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError
from msg2.task import Absent, LabelColumns, Step, Task
from msg2.text import short_repr

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Ranks: TypeAlias = NDArray[np.int16]

_COUNTED_AT_ONCE = 2_000_000
"""Labels that are looked at together, about."""
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)
"""Odd numbers with about as many ones as zeros."""
_NEVER = np.iinfo(np.int32).max
"""The moment of what does not happen."""
_BLOCK = 4_000_000
"""Cells of a matrix of occurrences and steps that are made at a time."""
_NO_END = np.iinfo(np.int16).max
"""The end of a step that a variant does not show; its start is -1. So it is neither before nor after anything."""
_PAIRS_AT_ONCE = 2_000_000
"""Pairs of steps that are compared at a time; more do not fit into the cache of a processor."""
_CLEARLY = 2.0
"""Standard deviations by which a share is above another one."""


class RepeatedVideoError(InputError):
    """A video is in two files."""


@dataclass(frozen=True)
class Sequences:
    """The runs of the videos of a task; the flat arrays are sorted by run, start, end and step."""

    steps: tuple[Step, ...]
    videos: tuple[str, ...]
    run_of_video: NDArray[np.intp]  # every run is shown by some video
    run: NDArray[np.int32]
    step: NDArray[np.int32]
    start: NDArray[np.int32]
    end: NDArray[np.int32]
    name: str = ""  # of the task
    absent: Absent = "unknown"

    @staticmethod
    def from_task(task: Task) -> Sequences:
        """Count the runs of a task."""
        columns = task.columns
        each, moments = np.arange(len(columns.videos)), read_moments(columns)
        arrays = (each, columns.video, columns.step, *moments)
        return Sequences(task.steps, columns.videos, *arrays, task.name, task.absent)._merge_equal_runs()

    @staticmethod
    def join(parts: Sequence[Sequences]) -> Sequences:
        """Join the videos of one task that were read part by part; the order of the parts does not matter."""
        steps = tuple(sorted({name for part in parts for name in part.steps}))
        column = {name: index for index, name in enumerate(steps)}
        columns = [np.array([column[name] for name in part.steps], np.int32) for part in parts]
        alike = [replace(part, steps=steps, step=own[part.step]) for part, own in zip(parts, columns, strict=True)]
        every = alike[0].concatenate(*alike[1:])
        order = sorted(range(len(every.videos)), key=every.videos.__getitem__)
        videos = tuple(every.videos[index] for index in order)
        for video, following in pairwise(videos):
            if video == following:
                what = f"the video {short_repr(video)} of task {short_repr(every.name)} is in two files"
                raise RepeatedVideoError(what, hint="give every video one file, or put all rows in one table")
        absent: Absent = "skipped" if all(part.absent == "skipped" for part in parts) else "unknown"
        joined = replace(every, videos=videos, run_of_video=every.run_of_video[order], absent=absent)
        return joined._merge_equal_runs()

    @cached_property
    def weight(self) -> NDArray[np.int64]:
        """How many videos show each run, shape (runs,)."""
        return np.bincount(self.run_of_video).astype(np.int64)

    @property
    def labels(self) -> int:
        """How many labels the videos have in all."""
        return int(self.weight[self.run].sum())

    @cached_property
    def ended(self) -> NDArray[np.int32]:
        """The moment when a step was first completed, in the far future where it never was; shape (runs, steps)."""
        ended = np.full((len(self.weight), len(self.steps)), _NEVER, dtype=np.int32)
        np.minimum.at(ended, (self.run, self.step), self.end)
        return ended

    @property
    def shown(self) -> NDArray[np.bool_]:
        """Which steps a run has, shape (runs, steps)."""
        return self.ended < _NEVER

    @cached_property
    def instant(self) -> NDArray[np.bool_]:
        """Whether that took no time; shape (runs, steps)."""
        instant = self.shown
        # One occurrence that lasts is enough to be ordered.
        lasting = (self.end > self.start) & (self.end == self.ended[self.run, self.step])
        instant[self.run[lasting], self.step[lasting]] = False
        return instant

    @cached_property
    def rank(self) -> NDArray[np.int32]:
        """How many steps of the run had ended by then, the step included; shape (runs, steps)."""
        return sum((ended[:, None] <= self.ended for ended in self.ended.T), np.zeros(self.ended.shape, np.int32))

    def select(self, chosen: NDArray[np.intp]) -> Sequences:
        """The sequences of some of the videos, given by index; a video may be chosen several times."""
        used, run_of_video = np.unique(self.run_of_video[chosen], return_inverse=True)
        position = np.full(len(self.weight), -1, dtype=np.int32)
        position[used] = np.arange(len(used), dtype=np.int32)
        kept = position[self.run] >= 0
        names, run = tuple(self.videos[index] for index in chosen.tolist()), position[self.run[kept]]
        return replace(self._with_labels(kept), videos=names, run_of_video=run_of_video, run=run)

    def concatenate(self, *others: Sequences) -> Sequences:
        """The videos of all, which have the same steps."""
        parts = (self, *others)
        first = np.cumsum([0, *(len(part.weight) for part in parts)], dtype=np.int32)
        run_of_video = np.concatenate([part.run_of_video + low for part, low in zip(parts, first, strict=False)])
        run = np.concatenate([part.run + low for part, low in zip(parts, first, strict=False)])
        labels = ("step", "start", "end")
        step, start, end = (np.concatenate([getattr(part, name) for part in parts]) for name in labels)
        videos = tuple(chain.from_iterable(part.videos for part in parts))
        return replace(self, videos=videos, run_of_video=run_of_video, run=run, step=step, start=start, end=end)

    @property
    def is_again(self) -> NDArray[np.bool_]:
        """Whether each occurrence repeats a step of its run, shape (occurrences,)."""
        keys = self.run * np.int64(len(self.steps)) + self.step
        again = np.ones(len(keys), dtype=np.bool_)
        again[np.unique(keys, return_index=True)[1]] = False  # occurrences are in the order of their start
        return again

    def observations(self, step: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """D_n of the step with this index, one row per occurrence: the run, shape (rows,), and gaps (rows, steps).

        The gap is 1 for the step completed immediately before the target, and 0 for a step that was not completed.
        """
        chosen = np.flatnonzero(self.step == step)
        run, completed = self.run[chosen], self.completed(chosen)
        done = completed.sum(axis=1, dtype=np.int32)[:, None]
        # rank counts the steps of the run that ended no later, all of them completed here too.
        gap = np.where(completed, np.maximum(done - self.rank[run] + 1, 1), np.int32(0))
        gap[:, step] = 0
        return run, gap

    def completed(self, occurrences: NDArray[np.intp] | slice = slice(None)) -> NDArray[np.bool_]:
        """What was completed at the start of each occurrence (it ended no later than that), shape (…, steps)."""
        run, start = self.run[occurrences], self.start[occurrences, None]
        completed = self.ended[run] <= start
        instants = self.end[occurrences] == self.start[occurrences]
        if instants.any():  # two instants at the same time are not ordered, nor is an instant before itself
            completed &= ~((self.ended[run] == start) & self.instant[run] & instants[:, None])
        return completed

    def completed_at(
        self, step: int, or_running: bool = False
    ) -> Iterator[tuple[NDArray[np.int32], NDArray[np.bool_]]]:
        """Yield runs (rows,) and completion vectors (rows, steps) at the occurrences of a step, block by block.

        With `or_running`, what happens at the same time or overlaps counts as completed.
        """
        chosen = np.flatnonzero(self.step == step)
        rows = max(1, _BLOCK // len(self.steps))
        first_start = np.full((len(self.weight), len(self.steps)) if or_running else 0, _NEVER, dtype=np.int32)
        if or_running:
            np.minimum.at(first_start, (self.run, self.step), self.start)
        for low in range(0, len(chosen), rows):
            part = chosen[low : low + rows]
            completed = self.completed(part)
            if or_running:
                began, start, end = first_start[self.run[part]], self.start[part, None], self.end[part, None]
                completed |= began < end
                if (start == end).any():
                    completed |= (began == start) & (start == end) & self.instant[self.run[part]]
            completed[:, step] = False
            yield self.run[part], completed

    @cached_property
    def before(self) -> NDArray[np.int64]:
        """Counts, shape (steps, steps), read-only: [n, m] is how often n was completed when m started."""
        counts = np.zeros((len(self.steps), len(self.steps)), dtype=np.int64)
        for index in range(len(self.steps)):
            for run, completed in self.completed_at(index):
                counts[:, index] += np.einsum("rc,r->c", completed, self.weight[run], dtype=np.int64, casting="unsafe")
        counts.flags.writeable = False
        return counts

    @cached_property
    def variants(self) -> Variants:
        """The distinct orders of the first occurrences, with counts."""
        return Variants.from_sequences(self)

    def folds(self, count: int, seed: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Shuffle the videos and split them into folds; yields the indices of training and of held-out videos."""
        shuffled = np.random.default_rng(seed).permutation(len(self.videos))
        for fold in range(count):
            held_out = np.arange(len(shuffled)) % count == fold
            yield shuffled[~held_out], shuffled[held_out]

    def _merge_equal_runs(self) -> Sequences:
        """Count equal runs once; runs are in the order of the first video that shows them."""
        first = np.searchsorted(self.run, np.arange(len(self.weight) + 1))
        which = _first_equal_run(self.run, (self.step, self.start, self.end), first)[self.run_of_video]
        kept, first_video, inverse = np.unique(which, return_index=True, return_inverse=True)
        by_video = np.argsort(first_video)
        place = np.empty(len(kept), np.intp)
        place[by_video] = np.arange(len(kept))
        if len(kept) == len(self.weight) and (kept[by_video] == np.arange(len(kept))).all():
            return replace(self, run_of_video=place[inverse])
        # The labels of the kept runs, in the order of their videos.
        length = np.diff(first)[kept[by_video]]
        run = np.repeat(np.arange(len(kept), dtype=np.int32), length)
        labels = np.arange(len(run)) + np.repeat(first[kept[by_video]] - np.cumsum(length) + length, length)
        return replace(self._with_labels(labels), run_of_video=place[inverse], run=run)

    def _with_labels(self, kept: NDArray[np.bool_] | NDArray[np.intp]) -> Sequences:
        run, step, start, end = (values[kept] for values in (self.run, self.step, self.start, self.end))
        return replace(self, run=run, step=step, start=start, end=end)


class LastTimes:
    """When each step was done last in each run; steps are columns, in the order of `names`."""

    def __init__(self, sequences: Sequences, names: Iterable[Step]) -> None:
        place = {name: column for column, name in enumerate(sequences.steps)}
        columns = [place[name] for name in names]
        start, end = np.full((2, len(sequences.weight), len(sequences.steps)), -1, dtype=np.int32)
        np.maximum.at(start, (sequences.run, sequences.step), sequences.start)
        np.maximum.at(end, (sequences.run, sequences.step), sequences.end)
        self.weight = sequences.weight
        self._start, self._end = start[:, columns], end[:, columns]
        self._instant = self._start == self._end

    def after(self, step: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int64]]:
        """Of the runs with a step: what begins after it was done last, and what does not, shape (R, N); and weights.

        What comes at the same time as the last one, or overlaps with it, does neither.
        """
        there = self._end[:, step] >= 0
        start, end, instant = self._start[there], self._end[there], self._instant[there]
        same = instant & instant[:, [step]] & (start == start[:, [step]])
        follows = (start >= end[:, [step]]) & ~same
        return follows, (end <= start[:, [step]]) & ~follows & ~same, self.weight[there]


@dataclass(frozen=True, eq=False)
class Variants:
    """V variants of runs of N steps: videos with the same partial order. a came before b where end[a] ≤ start[b]."""

    steps: tuple[Step, ...]
    start: Ranks  # (V, N): how many steps had ended when this one began
    end: Ranks  # (V, N): the `start` of the first step that began after this one had ended
    weight: NDArray[np.int64]  # (V,): the videos of each variant
    repeated: NDArray[np.int64]  # (N,): the videos that show a step more than once

    @staticmethod
    def from_sequences(sequences: Sequences) -> Variants:
        """Count the variants of the first occurrences of the steps."""
        size, count = len(sequences.steps), len(sequences.weight)
        first = np.searchsorted(sequences.run, np.arange(count + 1))
        start, end = np.empty((2, count, size), dtype=np.int16)
        repeated = np.zeros(size, dtype=np.int64)
        for low, high in _row_blocks(count, size):
            part = slice(first[low], first[high])
            cell = (sequences.run[part] - low) * size + sequences.step[part]
            again = np.bincount(cell, minlength=(high - low) * size).reshape(-1, size) > 1
            repeated += np.einsum("rc,r->c", again, sequences.weight[low:high], dtype=np.int64, casting="unsafe")
            began, ended = np.full((high - low, size), -np.inf), np.full((high - low, size), np.inf)
            # Occurrences are in the order of their start: written from the last to the first, the first one stays.
            began.flat[cell[::-1]], ended.flat[cell[::-1]] = sequences.start[part][::-1], sequences.end[part][::-1]
            earlier = ended[:, :, None] <= began[:, None, :]  # [row, a, b]: a had ended when b began
            earlier &= ~earlier.transpose(0, 2, 1)  # not instants at the same time, nor an instant and itself
            start[low:high] = earlier.sum(axis=1, dtype=np.int16)
            last = np.int16(size)
            end[low:high] = np.where(earlier, start[low:high, None, :], last).min(axis=2, initial=last)
            absent = np.isinf(ended)
            start[low:high][absent], end[low:high][absent] = -1, _NO_END
        chosen, inverse = unique_rows(start, end)
        weight = np.bincount(inverse, sequences.weight).astype(np.int64)
        return Variants(sequences.steps, start[chosen], end[chosen], weight, repeated)

    @cached_property
    def shown(self) -> NDArray[np.bool_]:
        """Which steps a variant shows, shape (V, N)."""
        return np.asarray(self.start >= 0)

    @cached_property
    def before(self) -> NDArray[np.int64]:
        """[a, b]: the videos in which a came before b, shape (N, N)."""
        counts = np.zeros((len(self.steps), len(self.steps)), dtype=np.int64)
        for low, high in _row_blocks(len(self.weight), len(self.steps)):
            earlier = self.end[low:high, :, None] <= self.start[low:high, None, :]
            counts += np.tensordot(self.weight[low:high].astype(np.float64), earlier, axes=1).astype(np.int64)
        return counts

    @cached_property
    def together(self) -> NDArray[np.int64]:
        """[a, b]: the videos in which neither came before the other, at the same time or overlapping, shape (N, N)."""
        shown = self.shown.astype(np.float64)
        both = ((shown.T * self.weight) @ shown).astype(np.int64)
        return np.asarray((both - self.before - self.before.T) * ~np.eye(len(self.steps), dtype=np.bool_))

    @cached_property
    def mostly_together(self) -> NDArray[np.bool_]:
        """The pairs that clearly more than two thirds of the videos with both have at the same time, shape (N, N)."""
        both = self.before + self.before.T + self.together
        return np.asarray(self.together > both * 2 / 3 + _CLEARLY * np.sqrt(both * 2 / 9))

    def in_canonical_order(self) -> Variants:
        """The same with steps and rows in an order that the videos determine: names never decide between equals."""
        steps = np.lexsort((self._step_codes, self.repeated, self.before.sum(axis=0)))
        start, end = self.start[:, steps], self.end[:, steps]
        rows, _ = unique_rows(start, end)
        names = tuple(self.steps[place] for place in steps.tolist())
        return Variants(names, start[rows], end[rows], self.weight[rows], self.repeated[steps])

    @cached_property
    def twins(self) -> list[tuple[int, int]]:
        """The pairs of steps that may change names without changing anything: nothing tells them apart."""
        alike = (self._step_codes[:, None] == self._step_codes) & self.shown.any(axis=0)
        rows = np.hstack([self.start, self.end])
        pairs = []
        for a, b in np.argwhere(np.triu(alike, 1)).tolist():
            swapped = np.arange(len(self.steps))
            swapped[[a, b]] = b, a
            both = np.vstack([rows, np.hstack([self.start[:, swapped], self.end[:, swapped]])])
            which = np.unique(both, axis=0, return_inverse=True)[1].reshape(2, -1)
            own, other = (np.bincount(row, self.weight, which.max(initial=0) + 1) for row in which)
            if (own == other).all() and self.repeated[a] == self.repeated[b]:
                pairs.append((a, b))
        return pairs

    @cached_property
    def _step_codes(self) -> NDArray[np.uint64]:
        """A number for each step that says when it comes in each run, and which others then; names play no part."""
        code = np.zeros(len(self.steps), np.uint64)
        when = _mix(self.start.astype(np.uint64) * _FACTORS[0] + self.end.astype(np.uint64) * _FACTORS[1])
        while True:
            each = _mix(when + code * _FACTORS[2])
            run = _mix(each.sum(axis=1, dtype=np.uint64))[:, None]
            told = (_mix(each + run) * self.weight.astype(np.uint64)[:, None]).sum(axis=0, dtype=np.uint64)
            if len(np.unique(told)) == len(np.unique(code)):
                return code
            code = told

    def sample(self, labels: int) -> Variants:
        """Take an evenly spread sample of videos with about this many labels, or everything if there are no more."""
        if self.shown.sum() <= labels:
            return self
        ends = np.cumsum(self.weight)
        most = max(1, int(ends[-1]) * labels // int(self.weight @ self.shown.sum(axis=1)))
        places = np.searchsorted(ends, (np.arange(most) + 0.5) * ends[-1] / most, side="right")
        chosen, weight = np.unique(places, return_counts=True)
        return Variants(self.steps, self.start[chosen], self.end[chosen], weight, self.repeated)


def read_moments(columns: LabelColumns) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Turn the times of labels into moments: the places of all starts and ends of a video in their order."""
    moments = np.empty((2, len(columns.video)), np.int32)
    first = np.searchsorted(columns.video, np.arange(len(columns.videos) + 1))
    for low, high in _blocks(first):
        times = np.stack([columns.start[low:high], columns.end[low:high]], axis=1).ravel()
        owner = np.repeat(columns.video[low:high], 2)
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
        moments[:, low:high] = moment.reshape(-1, 2).T
    return moments[0], moments[1]


def _blocks(first: NDArray[np.intp]) -> Iterator[tuple[int, int]]:
    """Split labels where runs begin; `first` is the first label of each, and the number of all."""
    low, last = 0, int(first[-1])
    while low < last:
        high = int(first[np.searchsorted(first, min(low + _COUNTED_AT_ONCE, last))])
        yield low, high
        low = high


def _row_blocks(count: int, size: int) -> Iterator[tuple[int, int]]:
    """Split rows of N steps so that the pairs of steps of a block fit into the cache."""
    rows = max(1, _PAIRS_AT_ONCE // max(1, size * size))
    return ((low, min(low + rows, count)) for low in range(0, count, rows))


def _first_equal_run(
    run: NDArray[np.int32], labels: tuple[NDArray[np.int32], ...], first: NDArray[np.intp]
) -> NDArray[np.intp]:
    """For every run the first one with the same labels (step, start and end), found by hash codes."""
    code = np.zeros(len(first) - 1, np.uint64)
    for low, high in _blocks(first):
        mixed = np.zeros(high - low, np.uint64)
        for values, factor in zip(labels, _FACTORS, strict=True):  # as SplitMix64 does
            mixed += (values[low:high].astype(np.uint64) + np.uint64(1)) * factor
            mixed ^= mixed >> np.uint64(31)
        mixed *= _FACTORS[1]
        # A sum is enough: labels are sorted, so runs with the same labels are the same.
        np.add.at(code, run[low:high], mixed ^ (mixed >> np.uint64(29)))
    _, index, inverse = np.unique(code, return_index=True, return_inverse=True)
    same: NDArray[np.intp] = index[inverse]
    length, away = np.diff(first), first[same] - first[:-1]
    others = ((slice(low, high), np.arange(low, high) + away[run[low:high]]) for low, high in _blocks(first))
    if len(index) == len(code) or (
        (length == length[same]).all()
        and all((values[own] == values[other]).all() for own, other in others for values in labels)
    ):
        return same
    seen: dict[tuple[bytes, ...], int] = {}  # two have one code by chance: compare the labels themselves
    runs = ((tuple(values[low:high].tobytes() for values in labels)) for low, high in pairwise(first.tolist()))
    return np.array([seen.setdefault(own, number) for number, own in enumerate(runs)], np.intp)


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scatter numbers, as SplitMix64 does."""
    values = (values ^ (values >> np.uint64(31))) * _FACTORS[1]
    return np.asarray(values ^ (values >> np.uint64(29)))


def unique_rows(*tables: NDArray[np.int16] | NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Find the first of each distinct row, in an order that depends on the rows only, and which of them each row is."""
    factors = np.random.default_rng(0).integers(1 << 62, size=(len(tables), tables[0].shape[1])) | 1
    code = np.zeros(len(tables[0]), dtype=np.int64)
    for table, table_factors in zip(tables, factors, strict=True):
        for column, factor in enumerate(table_factors):  # not all at once: that would take four times the memory
            code += table[:, column] * factor
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    if not all((table == table[first[inverse]]).all() for table in tables):  # two have one code by chance
        _, first, inverse = np.unique(np.hstack(tables), axis=0, return_index=True, return_inverse=True)
    return first, inverse

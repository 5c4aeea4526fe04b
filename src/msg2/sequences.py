"""Names of array types.

Equal runs are counted once: moments in the place of times, and which runs are the same.

Both go through the labels a few million at a time, whole runs each, so that the memory on the way is bounded.

Label sequences as arrays: what had been completed, in which order, whenever a step began (D_n, Eq. dataset).

Videos that show the same steps in the same order are one *run*, counted once: only who came before whom matters, not
when. So a run has *moments* in the place of times: its starts and ends in their order, counted from 0, equal times
being one moment.

A step has one observation per labelled occurrence. It keeps the order of the completed steps as *gaps*, since recency
(App. B.b) depends on it: a bag of bits is not enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError
from msg2.task import Absent, LabelColumns, Step, Task
from msg2.text import short_repr

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

_COUNTED_AT_ONCE = 2_000_000
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
    """Turn the times of labels into moments: the places of all starts and ends of a video in their order."""
    start, end = (np.empty(len(columns.video), np.int32) for _ in range(2))
    first = np.searchsorted(columns.video, np.arange(len(columns.videos) + 1))
    for low, high in _blocks(first):
        part = slice(low, high)
        start[part], end[part] = _moments(columns.video[part], columns.start[part], columns.end[part])
    return start, end


def first_equal_run(labels: RunLabels) -> NDArray[np.intp]:
    """Find the runs that are equal."""
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
        high = int(first[np.searchsorted(first, min(low + _COUNTED_AT_ONCE, last))])
        yield low, high
        low = high


_NEVER = np.iinfo(np.int32).max
"""The moment of what does not happen."""
_BLOCK = 4_000_000
"""Cells of a matrix of occurrences and steps that are made at a time."""


class RepeatedVideoError(InputError):
    """A video is in two files."""


@dataclass(frozen=True, slots=True)
class StepObservations:
    """D_n of one step, one row per labelled occurrence in a run."""

    run: NDArray[np.int32]
    """Index of the run, shape (rows,)."""
    weight: NDArray[np.int64]
    """How many videos show that run, shape (rows,)."""
    gap: NDArray[np.int32]
    """0 for a step that was not completed, else the number of completed steps from that one to the start of the target:
    1 is the step completed immediately before. Shape (rows, steps)."""

    @property
    def completed(self) -> NDArray[np.bool_]:
        """Completion vectors ĉ, shape (rows, steps)."""
        return self.gap > 0


@dataclass(frozen=True)
class Sequences:
    """The runs of the videos of a task.

    The flat arrays `run`, `step`, `start` and `end` have one entry per labelled occurrence in a run, sorted by run,
    start, end and step; `start` and `end` are moments.
    """

    steps: tuple[Step, ...]
    videos: tuple[str, ...]
    run_of_video: NDArray[np.intp]
    """Index of the run that each video shows; every run is shown by some video."""
    run: NDArray[np.int32]
    """Index of the run of each occurrence."""
    step: NDArray[np.int32]
    """Index of the step of each occurrence."""
    start: NDArray[np.int32]
    end: NDArray[np.int32]
    name: str = ""
    """Name of the task."""
    absent: Absent = "unknown"
    """What a missing label means; see `Task`."""

    @staticmethod
    def from_task(task: Task) -> Sequences:
        """Count the runs of a task.

        >>> from msg2.task import Segment, Video
        >>> task = Task("t", "ab", [Video(name, [Segment("a"), Segment("b")]) for name in "vw"])
        >>> sequences = Sequences.from_task(task)
        >>> sequences.weight.tolist(), sequences.before.tolist()
        ([2], [[0, 2], [0, 0]])
        """
        found = task.columns
        start, end = read_moments(found)
        each = np.arange(len(found.videos))
        arrays = (found.video, found.step, start, end)
        return Sequences(task.steps, found.videos, each, *arrays, task.name, task.absent)._merge_equal_runs()

    @staticmethod
    def join(parts: Sequence[Sequences]) -> Sequences:
        """The runs of videos that were read part by part.

        Parameters
        ----------
        parts : sequence of Sequences
            Of one task, at least one; their order does not matter.

        Returns
        -------
        Sequences
            The same as of all videos at once.

        Raises
        ------
        RepeatedVideoError
            Where a video is in two parts.

        >>> from msg2.task import Segment, Video
        >>> one, two = (Sequences.from_task(Task("t", "ab", [Video(name, [Segment("a")])])) for name in "vw")
        >>> Sequences.join([two, one]).videos, Sequences.join([two, one]).weight.tolist()
        (('v', 'w'), [2])
        """
        steps = tuple(sorted({name for part in parts for name in part.steps}))
        column = {name: index for index, name in enumerate(steps)}
        names = [name for part in parts for name in part.videos]
        order = sorted(range(len(names)), key=names.__getitem__)
        videos = tuple(names[place] for place in order)
        for one, other in pairwise(videos):
            if one == other:
                raise RepeatedVideoError(
                    f"the video {short_repr(one)} of task {short_repr(parts[0].name)} is in two files",
                    hint="give every video one file, or put all rows in one table",
                )
        first = np.cumsum([0, *(len(part.weight) for part in parts)])
        run_of_video = np.concatenate([part.run_of_video + low for part, low in zip(parts, first, strict=False)])
        run = np.concatenate([part.run + np.int32(low) for part, low in zip(parts, first, strict=False)])
        step = np.concatenate([np.array([column[name] for name in part.steps], np.int32)[part.step] for part in parts])
        start, end = (np.concatenate([getattr(part, field) for part in parts]) for field in ("start", "end"))
        absent: Absent = "skipped" if all(part.absent == "skipped" for part in parts) else "unknown"
        every = Sequences(steps, videos, run_of_video[order], run, step, start, end, parts[0].name, absent)
        return every._merge_equal_runs()

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
        return _ranks(self.ended)

    def select(self, chosen: NDArray[np.intp]) -> Sequences:
        """The sequences of some of the videos, given by index; a video may be chosen several times."""
        used, run_of_video = np.unique(self.run_of_video[chosen], return_inverse=True)
        position = np.full(len(self.weight), -1, dtype=np.int32)
        position[used] = np.arange(len(used), dtype=np.int32)
        kept = position[self.run] >= 0
        names = tuple(self.videos[index] for index in chosen.tolist())
        arrays = (position[self.run][kept], self.step[kept], self.start[kept], self.end[kept])
        return Sequences(self.steps, names, run_of_video, *arrays, self.name, self.absent)

    def resample(self, times: NDArray[np.int64]) -> Sequences:
        """The sequences with video v there `times[v]` times, shape (videos,): a sample drawn with replacement.

        >>> from msg2.task import Segment, Video
        >>> task = Task("t", "ab", [Video("v", [Segment("a"), Segment("b")]), Video("w", [Segment("b"), Segment("a")])])
        >>> Sequences.from_task(task).resample(np.array([3, 0])).before.tolist()
        [[0, 3], [0, 0]]
        """
        return self.select(np.repeat(np.arange(len(times)), times))

    def concatenate(self, other: Sequences) -> Sequences:
        """The videos of both; `other` has the same steps."""
        runs = len(self.weight)
        run = np.concatenate([self.run, other.run + np.int32(runs)])
        step, start, end = (
            np.concatenate([ours, theirs])
            for ours, theirs in ((self.step, other.step), (self.start, other.start), (self.end, other.end))
        )
        run_of_video = np.concatenate([self.run_of_video, other.run_of_video + runs])
        videos = self.videos + other.videos
        return Sequences(self.steps, videos, run_of_video, run, step, start, end, self.name, self.absent)

    def first_occurrences(self) -> Sequences:
        """Only the first occurrence of each step in each run: counts then are counts of videos."""
        keys = self.run * np.int64(len(self.steps)) + self.step
        first = np.unique(keys, return_index=True)[1]  # occurrences are in the order of their start
        if len(first) == len(keys):
            return self
        kept = np.sort(first)
        arrays = (self.run[kept], self.step[kept], self.start[kept], self.end[kept])
        return Sequences(self.steps, self.videos, self.run_of_video, *arrays, self.name, self.absent)

    def observations(self, step: int) -> StepObservations:
        """D_n of the step with this index."""
        chosen = np.flatnonzero(self.step == step)
        gap = self._gaps(chosen)
        gap[:, step] = 0
        run = self.run[chosen]
        return StepObservations(run, self.weight[run], gap)

    def completed(self) -> NDArray[np.bool_]:
        """What was completed at the start of every occurrence, shape (occurrences, steps)."""
        return self._completed_at(np.arange(len(self.step)))

    def completed_at(self, step: int) -> Iterator[tuple[NDArray[np.int32], NDArray[np.bool_]]]:
        """What was completed at the start of the occurrences of a step, some of them at a time.

        Parameters
        ----------
        step : int
            Its index.

        Yields
        ------
        (array, array)
            The runs of the occurrences, shape (rows,), and their completion vectors, shape (rows, steps), in which the
            step itself is not completed.
        """
        chosen = np.flatnonzero(self.step == step)
        rows = max(1, _BLOCK // len(self.steps))
        for low in range(0, len(chosen), rows):
            part = chosen[low : low + rows]
            completed = self._completed_at(part)
            completed[:, step] = False
            yield self.run[part], completed

    @cached_property
    def before(self) -> NDArray[np.int64]:
        """Counts, shape (steps, steps), read-only: [n, m] is how often n was completed when m started."""
        counts = np.zeros((len(self.steps), len(self.steps)), dtype=np.int64)
        for index in range(len(self.steps)):
            for run, completed in self.completed_at(index):
                counts[:, index] += count_weighted(completed, self.weight[run])
        counts.flags.writeable = False
        return counts

    def occurrences(self) -> NDArray[np.int64]:
        """Number of videos with each step, shape (steps,)."""
        return count_weighted(self.shown, self.weight)

    def folds(self, count: int, seed: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Shuffle the videos and part them into folds; each video is held out once.

        Parameters
        ----------
        count : int
            Number of folds.
        seed : int
            Of the permutation.

        Yields
        ------
        (array, array)
            Indices of the training videos and of the held-out videos.
        """
        shuffled = np.random.default_rng(seed).permutation(len(self.videos))
        for fold in range(count):
            held_out = np.arange(len(shuffled)) % count == fold
            yield shuffled[~held_out], shuffled[held_out]

    def _merge_equal_runs(self) -> Sequences:
        """Count equal runs once; runs are in the order of the first video that shows them."""
        labels = RunLabels(self.run, self.step, self.start, self.end, len(self.weight))
        which = first_equal_run(labels)[self.run_of_video]
        found, first, inverse = np.unique(which, return_index=True, return_inverse=True)
        by_video = np.argsort(first)
        place = np.empty(len(found), np.intp)
        place[by_video] = np.arange(len(found))
        kept = labels.select(found[by_video])
        arrays = (kept.run, kept.step, kept.start, kept.end)
        return Sequences(self.steps, self.videos, place[inverse], *arrays, self.name, self.absent)

    def _completed_at(self, occurrences: NDArray[np.intp]) -> NDArray[np.bool_]:
        """What was completed at the start of each occurrence: it ended no later than that (`Segment.before`)."""
        run, start = self.run[occurrences], self.start[occurrences, None]
        completed = self.ended[run] <= start
        instants = self.end[occurrences] == self.start[occurrences]
        if instants.any():  # two instants at the same time are not ordered, nor is an instant before itself
            same = self.ended[run] == start
            completed &= ~(same & self.instant[run] & instants[:, None])
        return completed

    def _gaps(self, occurrences: NDArray[np.intp]) -> NDArray[np.int32]:
        """Gaps of what was completed at each occurrence; steps completed at the same moment share one gap."""
        completed = self._completed_at(occurrences)
        done = completed.sum(axis=1, dtype=np.int32)[:, None]
        # rank counts the steps of the run that ended no later, all of them completed here too.
        gap = np.maximum(done - self.rank[self.run[occurrences]] + 1, 1)
        return np.where(completed, gap, np.int32(0))


def count_weighted(flags: NDArray[np.bool_], weight: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count flags, each row as often as its weight says."""
    if (weight == 1).all():
        return np.asarray(flags.sum(axis=0, dtype=np.int64))
    return np.asarray(np.einsum("rc,r->c", flags, weight, dtype=np.int64, casting="unsafe"))


def _ranks(values: NDArray[np.int32]) -> NDArray[np.int32]:
    """For every value the number of values in its row that are no larger; shape (rows, columns) in and out.

    >>> _ranks(np.array([[3, 1, 3, 2]], np.int32)).tolist()
    [[4, 1, 4, 2]]
    """
    rows, columns = values.shape
    order = np.argsort(values, axis=1)
    ascending = np.take_along_axis(values, order, axis=1)
    place = np.tile(np.arange(1, columns + 1, dtype=np.int32), (rows, 1))
    place[:, :-1][ascending[:, :-1] == ascending[:, 1:]] = columns  # not the last of its equals
    last_of_equals = np.minimum.accumulate(place[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty_like(place)
    np.put_along_axis(ranks, order, last_of_equals, axis=1)
    return ranks

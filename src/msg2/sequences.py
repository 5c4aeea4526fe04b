"""Label sequences as arrays: what had been completed, in which order, whenever a step began (D_n, Eq. dataset).

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

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError
from msg2.run_counting import RunLabels, first_equal_run, read_moments
from msg2.task import Absent, Step, Task
from msg2.text import short_repr

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
    """Count flags, each row as often as its weight says.

    Parameters
    ----------
    flags : array of shape (rows, columns)
        What is counted.
    weight : array of shape (rows,)
        How often.

    Returns
    -------
    array of shape (columns,)

    >>> count_weighted(np.array([[True, False], [True, True]]), np.array([3, 1])).tolist()
    [4, 1]
    """
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

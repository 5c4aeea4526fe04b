"""Label sequences as arrays: what had been completed, in which order, whenever a step began (D_n, Eq. dataset).

A step has one observation per labelled occurrence. It keeps the order of the completed steps as *gaps*, since recency
(App. B.b) depends on it: a bag of bits is not enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from msg2.task import Step, Task


@dataclass(frozen=True, slots=True)
class StepObservations:
    """D_n of one step, one row per labelled occurrence."""

    video: NDArray[np.intp]
    """Index of the video, shape (rows,)."""
    gap: NDArray[np.int32]
    """0 for a step that was not completed, else the number of completed steps from that one to the start of the target:
    1 is the step completed immediately before. Shape (rows, steps)."""

    @property
    def completed(self) -> NDArray[np.bool_]:
        """Completion vectors ĉ, shape (rows, steps)."""
        return self.gap > 0


@dataclass(frozen=True)
class Sequences:
    """The labels of the videos of a task. Times are seconds, or positions in untimed videos.

    The flat arrays `video`, `step`, `start` and `end` have one entry per labelled occurrence.
    """

    steps: tuple[Step, ...]
    videos: tuple[str, ...]
    video: NDArray[np.intp]
    """Index of the video of each occurrence."""
    step: NDArray[np.intp]
    """Index of the step of each occurrence."""
    start: NDArray[np.float64]
    end: NDArray[np.float64]

    @staticmethod
    def from_task(task: Task) -> Sequences:
        """The sequences of a task, from its arrays.

        >>> from msg2.task import Segment, Video
        >>> task = Task("t", "ab", [Video("v", [Segment("a"), Segment("b")])])
        >>> Sequences.from_task(task).before.tolist()
        [[0, 1], [0, 0]]
        """
        found = task.columns
        return Sequences(task.steps, found.videos, found.video, found.step, found.start, found.end)

    @cached_property
    def ended(self) -> NDArray[np.float64]:
        """When a step was first completed, infinite where it never was; shape (videos, steps)."""
        ended = np.full((len(self.videos), len(self.steps)), np.inf)
        np.minimum.at(ended, (self.video, self.step), self.end)
        return ended

    @cached_property
    def instant(self) -> NDArray[np.bool_]:
        """Whether that took no time; shape (videos, steps)."""
        instant = np.isfinite(self.ended)
        # One occurrence that lasts is enough to be ordered.
        lasting = (self.end > self.start) & (self.end == self.ended[self.video, self.step])
        instant[self.video[lasting], self.step[lasting]] = False
        return instant

    @cached_property
    def rank(self) -> NDArray[np.int32]:
        """How many steps of the video had ended by then, the step included; shape (videos, steps)."""
        return _ranks(self.ended)

    def select(self, chosen: NDArray[np.intp]) -> Sequences:
        """The sequences of some of the videos, given by index."""
        position = np.full(len(self.videos), -1, dtype=np.intp)
        position[chosen] = np.arange(len(chosen))
        kept = position[self.video] >= 0
        names = tuple(self.videos[index] for index in chosen)
        return Sequences(
            self.steps, names, position[self.video][kept], self.step[kept], self.start[kept], self.end[kept]
        )

    def resample(self, times: NDArray[np.int64]) -> Sequences:
        """The sequences with video v there `times[v]` times, shape (videos,): a sample drawn with replacement.

        >>> from msg2.task import Segment, Video
        >>> task = Task("t", "ab", [Video("v", [Segment("a"), Segment("b")]), Video("w", [Segment("b"), Segment("a")])])
        >>> Sequences.from_task(task).resample(np.array([3, 0])).before.tolist()
        [[0, 3], [0, 0]]
        """
        first = np.cumsum(times) - times
        copies = times[self.video]
        chosen = np.repeat(np.arange(len(self.step)), copies)
        copy = np.arange(len(chosen)) - np.repeat(np.cumsum(copies) - copies, copies)
        video = first[self.video[chosen]] + copy
        names = tuple(np.repeat(np.array(self.videos, dtype=object), times))
        return Sequences(self.steps, names, video, self.step[chosen], self.start[chosen], self.end[chosen])

    def concatenate(self, other: Sequences) -> Sequences:
        """The videos of both; `other` has the same steps."""
        video = np.concatenate([self.video, other.video + len(self.videos)])
        step, start, end = (
            np.concatenate([ours, theirs])
            for ours, theirs in ((self.step, other.step), (self.start, other.start), (self.end, other.end))
        )
        return Sequences(self.steps, self.videos + other.videos, video, step, start, end)

    def first_occurrences(self) -> Sequences:
        """Only the first occurrence of each step in each video: counts then are counts of videos."""
        keys = self.video * len(self.steps) + self.step
        first = np.unique(keys, return_index=True)[1]  # occurrences are in the order of their start
        if len(first) == len(keys):
            return self
        kept = np.sort(first)
        return Sequences(self.steps, self.videos, self.video[kept], self.step[kept], self.start[kept], self.end[kept])

    def observations(self, step: int) -> StepObservations:
        """D_n of the step with this index."""
        chosen = np.flatnonzero(self.step == step)
        gap = self._gaps(chosen)
        gap[:, step] = 0
        return StepObservations(self.video[chosen], gap)

    def completed(self) -> NDArray[np.bool_]:
        """What was completed at the start of every occurrence, shape (occurrences, steps)."""
        return self._completed_at(np.arange(len(self.step)))

    @cached_property
    def before(self) -> NDArray[np.int64]:
        """Counts, shape (steps, steps), read-only: [n, m] is how often n was completed when m started."""
        counts = np.zeros((len(self.steps), len(self.steps)), dtype=np.int64)
        for index in range(len(self.steps)):
            counts[:, index] = self._completed_at(np.flatnonzero(self.step == index)).sum(axis=0)
        np.fill_diagonal(counts, 0)
        counts.flags.writeable = False
        return counts

    def occurrences(self) -> NDArray[np.int64]:
        """Number of videos with each step, shape (steps,)."""
        counts: NDArray[np.int64] = np.isfinite(self.ended).sum(axis=0, dtype=np.int64)
        return counts

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

    def _completed_at(self, occurrences: NDArray[np.intp]) -> NDArray[np.bool_]:
        """What was completed at the start of each occurrence: it ended no later than that (`Segment.before`)."""
        video, start = self.video[occurrences], self.start[occurrences, None]
        completed = self.ended[video] <= start
        instants = self.end[occurrences] == self.start[occurrences]
        if instants.any():  # two instants at the same time are not ordered, nor is an instant before itself
            same = self.ended[video] == start
            completed &= ~(same & self.instant[video] & instants[:, None])
        return completed

    def _gaps(self, occurrences: NDArray[np.intp]) -> NDArray[np.int32]:
        """Gaps of what was completed at each occurrence; steps completed at the same moment share one gap."""
        completed = self._completed_at(occurrences)
        done = completed.sum(axis=1, dtype=np.int32)[:, None]
        # rank counts the steps of the video that ended no later, all of them completed here too.
        gap = np.maximum(done - self.rank[self.video[occurrences]] + 1, 1)
        return np.where(completed, gap, np.int32(0))


def _ranks(values: NDArray[np.float64]) -> NDArray[np.int32]:
    """For every value the number of values in its row that are no larger; shape (rows, columns) in and out.

    >>> _ranks(np.array([[3.0, 1.0, 3.0, 2.0]])).tolist()
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

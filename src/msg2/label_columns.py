"""The labels of very many videos as arrays: what a task of millions of labels keeps in the place of objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from msg2.task import Segment, Step, Video


@dataclass(frozen=True, slots=True, eq=False)
class LabelColumns:
    """The labels of many videos as arrays with one entry per label, sorted by video, start, end and step.

    Of videos without times the labels are in their order, and `start` and `end` count them from 0.
    """

    videos: tuple[str, ...]
    """Ids of the videos, sorted."""
    video: NDArray[np.int32]
    """Index of the video of each label."""
    step: NDArray[np.int32]
    """Index of its step."""
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    is_timed: bool = True
    """Whether times are seconds."""

    @staticmethod
    def from_videos(videos: Sequence[Video], steps: Sequence[Step]) -> LabelColumns:
        """The labels of videos.

        Parameters
        ----------
        videos : sequence of Video
            By id.
        steps : sequence of Step
            All steps, sorted.

        Returns
        -------
        LabelColumns
        """
        column = {name: index for index, name in enumerate(steps)}
        flat = [
            (row, column[s.step], *((s.start, s.end) if s.is_timed else (position, position + 1)))
            for row, video in enumerate(videos)
            for position, s in enumerate(video.segments)
        ]
        row, which, start, end = np.array(flat, dtype=np.float64).reshape(len(flat), 4).T
        names, is_timed = tuple(video.id for video in videos), all(video.is_timed for video in videos)
        return LabelColumns(names, row.astype(np.int32), which.astype(np.int32), start, end, is_timed)

    def first_labels(self, steps: int) -> LabelColumns:
        """Keep the first label of each step in each video; `steps` is how many there are."""
        shown = self.video * np.int64(steps) + self.step
        if np.bincount(shown, minlength=1).max() <= 1:
            return self
        first = np.sort(np.unique(shown, return_index=True)[1])
        video, start, end = self.video[first], self.start[first], self.end[first]
        if not self.is_timed:  # count anew
            place = np.arange(len(video)) - np.searchsorted(video, video)
            start, end = place.astype(np.float64), place + 1.0
        return LabelColumns(self.videos, video, self.step[first], start, end, self.is_timed)

    def select(self, places: Sequence[int]) -> LabelColumns:
        """The labels of some of the videos, whose places ascend."""
        names = tuple(self.videos[place] for place in places)
        if isinstance(places, range) and places.step == 1:
            first, last = np.searchsorted(self.video, [places.start, places.stop])
            own: slice | NDArray[np.bool_] = slice(first, last)
            video = self.video[own] - np.int32(places.start)
        else:
            position = np.full(len(self.videos), -1, np.int32)
            position[list(places)] = np.arange(len(places), dtype=np.int32)
            own = position[self.video] >= 0
            video = position[self.video[own]]
        return LabelColumns(names, video, self.step[own], self.start[own], self.end[own], self.is_timed)

    def make_videos(self, steps: Sequence[Step]) -> Iterator[Video]:
        """Make the videos, one after the other; `steps` are the names of the steps."""
        borders = np.searchsorted(self.video, np.arange(len(self.videos) + 1)).tolist()
        for name, (low, high) in zip(self.videos, pairwise(borders), strict=True):
            names = [steps[index] for index in self.step[low:high].tolist()]
            if self.is_timed:
                times = zip(names, self.start[low:high].tolist(), self.end[low:high].tolist(), strict=True)
                yield Video(name, [Segment(*one) for one in times])
            else:
                yield Video(name, map(Segment, names))

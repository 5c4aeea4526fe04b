"""CrossTask's protocol: every step gets one time in every video; a hit is a time within an annotated segment of it.

Recall is the share of hits among the steps that are annotated in a video, over all videos of a task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.bootstrap_intervals import ConfidenceInterval, Numbers, ratio_interval
from msg2.labelling.narration_grid import NarrationGrid
from msg2.task import Segment, Step, Video

CLEAR = 7 / 3
"""A pair is clear where one order is this many times as frequent as the other."""
_LEAST_PAIRS = 5
"""Videos in which a clear pair is ordered, at least."""


@dataclass(frozen=True, slots=True, eq=False)
class DraftTruth:
    """What is annotated in the V videos of a grid, in bins."""

    inside: NDArray[np.bool_]
    """Whether a bin lies in a segment of a step, shape (V, T, N)."""
    annotated: NDArray[np.bool_]
    """Whether a step is annotated in a video, shape (V, N)."""
    clear: NDArray[np.bool_]
    """Whether a step clearly comes before another, shape (N, N)."""

    @staticmethod
    def of(grid: NarrationGrid, steps: Sequence[Step]) -> DraftTruth:
        """Look at the labels of all videos.

        Parameters
        ----------
        grid : NarrationGrid
            Its videos have all their labels.
        steps : sequence of Step

        Returns
        -------
        DraftTruth
        """
        inside = np.stack([grid.labelled_bins(steps, video) for video in range(len(grid.videos))])
        before = np.sum([_orders(video, steps) for video in grid.videos], axis=0)
        clear = np.asarray((before >= CLEAR * before.T) & (before + before.T >= _LEAST_PAIRS))
        return DraftTruth(inside, np.asarray(inside.any(axis=1)), clear)

    def hits(self, bins: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether each time lies in a segment of its step, shape (V, N)."""
        return np.take_along_axis(self.inside, bins[:, None, :], axis=1)[:, 0]

    def ordered_pairs(self, bins: NDArray[np.intp]) -> float:
        """Share of the clear pairs whose order is right in most videos."""
        first = (bins[:, :, None] < bins[:, None, :]).sum(axis=0)
        return float((first > first.T)[self.clear].mean())


def _orders(video: Video, steps: Sequence[Step]) -> Numbers:
    first: dict[Step, Segment] = {}
    for segment in video.segments:
        first.setdefault(segment.step, segment)
    return np.array([[a in first and b in first and first[a].before(first[b]) for b in steps] for a in steps], float)


def recall_interval(
    hits: Numbers, annotated: NDArray[np.bool_], against: Numbers | None = None, *, resamples: int = 1000, seed: int = 0
) -> ConfidenceInterval:
    """Compute a recall, or the paired difference of two, with its interval over resampled videos.

    Parameters
    ----------
    hits : array of shape (V, N)
        Share of hits among the drafts of a step that is annotated; others are not looked at.
    annotated : array of shape (V, N)
    against : array of shape (V, N), optional
        Of another method, whose recall is subtracted.
    resamples : int
    seed : int

    Returns
    -------
    ConfidenceInterval
    """
    gained = ((hits - (0 if against is None else against)) * annotated).sum(axis=1)
    return ratio_interval(gained, annotated.sum(axis=1), resamples=resamples, seed=seed)

"""From what a person means to do to what an annotator writes down: skipped, repeated, edited, unlabelled, mislabelled.

The stages follow a real video: the person skips and repeats steps, the editor swaps neighbours, the result plays in
time, the annotator labels it. Each has its own rate in `msg2.options.NoiseOptions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from msg2.options import NoiseOptions, WorldOptions
from msg2.task import Segment, Step, Video

_TICKS_PER_SECOND = 100
"""Times are whole hundredths of a second, so that sums of them are exact and their text is short."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """The whole truth about one video.

    `intended` are the steps of the plan in their order, `performed` every occurrence that the video shows, in time, and
    `labels[i]` is what the annotator called `performed[i]`: its step, a wrong one, or None for nothing.

    >>> shown = (Segment("fill kettle", 0.0, 5.0), Segment("boil water", 9.0, 60.0))
    >>> demonstration = Demonstration("v1", ("fill kettle", "boil water", "pour"), shown, ("fill kettle", None))
    >>> demonstration.skipped, [segment.step for segment in demonstration.unlabelled]
    (frozenset({'pour'}), ['boil water'])
    """

    video: str
    intended: tuple[Step, ...]
    performed: tuple[Segment, ...]
    labels: tuple[Step | None, ...]

    @property
    def skipped(self) -> frozenset[Step]:
        """The steps that were meant to be done and really were not."""
        return frozenset(self.intended) - {segment.step for segment in self.performed}

    @property
    def unlabelled(self) -> tuple[Segment, ...]:
        """What was done and not labelled."""
        return tuple(segment for segment, label in zip(self.performed, self.labels, strict=True) if label is None)

    @property
    def labelled(self) -> tuple[Segment, ...]:
        """What the annotator wrote down, wrong labels included."""
        return tuple(
            segment if label == segment.step else replace(segment, step=label)
            for segment, label in zip(self.performed, self.labels, strict=True)
            if label is not None
        )

    def as_video(self) -> Video:
        """The demonstration as a reader would see it: the labels only."""
        return Video(self.video, self.labelled)


def shown_steps(intended: Sequence[Step], noise: NoiseOptions, rng: np.random.Generator) -> list[Step]:
    """The steps in the order of the finished video: without the skipped, with repeats, neighbours swapped."""
    kept = np.flatnonzero(rng.random(len(intended)) >= noise.skipped)
    again = kept[rng.random(len(kept)) < noise.repeated]
    # A repeat comes at any later moment: its place is drawn between its step and the end.
    places = np.concatenate([kept, again + (len(intended) - again) * rng.random(len(again))])
    order = np.concatenate([kept, again])[np.argsort(places, kind="stable")]
    shown = [intended[position] for position in order.tolist()]
    swaps = (rng.random(len(shown)) < noise.swapped).tolist()
    first = 0
    while first + 1 < len(shown):
        if swaps[first]:
            shown[first], shown[first + 1] = shown[first + 1], shown[first]
            first += 1  # a step is moved once: the next pair starts behind this one
        first += 1
    return shown


def timed_segments(steps: Sequence[Step], options: WorldOptions, rng: np.random.Generator) -> tuple[Segment, ...]:
    """`steps` one after the other in time, with background between them; some start before the last one ends."""
    count = len(steps)
    durations = np.maximum(1, _ticks(options.step_seconds, options.step_spread, count, rng))
    gaps = _ticks(options.gap_seconds, options.gap_spread, count, rng)
    overlapping = rng.random(count) < options.noise.overlapping
    share = rng.random(count)
    if count > 1:
        # Less than either neighbour's duration, so that starts and ends both keep the order of the steps.
        room = np.minimum(durations[:-1], durations[1:]) - 1
        overlaps = np.minimum(room, 1 + (share[1:] * room).astype(np.int64))
        gaps[1:] = np.where(overlapping[1:], -overlaps, gaps[1:])
    ends = np.cumsum(gaps + durations)
    starts = (ends - durations) / _TICKS_PER_SECOND
    return tuple(map(Segment, steps, starts.tolist(), (ends / _TICKS_PER_SECOND).tolist()))


def _ticks(median: float, spread: float, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    seconds = median * np.exp(spread * rng.standard_normal(count))
    return np.rint(seconds * _TICKS_PER_SECOND).astype(np.int64)


def drawn_labels(
    shown: Sequence[Step], steps: Sequence[Step], noise: NoiseOptions, rng: np.random.Generator
) -> tuple[Step | None, ...]:
    """What the annotator calls each shown step: nothing, another of the task's `steps`, or its name."""
    missing = rng.random(len(shown)) < noise.unlabelled
    wrong = rng.random(len(shown)) < noise.mislabelled
    labels: list[Step | None] = list(shown)
    for i in np.flatnonzero(wrong).tolist():
        others = [name for name in steps if name != shown[i]]
        if others:
            labels[i] = others[rng.integers(len(others))]
    for i in np.flatnonzero(missing).tolist():
        labels[i] = None
    return tuple(labels)

"""Waiting times: how many seconds pass between one step and the next, by the gaps that videos have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np

from msg2.task import Segment, Step, Task

WaitingTimes: TypeAlias = Callable[[Step | None, Step], "WaitingTime | None"]
"""From the last step (None: none yet) and the next one to the time in between; None where times are not known."""
INTERVAL = (0.1, 0.9)
"""Quantiles of the seconds to the next step that are given beside the median."""
MIN_GAPS = 9
"""Pairs of steps that were seen fewer times than this get the waiting time after the last step alone: the next of n
gaps is between the shortest and the longest with probability (n − 1) / (n + 1)."""


@dataclass(frozen=True, slots=True)
class WaitingTime:
    """Seconds from the end of the last step (or the start of the video) to the start of the next.

    Their median, the quantiles `low` and `high`, and the number of `gaps` that were seen.
    """

    median: float
    low: float
    high: float
    gaps: int


def fit_waiting_times(task: Task) -> WaitingTimes:
    """Estimate the time between two steps from the videos of a task.

    Pairs that were seen at least `MIN_GAPS` times have their own; else all gaps after the last step count, else all
    there are. A step that starts before the last one ends is waited for 0 seconds.

    >>> from msg2.task import Video
    >>> task = Task("t", "ab", [Video(f"v{n}", [Segment("a", 1, 2), Segment("b", 5, 6)]) for n in range(9)])
    >>> fit_waiting_times(task)("a", "b")
    WaitingTime(median=3.0, low=3.0, high=3.0, gaps=9)
    """
    gaps: defaultdict[tuple[Step | None, Step] | Step | None, list[float]] = defaultdict(list)
    everywhere: list[float] = []
    for video in task:
        for last, following, seconds in _gaps(video.with_first_labels().segments):
            gaps[last, following].append(seconds)
            gaps[last].append(seconds)
            everywhere.append(seconds)

    @cache
    def waiting_time(last: Step | None, following: Step) -> WaitingTime | None:
        for seconds in (gaps.get((last, following), []), gaps.get(last, [])):
            if len(seconds) >= MIN_GAPS:
                return _summarize_gaps(seconds)
        return _summarize_gaps(everywhere) if everywhere else None

    return waiting_time


def _gaps(segments: Iterable[Segment]) -> Iterable[tuple[Step | None, Step, float]]:
    """Each step with the one before it and the seconds in between."""
    last: Step | None = None
    until = 0.0
    for segment in segments:
        if segment.start is None or segment.end is None:
            return
        yield last, segment.step, max(0.0, segment.start - until)
        last, until = segment.step, segment.end


def _summarize_gaps(seconds: Sequence[float]) -> WaitingTime:
    # By this rule the next gap is in the interval as often as it says, also after few of them.
    median, low, high = np.quantile(seconds, [0.5, *INTERVAL], method="weibull").tolist()
    return WaitingTime(median, low, high, len(seconds))

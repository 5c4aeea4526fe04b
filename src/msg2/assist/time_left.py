"""How many seconds pass until the next step, and until the run ends.

Waiting times are the gaps between two steps that videos have. The time left is what was left of videos when they stood
where the run stands: before and after each step of each video some seconds r were left until its last step ended. Those
of similar contexts are what may be left now: context i weighs κ^differences (`similarity_weights`), and where it took
longer to come as far, its r is scaled by the pace,

    r_i · (elapsed now / elapsed then)^β

κ, β and the levels of the quantiles are those that are right about each training video, as seen from the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from msg2.assist.contexts import Contexts, StepIndices, encode_contexts, similarity_weights
from msg2.assist.following import absent_meaning, task_of_graph
from msg2.assist.learned_forecaster import QUICK_LABELS, step_indices, subsample_evenly
from msg2.formats import to_task
from msg2.graph import SubtaskGraph
from msg2.sequences import FloatArray
from msg2.task import Segment, Step, Task, Video

if TYPE_CHECKING:
    from msg2.formats.conversion import Demonstrations

WaitingTimes: TypeAlias = Callable[[Step | None, Step], "WaitingTime | None"]
"""From the last step (None: none yet) and the next one to the time in between; None where times are not known."""
_Level: TypeAlias = Annotated[float, Field(gt=0, lt=1)]
INTERVAL = (0.1, 0.9)
"""Quantiles of the seconds to the next step that are given beside the median."""
MIN_GAPS = 9
"""Pairs of steps that were seen fewer times than this get the waiting time after the last step alone: the next of n
gaps is between the shortest and the longest with probability (n − 1) / (n + 1)."""


@dataclass(frozen=True, slots=True)
class WaitingTime:
    """Seconds from the end of the last step (or the start of the video) to the start of the next, from some gaps."""

    median: float
    low: float
    high: float
    gaps: int


def fit_waiting_times(task: Demonstrations) -> WaitingTimes:
    """Estimate the time between two steps: by their own gaps, by all after the last step, or by all there are."""
    gaps: defaultdict[tuple[Step | None, ...], list[float]] = defaultdict(list)
    for video in to_task(task):
        for last, following, seconds in _gaps(video.with_first_labels().segments):
            for key in ((last, following), (last,), ()):
                gaps[key].append(seconds)

    @cache
    def waiting_time(last: Step | None, following: Step) -> WaitingTime | None:
        for key, least in (((last, following), MIN_GAPS), ((last,), MIN_GAPS), ((), 1)):
            seconds = gaps.get(key, [])
            if len(seconds) >= least:
                # By this rule the next gap is in the interval as often as it says, also after few of them.
                median, low, high = np.quantile(seconds, [0.5, *INTERVAL], method="weibull").tolist()
                return WaitingTime(median, low, high, len(seconds))
        return None

    return waiting_time


def _gaps(segments: Iterable[Segment]) -> Iterable[tuple[Step | None, Step, float]]:
    """Each step with the one before it and the seconds in between, 0 where they overlap."""
    last: Step | None = None
    until = 0.0
    for segment in segments:
        if segment.start is None or segment.end is None:
            return
        yield last, segment.step, max(0.0, segment.start - until)
        last, until = segment.step, segment.end


FILLED = 2 / 3
"""Share of a video, from its first label to its last, that labels fill at least where nothing was cut out: more than in
any CrossTask task (edited; medians 0.24 to 0.53), less than in 11 of CaptainCook4D's 12 recipes (not; 0.73 to 0.92)."""


def times_unknown(task: Task, graph: SubtaskGraph) -> str | None:
    """Say why the times of videos do not tell how long the work takes; None where they do.

    An editor may cut anything out. Nobody did where a step without a label was not done, as in a log, or where labels
    fill the time.
    """
    timed = [video for video in task if video.segments and video.is_timed]
    if len(timed) < 2:
        return "fewer than two videos of the data have times"
    share = float(np.median([_share_filled(video) for video in timed if len(video.segments) > 1] or [0.0]))
    if share >= FILLED or "skipped" in (task.absent, absent_meaning(graph, task)):
        return None
    return (
        f"labels fill {100 * share:.0f} % of the videos, as in edited ones, which do not tell how long the work takes"
    )


def _share_filled(video: Video) -> float:
    """How much of the time from its first label to its last a video has labels."""
    start = until = video.segments[0].start or 0.0
    filled = 0.0
    for segment in video.segments:
        filled += max(0.0, (segment.end or 0.0) - max(segment.start or 0.0, until))
        until = max(until, segment.end or 0.0)
    return filled / (until - start) if until > start else 1.0


_DECAYS = (0.1, 0.3, 0.6)
"""κ."""
_PACES = (0.0, 0.5, 1.0)
"""β."""
_FASTEST = 4.0
"""A run is taken to be so many times faster or slower than another, at most."""
_TRIED = 600
"""Contexts on which κ and β are chosen, at most."""


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """Seconds until the last step ends: the median, and an interval that four runs in five end in."""

    median: float
    low: float
    high: float
    videos: int
    """How many it was learned from."""
    least: float = 0.0
    """Seconds that it takes at the least once the next step is done: so many are left however long nothing happens."""

    @property
    def reason(self) -> str:
        """Where the numbers come from, in words."""
        return f"from {self.videos} videos, above all from moments at which as much was done"

    def after(self, seconds: float) -> TimeLeft:
        """Return what is left when so many seconds have passed and nothing has happened."""
        return replace(
            self,
            median=max(self.median - seconds, self.least),
            low=max(self.low - seconds, min(self.low, self.least)),
            high=max(self.high - seconds, self.least),
        )

    def to_json(self) -> dict[str, object]:
        """Plain values for one JSON object."""
        return {**asdict(self), "reason": self.reason}


@dataclass(frozen=True, slots=True)
class TimeConstants:
    """What is chosen from the videos: κ, β, and the levels of quantiles that are right as often as they should be."""

    decay: Annotated[float, Field(gt=0, lt=1)]
    pace: Annotated[float, Field(ge=0, le=1)]
    levels: tuple[_Level, _Level, _Level]
    """Half of the time, one and nine in ten times."""


@dataclass(frozen=True, slots=True, eq=False)
class TimeLeftModel:
    """Called with the steps done and the seconds since the first of them, it says how many seconds are left."""

    graph: SubtaskGraph
    contexts: Contexts  # m of them
    left: FloatArray  # seconds that were left in each, shape (m,)
    elapsed: FloatArray  # seconds that had passed since the end of the first step, likewise
    videos: int
    constants: TimeConstants

    def __call__(self, done: Sequence[Step], elapsed: float | None = None) -> TimeLeft:
        """Forecast the seconds from the end of the last step to the end of the run."""
        now = encode_contexts([step_indices(done, self.graph)], len(self.graph.steps))
        weights = similarity_weights(now, self.contexts, self.constants.decay)
        passed = np.array([0.0 if elapsed is None else max(elapsed, 0.0)])
        scaled = _scale(self.left, self.elapsed, passed, self.constants.pace)
        order = scaled.argsort(axis=1, kind="stable")
        median, low, high = (_weighted_quantiles(scaled, weights, level, order)[0] for level in self.constants.levels)
        return TimeLeft(float(median), float(min(low, median)), float(max(high, median)), self.videos)


def fit_time_left(
    graph: SubtaskGraph, task: Demonstrations, constants: TimeConstants | None = None
) -> TimeLeftModel | None:
    """Learn how long videos go on; None where fewer than two have times. Known `constants` are taken as given."""
    videos = task_of_graph(graph, task)
    timed = [video for video in videos if video.segments and all(segment.is_timed for segment in video.segments)]
    mean_length = sum(len(video.segments) for video in timed) / max(len(timed), 1)
    timed = list(subsample_evenly(timed, max(2, int(QUICK_LABELS / max(mean_length, 1)))))
    if len(timed) < 2:
        return None
    moments = [_moments(video, graph) for video in timed]
    prefixes = [prefix for of_video in moments for prefix, _, _ in of_video]
    elapsed, left = (np.array([moment[column] for of_video in moments for moment in of_video]) for column in (1, 2))
    video_of = np.repeat(np.arange(len(timed)), [len(of_video) for of_video in moments])
    contexts = encode_contexts(prefixes, len(graph.steps))
    constants = constants or _choose(contexts, elapsed, left, video_of)
    return TimeLeftModel(graph, contexts, left, elapsed, len(timed), constants)


def _moments(video: Video, graph: SubtaskGraph) -> list[tuple[StepIndices, float, float]]:
    """Before the first step and after each: what was done, seconds since the first step ended, and seconds left."""
    segments = video.with_first_labels().segments
    ends, start = [segment.end or 0.0 for segment in segments], segments[0].start or 0.0
    last = max(segment.end or 0.0 for segment in video.segments)
    steps = step_indices(video.sequence(), graph)
    return [((), 0.0, last - start)] + [
        (steps[: number + 1], max(end - ends[0], 0.0), max(last - max(ends[: number + 1]), 0.0))
        for number, end in enumerate(ends)
    ]


def _choose(contexts: Contexts, elapsed: FloatArray, left: FloatArray, video_of: NDArray[np.intp]) -> TimeConstants:
    """κ and β of the least mean error of the median, and the levels; each context as seen from the other videos."""
    tried = np.array(subsample_evenly(range(len(left)), _TRIED))
    others = video_of[tried][:, None] != video_of
    best: tuple[float, float, float, FloatArray] | None = None
    alike = {decay: similarity_weights(contexts, contexts, decay, tried) * others for decay in _DECAYS}
    for pace in _PACES:
        scaled = _scale(left, elapsed, elapsed[tried], pace)
        order = scaled.argsort(axis=1, kind="stable")
        for decay, weights in alike.items():
            error = float(np.abs(_weighted_quantiles(scaled, weights, 0.5, order) - left[tried]).mean())
            if best is None or error < best[0] - 1e-9:
                best = error, decay, pace, _level_of(scaled, weights, left[tried])
    assert best is not None
    _, decay, pace, reached = best
    goes_on = left[tried] > 0  # after the last step of a video there is nothing to be wrong about
    reached = reached[goes_on] if goes_on.any() else reached
    middle, low, high = np.quantile(reached, (0.5, *INTERVAL), method="weibull").clip(0.001, 0.999).tolist()
    return TimeConstants(decay, pace, (middle, low, high))


def _scale(left: FloatArray, elapsed: FloatArray, now: FloatArray, pace: float) -> FloatArray:
    """What was left of m contexts, at the pace of n runs, shape (n, m); without time passed, as it was."""
    ratio = np.where(elapsed > 0, now[:, None] / np.where(elapsed > 0, elapsed, 1.0), 1.0)
    ratio = np.where(now[:, None] > 0, ratio, 1.0).clip(1 / _FASTEST, _FASTEST)
    return np.asarray(left * ratio**pace)


def _weighted_quantiles(values: FloatArray, weights: FloatArray, level: float, order: NDArray[np.intp]) -> FloatArray:
    """Of each row, the least value that has at least this share of the weight below or at it; shape (n, m) -> (n,).

    `order` sorts the rows.
    """
    total = np.take_along_axis(weights, order, axis=1).cumsum(axis=1)
    column = (total < level * total[:, -1:]).sum(axis=1).clip(max=values.shape[1] - 1)
    return np.asarray(np.take_along_axis(values, np.take_along_axis(order, column[:, None], axis=1), axis=1)[:, 0])


def _level_of(values: FloatArray, weights: FloatArray, reached: FloatArray) -> FloatArray:
    """The share of the weight that lies below what came, half of the equal ones included; shape (n, m) -> (n,)."""
    below, equal = values < reached[:, None], values == reached[:, None]
    total = np.maximum(weights.sum(axis=1), np.finfo(float).tiny)
    return np.asarray((weights * (below + 0.5 * equal)).sum(axis=1) / total)

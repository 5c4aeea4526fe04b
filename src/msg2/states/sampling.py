"""From a labelled video to the tokens that the state predictor reads (App. A, Training).

The tokens of a video are frames in the order of time, with `[start]` and `[end]` at the borders of its labelled
segments. A frame brings the sentences around it. Everything here is NumPy; a seed decides all that is random.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, shortened
from msg2.media.features import Features
from msg2.options import SamplingOptions
from msg2.task import Step, Video

FRAME, START, END = 1, 2, 3
"""Kinds of tokens; 0 is padding."""
NOT_STARTED, IN_PROGRESS, COMPLETED = 0, 1, 2
"""States of a step."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """One video ready for sampling: its labels as arrays, and the times of its frames and sentences, in seconds."""

    video: str
    steps: Ints
    """Shape (K,): the step of every labelled segment, as a place in the task's steps."""
    starts: Floats
    ends: Floats
    frame_times: Floats
    sentence_times: Floats
    """The middles of the sentences."""


def clip(video: Video, steps: tuple[Step, ...], features: Features, *, text_only: bool = False) -> Clip:
    """`video` (first labels count) with its features; `text_only` puts the sentences in the place of the frames."""
    segments = video.with_first_labels().segments
    if not video.timed:
        raise InputError(
            f"video {shortened(video.id)} has no times", hint="state prediction needs start and end of every label"
        )
    # Sorted by start: a long sentence may have its middle after the next one's.
    middles = np.maximum.accumulate(features.sentence_times.mean(axis=1))
    frames = middles if text_only else features.frame_times
    if not len(frames):
        what = "sentences" if text_only else "frames"
        raise InputError(f"the features of video {shortened(video.id)} hold no {what}")
    place = {name: number for number, name in enumerate(steps)}
    return Clip(
        video.id,
        np.array([place[segment.step] for segment in segments], dtype=np.int64),
        np.array([segment.start for segment in segments], dtype=np.float64),
        np.array([segment.end for segment in segments], dtype=np.float64),
        frames,
        middles,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """What the model reads of one video, L tokens in the order of time, and what it is to find."""

    kind: Ints
    """Shape (L,): FRAME, START or END."""
    time: Floats
    """Shape (L,), seconds."""
    frame: Ints
    """Shape (L,): which frame; for a delimiter the nearest."""
    sentence: Ints
    """Shape (L, sentences): which sentences; -1 where the narration has no more."""
    step: Ints
    """Shape (L,): whose border a delimiter is; -1 for frames."""
    inside: NDArray[np.bool_]
    """Shape (L, N): the token lies in a segment that is labelled so, and whose borders are among the tokens."""
    state: Ints
    """Shape (L, N): NOT_STARTED, IN_PROGRESS or COMPLETED, by the labels."""
    labelled: NDArray[np.bool_]
    """Shape (N,): the steps that the labels of the video hold, dropped ones included."""
    dropped: NDArray[np.bool_]
    """Shape (N,): those of them whose borders are not among the tokens."""


def sampled(clip: Clip, steps: int, options: SamplingOptions, rng: np.random.Generator | None = None) -> Tokens:
    """The tokens of `clip`, a task with so many `steps`: at random for training, without an `rng` as for testing."""
    count = len(clip.steps)
    kept = np.arange(count)
    if rng is not None and count > 1:
        most = max(1, round(options.dropped * count)) if options.dropped else 0
        kept = np.sort(rng.permutation(count)[rng.integers(most + 1) :])
    times = _frame_times(clip, kept, options, rng)
    instants = clip.starts[kept] == clip.ends[kept]
    kind = np.concatenate([np.full(len(times), FRAME), np.full(len(kept), START), np.full(len(kept), END)])
    time = np.concatenate([times, clip.starts[kept], clip.ends[kept]])
    step = np.concatenate([np.full(len(times), -1), clip.steps[kept], clip.steps[kept]])
    # At one moment: what ends, what starts, frames, the end of what lasts no time.
    tie = np.concatenate([np.full(len(times), 2), np.full(len(kept), 1), np.where(instants, 3, 0)])
    order = np.lexsort((tie, time))
    kind, time, step = kind[order], time[order], step[order]
    dropped = np.zeros(steps, dtype=np.bool_)
    dropped[np.delete(clip.steps, kept)] = True
    labelled = np.zeros(steps, dtype=np.bool_)
    labelled[clip.steps] = True
    return Tokens(
        kind,
        time,
        nearest(clip.frame_times, time),
        _windows(clip.sentence_times, time, options.sentences),
        step,
        _inside(clip, kept, steps, time),
        _states(clip, steps, kind, time, step),
        labelled,
        dropped,
    )


def _frame_times(clip: Clip, kept: Ints, options: SamplingOptions, rng: np.random.Generator | None) -> Floats:
    """When frames are taken, ascending: within the `kept` segments, and through the whole video where asked for."""
    starts, ends = clip.starts[kept], clip.ends[kept]
    each = np.full(len(kept), options.per_segment)
    if rng is not None and options.frames == "segments":
        inside = np.searchsorted(clip.frame_times, ends, "right") - np.searchsorted(clip.frame_times, starts)
        each = np.maximum(inside, options.per_segment)
    if each.sum() > options.most_frames:
        # Every segment keeps what it needs; what is left of the budget goes to the longer ones in proportion.
        floor = min(options.per_segment, max(1, options.most_frames // len(each)))
        spare, wanted = max(0, options.most_frames - floor * len(each)), each - floor
        each = floor + (wanted * (spare / max(1, wanted.sum()))).astype(np.int64)
        each[np.cumsum(each) > options.most_frames] = 0
    within = np.repeat(np.arange(len(kept)), each)
    place = np.arange(len(within)) - np.repeat(np.cumsum(each) - each, each)
    share = (place + 0.5) / each[within] if rng is None else rng.random(len(within))
    times = starts[within] + share * (ends - starts)[within]
    if options.frames == "video":
        rest = min(options.most_frames - len(times), len(clip.frame_times))
        jitter = 0.5 if rng is None else rng.random(max(0, rest))
        first, last = clip.frame_times[0], clip.frame_times[-1]
        times = np.concatenate([times, first + (last - first) * (np.arange(max(0, rest)) + jitter) / max(1, rest)])
    return np.sort(times)


def nearest(times: Floats, wanted: Floats) -> Ints:
    """For every wanted moment the place of the nearest of `times` (ascending, at least one); the earlier of two.

    >>> nearest(np.array([0.0, 1.0, 5.0]), np.array([0.4, 3.0, 9.0])).tolist()
    [0, 1, 2]
    """
    after = np.clip(np.searchsorted(times, wanted), 1, max(1, len(times) - 1))
    before = after - 1
    if len(times) == 1:
        return np.zeros(len(wanted), dtype=np.int64)
    return np.where(wanted - times[before] <= times[after] - wanted, before, after)


def _windows(times: Floats, wanted: Floats, width: int) -> Ints:
    """Shape (len(wanted), width): the sentences around each moment; -1 before the first and after the last."""
    if not len(times):
        return np.full((len(wanted), width), -1)
    window = nearest(times, wanted)[:, None] + np.arange(width) - width // 2
    return np.where((window >= 0) & (window < len(times)), window, -1)


def _inside(clip: Clip, kept: Ints, steps: int, time: Floats) -> NDArray[np.bool_]:
    """Shape (L, N): which of the `kept` segments each moment lies in."""
    inside = np.zeros((len(time), steps), dtype=np.bool_)
    now = time[:, None]
    inside[:, clip.steps[kept]] = (clip.starts[kept] <= now) & (now <= clip.ends[kept])
    return inside


def _states(clip: Clip, steps: int, kind: Ints, time: Floats, step: Ints) -> Ints:
    """Shape (L, N): the state of every step at every token, by the labels of the whole clip."""
    state = np.zeros((len(time), steps), dtype=np.int64)
    now = time[:, None]
    # A step is completed from its end on, and in progress from its start to its end.
    state[:, clip.steps] = (clip.starts <= now).astype(np.int64) + (clip.ends <= now)
    own = kind == START  # of something that lasts no time, this moment is its start
    state[own, step[own]] = IN_PROGRESS
    return state

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
_ENDS, _STARTS, _FRAMES, _INSTANTS_END = range(4)
"""The turns of tokens at one moment: the end of what lasts no time comes last."""

FACTS = 11
"""Numbers besides those of single labels in what is told about a moment."""

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
    """Ascending."""
    sentence_times: Floats
    """The middles of the sentences, which come in the order of their starts."""


def clip(video: Video, steps: tuple[Step, ...], features: Features, *, text_only: bool = False) -> Clip:
    """`video` (first labels count) with its features; `text_only` puts the sentences in the place of the frames."""
    segments = video.with_first_labels().segments
    if not video.timed:
        raise InputError(
            f"video {shortened(video.id)} has no times", hint="state prediction needs start and end of every label"
        )
    middles = features.sentence_times.mean(axis=1)
    frames = np.sort(middles) if text_only else features.frame_times
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
    told: Floats
    """Shape (L, 2 N + FACTS): what the labels that are left tell about each moment; see `_told`."""
    state: Ints
    """Shape (L, N): NOT_STARTED, IN_PROGRESS or COMPLETED, by the labels."""
    labelled: NDArray[np.bool_]
    """Shape (N,): the steps that the labels of the video hold, dropped ones included."""
    dropped: NDArray[np.bool_]
    """Shape (N,): those of them whose borders are not among the tokens."""


def sampled(clip: Clip, steps: int, options: SamplingOptions, rng: np.random.Generator | None = None) -> Tokens:
    """The tokens of `clip`, a task with so many `steps`: at random for training, without an `rng` as for testing.

    Of two labels or more, one may always be dropped, even where that is more than the share `options.dropped`: videos
    with two or three labels would otherwise never teach anything about hidden steps.
    """
    count = len(clip.steps)
    kept = np.arange(count)
    if rng is not None and count > 1:
        most = max(1, int(options.dropped * count)) if options.dropped else 0
        kept = np.sort(rng.permutation(count)[most if options.always else rng.integers(most + 1) :])
    times = _frame_times(clip, kept, options, rng)
    instants = clip.starts[kept] == clip.ends[kept]
    kind = np.concatenate([np.full(len(times), FRAME), np.full(len(kept), START), np.full(len(kept), END)])
    time = np.concatenate([times, clip.starts[kept], clip.ends[kept]])
    step = np.concatenate([np.full(len(times), -1), clip.steps[kept], clip.steps[kept]])
    tie = np.concatenate(
        [np.full(len(times), _FRAMES), np.full(len(kept), _STARTS), np.where(instants, _INSTANTS_END, _ENDS)]
    )
    order = np.lexsort((tie, time))
    kind, time, step, tie = kind[order], time[order], step[order], tie[order]
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
        _told(clip, kept, steps, kind, time),
        _states(clip, steps, time, tie),
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


def by_time(times: Floats) -> Ints:
    """The places of `times` in ascending order; what comes at the same time stays as it is."""
    return np.argsort(times, kind="stable")


def _windows(times: Floats, wanted: Floats, width: int) -> Ints:
    """Shape (len(wanted), width): the sentences around each moment; -1 before the first and after the last."""
    if not len(times):
        return np.full((len(wanted), width), -1)
    order = by_time(times)  # a long sentence may have its middle after the next one's
    window = nearest(times[order], wanted)[:, None] + np.arange(width) - width // 2
    return np.where((window >= 0) & (window < len(times)), order[window.clip(0, len(times) - 1)], -1)


def _inside(clip: Clip, kept: Ints, steps: int, time: Floats) -> NDArray[np.bool_]:
    """Shape (L, N): which of the `kept` segments each moment lies in."""
    inside = np.zeros((len(time), steps), dtype=np.bool_)
    now = time[:, None]
    inside[:, clip.steps[kept]] = (clip.starts[kept] <= now) & (now <= clip.ends[kept])
    return inside


def _told(clip: Clip, kept: Ints, steps: int, kind: Ints, time: Floats) -> Floats:
    """Shape (L, 2 N + FACTS): which of the `kept` labels are completed and which there are, and further facts.

    These are of about the same size: the part of the video that is over and its square, the part of the labels' time,
    how many are completed, of all steps and of the labels, whether it is an end; and of the whole video, how many
    labels there are, how much of it they cover, what comes before and after them, and the logarithm of its seconds.
    """
    starts, ends = clip.starts[kept], clip.ends[kept]
    seconds = max([1.0, *clip.frame_times[-1:], *clip.ends])
    done, there = np.zeros((len(time), steps)), np.zeros((len(time), steps))
    done[:, clip.steps[kept]] = ends <= time[:, None]
    there[:, clip.steps[kept]] = 1
    part, count = time / seconds, done.sum(axis=1)
    first, last = min([*starts, seconds]), max([*ends, 0.0])
    between = (time - first) / max(last - first, 1e-9) if len(kept) else part
    now = (part, part**2, between, count / steps, count / max(1, len(kept)), kind == END)
    covered = (ends - starts).sum() / seconds
    whole = (len(kept) / steps, covered, first / seconds, 1 - last / seconds, np.log(seconds) / 10)
    return np.column_stack([done, there, *now, np.tile(whole, (len(time), 1))])


def _states(clip: Clip, steps: int, time: Floats, tie: Ints) -> Ints:
    """Shape (L, N): the state of every step at every token, by the labels of the whole clip."""
    state = np.zeros((len(time), steps), dtype=np.int64)
    now, turn = time[:, None], tie[:, None]
    # A step is in progress from its start and completed from its end on; what lasts no time is so in its turn.
    instant = clip.starts == clip.ends
    started = (clip.starts <= now) & ~(instant & (clip.starts == now) & (turn < _STARTS))
    completed = (clip.ends <= now) & ~(instant & (clip.ends == now) & (turn < _INSTANTS_END))
    state[:, clip.steps] = started.astype(np.int64) + completed
    return state

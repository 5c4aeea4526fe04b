"""The tokens that the state network reads of a labelled video, and its targets: the state of every step (App. A).

The tokens of a video are frames in the order of time, with `[start]` and `[end]` at the borders of its labelled
segments. A frame comes with the sentences around it. Everything here is NumPy; a seed decides all that is random.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError
from msg2.media.feature_store import VideoFeatures
from msg2.sequences import FloatArray, IntArray
from msg2.states.configuration import SamplingOptions
from msg2.task import Step, Video
from msg2.text import short_repr

FRAME, START, END = 1, 2, 3  # kinds of tokens; 0 is padding
NOT_STARTED, IN_PROGRESS, COMPLETED = 0, 1, 2  # states of a step
_ENDS, _STARTS, _FRAMES, _INSTANTS_END = range(4)
"""The order of tokens at one moment: the end of what lasts no time comes last."""

EXTRA_FEATURES = 11  # features of a moment besides those of single labels; see `_label_features`


@dataclass(frozen=True, slots=True, eq=False)
class LabelledVideo:
    """One video ready for sampling: its labels as arrays, and the times of its frames and sentences, in seconds."""

    video: str
    steps: IntArray  # shape (K,): the step of every labelled segment, as an index into the task's steps
    starts: FloatArray
    ends: FloatArray
    frame_times: FloatArray  # ascending
    sentence_times: FloatArray  # the middles of the sentences, which come in the order of their starts


def labelled_video(
    video: Video, steps: tuple[Step, ...], features: VideoFeatures, *, text_only: bool = False
) -> LabelledVideo:
    """Prepare a video for sampling; of repeated labels the first counts."""
    segments = video.with_first_labels().segments
    if not video.is_timed:
        hint = "state prediction needs start and end of every label"
        raise InputError(f"video {short_repr(video.id)} has no times", hint=hint)
    middles = features.sentence_times.mean(axis=1)
    frames = np.sort(middles) if text_only else features.frame_times
    if not len(frames):
        what = "sentences" if text_only else "frames"
        raise InputError(f"the features of video {short_repr(video.id)} hold no {what}")
    numbers = np.array([steps.index(segment.step) for segment in segments], dtype=np.int64)
    times = np.array([(segment.start, segment.end) for segment in segments], dtype=np.float64).reshape(-1, 2)
    starts, ends = np.ascontiguousarray(times.T)
    return LabelledVideo(video.id, numbers, starts, ends, frames, middles)


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """What the model reads of one video, L tokens in the order of time, and what it is to predict."""

    kind: IntArray  # shape (L,): FRAME, START or END
    time: FloatArray  # shape (L,), seconds
    frame: IntArray  # shape (L,): which frame; for a delimiter the nearest
    sentence: IntArray  # shape (L, sentences): which sentences; -1 where the narration has no more
    step: IntArray  # shape (L,): whose border a delimiter is; -1 for frames
    inside: NDArray[np.bool_]
    """Shape (L, N): the token lies in a segment that is labelled so, and whose borders are among the tokens."""
    label_features: FloatArray
    """Shape (L, 2 N + EXTRA_FEATURES): what the visible labels say about each moment; see `_label_features`."""
    state: IntArray  # shape (L, N): NOT_STARTED, IN_PROGRESS or COMPLETED, by the labels
    labelled: NDArray[np.bool_]  # shape (N,): the steps that the labels of the video hold, dropped ones included
    dropped: NDArray[np.bool_]  # shape (N,): those of them whose borders are not among the tokens


def sample_tokens(
    video: LabelledVideo, steps: int, options: SamplingOptions, rng: np.random.Generator | None = None
) -> Tokens:
    """Sample the tokens of a video: at random for training, without an `rng` as for testing.

    Of two labels or more, one may always be dropped, even where that is more than the share `options.dropped`: videos
    with two or three labels would otherwise never teach anything about hidden steps.
    """
    count = len(video.steps)
    visible = np.arange(count)
    if rng is not None and count > 1:
        most = max(1, int(options.dropped * count)) if options.dropped else 0
        visible = np.sort(rng.permutation(count)[most if options.always else rng.integers(most + 1) :])
    times = _frame_times(video, visible, options, rng)
    starts, ends, shown = video.starts[visible], video.ends[visible], video.steps[visible]
    sizes = (len(times), len(visible), len(visible))
    kind = np.repeat((FRAME, START, END), sizes)
    time = np.concatenate([times, starts, ends])
    step = np.concatenate([np.full(len(times), -1), shown, shown])
    tie = np.repeat((_FRAMES, _STARTS, _ENDS), sizes)
    tie[len(times) + len(visible) :][starts == ends] = _INSTANTS_END
    order = np.lexsort((tie, time))
    kind, time, step, tie = kind[order], time[order], step[order], tie[order]
    return Tokens(
        kind, time, nearest_index(video.frame_times, time),
        _sentence_windows(video.sentence_times, time, options.sentences), step,
        _inside(video, visible, steps, time), _label_features(video, visible, steps, kind, time),
        _states(video, steps, time, tie),
        labelled=np.isin(np.arange(steps), video.steps),
        dropped=np.isin(np.arange(steps), np.delete(video.steps, visible)),
    )  # fmt: skip


def sample_without(video: LabelledVideo, label: int, steps: int, options: SamplingOptions) -> Tokens:
    """Sample the tokens of a video, as for testing, as if one of its labels were missing."""
    others = np.arange(len(video.steps)) != label
    kept = replace(video, steps=video.steps[others], starts=video.starts[others], ends=video.ends[others])
    return sample_tokens(kept, steps, options)


def _frame_times(
    video: LabelledVideo, visible: IntArray, options: SamplingOptions, rng: np.random.Generator | None
) -> FloatArray:
    """When frames are taken, ascending: within the `visible` segments, and through the whole video where asked for."""
    starts, ends = video.starts[visible], video.ends[visible]
    each = np.full(len(visible), options.per_segment)
    if rng is not None and options.frames == "segments":
        inside = np.searchsorted(video.frame_times, ends, "right") - np.searchsorted(video.frame_times, starts)
        each = np.maximum(inside, options.per_segment)
    if each.sum() > options.most_frames:
        # Every segment keeps what it needs; what is left of the budget goes to the longer ones in proportion.
        floor = min(options.per_segment, max(1, options.most_frames // len(each)))
        spare, wanted = max(0, options.most_frames - floor * len(each)), each - floor
        each = floor + (wanted * (spare / max(1, wanted.sum()))).astype(np.int64)
        each[np.cumsum(each) > options.most_frames] = 0
    within = np.repeat(np.arange(len(visible)), each)
    index = np.arange(len(within)) - np.repeat(np.cumsum(each) - each, each)
    share = (index + 0.5) / each[within] if rng is None else rng.random(len(within))
    times = starts[within] + share * (ends - starts)[within]
    if options.frames == "video":
        rest = min(options.most_frames - len(times), len(video.frame_times))
        jitter = 0.5 if rng is None else rng.random(max(0, rest))
        first, last = video.frame_times[0], video.frame_times[-1]
        times = np.concatenate([times, first + (last - first) * (np.arange(max(0, rest)) + jitter) / max(1, rest)])
    return np.sort(times)


def nearest_index(times: FloatArray, wanted: FloatArray) -> IntArray:
    """For every wanted moment the index of the nearest time; the earlier of two."""
    after = np.clip(np.searchsorted(times, wanted), 1, max(1, len(times) - 1))
    before = after - 1
    if len(times) == 1:
        return np.zeros(len(wanted), dtype=np.int64)
    return np.where(wanted - times[before] <= times[after] - wanted, before, after)


def time_order(times: FloatArray) -> IntArray:
    """Return the indices that sort `times`; what comes at the same time stays as it is."""
    return np.argsort(times, kind="stable")


def _sentence_windows(times: FloatArray, wanted: FloatArray, width: int) -> IntArray:
    """Shape (len(wanted), width): the sentences around each moment; -1 before the first and after the last."""
    if not len(times):
        return np.full((len(wanted), width), -1)
    order = time_order(times)  # a long sentence may have its middle after the next one's
    window = nearest_index(times[order], wanted)[:, None] + np.arange(width) - width // 2
    return np.where((window >= 0) & (window < len(times)), order[window.clip(0, len(times) - 1)], -1)


def _inside(video: LabelledVideo, visible: IntArray, steps: int, time: FloatArray) -> NDArray[np.bool_]:
    """Shape (L, N): which of the `visible` segments each moment lies in."""
    inside = np.zeros((len(time), steps), dtype=np.bool_)
    now = time[:, None]
    inside[:, video.steps[visible]] = (video.starts[visible] <= now) & (now <= video.ends[visible])
    return inside


def _label_features(
    video: LabelledVideo, visible: IntArray, steps: int, kind: IntArray, time: FloatArray
) -> FloatArray:
    """Shape (L, 2 N + EXTRA_FEATURES): the `visible` labels that are completed, those that exist, and more.

    These are of about the same size: the part of the video that is over and its square, the part of the labels' time,
    how many are completed, of all steps and of the labels, whether it is an end; and of the whole video, how many
    labels there are, how much of it they cover, what comes before and after them, and the logarithm of its seconds.
    """
    starts, ends = video.starts[visible], video.ends[visible]
    seconds = max([1.0, *video.frame_times[-1:], *video.ends])
    done, exists = np.zeros((len(time), steps)), np.zeros((len(time), steps))
    done[:, video.steps[visible]] = ends <= time[:, None]
    exists[:, video.steps[visible]] = 1
    part, count = time / seconds, done.sum(axis=1)
    first, last = min([*starts, seconds]), max([*ends, 0.0])
    between = (time - first) / max(last - first, 1e-9) if len(visible) else part
    now = (part, part**2, between, count / steps, count / max(1, len(visible)), kind == END)
    covered = (ends - starts).sum() / seconds
    whole = (len(visible) / steps, covered, first / seconds, 1 - last / seconds, np.log(seconds) / 10)
    return np.column_stack([done, exists, *now, np.tile(whole, (len(time), 1))])


def _states(video: LabelledVideo, steps: int, time: FloatArray, tie: IntArray) -> IntArray:
    """Shape (L, N): the state of every step at every token, by all labels of the video."""
    state = np.zeros((len(time), steps), dtype=np.int64)
    now, turn = time[:, None], tie[:, None]
    # A step is in progress from its start and completed from its end on; what lasts no time is so in its turn.
    instant = video.starts == video.ends
    started = (video.starts <= now) & ~(instant & (video.starts == now) & (turn < _STARTS))
    completed = (video.ends <= now) & ~(instant & (video.ends == now) & (turn < _INSTANTS_END))
    state[:, video.steps] = started.astype(np.int64) + completed
    return state

"""What the state network learns from: labelled videos with their features, as tokens, targets and batches (App. A).

The tokens of a video are frames in the order of time, with `[start]` and `[end]` at the borders of its labelled
segments; a frame comes with the sentences around it. The targets are the states of every step at every token. Sampling
is NumPy, and a seed decides all that is random.

Features are kept in one piece (on the GPU where there is one). A batch holds only row numbers in them, so a step of
training moves a few kilobytes.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from msg2.errors import require
from msg2.formats.feature_store import VideoFeatures, nearest_index
from msg2.sequences import FloatArray, IntArray
from msg2.states.configuration import SamplingOptions
from msg2.task import Step, Task, Video
from msg2.text import short_repr

FRAME, START, END = 1, 2, 3  # kinds of tokens; 0 is padding
NOT_STARTED, IN_PROGRESS, COMPLETED = 0, 1, 2  # states of a step
_ENDS, _STARTS, _FRAMES, _INSTANTS_END = range(4)
"""The order of tokens at one moment: the end of what lasts no time comes last."""

EXTRA_FEATURES = 11  # features of a moment besides those of single labels; see `_label_features`
FOLDS = 4  # folds of the training videos: each has a linear layer that learns from the other folds and scores this one


@dataclass(frozen=True, slots=True, eq=False)
class LabelledVideo:
    """One video ready for sampling: its labels as arrays, and the times of its frames and sentences, in seconds."""

    video: str
    steps: IntArray  # shape (K,): the step of every labelled segment, as an index into the task's steps
    starts: FloatArray
    ends: FloatArray
    frame_times: FloatArray  # ascending
    sentence_times: FloatArray  # the middles of the sentences, which come in the order of their starts
    first_frame: int = 0  # where its frames, and its sentences, begin among those of all videos
    first_sentence: int = 0

    def keep(self, labels: NDArray[np.bool_] | IntArray) -> LabelledVideo:
        """Return the same video with some of its labels."""
        return replace(self, steps=self.steps[labels], starts=self.starts[labels], ends=self.ends[labels])


def labelled_video(
    video: Video, steps: tuple[Step, ...], features: VideoFeatures, *first_rows: int, text_only: bool = False
) -> LabelledVideo:
    """Prepare a video for sampling; `first_rows`: where its frames and sentences begin among those of all videos."""
    segments = video.with_first_labels().segments
    hint = "state prediction needs start and end of every label"
    require(video.is_timed, f"video {short_repr(video.id)} has no times", hint=hint)
    middles = features.sentence_times.mean(axis=1)
    frames = np.sort(middles) if text_only else features.frame_times
    what = "sentences" if text_only else "frames"
    require(len(frames), f"the features of video {short_repr(video.id)} hold no {what}")
    numbers = np.array([steps.index(segment.step) for segment in segments], dtype=np.int64)
    times = np.array([(segment.start, segment.end) for segment in segments], dtype=np.float64).reshape(-1, 2)
    starts, ends = np.ascontiguousarray(times.T)
    return LabelledVideo(video.id, numbers, starts, ends, frames, middles, *first_rows)


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
    """Sample the tokens of a video: at random for training, without an `rng` as for testing."""
    count = len(video.steps)
    visible = np.arange(count)
    if rng is not None and count > 1:
        # At least one label may go, or videos with two or three would never teach anything about hidden steps.
        most = max(1, int(options.dropped * count)) if options.dropped else 0
        visible = np.sort(rng.permutation(count)[most if options.always else rng.integers(most + 1) :])
    shown = video.keep(visible)
    times = _frame_times(shown, options, rng)
    sizes = (len(times), len(visible), len(visible))
    kind = np.repeat((FRAME, START, END), sizes)
    time = np.concatenate([times, shown.starts, shown.ends])
    step = np.concatenate([np.full(len(times), -1), shown.steps, shown.steps])
    tie = np.repeat((_FRAMES, _STARTS, _ENDS), sizes)
    tie[len(times) + len(visible) :][shown.starts == shown.ends] = _INSTANTS_END
    order = np.lexsort((tie, time))
    kind, time, step, tie = kind[order], time[order], step[order], tie[order]
    inside = np.zeros((len(time), steps), dtype=np.bool_)
    inside[:, shown.steps] = (shown.starts <= time[:, None]) & (time[:, None] <= shown.ends)
    seconds = max([1.0, *video.frame_times[-1:], *video.ends])
    return Tokens(
        kind, time, nearest_index(video.frame_times, time),
        _sentence_windows(video.sentence_times, time, options.sentences), step, inside,
        _label_features(shown, seconds, steps, kind, time), _states(video, steps, time, tie),
        labelled=np.isin(np.arange(steps), video.steps),
        dropped=np.isin(np.arange(steps), np.delete(video.steps, visible)),
    )  # fmt: skip


def sample_without(video: LabelledVideo, label: int, steps: int, options: SamplingOptions) -> Tokens:
    """Sample the tokens of a video, as for testing, as if one of its labels were missing."""
    return sample_tokens(video.keep(np.arange(len(video.steps)) != label), steps, options)


def _frame_times(video: LabelledVideo, options: SamplingOptions, rng: np.random.Generator | None) -> FloatArray:
    """When frames are taken, ascending: within labelled segments, and through the whole video where asked for."""
    starts, ends = video.starts, video.ends
    each = np.full(len(starts), options.per_segment)
    if rng is not None and options.frames == "segments":
        inside = np.searchsorted(video.frame_times, ends, "right") - np.searchsorted(video.frame_times, starts)
        each = np.maximum(inside, options.per_segment)
    if each.sum() > options.most_frames:
        # Every segment keeps what it needs; what is left of the budget goes to the longer ones in proportion.
        floor = min(options.per_segment, max(1, options.most_frames // len(each)))
        spare, wanted = max(0, options.most_frames - floor * len(each)), each - floor
        each = floor + (wanted * (spare / max(1, wanted.sum()))).astype(np.int64)
        each[np.cumsum(each) > options.most_frames] = 0
    within = np.repeat(np.arange(len(starts)), each)
    index = np.arange(len(within)) - np.repeat(np.cumsum(each) - each, each)
    share = (index + 0.5) / each[within] if rng is None else rng.random(len(within))
    times = starts[within] + share * (ends - starts)[within]
    if options.frames == "video":
        rest = min(options.most_frames - len(times), len(video.frame_times))
        jitter = 0.5 if rng is None else rng.random(max(0, rest))
        first, last = video.frame_times[0], video.frame_times[-1]
        times = np.concatenate([times, first + (last - first) * (np.arange(max(0, rest)) + jitter) / max(1, rest)])
    return np.sort(times)


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


def _label_features(video: LabelledVideo, seconds: float, steps: int, kind: IntArray, time: FloatArray) -> FloatArray:
    """Shape (L, 2 N + EXTRA_FEATURES): the visible labels that are completed, those that exist, and more.

    These are of about the same size: the part of the video that is over and its square, the part of the labels' time,
    how many are completed, of all steps and of the labels, whether it is an end; and of the whole video, how many
    labels there are, how much of it they cover, what comes before and after them, and the logarithm of its seconds.
    """
    starts, ends, labels = video.starts, video.ends, len(video.steps)
    done, exists = np.zeros((len(time), steps)), np.zeros((len(time), steps))
    done[:, video.steps] = ends <= time[:, None]
    exists[:, video.steps] = 1
    part, count = time / seconds, done.sum(axis=1)
    first, last = min([*starts, seconds]), max([*ends, 0.0])
    between = (time - first) / max(last - first, 1e-9) if labels else part
    now = (part, part**2, between, count / steps, count / max(1, labels), kind == END)
    covered = (ends - starts).sum() / seconds
    whole = (labels / steps, covered, first / seconds, 1 - last / seconds, np.log(seconds) / 10)
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


@dataclass(frozen=True, slots=True, eq=False)
class StateDataset:
    """The labelled videos of a task that have features."""

    task: str
    steps: tuple[Step, ...]
    videos: tuple[LabelledVideo, ...]
    frames: Tensor  # (F, width): the frames of all videos, one after the other
    sentences: Tensor  # (S, text width)
    streams: Mapping[str, Tensor] = field(default_factory=dict)  # (F, width) each: what else there is at every frame
    training_videos: frozenset[str] = frozenset()  # the ids of the videos that the model learns, or has learned, from

    def __len__(self) -> int:
        return len(self.videos)

    def to(self, device: torch.device) -> StateDataset:
        """Return the same dataset with its features on another device."""
        streams = {name: vectors.to(device) for name, vectors in self.streams.items()}
        return replace(self, frames=self.frames.to(device), sentences=self.sentences.to(device), streams=streams)

    @property
    def vectors(self) -> tuple[Tensor, Tensor, Mapping[str, Tensor]]:
        """What the model reads beside a batch."""
        return self.frames, self.sentences, self.streams

    def digests(self) -> dict[str, str]:
        """SHA-256 of all "labels" and of all "features": whether it is the same data, not only the same ids."""
        labels, features = hashlib.sha256(), hashlib.sha256()
        for video in self.videos:
            labels.update(f"{video.video!r} {len(video.steps)} ".encode())
            for array in (video.steps, video.starts, video.ends):
                labels.update(array.tobytes())
            for times in (video.frame_times, video.sentence_times):
                features.update(f"{len(times)} ".encode() + times.tobytes())
        for vectors in (self.frames, self.sentences, *self.streams.values()):
            features.update(vectors.cpu().numpy().tobytes())
        return {"labels": labels.hexdigest(), "features": features.hexdigest()}

    def fold(self, number: int) -> int:
        """The fold of an evidence model that does not learn from this video; -1 where none of them does."""
        video = self.videos[number].video
        return zlib.crc32(video.encode()) % FOLDS if video in self.training_videos else -1

    def longest(self, options: SamplingOptions) -> int:
        """Return the most tokens of a video, a multiple of 8 as GPU kernels like it; longer rows would only cost."""
        most = max(options.most_frames + 2 * len(video.steps) for video in self.videos)  # labels have two borders
        return -(-most // 8) * 8

    def tokens(self, number: int, options: SamplingOptions, seed: Sequence[int] | None = None) -> Tokens:
        """Sample the tokens of one video."""
        rng = None if seed is None else np.random.default_rng([*seed, number])
        return sample_tokens(self.videos[number], len(self.steps), options, rng)


def build_dataset(
    task: Task,
    features: Callable[[str], VideoFeatures | None],
    *,
    text_only: bool = False,
    streams: Iterable[str] = (),
) -> StateDataset:
    """Put together the videos of a task that have labels and features."""
    every = [(video, features(video.id)) for video in task if video.segments]
    known = [(video, held) for video, held in every if held is not None]
    what = f"no video of task {short_repr(task.name)} has features"
    require(known, what, hint="make them with `msg2 features`")
    sentences = [held.sentences for _, held in known]
    frames = [held.frames for _, held in known]
    if text_only:  # sentences as frames: in the order of their middles, as `labelled_video` has them
        frames = [held.sentences[time_order(held.sentence_times.mean(axis=1))] for _, held in known]
    first_rows = zip(*(accumulate(map(len, rows), initial=0) for rows in (frames, sentences)), strict=True)
    videos = tuple(
        labelled_video(video, task.steps, held, *first, text_only=text_only)
        for (video, held), first in zip(known, first_rows, strict=False)
    )
    others = {name: _concatenate([held.streams[name] for _, held in known]) for name in streams}
    return StateDataset(task.name, task.steps, videos, _concatenate(frames), _concatenate(sentences), others)


def _concatenate(arrays: Sequence[np.ndarray]) -> Tensor:
    """(ΣF, width); arrays without rows may have any width."""
    filled = [array for array in arrays if len(array)]
    return torch.from_numpy(np.concatenate(filled)) if filled else torch.zeros(0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """B rows of L tokens; N steps; W sentences per token. Frames and sentences are row numbers in the dataset."""

    video: Tensor  # (B, L): a number per video, from 1 up; 0 is padding
    position: Tensor  # (B, L): the token's position in its video, from 0 up
    kind: Tensor  # (B, L): FRAME, START or END
    frame: Tensor  # (B, L)
    sentence: Tensor  # (B, L, W): -1 where there is none
    inside: Tensor  # (B, L, N): whether the token lies in a segment of that label
    state: Tensor  # (B, L, N): the true states
    weight: Tensor  # (B, L, N): how much each of them counts in the loss
    fold: Tensor  # (B, L): the fold of an evidence model that does not learn from the video; -1 where none does
    label_features: Tensor  # (B, L, 2 N + EXTRA_FEATURES): what the visible labels say about the moment
    present: Tensor  # (B, L, N), at the last token of each video: which steps the labels hold, dropped ones included
    asked: Tensor
    """(B, L, N), at the last token of each video: the steps without a visible label, whose presence is predicted."""

    def copy_from(self, other: Batch) -> None:
        """Overwrite the tensors with those of another batch of the same shape."""
        for f in fields(self):
            getattr(self, f.name).copy_(getattr(other, f.name))

    def to(self, device: torch.device) -> Batch:
        """Return the same batch on another device."""
        return Batch(*(getattr(self, f.name).to(device) for f in fields(self)))


def collate(
    dataset: StateDataset, numbers: Iterable[int], tokens: Iterable[Tokens], *, row: int = 0, multiple: int = 1
) -> Batch:
    """Put the tokens of some videos into a batch; the loss counts, at borders, the steps that the labels hold."""
    parts = [_batch_rows(dataset, *pair, member) for member, pair in enumerate(zip(numbers, tokens, strict=True))]
    lengths = [len(part["kind"]) for part in parts]
    length = max(*lengths, row)
    rows = _pack_rows(lengths, length) if row else [[member] for member in range(len(parts))]
    count = -(-len(rows) // multiple) * multiple
    batch = {}
    for name, array in parts[0].items():
        fill = -1 if name in ("sentence", "fold") else 0
        padded = np.full((count, length, *array.shape[1:]), fill, dtype=array.dtype)
        for line, members in enumerate(rows):
            joined = np.concatenate([parts[member][name] for member in members])
            padded[line, : len(joined)] = joined
        batch[name] = torch.from_numpy(padded)
    return Batch(**batch)


def _batch_rows(dataset: StateDataset, number: int, tokens: Tokens, member: int) -> dict[str, np.ndarray]:
    """What a video adds to a batch, by the names of `Batch`: arrays of shape (tokens, …)."""
    video, size = dataset.videos[number], len(tokens.kind)
    at_end = np.arange(size)[:, None] == size - 1
    return {name: getattr(tokens, name) for name in ("kind", "inside", "state")} | {
        "video": np.full(size, member + 1),
        "position": np.arange(size),
        "frame": tokens.frame + video.first_frame,
        "sentence": np.where(tokens.sentence < 0, -1, tokens.sentence + video.first_sentence),
        "weight": ((tokens.kind != FRAME)[:, None] & tokens.labelled).astype(np.float32),
        "fold": np.full(size, dataset.fold(number)),
        "label_features": tokens.label_features.astype(np.float32),
        "present": at_end & tokens.labelled,
        "asked": at_end & (~tokens.labelled | tokens.dropped),
    }


def _pack_rows(lengths: Sequence[int], row: int) -> list[list[int]]:
    """Which videos go into which row: the longest first, each into the first row with space."""
    rows: list[list[int]] = []
    for member in sorted(range(len(lengths)), key=lambda member: -lengths[member]):
        limit = row - lengths[member]
        fitting = next((members for members in rows if sum(lengths[other] for other in members) <= limit), None)
        if fitting is None:
            rows.append(fitting := [])
        fitting.append(member)
    return rows


def chunks(numbers: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Split a sequence into pieces of at most `size`."""
    for begin in range(0, len(numbers), size):
        yield numbers[begin : begin + size]

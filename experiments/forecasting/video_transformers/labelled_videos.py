"""Videos with their labels and features, and the second from which each frame and sentence is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from msg2.errors import InputError
from msg2.formats.feature_store import VideoFeatures
from msg2.sequences import FloatArray, IntArray
from msg2.states.dataset import time_order
from msg2.task import Step, Task, Video
from msg2.text import short_repr


@dataclass(frozen=True, slots=True, eq=False)
class TimedVectors:
    """Frames or sentences of one video: in the order of `times`, their middles; known `from_` a second on."""

    times: FloatArray
    """Shape (F,), ascending."""
    from_: FloatArray
    """Shape (F,): what is said is known when it has been said."""
    vectors: NDArray[np.float32]
    """Shape (F, width)."""

    def known_at(self, now: float) -> IntArray:
        """The places of those that are over by `now`, in their order."""
        return np.flatnonzero(self.from_ <= now)


@dataclass(frozen=True, slots=True, eq=False)
class LabelledVideo:
    """One video: K steps in the order of their starts (seconds), each once, and what is seen and heard."""

    video: str
    steps: IntArray
    """Shape (K,): places among the steps of the task."""
    starts: FloatArray
    ends: FloatArray
    frames: TimedVectors
    sentences: TimedVectors


@dataclass(frozen=True, slots=True, eq=False)
class LabelledVideos:
    """The videos of a task, their frames and sentences one after the other."""

    steps: tuple[Step, ...]
    videos: tuple[LabelledVideo, ...]
    frames: Tensor
    """(ΣF, width)."""
    sentences: Tensor
    """(ΣS, text width)."""
    frame_offsets: tuple[int, ...]
    sentence_offsets: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.videos)

    def __iter__(self) -> Iterator[LabelledVideo]:
        return iter(self.videos)


def labelled_videos(
    task: Task, features: Callable[[Video], VideoFeatures], *, text_only: bool = False
) -> LabelledVideos:
    """All videos of `task` with their features; `text_only` puts the sentences in the place of the frames.

    A video may have neither: then its labels are all that is known of it.

    Parameters
    ----------
    task : Task
        The task.
    features : callable
        From a video to its features.
    text_only : bool
        Whether the sentences are taken in the place of the frames.

    Returns
    -------
    LabelledVideos
        Of all videos of the task.
    """
    held = [features(video) for video in task]
    spoken = [sentence_vectors(one) for one in held]
    shown = spoken if text_only else [TimedVectors(one.frame_times, one.frame_times, one.frames) for one in held]
    place = {name: number for number, name in enumerate(task.steps)}
    made = tuple(_labelled_video(*each, place) for each in zip(task, shown, spoken, strict=True))
    return LabelledVideos(
        task.steps, made, _concatenate(shown), _concatenate(spoken), _offsets(shown), _offsets(spoken)
    )


def sentence_vectors(features: VideoFeatures) -> TimedVectors:
    """The sentences in the order of their middles.

    One has been said when it ends, or when a later one begins: captions stay on the screen for longer than that.
    """
    starts, ends = features.sentence_times.T
    later = np.append(starts, np.inf)[np.searchsorted(starts, starts, side="right")]
    middles = features.sentence_times.mean(axis=1)
    order = time_order(middles)
    return TimedVectors(middles[order], np.minimum(ends, later)[order], features.sentences[order])


def _labelled_video(
    video: Video, frames: TimedVectors, sentences: TimedVectors, place: dict[Step, int]
) -> LabelledVideo:
    if not video.is_timed:
        what = f"video {short_repr(video.id)} has no times"
        raise InputError(what, hint="to look at its steps, the start and end of every label are needed")
    segments = video.with_first_labels().segments
    return LabelledVideo(
        video.id,
        np.array([place[one.step] for one in segments], dtype=np.int64),
        np.array([one.start for one in segments], dtype=np.float64),
        np.array([one.end for one in segments], dtype=np.float64),
        frames,
        sentences,
    )


def _concatenate(pieces: Sequence[TimedVectors]) -> Tensor:
    """(ΣF, width); pieces of a silent or unseen video may have any width."""
    there = [one.vectors for one in pieces if len(one.vectors)]
    widths = sorted({vectors.shape[1] for vectors in there})
    if len(widths) > 1:
        raise InputError(f"the features of the videos have different widths: {widths}")
    return torch.from_numpy(np.concatenate(there)) if there else torch.zeros(0, 1)


def _offsets(pieces: Sequence[TimedVectors]) -> tuple[int, ...]:
    return (0, *accumulate(len(one.times) for one in pieces))[:-1]

"""Videos with their labels and features, and the second from which each frame and sentence is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from msg2.errors import InputError, shortened
from msg2.media.features import Features
from msg2.states.sampling import Floats, Ints, by_time
from msg2.task import Step, Task, Video


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Frames or sentences of one video: in the order of `times`, their middles; known `from_` a second on."""

    times: Floats
    """Shape (F,), ascending."""
    from_: Floats
    """Shape (F,): what is said is known when it has been said."""
    vectors: NDArray[np.float32]
    """Shape (F, width)."""

    def known(self, now: float) -> Ints:
        """The places of those that are over by `now`, in their order."""
        return np.flatnonzero(self.from_ <= now)


@dataclass(frozen=True, slots=True, eq=False)
class Film:
    """One video: K steps in the order of their starts (seconds), each once, and what is seen and heard."""

    video: str
    steps: Ints
    """Shape (K,): places among the steps of the task."""
    starts: Floats
    ends: Floats
    frames: Pieces
    sentences: Pieces


@dataclass(frozen=True, slots=True, eq=False)
class Films:
    """The videos of a task, their frames and sentences one after the other."""

    steps: tuple[Step, ...]
    films: tuple[Film, ...]
    frames: Tensor
    """(ΣF, width)."""
    sentences: Tensor
    """(ΣS, text width)."""
    frame_offsets: tuple[int, ...]
    sentence_offsets: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.films)

    def __iter__(self) -> Iterator[Film]:
        return iter(self.films)


def films(task: Task, features: Callable[[Video], Features], *, text_only: bool = False) -> Films:
    """All videos of `task` with their features; `text_only` puts the sentences in the place of the frames.

    A video may have neither: then its labels are all that is known of it.
    """
    held = [features(video) for video in task]
    spoken = [sentences_of(one) for one in held]
    shown = spoken if text_only else [Pieces(one.frame_times, one.frame_times, one.frames) for one in held]
    place = {name: number for number, name in enumerate(task.steps)}
    made = tuple(_film(*each, place) for each in zip(task, shown, spoken, strict=True))
    return Films(task.steps, made, _joined(shown), _joined(spoken), _offsets(shown), _offsets(spoken))


def sentences_of(features: Features) -> Pieces:
    """The sentences in the order of their middles.

    One has been said when it ends, or when a later one begins: captions stay on the screen for longer than that.
    """
    starts, ends = features.sentence_times.T
    later = np.append(starts, np.inf)[np.searchsorted(starts, starts, side="right")]
    middles = features.sentence_times.mean(axis=1)
    order = by_time(middles)
    return Pieces(middles[order], np.minimum(ends, later)[order], features.sentences[order])


def _film(video: Video, frames: Pieces, sentences: Pieces, place: dict[Step, int]) -> Film:
    if not video.timed:
        what = f"video {shortened(video.id)} has no times"
        raise InputError(what, hint="to look at its steps, the start and end of every label are needed")
    segments = video.with_first_labels().segments
    return Film(
        video.id,
        np.array([place[one.step] for one in segments], dtype=np.int64),
        np.array([one.start for one in segments], dtype=np.float64),
        np.array([one.end for one in segments], dtype=np.float64),
        frames,
        sentences,
    )


def _joined(pieces: Sequence[Pieces]) -> Tensor:
    """(ΣF, width); pieces of a silent or unseen video may have any width."""
    there = [one.vectors for one in pieces if len(one.vectors)]
    widths = sorted({vectors.shape[1] for vectors in there})
    if len(widths) > 1:
        raise InputError(f"the features of the videos have different widths: {widths}")
    return torch.from_numpy(np.concatenate(there)) if there else torch.zeros(0, 1)


def _offsets(pieces: Sequence[Pieces]) -> tuple[int, ...]:
    return (0, *accumulate(len(one.times) for one in pieces))[:-1]

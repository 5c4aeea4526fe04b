"""All videos of a task with their features, and batches of them.

Features are kept in one piece each (on the GPU where there is one); a batch holds only places in them, so that a step
of training moves a few kilobytes.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from msg2.errors import InputError, shortened
from msg2.media.features import Features
from msg2.options import SamplingOptions
from msg2.states.batch import Batch
from msg2.states.beyond import JUDGES
from msg2.states.sampling import END, START, Clip, Tokens, by_time, clip, sampled
from msg2.task import Step, Task


@dataclass(frozen=True, slots=True, eq=False)
class Footage:
    """The labelled videos of a task that have features."""

    task: str
    steps: tuple[Step, ...]
    clips: tuple[Clip, ...]
    frames: Tensor
    """(F, width): the frames of all clips, one after the other."""
    sentences: Tensor
    """(S, text width)."""
    frame_offsets: tuple[int, ...]
    """Where each clip's frames begin."""
    sentence_offsets: tuple[int, ...]
    learnt: frozenset[str] = frozenset()
    """The ids of the videos that the model learns, or has learnt, from."""

    def __len__(self) -> int:
        return len(self.clips)

    def to(self, device: torch.device) -> Footage:
        """The same footage with its features on another device."""
        return replace(self, frames=self.frames.to(device), sentences=self.sentences.to(device))

    def digests(self) -> dict[str, str]:
        """SHA-256 of all "labels" and of all "features": whether it is the same footage, not only the same ids."""
        labels, features = hashlib.sha256(), hashlib.sha256()
        for one in self.clips:
            labels.update(f"{one.video!r} {len(one.steps)} ".encode())
            for array in (one.steps, one.starts, one.ends):
                labels.update(array.tobytes())
            for times in (one.frame_times, one.sentence_times):
                features.update(f"{len(times)} ".encode() + times.tobytes())
        for vectors in (self.frames, self.sentences):
            features.update(vectors.cpu().numpy().tobytes())
        return {"labels": labels.hexdigest(), "features": features.hexdigest()}

    def fold(self, number: int) -> int:
        """Which judge of a witness does not learn from this clip; -1 where none of them does."""
        video = self.clips[number].video
        return zlib.crc32(video.encode()) % JUDGES if video in self.learnt else -1

    def longest(self, options: SamplingOptions) -> int:
        """Tokens that no clip can have more of, a multiple of 8 as GPU kernels like it.

        A row of this length wastes least: longer ones fill no better and cost more attention, by the square.
        """
        frames = options.most_frames  # labels bring an own start and end each
        return -(-max(frames + 2 * len(clip.steps) for clip in self.clips) // 8) * 8

    def tokens(self, number: int, options: SamplingOptions, seed: Sequence[int] | None = None) -> Tokens:
        """The tokens of one clip: at random by the `seed`, or as for testing."""
        rng = None if seed is None else np.random.default_rng([*seed, number])
        return sampled(self.clips[number], len(self.steps), options, rng)


def footage(task: Task, features: Callable[[str], Features | None], *, text_only: bool = False) -> Footage:
    """The videos of `task` that have labels and features; `features` gives those of a video id, or None."""
    found = [(video, features(video.id)) for video in task if video.segments]
    known = [(video, held) for video, held in found if held is not None]
    if not known:
        raise InputError(f"no video of task {shortened(task.name)} has features", hint="make them with `msg2 features`")
    for widths, what in (
        ({held.frames.shape[1] for _, held in known if len(held.frames)}, "frames"),
        ({held.sentences.shape[1] for _, held in known if len(held.sentences)}, "sentences"),
    ):
        if len(widths) > 1:
            raise InputError(f"the {what} of task {shortened(task.name)} have different widths: {sorted(widths)}")
    shown = [_spoken(held) if text_only else held.frames for _, held in known]
    heard = [held.sentences for _, held in known]
    return Footage(
        task.name,
        task.steps,
        tuple(clip(video, task.steps, held, text_only=text_only) for video, held in known),
        _joined(shown),
        _joined(heard),
        _offsets(shown),
        _offsets(heard),
    )


def _spoken(features: Features) -> np.ndarray:
    """The sentences as frames: in the order of their middles, as `clip` has them."""
    return features.sentences[by_time(features.sentence_times.mean(axis=1))]


def _joined(arrays: Sequence[np.ndarray]) -> Tensor:
    """(ΣF, width); arrays without rows may have any width."""
    filled = [array for array in arrays if len(array)]
    return torch.from_numpy(np.concatenate(filled)) if filled else torch.zeros(0, 0)


def _offsets(arrays: Sequence[np.ndarray]) -> tuple[int, ...]:
    return (0, *accumulate(map(len, arrays)))[:-1]


def batch(
    footage: Footage, numbers: Iterable[int], tokens: Iterable[Tokens], *, row: int = 0, multiple: int = 1
) -> Batch:
    """The tokens of the clips of these numbers in as few rows as hold them; a row is as long as the longest, or `row`.

    Empty rows make their number a `multiple`. The loss counts, at delimiters, the steps that the labels hold.
    """
    pairs = list(zip(numbers, tokens, strict=True))
    longest = max(len(one.kind) for _, one in pairs)
    rows = _packed([len(one.kind) for _, one in pairs], max(longest, row)) if row else [[i] for i in range(len(pairs))]
    length = max(longest, row)
    first = pairs[0][1]
    steps, width = first.state.shape[1], first.sentence.shape[1]
    shape = (-(-len(rows) // multiple) * multiple, length)
    video, place, kind, frame = (np.zeros(shape, dtype=np.int64) for _ in range(4))
    sentence = np.full((*shape, width), -1, dtype=np.int64)
    inside = np.zeros((*shape, steps), dtype=np.bool_)
    state = np.zeros((*shape, steps), dtype=np.int64)
    weight = np.zeros((*shape, steps), dtype=np.float32)
    fold = np.full(shape, -1, dtype=np.int64)
    told = np.zeros((*shape, first.told.shape[1]), dtype=np.float32)
    present, asked = (np.zeros((*shape, steps), dtype=np.bool_) for _ in range(2))
    for line, members in enumerate(rows):
        begin = 0
        for member in members:
            number, one = pairs[member]
            here = (line, slice(begin, begin + len(one.kind)))
            begin += len(one.kind)
            video[here] = member + 1
            place[here] = np.arange(len(one.kind))
            kind[here], inside[here], state[here] = one.kind, one.inside, one.state
            frame[here] = one.frame + footage.frame_offsets[number]
            sentence[here] = np.where(one.sentence < 0, -1, one.sentence + footage.sentence_offsets[number])
            fold[here], told[here] = footage.fold(number), one.told
            present[line, begin - 1], asked[line, begin - 1] = one.labelled, ~one.labelled | one.dropped
            at_border = (one.kind == START) | (one.kind == END)
            weight[here] = at_border[:, None] & one.labelled
    arrays = (video, place, kind, frame, sentence, inside, state, weight, fold, told, present, asked)
    return Batch(*map(torch.from_numpy, arrays))


def _packed(lengths: Sequence[int], row: int) -> list[list[int]]:
    """Which go into which row: the longest first, each into the first row with room."""
    rows: list[list[int]] = []
    room: list[int] = []
    for member in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        fitting = next((line for line, left in enumerate(room) if left >= lengths[member]), None)
        if fitting is None:
            rows.append([])
            room.append(row)
            fitting = len(rows) - 1
        rows[fitting].append(member)
        room[fitting] -= lengths[member]
    return rows


def in_batches(numbers: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """`numbers` in pieces of at most `size`."""
    for begin in range(0, len(numbers), size):
        yield numbers[begin : begin + size]

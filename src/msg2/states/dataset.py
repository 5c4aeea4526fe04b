"""All videos of a task with their features, and batches of them.

Features are kept in one piece (on the GPU where there is one). A batch holds only row numbers in them, so a step of
training moves a few kilobytes.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from msg2.errors import InputError
from msg2.media.feature_store import VideoFeatures
from msg2.states.configuration import SamplingOptions
from msg2.states.network import FOLDS, Batch
from msg2.states.tokens_and_targets import FRAME, LabelledVideo, Tokens, labelled_video, sample_tokens, time_order
from msg2.task import Step, Task
from msg2.text import short_repr


@dataclass(frozen=True, slots=True, eq=False)
class StateDataset:
    """The labelled videos of a task that have features."""

    task: str
    steps: tuple[Step, ...]
    videos: tuple[LabelledVideo, ...]
    frames: Tensor  # (F, width): the frames of all videos, one after the other
    sentences: Tensor  # (S, text width)
    frame_offsets: tuple[int, ...]  # where each video's frames begin
    sentence_offsets: tuple[int, ...]
    training_videos: frozenset[str] = frozenset()  # the ids of the videos that the model learns, or has learned, from

    def __len__(self) -> int:
        return len(self.videos)

    def to(self, device: torch.device) -> StateDataset:
        """Return the same dataset with its features on another device."""
        return replace(self, frames=self.frames.to(device), sentences=self.sentences.to(device))

    def digests(self) -> dict[str, str]:
        """SHA-256 of all "labels" and of all "features": whether it is the same data, not only the same ids."""
        labels, features = hashlib.sha256(), hashlib.sha256()
        for video in self.videos:
            labels.update(f"{video.video!r} {len(video.steps)} ".encode())
            for array in (video.steps, video.starts, video.ends):
                labels.update(array.tobytes())
            for times in (video.frame_times, video.sentence_times):
                features.update(f"{len(times)} ".encode() + times.tobytes())
        for vectors in (self.frames, self.sentences):
            features.update(vectors.cpu().numpy().tobytes())
        return {"labels": labels.hexdigest(), "features": features.hexdigest()}

    def fold(self, number: int) -> int:
        """The fold of an evidence model that does not learn from this video; -1 where none of them does."""
        video = self.videos[number].video
        return zlib.crc32(video.encode()) % FOLDS if video in self.training_videos else -1

    def longest(self, options: SamplingOptions) -> int:
        """Tokens that no video can have more of, a multiple of 8 as GPU kernels like it.

        A row of this length wastes least: longer ones fill no better and cost more attention, by the square.
        """
        frames = options.most_frames  # labels bring an own start and end each
        return -(-max(frames + 2 * len(video.steps) for video in self.videos) // 8) * 8

    def tokens(self, number: int, options: SamplingOptions, seed: Sequence[int] | None = None) -> Tokens:
        """Sample the tokens of one video."""
        rng = None if seed is None else np.random.default_rng([*seed, number])
        return sample_tokens(self.videos[number], len(self.steps), options, rng)


def build_dataset(
    task: Task, features: Callable[[str], VideoFeatures | None], *, text_only: bool = False
) -> StateDataset:
    """Put together the videos of a task that have labels and features."""
    every = [(video, features(video.id)) for video in task if video.segments]
    known = [(video, held) for video, held in every if held is not None]
    if not known:
        what = f"no video of task {short_repr(task.name)} has features"
        raise InputError(what, hint="make them with `msg2 features`")
    for what in ("frames", "sentences"):
        arrays = [getattr(held, what) for _, held in known]
        widths = {array.shape[1] for array in arrays if len(array)}
        if len(widths) > 1:
            raise InputError(f"the {what} of task {short_repr(task.name)} have different widths: {sorted(widths)}")
    sentences = [held.sentences for _, held in known]
    frames = [held.frames for _, held in known]
    if text_only:  # sentences as frames: in the order of their middles, as `labelled_video` has them
        frames = [held.sentences[time_order(held.sentence_times.mean(axis=1))] for _, held in known]
    videos = tuple(labelled_video(video, task.steps, held, text_only=text_only) for video, held in known)
    (all_frames, frame_offsets), (all_sentences, sentence_offsets) = map(_concatenate, (frames, sentences))
    return StateDataset(task.name, task.steps, videos, all_frames, all_sentences, frame_offsets, sentence_offsets)


def _concatenate(arrays: Sequence[np.ndarray]) -> tuple[Tensor, tuple[int, ...]]:
    """(ΣF, width), and where each array begins; arrays without rows may have any width."""
    filled = [array for array in arrays if len(array)]
    joined = torch.from_numpy(np.concatenate(filled)) if filled else torch.zeros(0, 0)
    return joined, (0, *accumulate(map(len, arrays)))[:-1]


def collate(
    dataset: StateDataset, numbers: Iterable[int], tokens: Iterable[Tokens], *, row: int = 0, multiple: int = 1
) -> Batch:
    """Put the tokens of some videos into a batch; the loss counts, at borders, the steps that the labels hold."""
    pairs = list(zip(numbers, tokens, strict=True))
    lengths = [len(each.kind) for _, each in pairs]
    length = max(*lengths, row)
    rows = _pack_rows(lengths, length) if row else [[member] for member in range(len(pairs))]
    count = -(-len(rows) // multiple) * multiple

    def pad(arrays: Sequence[np.ndarray], fill: int = 0, dtype: type = np.int64) -> Tensor:
        """(tokens, …) of each video -> (rows, length, …)."""
        padded = np.full((count, length, *arrays[0].shape[1:]), fill, dtype=dtype)
        for line, members in enumerate(rows):
            joined = np.concatenate([arrays[member] for member in members])
            padded[line, : len(joined)] = joined
        return torch.from_numpy(padded)

    offsets = dataset.sentence_offsets
    sentences = [np.where(each.sentence < 0, -1, each.sentence + offsets[number]) for number, each in pairs]
    return Batch(
        video=pad([np.full(size, member + 1) for member, size in enumerate(lengths)]),
        position=pad([np.arange(size) for size in lengths]),
        kind=pad([each.kind for _, each in pairs]),
        frame=pad([each.frame + dataset.frame_offsets[number] for number, each in pairs]),
        sentence=pad(sentences, fill=-1),
        inside=pad([each.inside for _, each in pairs], dtype=np.bool_),
        state=pad([each.state for _, each in pairs]),
        weight=pad([(each.kind != FRAME)[:, None] & each.labelled for _, each in pairs], dtype=np.float32),
        fold=pad([np.full(size, dataset.fold(number)) for (number, _), size in zip(pairs, lengths, strict=True)], -1),
        label_features=pad([each.label_features for _, each in pairs], dtype=np.float32),
        present=pad([_at_end(each, each.labelled) for _, each in pairs], dtype=np.bool_),
        asked=pad([_at_end(each, ~each.labelled | each.dropped) for _, each in pairs], dtype=np.bool_),
    )


def _at_end(tokens: Tokens, steps: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(tokens, N): these steps at the last token, none at the others."""
    at_end = np.zeros((len(tokens.kind), len(steps)), dtype=np.bool_)
    at_end[-1] = steps
    return at_end


def _pack_rows(lengths: Sequence[int], row: int) -> list[list[int]]:
    """Which videos go into which row: the longest first, each into the first row with space."""
    rows: list[list[int]] = []
    space: list[int] = []
    for member in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        fitting = next((line for line, left in enumerate(space) if left >= lengths[member]), None)
        if fitting is None:
            rows.append([])
            space.append(row)
            fitting = len(rows) - 1
        rows[fitting].append(member)
        space[fitting] -= lengths[member]
    return rows


def chunks(numbers: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Split a sequence into pieces of at most `size`."""
    for begin in range(0, len(numbers), size):
        yield numbers[begin : begin + size]

"""What is known just before each step of a video begins: the steps done, what they looked like, what was said.

A moment holds nothing of what comes after it: labels that begin later, frames and sentences that are not over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from experiments.forecasting.video_transformers.labelled_videos import LabelledVideo, LabelledVideos, TimedVectors
from experiments.forecasting.video_transformers.transformer_options import VideoTransformerOptions
from msg2.formats.feature_store import nearest_index
from msg2.sequences import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class StepHistories:
    """What is known at M moments of a task with N steps.

    Frames and sentences are places in the `LabelledVideos`, -1 where there is none.
    """

    steps: Tensor
    """(M, N): the steps done, the latest first; then -1."""
    frames: Tensor
    """(M, N, P): P frames of each of these steps, in the order of time."""
    nearby_sentences: Tensor
    """(M, N, P, W): the sentences around each of these frames."""
    recent_sentences: Tensor
    """(M, S): what was said since the last step began, the latest first."""
    done: Tensor
    """(M, N), true for steps that are done."""
    next_step: Tensor
    """(M,): the step that begins now."""

    def __len__(self) -> int:
        return len(self.next_step)

    def __getitem__(self, rows: Tensor) -> StepHistories:
        """The histories in these rows, no wider than the longest history among them."""
        chosen = StepHistories(*(getattr(self, f.name)[rows] for f in fields(self)))
        longest, most = (max(1, int((one >= 0).sum(1).max())) for one in (chosen.steps, chosen.recent_sentences))
        history = (chosen.steps[:, :longest], chosen.frames[:, :longest], chosen.nearby_sentences[:, :longest])
        return StepHistories(*history, chosen.recent_sentences[:, :most], chosen.done, chosen.next_step)


def step_histories(
    videos: LabelledVideos,
    numbers: Iterable[int],
    options: VideoTransformerOptions,
    rng: np.random.Generator | None = None,
) -> StepHistories:
    """Collect the histories before all steps of the videos of these numbers, in their order.

    Frames of a step are equidistant, or at random with an `rng`.

    Parameters
    ----------
    videos : LabelledVideos
        The videos of a task.
    numbers : iterable
        Which of them.
    options : VideoTransformerOptions
        What can be set.
    rng : np.random.Generator or None
        Of the frames of a step; None: equidistant ones.

    Returns
    -------
    StepHistories
        One moment per step of these videos.
    """
    chosen = [(videos.videos[number], number) for number in numbers]
    count, size = sum(len(video.steps) for video, _ in chosen), len(videos.steps)
    steps = np.full((count, size), -1)
    frames = np.full((count, size, options.frames), -1)
    around = np.full((count, size, options.frames, options.around), -1)
    heard = np.full((count, options.heard), -1)
    done = np.zeros((count, size), dtype=np.bool_)
    row = 0
    for video, number in chosen:
        first_frame, first_sentence = videos.frame_offsets[number], videos.sentence_offsets[number]
        for place in range(len(video.steps)):
            back, now = slice(place - 1, None, -1) if place else slice(0), video.starts[place]
            done[row, video.steps[:place]] = True
            steps[row, :place] = video.steps[back]
            times = _frame_times(video, back, now, options.frames, rng)
            frames[row, :place] = _add_offset(_nearest_windows(video.frames, times, now, 1)[..., 0], first_frame)
            around[row, :place] = _add_offset(
                _nearest_windows(video.sentences, times, now, options.around), first_sentence
            )
            said = _recent_sentences(video, place, now)[: options.heard]
            heard[row, : len(said)] = said + first_sentence
            row += 1
    came = np.concatenate([np.zeros(0, dtype=np.int64), *(video.steps for video, _ in chosen)])
    return StepHistories(*map(torch.from_numpy, (steps, frames, around, heard, done, came)))


def _frame_times(
    video: LabelledVideo, back: slice, now: float, count: int, rng: np.random.Generator | None
) -> FloatArray:
    """Shape (steps, count): when frames of the steps are taken; a step that is not over yet is seen up to `now`."""
    starts, ends = video.starts[back], np.minimum(video.ends[back], now)
    shape = (len(starts), count)
    share = np.broadcast_to((np.arange(count) + 0.5) / count, shape) if rng is None else np.sort(rng.random(shape))
    return starts[:, None] + share * (ends - starts)[:, None]


def _nearest_windows(pieces: TimedVectors, times: FloatArray, now: float, width: int) -> IntArray:
    """Shape (*times.shape, width): the `width` pieces around each time, of those that are known; -1 beyond them."""
    known = pieces.known_at(now)
    if not len(known):
        return np.full((*times.shape, width), -1)
    place = (
        nearest_index(pieces.times[known], times.ravel()).reshape(times.shape)[..., None]
        + np.arange(width)
        - width // 2
    )
    return np.where((place >= 0) & (place < len(known)), known[place.clip(0, len(known) - 1)], -1)


def _recent_sentences(video: LabelledVideo, place: int, now: float) -> IntArray:
    """The sentences that ended since the step before this one began, or since the video did; the latest first."""
    since = video.starts[place - 1] if place else 0.0
    known = video.sentences.known_at(now)
    return known[video.sentences.from_[known] >= since][::-1]


def _add_offset(places: IntArray, offset: int) -> IntArray:
    return np.where(places < 0, -1, places + offset)

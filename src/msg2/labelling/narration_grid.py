"""Narration on a grid of seconds: which cue is heard when in every video of a task, and what it says for each step.

A cue is a line of captions. Its vector combines its own words, those with its two neighbours, those with eight
neighbours, and what is seen meanwhile: x = (e(c), e(c₋₁ c c₊₁), mean e(c₋₄ … c₊₄), mean f) for the text encoder e and
frames f, if any.

The evidence of a cue for a step has two parts. By name: cosines with the name of the step, standardised over the cues
of the task and centred over the steps, so that a name that is similar to everything has no effect. By prototype: cues
of a step are normal around its mean with the covariance Σ of all cues, so that the log-likelihood ratio to the
background is linear: with z = Σ^(-1/2) x,  z·(m_s − m_0) − (|m_s|² − |m_0|²) / 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.errors import require
from msg2.formats.feature_store import VideoFeatures
from msg2.progress import Progress, no_progress
from msg2.sequences import FloatArray
from msg2.task import Step, Task, Video

_SHRINKAGE = 1.0  # share of the mean variance that is added to every direction
_COMPONENTS = 512  # directions that are kept, those of the largest variance


def name_evidence(grid: NarrationGrid, steps: Sequence[Step], task: str, encode: EncodeTexts) -> FloatArray:
    """Compare every cue with the names of the steps, alone and in the context of the task."""
    evidence = np.zeros((len(grid.spoken), len(steps)))
    contexts = ["{step}", "{step} when you {task}"] if task else ["{step}"]
    for context in contexts:
        texts = [context.format(step=step, task=task.lower()) for step in steps]
        cosines = grid.spoken @ np.asarray(encode(texts), np.float64).T
        spread = cosines.std(axis=0)
        scores = (cosines - cosines.mean(axis=0)) / np.where(spread > 1e-9, spread, 1.0)
        evidence += scores - scores.mean(axis=1, keepdims=True)
    return evidence / len(contexts)


def whiten(vectors: FloatArray) -> FloatArray:
    """Scale vectors so that the covariance of all of them is about the identity; shape (C, components)."""
    centred = vectors - vectors.mean(axis=0)
    count, width = centred.shape
    ridge = _SHRINKAGE * (centred**2).sum() / (count * width)
    if count < width:  # the smaller of the two matrices has the same spectrum
        spectrum, rows = np.linalg.eigh(centred @ centred.T)
        kept = np.flatnonzero(spectrum > 1e-9 * max(spectrum[-1], 1e-9))[-_COMPONENTS:]
        projected = rows[:, kept] * np.sqrt(spectrum[kept])
    else:
        spectrum, directions = np.linalg.eigh(centred.T @ centred)
        kept = np.arange(width)[-_COMPONENTS:]
        projected = centred @ directions[:, kept]
    return np.asarray(projected / np.sqrt(np.maximum(spectrum[kept], 0) / count + max(ridge, 1e-12)))


def prototype_evidence(whitened: FloatArray, weights: FloatArray, pseudo_count: float) -> FloatArray:
    """Compare every cue with the means of the cues of the steps."""
    background = np.maximum(1 - weights.sum(axis=1), 0.0)
    centre = background @ whitened / max(background.sum(), 1e-9)
    means = (weights.T @ whitened + pseudo_count * centre) / (weights.sum(axis=0)[:, None] + pseudo_count)
    offset = (means**2).sum(axis=1) - centre @ centre
    return np.asarray(whitened @ (means - centre).T - offset / 2)


EncodeTexts: TypeAlias = Callable[[Sequence[str]], NDArray[np.float32]]  # n texts -> vectors of shape (n, width)
SECONDS_PER_BIN = 1.0
_CONTEXT = 4  # cues on either side whose mean is the context of a cue
SILENT = -1


@dataclass(frozen=True, slots=True, eq=False)
class NarrationGrid:
    """V videos in bins of a second, up to T of them, and the C cues that are heard in them."""

    videos: tuple[Video, ...]
    bins: NDArray[np.intp]  # length of every video, shape (V,)
    cue_at: NDArray[np.intp]  # the cue that is heard, or `SILENT`; shape (V, T)
    spoken: FloatArray  # e(c) + e(c₋₁ c c₊₁), to be compared with names of steps; shape (C, width)
    vectors: FloatArray  # x, shape (C, 3 width), or with frames (C, 3 width + their width)

    @property
    def is_inside(self) -> NDArray[np.bool_]:
        """Whether a bin lies in its video; shape (V, T)."""
        return np.asarray(np.arange(self.cue_at.shape[1]) < self.bins[:, None])

    @property
    def relative_time(self) -> FloatArray:
        """The middle of every bin as a part of its video; shape (V, T)."""
        return np.asarray((np.arange(self.cue_at.shape[1]) + 0.5) / self.bins[:, None])

    def spread(self, of_cues: FloatArray, silence: FloatArray) -> FloatArray:
        """Put values of cues on the grid."""
        return np.asarray(np.vstack([of_cues, silence])[self.cue_at])

    def collect(self, of_bins: FloatArray) -> FloatArray:
        """Average values over the bins of every cue: shape (V, T, N) -> (C, N)."""
        heard = self.cue_at != SILENT
        cues, count = self.cue_at[heard], len(self.spoken)
        columns = [np.bincount(cues, column, minlength=count) for column in of_bins[heard].T]
        return np.asarray(np.stack(columns, axis=1) / np.maximum(np.bincount(cues, minlength=count), 1)[:, None])

    def timed_labels(self, steps: Sequence[Step], video: int) -> list[tuple[int, float, float]]:
        """The number of the step, the start and the end of every label of a video."""
        return [
            (steps.index(segment.step), segment.start, segment.end)
            for segment in self.videos[video].segments
            if segment.start is not None and segment.end is not None and segment.step in steps
        ]

    def labelled_bins(self, steps: Sequence[Step], video: int) -> NDArray[np.bool_]:
        """Say which bins of a video lie in a labelled segment of each step, if only in part: CrossTask's protocol."""
        inside = np.zeros((self.cue_at.shape[1], len(steps)), bool)
        for step, start, end in self.timed_labels(steps, video):
            first, last = floor(start / SECONDS_PER_BIN), ceil(end / SECONDS_PER_BIN)
            inside[first : max(last, first + 1), step] = True
        return np.asarray(inside & self.is_inside[video][:, None])


def narration_grid(
    task: Task,
    encode: EncodeTexts,
    seconds: Mapping[str, float] | None = None,
    frames: Mapping[str, VideoFeatures] | None = None,
    *,
    progress: Progress = no_progress,
) -> NarrationGrid:
    """Encode what is said in the videos of a task, and put it on a grid of seconds."""
    videos = [video for video in task if video.sentences]
    require(videos, "none of the videos has narration")
    lengths = np.array([_seconds(video, seconds or {}) for video in videos])
    bins = np.maximum(np.ceil(lengths / SECONDS_PER_BIN), 1).astype(np.intp)
    cue_at = np.full((len(videos), bins.max()), SILENT)
    first, spoken, vectors = 0, [], []
    for row, video in enumerate(videos):
        cue_at[row, : bins[row]] = _cues_at(video, int(bins[row]), first)
        texts = [sentence.text for sentence in video.sentences]
        wider = [" ".join(texts[max(0, number - 1) : number + 2]) for number in range(len(texts))]
        alone, near = np.split(np.asarray(encode([*texts, *wider]), np.float64), 2)
        spoken.append(alone + near)
        vectors.append(np.hstack([alone, near, _running_mean(alone)]))
        first += len(texts)
        progress(row + 1, len(videos), video.id)
    # Videos without frames get the mean of the others, which says nothing.
    seen = [_frames_meanwhile(video, (frames or {}).get(video.id)) for video in videos]
    known = [rows for rows in seen if rows.shape[1]]
    mean = np.vstack(known).mean(axis=0) if known else np.zeros(0)
    filled = np.vstack([rows if rows.shape[1] else np.tile(mean, (len(rows), 1)) for rows in seen])
    told = np.hstack([np.vstack(vectors), filled])
    return NarrationGrid(tuple(videos), bins, cue_at, np.vstack(spoken), told)


def _frames_meanwhile(video: Video, features: VideoFeatures | None) -> FloatArray:
    """The mean frame during every cue, or the one next to it, shape (cues, width); width 0 where none are known."""
    if features is None or not len(features.frames):
        return np.zeros((len(video.sentences), 0))
    sums = np.vstack([np.zeros(features.frames.shape[1]), np.cumsum(features.frames, axis=0, dtype=np.float64)])
    starts, ends = ([getattr(sentence, name) for sentence in video.sentences] for name in ("start", "end"))
    first = np.minimum(np.searchsorted(features.frame_times, starts), len(features.frames) - 1)
    last = np.maximum(np.searchsorted(features.frame_times, ends), first + 1)
    return np.asarray((sums[last] - sums[first]) / (last - first)[:, None])


def _seconds(video: Video, known: Mapping[str, float]) -> float:
    ends = [sentence.end for sentence in video.sentences] if video.id not in known else [known[video.id]]
    return max([*ends, *(segment.end for segment in video.segments if segment.end is not None)])


def _cues_at(video: Video, bins: int, first: int) -> NDArray[np.intp]:
    """The number of the cue that began last before the middle of each bin, if one is still to be read then."""
    middles = (np.arange(bins) + 0.5) * SECONDS_PER_BIN
    starts = np.array([sentence.start for sentence in video.sentences])
    last = np.searchsorted(starts, middles, side="right") - 1
    ends = np.maximum.accumulate([sentence.end for sentence in video.sentences])
    return np.where((last >= 0) & (middles < ends[np.maximum(last, 0)]), last + first, SILENT)


def _running_mean(rows: FloatArray) -> FloatArray:
    sums = np.vstack([np.zeros(rows.shape[1]), np.cumsum(rows, axis=0)])
    number = np.arange(len(rows))
    low, high = np.maximum(number - _CONTEXT, 0), np.minimum(number + _CONTEXT + 1, len(rows))
    return np.asarray((sums[high] - sums[low]) / (high - low)[:, None])

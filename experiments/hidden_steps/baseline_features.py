"""Features of the baselines: numbers about a step that is not labelled, from the other labels and from the narration.

Every public function returns a `FeatureFunction`: (video, its length in seconds) -> numbers of shape (P, N, d), for the
N steps of the task at P places: the boundaries of the video's labels where completion is asked about, one place where
presence is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from experiments.bootstrap_intervals import Numbers
from experiments.hidden_steps.protocol import segment_boundaries
from msg2.task import Sentence, Step, Task, Video

FeatureFunction: TypeAlias = Callable[[Video, float], Numbers]
Encoder: TypeAlias = Callable[[Sequence[str]], NDArray[np.floating]]
"""n texts -> vectors of length 1, shape (n, width)."""
SentenceSimilarity: TypeAlias = Callable[[Video, Sequence[Step]], Sequence[Numbers]]
"""Cosines of every sentence, alone and with its two neighbours, with every step's name: two of shape (sentences, N)."""


def completion_features(steps: Sequence[Step]) -> FeatureFunction:
    """At each border: which steps are completed, which are labelled at all, and how far on it is."""

    def features(video: Video, seconds: float) -> Numbers:
        at = segment_boundaries(video)
        ends, labelled = np.full(len(steps), np.inf), _label_indicator(video, steps)
        ends[[steps.index(segment.step) for segment in video.segments]] = at[1::2]
        done = ends <= at[:, None]
        count, part = done.sum(axis=1), at / seconds
        between = (at - at.min()) / max(np.ptp(at), 1e-9)  # from the first border to the last
        is_end = np.arange(len(at)) % 2
        every = np.tile(np.append(labelled, labelled.sum()), (len(at), 1))
        told = np.column_stack([done, every, part, part**2, between, count, count / labelled.sum(), is_end])
        return np.repeat(told[:, None], len(steps), axis=1)

    return features


def presence_features(training: Task, seconds: Mapping[str, float]) -> FeatureFunction:
    """Which steps are labelled, how the labels fill the video, and the room there is where a step usually comes.

    Parameters
    ----------
    training : Task
        The training videos.
    seconds : mapping
        The length of every video in seconds, by its id.

    Returns
    -------
    FeatureFunction
        From a video and its length to its features.
    """
    steps = training.steps
    usual = _mean_positions(training, seconds)

    def features(video: Video, length: float) -> Numbers:
        at, labelled = segment_boundaries(video) / length, _label_indicator(video, steps)
        covered = (at[1::2] - at[::2]).sum()
        told = [*labelled, labelled.sum(), covered, np.log(length), at.min(), 1 - at.max()]
        place = usual[[steps.index(segment.step) for segment in video.segments]]
        rooms = np.array([_free_share(at, place, own) for own in usual])
        return np.column_stack([np.tile(told, (len(steps), 1)), rooms, np.log1p(rooms * length)])[None]

    return features


def sentence_similarity(encode: Encoder) -> SentenceSimilarity:
    """The cosines by `encode`; those of the same sentences are computed once."""
    kept: dict[tuple[tuple[Sentence, ...], tuple[Step, ...]], Sequence[Numbers]] = {}

    def alike(video: Video, steps: Sequence[Step]) -> Sequence[Numbers]:
        key = (video.sentences, tuple(steps))
        if key not in kept:
            texts = [sentence.text for sentence in video.sentences]
            wider = [" ".join(texts[max(0, place - 1) : place + 2]) for place in range(len(texts))]
            names = np.asarray(encode(list(steps)), np.float64).T
            kept[key] = [np.asarray(encode(said), np.float64) @ names for said in (texts, wider)] if texts else []
        return kept[key]

    return alike


def narration_completion_features(
    steps: Sequence[Step], alike: SentenceSimilarity, sharpness: float
) -> FeatureFunction:
    """At each border: how much of what sounds like the step has been said, and how far away the best of it is.

    Zeros where nothing is said at all.

    Parameters
    ----------
    steps : sequence
        The steps of the task.
    alike : SentenceSimilarity
        Similarity of sentences and step names.
    sharpness : float
        How strongly the most similar sentences outweigh the others.

    Returns
    -------
    FeatureFunction
        From a video and its length to its features.
    """

    def features(video: Video, seconds: float) -> Numbers:
        at, middle = segment_boundaries(video), _sentence_middles(video)
        told = np.zeros((len(at), len(steps), 2, 6))
        order = np.argsort(middle, kind="stable")
        said = np.searchsorted(middle[order], at, side="right")  # sentences up to each border
        for width, cosines in enumerate(alike(video, steps)):
            cosines = cosines[order]
            least, best = cosines.min(axis=0), cosines.argmax(axis=0)
            so_far = np.maximum.accumulate(np.vstack([least, cosines]))[said]
            to_come = np.maximum.accumulate(np.vstack([cosines, least])[::-1])[::-1][said]
            weights = np.exp(sharpness * (cosines - cosines[best, range(len(steps))]))
            share = np.vstack([0 * least, np.cumsum(weights / weights.sum(axis=0), axis=0)])[said]
            since = (at[:, None] - middle[order][best]) / seconds
            told[:, :, width] = np.stack([share, so_far, to_come, so_far - to_come, since, np.sign(since)], axis=-1)
        return told.reshape(len(at), len(steps), -1)

    return features


def narration_presence_features(steps: Sequence[Step], alike: SentenceSimilarity) -> FeatureFunction:
    """How similar the best of the narration is to the step: in all, outside of other labels, against other steps.

    Zeros where nothing is said at all.

    Parameters
    ----------
    steps : sequence
        The steps of the task.
    alike : SentenceSimilarity
        Similarity of sentences and step names.

    Returns
    -------
    FeatureFunction
        From a video and its length to its features.
    """

    def features(video: Video, seconds: float) -> Numbers:
        middle, at = _sentence_middles(video), segment_boundaries(video).reshape(-1, 2)
        inside = np.any((at[:, :1] <= middle) & (middle <= at[:, 1:]), axis=0, keepdims=True).T
        told = np.zeros((len(steps), 2, 5))
        for width, cosines in enumerate(alike(video, steps)):
            best, least = cosines.max(axis=0), cosines.min(axis=0)
            few = np.sort(cosines, axis=0)[-3:].mean(axis=0)
            outside = np.where(inside, least, cosines).max(axis=0)
            stands_out = (best - cosines.mean(axis=0)) / (cosines.std(axis=0) + 1e-9)
            told[:, width] = np.stack([best, few, outside, best - best.mean(), stands_out], axis=-1)
        return told.reshape(1, len(steps), -1)

    return features


def _label_indicator(video: Video, steps: Sequence[Step]) -> Numbers:
    """1 for the steps that are labelled, 0 for the others; shape (N,)."""
    return np.isin(np.array(steps), video.sequence()).astype(np.float64)


def _sentence_middles(video: Video) -> Numbers:
    """The middle of every sentence in seconds."""
    return np.array([(sentence.start + sentence.end) / 2 for sentence in video.sentences])


def _mean_positions(training: Task, seconds: Mapping[str, float]) -> Numbers:
    """Mean middle of every step, as a part of its video; the middle of the video for a step never seen. Shape (N,)."""
    places: dict[Step, list[float]] = {step: [] for step in training.steps}
    for video in training:
        for segment, middle in zip(video.segments, segment_boundaries(video).reshape(-1, 2).mean(axis=1), strict=True):
            places[segment.step].append(middle / seconds[video.id])
    return np.array([np.mean(of_step) if of_step else 0.5 for of_step in places.values()])


def _free_share(at: Numbers, usual: Numbers, own: float) -> float:
    """From the last label that usually comes before to the first after it that usually comes later; part of the video.

    `at` are the borders of the labels as parts of the video, `usual` the places of their steps, `own` that of the step.
    """
    begin = max(at[1::2][usual < own], default=0.0)
    later = at[::2][usual > own]
    return max(0.0, min(later[later >= begin], default=1.0) - begin)

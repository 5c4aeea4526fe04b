"""Predicting the states of the steps in videos: the score of every step at the borders of the labelled segments.

How well a state model predicts which steps are completed: of hidden labels, or against what was performed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

from msg2.metrics.completion import Completion, completion, performed_video
from msg2.sequences import FloatArray, IntArray
from msg2.states.configuration import SamplingOptions
from msg2.states.dataset import StateDataset, collate
from msg2.states.network import StateModel
from msg2.states.optimization import single_thread
from msg2.states.tokens_and_targets import COMPLETED, FRAME, Tokens
from msg2.task import Step, Task

BATCH_VIDEOS = 16
"""Videos that are predicted at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class StatePrediction:
    """The M borders of one video's labels in the order of time, and the score of each of N steps there."""

    video: str
    kind: IntArray
    """Shape (M,): START or END."""
    time: FloatArray
    """Shape (M,), seconds."""
    step: IntArray
    """Shape (M,): whose border it is."""
    scores: FloatArray
    """Shape (M, N): ŝ."""
    state: IntArray
    """Shape (M, N): the states by the labels."""
    labelled: NDArray[np.bool_]
    """Shape (N,): the steps that the labels hold, hidden ones included."""
    seen: tuple[FloatArray, FloatArray] | None
    """Shapes (L,) and (L, N): moments in seconds, and the evidence of each step there; with an evidence model."""
    presence: FloatArray | None
    """Shape (N,): the log-odds that a step is in the video at all; with a co-occurrence model."""
    hidden: NDArray[np.bool_]
    """Shape (N,): those of the labelled steps whose labels were hidden from the model."""


@torch.no_grad()
def predict_states(
    model: StateModel,
    dataset: StateDataset,
    numbers: Sequence[int],
    options: SamplingOptions,
    *,
    hidden: Sequence[int] | None = None,
) -> Iterator[StatePrediction]:
    """Predict the states of every step in some videos."""
    yield from predict_tokens(model, dataset, ((number, dataset.tokens(number, options, hidden)) for number in numbers))


@torch.no_grad()
def predict_tokens(
    model: StateModel, dataset: StateDataset, sampled: Iterable[tuple[int, Tokens]]
) -> Iterator[StatePrediction]:
    """Predict the states of every step from tokens that were sampled before."""
    model.eval()
    remaining = iter(sampled)
    while part := list(islice(remaining, BATCH_VIDEOS)):
        numbers, tokens = zip(*part, strict=True)
        batch = collate(dataset, numbers, tokens).to(dataset.frames.device)
        with single_thread(not model.options.context):
            output = model(batch, dataset.frames, dataset.sentences)
        for row, (number, each) in enumerate(part):
            own = slice(len(each.kind))
            scores, evidence, presence = (
                None if array is None else array[row, own].double().cpu().numpy()
                for array in (output.scores, output.evidence, output.presence)
            )
            assert scores is not None
            yield _state_prediction(dataset.videos[number].video, each, scores, evidence, presence)


def _state_prediction(
    video: str, tokens: Tokens, scores: FloatArray, evidence: FloatArray | None, presence: FloatArray | None
) -> StatePrediction:
    """All arrays have shape (L, N)."""
    at = tokens.kind != FRAME
    return StatePrediction(
        video, tokens.kind[at], tokens.time[at], tokens.step[at], scores[at], tokens.state[at],
        tokens.labelled, None if evidence is None else (tokens.time, evidence),
        None if presence is None else presence[-1], tokens.dropped,
    )  # fmt: skip


EVALUATION_DRAWS = 10
"""How often labels of the held-out videos are hidden, where nobody knows what was performed; the seeds are 0, 1, …"""


def hidden_completion(predictions: Iterable[StatePrediction], threshold: float) -> Completion:
    """Score the steps whose labels were hidden from the model, at the borders of the other labels."""
    pairs = [(each.scores[:, each.hidden], each.state[:, each.hidden] == COMPLETED) for each in predictions]
    return _pool(pairs, threshold)


def true_completion(
    predictions: Iterable[StatePrediction], steps: tuple[Step, ...], performed: Task, threshold: float
) -> Completion:
    """Score all steps, at the borders of all labels; a step is completed from the end of its first performance on."""
    truth = {video.id: video for video in performed}
    pairs = []
    for each in predictions:
        segments = performed_video(truth, each.video).with_first_labels().segments
        ends = {segment.step: segment.end for segment in segments}
        end = np.array([np.inf if (last := ends.get(step)) is None else last for step in steps])
        pairs.append((each.scores, end <= each.time[:, None]))
    return _pool(pairs, threshold)


def _pool(pairs: Iterable[tuple[FloatArray, NDArray[np.bool_]]], threshold: float) -> Completion:
    scores, completed = [np.zeros(0)], [np.zeros(0, dtype=np.bool_)]
    for some, true in pairs:
        scores.append(some.ravel())
        completed.append(true.ravel())
    return completion(np.concatenate(scores), np.concatenate(completed), threshold)

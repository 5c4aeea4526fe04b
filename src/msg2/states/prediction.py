"""Predicting the states of the steps in videos: the score of every step at the borders of the labelled segments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from msg2.arrays import FloatArray, IntArray
from msg2.states.configuration import SamplingOptions
from msg2.states.dataset import StateDataset, chunks, collate
from msg2.states.determinism import single_thread
from msg2.states.state_model import StateModel
from msg2.states.token_sampling import FRAME, Tokens

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
    seen_at: FloatArray | None
    """Shape (N,), seconds: where there is most evidence of each step; with an evidence model."""
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
    """Predict the states of every step in some videos.

    Parameters
    ----------
    model : StateModel
        On the device of the dataset.
    dataset : StateDataset
        The videos.
    numbers : sequence of int
        Which of them.
    options : SamplingOptions
        Which frames and sentences are taken.
    hidden : sequence of int, optional
        A seed: a share of the labels, drawn by it, is hidden from the model.

    Yields
    ------
    StatePrediction
        One per video, in the order of `numbers`.
    """
    model.eval()
    for part in chunks(numbers, BATCH_VIDEOS):
        tokens = [dataset.tokens(number, options, hidden) for number in part]
        batch = collate(dataset, part, tokens).to(dataset.frames.device)
        with single_thread(not model.options.context):
            output = model(batch, dataset.frames, dataset.sentences)
        for row, (number, each) in enumerate(zip(part, tokens, strict=True)):
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
    seen_at = None if evidence is None or not len(evidence) else tokens.time[evidence.argmax(axis=0)]
    return StatePrediction(
        video, tokens.kind[at], tokens.time[at], tokens.step[at], scores[at], tokens.state[at],
        tokens.labelled, seen_at, None if presence is None else presence[-1], tokens.dropped,
    )  # fmt: skip

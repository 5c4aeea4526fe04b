"""What a trained model says about videos: the score of every step at the borders of the labelled segments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from msg2.options import SamplingOptions
from msg2.states.footage import Footage, batch, in_batches
from msg2.states.model import StateModel
from msg2.states.sampling import FRAME, Ints, Tokens
from msg2.states.threads import one_thread


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """The M borders of one video's labels in the order of time, and the score of each of N steps there."""

    video: str
    kind: Ints
    """Shape (M,): START or END."""
    time: NDArray[np.float64]
    """Shape (M,), seconds."""
    step: Ints
    """Shape (M,): whose border it is."""
    scores: NDArray[np.float64]
    """Shape (M, N): ŝ."""
    state: Ints
    """Shape (M, N): the states by the labels."""
    labelled: NDArray[np.bool_]
    """Shape (N,): the steps that the labels hold, hidden ones included."""
    seen_at: NDArray[np.float64] | None
    """Shape (N,), seconds: when most was seen of each step; where the model has witnesses."""
    presence: NDArray[np.float64] | None
    """Shape (N,): the log-odds that a step is in the video at all; where the model has habits."""
    hidden: NDArray[np.bool_]
    """Shape (N,): those of them that the model was not told of."""


@torch.no_grad()
def readings(
    model: StateModel,
    footage: Footage,
    numbers: Sequence[int],
    options: SamplingOptions,
    *,
    hidden: Sequence[int] | None = None,
    size: int = 16,
) -> Iterator[Reading]:
    """What `model` says about the clips of these numbers; with a seed `hidden`, a share of their labels is hidden."""
    model.eval()
    for part in in_batches(numbers, size):
        tokens = [footage.tokens(number, options, hidden) for number in part]
        made = batch(footage, part, tokens).to(footage.frames.device)
        with one_thread(not model.options.context):
            said = model(made, footage.frames, footage.sentences)
        for row, (number, one) in enumerate(zip(part, tokens, strict=True)):
            own = slice(len(one.kind))
            scores, sighted, presence = (
                None if array is None else array[row, own].double().cpu().numpy()
                for array in (said.scores, said.sighted, said.presence)
            )
            assert scores is not None
            yield _reading(footage.clips[number].video, one, scores, sighted, presence)


def _reading(
    video: str,
    tokens: Tokens,
    scores: NDArray[np.float64],
    sighted: NDArray[np.float64] | None,
    presence: NDArray[np.float64] | None,
) -> Reading:
    """All arrays have shape (L, N)."""
    at = tokens.kind != FRAME
    seen_at = None if sighted is None or not len(sighted) else tokens.time[sighted.argmax(axis=0)]
    return Reading(
        video, tokens.kind[at], tokens.time[at], tokens.step[at], scores[at], tokens.state[at],
        tokens.labelled, seen_at, None if presence is None else presence[-1], tokens.dropped,
    )  # fmt: skip

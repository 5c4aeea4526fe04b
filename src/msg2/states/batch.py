"""Rows of tokens for the model: several videos may share a row, and attention never crosses from one to another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """B rows of L tokens; N steps; W sentences per token; frames and sentences are places in the footage."""

    video: Tensor
    """(B, L): a number per video, from 1 up; 0 is padding."""
    place: Tensor
    """(B, L): the token's place in its video, from 0 up."""
    kind: Tensor
    """(B, L): see `msg2.states.sampling`."""
    frame: Tensor
    """(B, L)."""
    sentence: Tensor
    """(B, L, W): -1 where there is none."""
    inside: Tensor
    """(B, L, N): whether the token lies in a segment of that label."""
    state: Tensor
    """(B, L, N): the true states."""
    weight: Tensor
    """(B, L, N): how much each of them counts in the loss."""
    fold: Tensor
    """(B, L): which judge of a witness has not learnt from the video; -1 where none has."""
    told: Tensor
    """(B, L, 2 N + FACTS): what the labels tell about the moment."""
    present: Tensor
    """(B, L, N), at the last token of each video: which steps the labels hold, dropped ones included."""
    asked: Tensor
    """(B, L, N), at the last token of each video: which steps the model is not told of, and so is asked about."""

    def fill(self, other: Batch) -> None:
        """Overwrite the tensors with those of another batch of the same shape."""
        for f in fields(self):
            getattr(self, f.name).copy_(getattr(other, f.name))

    def to(self, device: torch.device) -> Batch:
        """The same batch on another device."""
        return Batch(*(getattr(self, f.name).to(device) for f in fields(self)))


def mapped(function: Callable[[Tensor], Tensor], vectors: Tensor, places: Tensor) -> Tensor:
    """What `function` makes of the vectors in these places, (S, width), (...) -> (..., inner); -1 is read as 0.

    Many tokens have the same sentence or frame, which a CPU maps once, with one draw of dropout. A GPU would have to
    wait for how many there are: there every token maps its own.
    """
    places = places.clamp(min=0)
    if places.is_cuda:
        return function(F.embedding(places, vectors))
    distinct, places = torch.unique(places, return_inverse=True)
    return F.embedding(places, function(F.embedding(distinct, vectors)))

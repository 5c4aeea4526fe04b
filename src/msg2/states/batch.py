"""Batches of tokens for the state model: several videos may share a row, and attention stays within each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """B rows of L tokens; N steps; W sentences per token. Frames and sentences are row numbers in the dataset."""

    video: Tensor
    """(B, L): a number per video, from 1 up; 0 is padding."""
    position: Tensor
    """(B, L): the token's position in its video, from 0 up."""
    kind: Tensor
    """(B, L): FRAME, START or END; see `msg2.states.token_sampling`."""
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
    """(B, L): the fold of an evidence model that does not learn from the video; -1 where none does."""
    label_features: Tensor
    """(B, L, 2 N + EXTRA_FEATURES): what the visible labels say about the moment."""
    present: Tensor
    """(B, L, N), at the last token of each video: which steps the labels hold, dropped ones included."""
    asked: Tensor
    """(B, L, N), at the last token of each video: the steps without a visible label, whose presence is predicted."""

    def copy_from(self, other: Batch) -> None:
        """Overwrite the tensors with those of another batch of the same shape."""
        for f in fields(self):
            getattr(self, f.name).copy_(getattr(other, f.name))

    def to(self, device: torch.device) -> Batch:
        """Return the same batch on another device."""
        return Batch(*(getattr(self, f.name).to(device) for f in fields(self)))


def transform_rows(function: Callable[[Tensor], Tensor], vectors: Tensor, rows: Tensor) -> Tensor:
    """Apply a function to chosen rows of a matrix.

    Many tokens have the same sentence or frame, which a CPU transforms once, with one draw of dropout. A GPU would have
    to wait for how many there are: there every token transforms its own.

    Parameters
    ----------
    function : callable
        Maps vectors of shape (..., width) to (..., inner).
    vectors : Tensor of shape (S, width)
        All vectors.
    rows : Tensor of shape (...)
        Row numbers; -1 is read as 0.

    Returns
    -------
    Tensor of shape (..., inner)
        The transformed rows.
    """
    rows = rows.clamp(min=0)
    if rows.is_cuda:
        return function(F.embedding(rows, vectors))
    distinct, rows = torch.unique(rows, return_inverse=True)
    return F.embedding(rows, function(F.embedding(distinct, vectors)))

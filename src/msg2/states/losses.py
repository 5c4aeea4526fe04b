"""The losses of the state model: the ordinal loss of the paper (Eq. 4), and cross-entropies of what goes beyond it.

L = BCE(σ(ŝ + b), state ≠ not started) + BCE(σ(ŝ - b), state = completed)
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from msg2.states.batch import Batch
from msg2.states.configuration import StateModelOptions
from msg2.states.evidence_model import FOLDS
from msg2.states.state_model import StateModelOutput
from msg2.states.token_sampling import COMPLETED, FRAME, IN_PROGRESS, NOT_STARTED


def training_loss(output: StateModelOutput, batch: Batch, options: StateModelOptions) -> Tensor:
    """The ordinal loss and, with an evidence model, the cross-entropy of the step that each frame shows.

    Parameters
    ----------
    output : StateModelOutput
        What the model computed for the batch.
    batch : Batch
        The true states.
    options : StateModelOptions
        The threshold b, and whether "in progress" counts.

    Returns
    -------
    Tensor of shape ()
        The loss.
    """
    loss = ordinal_loss(output.scores, batch.state, batch.weight, options.threshold, options.in_progress)
    if output.presence is not None:
        target = batch.present.float()[batch.asked]
        total = F.binary_cross_entropy_with_logits(output.presence[batch.asked], target, reduction="sum")
        loss = loss + total / batch.asked.sum().clamp(min=1)  # all steps may be labelled, and none dropped
    if not output.step_logits:
        return loss
    in_progress = (batch.state == IN_PROGRESS).sum(-1)
    counted = (batch.kind == FRAME) & (in_progress <= 1)  # where two steps overlap, nobody knows which is seen
    background = torch.full_like(batch.kind, batch.state.shape[-1])
    target = torch.where(in_progress == 0, background, (batch.state == IN_PROGRESS).long().argmax(-1))
    for logits in output.step_logits:
        for fold in range(FOLDS):
            others = counted & (batch.fold != fold)
            total = F.cross_entropy(logits[others][:, fold].float(), target[others], reduction="sum")
            loss = loss + total / others.sum().clamp(min=1)
    return loss


def ordinal_loss(scores: Tensor, state: Tensor, weight: Tensor, threshold: float, in_progress: bool = True) -> Tensor:
    """Eq. 4: the weighted mean of BCE(σ(ŝ + b), state ≠ not started) + BCE(σ(ŝ - b), state = completed).

    Parameters
    ----------
    scores : Tensor of shape (B, L, N)
        ŝ.
    state : Tensor of shape (B, L, N)
        NOT_STARTED, IN_PROGRESS or COMPLETED.
    weight : Tensor of shape (B, L, N)
        How much each counts.
    threshold : float
        b.
    in_progress : bool
        Without it only the second term counts.

    Returns
    -------
    Tensor of shape ()
        The loss.

    >>> zero = torch.zeros(1, 1, 1)
    >>> round(ordinal_loss(zero, zero + 1, zero + 1, threshold=1.0).item(), 6)  # 2 · log(1 + e⁻¹)
    0.626523
    """
    scores = scores.float()
    completed = (state == COMPLETED).to(scores.dtype)
    loss = F.binary_cross_entropy_with_logits(scores - threshold, completed, reduction="none")
    if in_progress:
        started = (state != NOT_STARTED).to(scores.dtype)
        loss = loss + F.binary_cross_entropy_with_logits(scores + threshold, started, reduction="none")
    return (loss * weight).sum() / weight.sum().clamp(min=1e-9)

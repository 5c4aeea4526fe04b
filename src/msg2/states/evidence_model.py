"""Two models that go beyond the paper's: evidence of a step in single frames and sentences, and co-occurring labels.

evidence:       e_t[n] = max over s ≤ t of smooth(z_s[n] - z_s[background]),  z = Linear(x)
co-occurrence:  a logistic regression per step on the labels of the other steps
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from msg2.states.batch import Batch, transform_rows
from msg2.states.token_sampling import EXTRA_FEATURES

FOLDS = 4
"""Folds of the training videos: each has a linear layer that learns from the other folds and scores this one."""
_NO_EVIDENCE = -8.0
"""Log-odds of a step where it cannot be: low, and finite for the smoothing."""


class EvidenceModel(nn.Module):
    """What frames (or sentences) have shown of each step so far; not in the paper.

    z = Linear(x) recognises one of N steps or background in every token, trained by cross-entropy on what the labels
    say. e_t[n] is the highest smoothed z[n] - z[background] up to token t; tokens that are labelled as another step do
    not count. It can tell a step that nobody labelled from one that nobody did: the paper's loss has no example
    of the latter, and calls every step completed in the end.

    There are `FOLDS` linear layers. Each learns from the videos of all folds but its own, and scores those of its own
    fold: what is known by heart is no evidence. A video that none has seen is scored by the mean of all of them.
    """

    def __init__(self, steps: int, width: int, dropout: float) -> None:
        super().__init__()
        self.linear = nn.Linear(width, FOLDS * (steps + 1))
        nn.init.zeros_(self.linear.weight)  # what was not learned is no evidence
        nn.init.zeros_(self.linear.bias)
        self.scale = nn.Parameter(torch.zeros(1))
        self.dropout = nn.Dropout(dropout)

    def step_logits(self, vectors: Tensor, rows: Tensor, batch: Batch) -> Tensor:
        """How much each token looks like each step, and like background.

        It is the mean over the W vectors of a token, less the mean over its video, since what is there all the time
        says nothing about a step.

        Parameters
        ----------
        vectors : Tensor of shape (F, width)
            The frames or sentences of all videos.
        rows : Tensor of shape (B, L, W)
            The row numbers of each token's vectors; -1 for none.
        batch : Batch
            The tokens.

        Returns
        -------
        Tensor of shape (B, L, FOLDS, N + 1)
            The logits of every fold; background is the last.
        """
        exists = rows >= 0
        share = exists / exists.sum(-1, keepdim=True).clamp(min=1)
        each = (transform_rows(self._project, vectors, rows) * share[..., None]).sum(-2)
        video = batch.video.flatten()
        sums = each.new_zeros(int(video.max()) + 1, each.shape[-1]).index_add(0, video, each.flatten(0, 1))
        means = sums / video.bincount(minlength=len(sums)).clamp(min=1)[:, None]
        return (each - means[batch.video] + self.linear.bias).reshape(*batch.video.shape, FOLDS, -1)

    def _project(self, vectors: Tensor) -> Tensor:
        """The linear layer without its bias."""
        normalized = F.layer_norm(vectors, vectors.shape[-1:])  # so that one learning rate fits all encoders
        return F.linear(self.dropout(normalized), self.linear.weight)

    def forward(self, step_logits: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Turn logits into evidence.

        Parameters
        ----------
        step_logits : Tensor of shape (B, L, FOLDS, N + 1)
            See `step_logits`.
        batch : Batch
            The tokens.

        Returns
        -------
        tuple of two Tensors of shape (B, L, N)
            The evidence at each token, and the highest up to it.
        """
        odds = step_logits[..., :-1] - step_logits[..., -1:]
        own = F.one_hot(batch.fold.clamp(min=0), FOLDS).to(odds.dtype)
        fold_weight = torch.where((batch.fold < 0)[..., None], 1 / FOLDS, own)
        odds = (odds * fold_weight[..., None]).sum(-2)
        other_step = batch.inside.any(-1, keepdim=True) & ~batch.inside
        odds = odds.masked_fill(other_step, _NO_EVIDENCE)
        exists = batch.video > 0
        videos, longest = int(batch.video.max()), int(batch.position.max()) + 1
        each = odds.new_full((videos, longest, odds.shape[-1]), _NO_EVIDENCE)
        each = each.index_put((batch.video[exists] - 1, batch.position[exists]), odds[exists])
        smooth = F.avg_pool1d(F.pad(each.mT, (1, 1), value=_NO_EVIDENCE), 3, stride=1).mT
        here = ((batch.video - 1).clamp(min=0), batch.position)
        scale = F.softplus(self.scale)
        return scale * smooth[here], scale * smooth.cummax(1).values[here]


class CooccurrenceModel(nn.Module):
    """Which labels usually go along with which, and when; not in the paper.

    A logistic regression per step on the features of the other labels: one for ŝ, when it is completed, and one for
    whether it is there at all. The latter learns from dropped labels (there) and from steps without a label (taken as
    not there).
    """

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.completion, self.presence = (nn.Linear(2 * steps + EXTRA_FEATURES, steps) for _ in range(2))
        for linear in (self.completion, self.presence):
            nn.init.zeros_(linear.weight)
            nn.init.zeros_(linear.bias)
        own = torch.eye(steps, dtype=torch.bool)  # a step's own label must not be a feature of it
        self.other_labels: Tensor
        mask = ~torch.cat([own, own, torch.zeros(steps, EXTRA_FEATURES, dtype=torch.bool)], 1)
        self.register_buffer("other_labels", mask, persistent=False)

    def forward(self, label_features: Tensor) -> tuple[Tensor, Tensor]:
        """(B, L, 2 N + EXTRA_FEATURES) -> twice (B, L, N): the scores of completion, and the log-odds of presence."""
        completion, presence = (
            F.linear(label_features, linear.weight * self.other_labels, linear.bias)
            for linear in (self.completion, self.presence)
        )
        return completion, presence

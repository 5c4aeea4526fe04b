"""What goes beyond the paper's model: evidence of a step in single frames and sentences, and the habits of labels."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from msg2.states.batch import Batch, mapped
from msg2.states.sampling import FACTS

JUDGES = 4
"""Folds of the training videos that a witness learns from and judges apart."""
_NOTHING_SEEN = -8.0
"""Log-odds of a step where it cannot be: low, and finite for the smoothing."""


class Witness(nn.Module):
    """What was seen (or heard) of each step so far; not in the paper.

    z = Linear(x) recognises one of N steps or background in every token, trained by cross-entropy on what the labels
    say. e_t[n] is the highest smoothed z[n] - z[background] up to token t; tokens that are labelled as another step do
    not count. It can tell a step that nobody labelled from one that nobody did: the paper's loss has no example
    of the latter, and calls every step completed in the end.

    There are `JUDGES` linear layers. Each learns from the videos of all folds but its own, and judges those of its own
    fold: what is known by heart is no evidence. A video that none has seen is judged by all of them.
    """

    def __init__(self, steps: int, width: int, dropout: float) -> None:
        super().__init__()
        self.linear = nn.Linear(width, JUDGES * (steps + 1))
        nn.init.zeros_(self.linear.weight)  # what was not learnt is no evidence
        nn.init.zeros_(self.linear.bias)
        self.scale = nn.Parameter(torch.zeros(1))
        self.dropout = nn.Dropout(dropout)

    def recognised(self, vectors: Tensor, places: Tensor, batch: Batch) -> Tensor:
        """(F, width) and (B, L, W) places in them, -1 for none -> (B, L, JUDGES, N + 1).

        How much each token looks like each step, and like none: the mean of its W places, less the mean of its video,
        since what is there all the time tells nothing about a step.
        """
        there = places >= 0
        share = there / there.sum(-1, keepdim=True).clamp(min=1)
        each = (mapped(self._unbiased, vectors, places) * share[..., None]).sum(-2)
        whose = batch.video.flatten()
        sums = each.new_zeros(int(whose.max()) + 1, each.shape[-1]).index_add(0, whose, each.flatten(0, 1))
        means = sums / whose.bincount(minlength=len(sums)).clamp(min=1)[:, None]
        return (each - means[batch.video] + self.linear.bias).reshape(*batch.video.shape, JUDGES, -1)

    def _unbiased(self, vectors: Tensor) -> Tensor:
        spread = F.layer_norm(vectors, vectors.shape[-1:])  # so that one learning rate fits all encoders
        return F.linear(self.dropout(spread), self.linear.weight)

    def forward(self, recognised: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """(B, L, JUDGES, N + 1) -> twice (B, L, N): what is seen at each token, and the most that was seen up to it."""
        odds = recognised[..., :-1] - recognised[..., -1:]
        own = F.one_hot(batch.fold.clamp(min=0), JUDGES).to(odds.dtype)
        judging = torch.where((batch.fold < 0)[..., None], 1 / JUDGES, own)
        odds = (odds * judging[..., None]).sum(-2)
        others = batch.inside.any(-1, keepdim=True) & ~batch.inside
        odds = odds.masked_fill(others, _NOTHING_SEEN)
        there = batch.video > 0
        videos, longest = int(batch.video.max()), int(batch.place.max()) + 1
        each = odds.new_full((videos, longest, odds.shape[-1]), _NOTHING_SEEN)
        each = each.index_put((batch.video[there] - 1, batch.place[there]), odds[there])
        smooth = F.avg_pool1d(F.pad(each.mT, (1, 1), value=_NOTHING_SEEN), 3, stride=1).mT
        here = ((batch.video - 1).clamp(min=0), batch.place)
        scale = F.softplus(self.scale)
        return scale * smooth[here], scale * smooth.cummax(1).values[here]


class Habits(nn.Module):
    """Which labels usually go along with which, and when; not in the paper.

    A logistic regression per step on what the other labels tell: one for ŝ, when it is completed, and one for whether
    it is there at all. The latter learns from dropped labels (there) and from steps without a label (taken as not).
    """

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.when, self.whether = (nn.Linear(2 * steps + FACTS, steps) for _ in range(2))
        for linear in (self.when, self.whether):
            nn.init.zeros_(linear.weight)
            nn.init.zeros_(linear.bias)
        own = torch.eye(steps, dtype=torch.bool)  # a step's own label must not tell about it
        self.others: Tensor
        self.register_buffer("others", ~torch.cat([own, own, torch.zeros(steps, FACTS, dtype=torch.bool)], 1), False)

    def forward(self, told: Tensor) -> tuple[Tensor, Tensor]:
        """(B, L, 2 N + FACTS) -> twice (B, L, N): when, and whether."""
        when, whether = (F.linear(told, one.weight * self.others, one.bias) for one in (self.when, self.whether))
        return when, whether

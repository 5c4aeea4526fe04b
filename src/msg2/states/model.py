"""The subtask state predictor (Sec. 4.1): frames and sentences in, one ordinal score per step and token out.

    A = MHA(query = frames, keys = values = sentences)        Eq. 1, no skip connection around it
    H = FeedForward(A) + A                                    Eq. 2
    [start] and [end] take the place of H at the borders of labelled segments
    ŝ = Linear(Transformer(H))                                Eq. 3

To these scores `msg2.states.beyond` may add its own; that is not in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from msg2.errors import InputError
from msg2.options import StateModelOptions
from msg2.states.batch import Batch, mapped
from msg2.states.beyond import JUDGES, Habits, Witness
from msg2.states.encoders import VisualBert, encoder
from msg2.states.sampling import COMPLETED, END, FRAME, IN_PROGRESS, NOT_STARTED, START


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """What the model says about a batch."""

    scores: Tensor
    """ŝ, (B, L, N)."""
    sighted: Tensor | None = None
    """(B, L, N): how much is seen of each step at each token; with witnesses only."""
    presence: Tensor | None = None
    """(B, L, N): the log-odds that a step is in the video at all, at its last token; with habits only."""
    recognised: tuple[Tensor, ...] = ()
    """Of each witness, (B, L, JUDGES, N + 1): which step each token shows, or none."""


class Fusion(nn.Module):
    """Eq. 1 and 2: every frame asks the W sentences around it; what it gets replaces it (or is added, with `skip`)."""

    def __init__(self, width: int, text_width: int, heads: int, dropout: float, skip: bool) -> None:
        super().__init__()
        self.heads, self.skip = heads, skip
        inner = heads * -(-width // heads)
        self.query, self.out = nn.Linear(width, inner), nn.Linear(inner, width)
        self.key, self.value = nn.Linear(text_width, inner), nn.Linear(text_width, inner)
        self.forwards = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, width))
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(dropout)

    def forward(self, frames: Tensor, sentences: Tensor, places: Tensor) -> Tensor:
        """(B, L, width), (S, text width), (B, L, W) -> (B, L, width).

        `places` are those of the W sentences among all, -1 where there is none; without any, A is 0.
        """
        there = places >= 0
        query = self.query(frames).unflatten(-1, (self.heads, -1)).unsqueeze(-3)  # (B, L, 1, heads, each)
        key = torch.unflatten(mapped(self.key, sentences, places), -1, (self.heads, -1))  # (B, L, W, heads, each)
        value = torch.unflatten(mapped(self.value, sentences, places), -1, (self.heads, -1))
        match = (query * key).sum(-1) * key.shape[-1] ** -0.5  # (B, L, W, heads)
        match = match.masked_fill(~there[..., None], torch.finfo(match.dtype).min)
        share = self.dropout(match.softmax(-2)) * there[..., None]
        attended = self.out((share[..., None] * value).sum(-3).flatten(-2)) * there.any(-1, keepdim=True)
        attended = self.dropout(attended) + (frames if self.skip else 0)
        return self.norm(self.forwards(attended) + attended)  # type: ignore[no-any-return]


class StateModel(nn.Module):
    """One ordinal score per step at every token; only those at `[start]` and `[end]` are trained and read."""

    def __init__(self, steps: int, frame_width: int, text_width: int, options: StateModelOptions) -> None:
        super().__init__()
        self.options = options
        self._check_that_it_hears(text_width)
        width = text_width if options.inputs == "text" else frame_width
        self.witnesses: Mapping[str, Witness] = nn.ModuleDict(  # type: ignore[assignment]
            {
                what: Witness(steps, size, options.witness_dropout)
                for what, size in _senses(frame_width, text_width, options)
            }
        )
        self.bias = nn.Parameter(torch.zeros(1)) if options.witness else None
        self.habits = Habits(steps) if options.habits else None
        # How much the witnesses count for whether a step is there at all.
        self.trust = nn.ParameterDict({what: torch.zeros(1) for what in self.witnesses} if options.habits else {})
        self.transformer = encoder(options.encoder) if options.context else None
        if self.transformer is None:
            return
        if options.direct and not isinstance(self.transformer, VisualBert):
            raise InputError(f"direct goes with a VisualBERT encoder, not with {options.encoder}")
        fuses = options.inputs != "vision" and not options.direct
        self.fusion = Fusion(width, text_width, options.heads, options.dropout, options.skip) if fuses else None
        inner = self.transformer.width
        entry = self.transformer.visual_width if isinstance(self.transformer, VisualBert) and options.direct else inner
        self.borders = nn.Embedding(2, width)
        self.bridge = nn.Identity() if width == entry else nn.Linear(width, entry)
        self.text_bridge = nn.Linear(text_width, inner) if options.direct else None
        self.head = nn.Linear(inner, steps)

    def forward(self, batch: Batch, frames: Tensor, sentences: Tensor) -> Prediction:
        """Scores for `batch`; `frames` (F, width) and `sentences` (S, text width) are those of all videos."""
        self._check_that_it_hears(len(sentences))
        scores = torch.zeros(()) if self.transformer is None else self._in_context(batch, frames, sentences)
        scores = scores if self.bias is None else scores + self.bias
        presence = None
        if self.habits is not None:
            when, presence = self.habits(batch.told)
            scores = scores + when
        recognised, sighted = [], []
        for what, witness in self.witnesses.items():
            places = batch.frame[..., None] if what == "frames" else batch.sentence
            logits = witness.recognised(frames if what == "frames" else sentences, places, batch)
            # Recognition is learnt from frames alone: through a maximum, the scores would only teach it by heart.
            now, so_far = witness(logits.detach(), batch)
            scores = scores + so_far
            if presence is not None:
                presence = presence + F.softplus(self.trust[what]) * so_far
            recognised.append(logits)
            sighted.append(now)
        return Prediction(scores, torch.stack(sighted).sum(0) if sighted else None, presence, tuple(recognised))

    def penalty(self) -> Tensor:
        """What the weights of witnesses and habits cost: what is learnt from few videos must stay small."""
        weights = [(self.options.witness_l2, witness.linear.weight) for witness in self.witnesses.values()]
        if self.habits is not None:
            # Whether a step is there is asked once per video, when it is completed at every border.
            weights += [(self.options.habits_l2, self.habits.when.weight)]
            weights += [(10 * self.options.habits_l2, self.habits.whether.weight)]
        return torch.stack(
            [torch.zeros((), device=self.device), *(cost * each.square().sum() for cost, each in weights)]
        ).sum()

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def _check_that_it_hears(self, anything: int) -> None:
        if self.options.inputs != "vision" and not anything:
            raise InputError("the features hold no sentences", hint="use the variant vision-only")

    def _in_context(self, batch: Batch, frames: Tensor, sentences: Tensor) -> Tensor:
        """The paper's model: (B, L, N)."""
        assert self.transformer is not None
        seen = F.embedding(batch.frame, sentences if self.options.inputs == "text" else frames)
        if self.fusion is not None:
            seen = self.fusion(seen, sentences, batch.sentence)
        hidden = self.bridge(self._with_borders(seen, batch))
        if self.text_bridge is not None:
            middle = batch.sentence[..., batch.sentence.shape[-1] // 2]
            hidden = self._side_by_side(mapped(self.text_bridge, sentences, middle), hidden, middle >= 0, batch)
        else:
            hidden = self.transformer(hidden, _mask(batch.video, batch.video, hidden.dtype), batch.place)
        return self.head(hidden)  # type: ignore[no-any-return]

    def _with_borders(self, seen: Tensor, batch: Batch) -> Tensor:
        """`[start]` and `[end]` in the place of the fused vectors at the borders."""
        border = self.borders((batch.kind == END).long())
        at_border = (batch.kind == START) | (batch.kind == END)
        return torch.where(at_border[..., None], border.to(seen.dtype), seen)

    def _side_by_side(self, heard: Tensor, seen: Tensor, there: Tensor, batch: Batch) -> Tensor:
        """VisualBERT†: the middle sentence of every token beside the token itself."""
        mask = _mask(torch.cat([batch.video] * 2, 1), torch.cat([batch.video * there, batch.video], 1), seen.dtype)
        assert isinstance(self.transformer, VisualBert)
        return self.transformer.side_by_side(heard, seen, mask, batch.place)


def _senses(frame_width: int, text_width: int, options: StateModelOptions) -> list[tuple[str, int]]:
    """What the witnesses of a model look at, and the width of that."""
    senses = {"fused": ("frames", "sentences"), "vision": ("frames",), "text": ("sentences",)}[options.inputs]
    widths = {"frames": frame_width, "sentences": text_width}
    return [(what, widths[what]) for what in senses] if options.witness else []


def _mask(asking: Tensor, asked: Tensor, dtype: torch.dtype) -> Tensor:
    """(B, 1, L, L), to be added to attention: 0 within a video, `_APART` to other videos; padding sees padding."""
    within = asking[:, :, None] == asked[:, None, :]
    return torch.zeros_like(within, dtype=dtype).masked_fill(~within, _APART)[:, None]


_APART = -1e4
"""Its exponential is exactly 0. The lowest of all numbers would be -∞ after GPU kernels have scaled it, and NaN where
a query has no key, or none in a whole block of keys, as in a row of several videos."""


def training_loss(prediction: Prediction, batch: Batch, options: StateModelOptions) -> Tensor:
    """The ordinal loss and, with a witness, the cross-entropy of what the frames show."""
    loss = ordinal_loss(prediction.scores, batch.state, batch.weight, options.threshold, options.in_progress)
    if prediction.presence is not None:
        target = batch.present.float()[batch.asked]
        surprise = F.binary_cross_entropy_with_logits(prediction.presence[batch.asked], target, reduction="sum")
        loss = loss + surprise / batch.asked.sum().clamp(min=1)  # all steps may be labelled, and none dropped
    if not prediction.recognised:
        return loss
    shown = (batch.state == IN_PROGRESS).sum(-1)
    counted = (batch.kind == FRAME) & (shown <= 1)  # where two steps overlap, nobody knows which is seen
    background = torch.full_like(batch.kind, batch.state.shape[-1])
    target = torch.where(shown == 0, background, (batch.state == IN_PROGRESS).long().argmax(-1))
    for recognised in prediction.recognised:
        for judge in range(JUDGES):
            learnt = counted & (batch.fold != judge)
            surprise = F.cross_entropy(recognised[learnt][:, judge].float(), target[learnt], reduction="sum")
            loss = loss + surprise / learnt.sum().clamp(min=1)
    return loss


def ordinal_loss(scores: Tensor, state: Tensor, weight: Tensor, threshold: float, in_progress: bool = True) -> Tensor:
    """Eq. 4: the weighted mean of BCE(σ(ŝ + b), state ≠ not started) + BCE(σ(ŝ - b), state = completed).

    All of shape (B, L, N). Without `in_progress` only the second term counts.

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


def states(scores: Tensor, threshold: float) -> Tensor:
    """The states that the scores stand for: below -b not started, above b completed, in progress between.

    >>> states(torch.tensor([-1.5, 0.0, 1.0]), threshold=1.0).tolist()
    [0, 1, 2]
    """
    return (scores >= -threshold).long() + (scores >= threshold).long()

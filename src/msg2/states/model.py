"""The subtask state predictor (Sec. 4.1): frames and sentences in, one ordinal score per step and token out.

    A = MHA(query = frames, keys = values = sentences)        Eq. 1, no skip connection around it
    H = FeedForward(A) + A                                    Eq. 2
    [start] and [end] take the place of H at the borders of labelled segments
    ŝ = Linear(Transformer(H))                                Eq. 3

Several videos may share a row of tokens: `Batch.video` says whose token is whose, and attention never crosses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from msg2.errors import InputError
from msg2.options import StateModelOptions
from msg2.states.encoders import VisualBert, encoder
from msg2.states.sampling import COMPLETED, END, FACTS, FRAME, IN_PROGRESS, NOT_STARTED, START


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
    step: Tensor
    """(B, L): whose border a delimiter is; -1 for frames."""
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

    def pinned(self) -> Batch:
        """The same batch in memory from which a GPU copies while the program goes on."""
        return Batch(*(getattr(self, f.name).pin_memory() for f in fields(self)))

    def to(self, device: torch.device) -> Batch:
        """The same batch on another device."""
        return Batch(*(getattr(self, f.name).to(device, non_blocking=True) for f in fields(self)))


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

    def forward(self, frames: Tensor, sentences: Tensor, there: Tensor) -> Tensor:
        """(B, L, width), (B, L, W, text width), (B, L, W) -> (B, L, width); without any sentence, A is 0."""
        query = self.query(frames).unflatten(-1, (self.heads, -1)).unsqueeze(-3)  # (B, L, 1, heads, each)
        key = self.key(sentences).unflatten(-1, (self.heads, -1))  # (B, L, W, heads, each)
        value = self.value(sentences).unflatten(-1, (self.heads, -1))
        match = (query * key).sum(-1) * key.shape[-1] ** -0.5  # (B, L, W, heads)
        match = match.masked_fill(~there[..., None], torch.finfo(match.dtype).min)
        share = self.dropout(match.softmax(-2)) * there[..., None]
        attended = self.out((share[..., None] * value).sum(-3).flatten(-2)) * there.any(-1, keepdim=True)
        attended = self.dropout(attended) + (frames if self.skip else 0)
        return self.norm(self.forwards(attended) + attended)  # type: ignore[no-any-return]


JUDGES = 4
"""Folds of the training videos that a witness learns from and judges apart."""


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
        self.scale, self.scale_at_all = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
        self.dropout = nn.Dropout(dropout)

    def recognised(self, vectors: Tensor, places: Tensor, batch: Batch) -> Tensor:
        """(F, width) and (B, L, W) places in them, -1 for none -> (B, L, JUDGES, N + 1).

        How much each token looks like each step, and like none: the mean of its W places, less the mean of its video,
        since what is there all the time tells nothing about a step.
        """
        spread = F.layer_norm(vectors, vectors.shape[-1:])  # so that one learning rate fits all encoders
        logits = F.linear(self.dropout(spread), self.linear.weight)
        there = places >= 0
        share = there / there.sum(-1, keepdim=True).clamp(min=1)
        each = (F.embedding(places.clamp(min=0), logits) * share[..., None]).sum(-2)
        whose = batch.video.flatten()
        sums = each.new_zeros(int(whose.max()) + 1, each.shape[-1]).index_add(0, whose, each.flatten(0, 1))
        means = sums / whose.bincount(minlength=len(sums)).clamp(min=1)[:, None]
        return (each - means[batch.video] + self.linear.bias).reshape(*batch.video.shape, JUDGES, -1)

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


_NOTHING_SEEN = -8.0
"""Log-odds of a step where it cannot be: low, and finite for the smoothing."""


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


class StateModel(nn.Module):
    """One ordinal score per step at every token; only those at `[start]` and `[end]` are trained and read."""

    def __init__(self, steps: int, frame_width: int, text_width: int, options: StateModelOptions) -> None:
        super().__init__()
        self.options = options
        width = text_width if options.inputs == "text" else frame_width
        self.witnesses: Mapping[str, Witness] = nn.ModuleDict(  # type: ignore[assignment]
            {
                what: Witness(steps, size, options.witness_dropout)
                for what, size in _senses(frame_width, text_width, options)
            }
        )
        self.bias = nn.Parameter(torch.zeros(1)) if options.witness else None
        self.habits = Habits(steps) if options.habits else None
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
        self.names = nn.Embedding(steps, width) if options.named_borders else None
        self.bridge = nn.Identity() if width == entry else nn.Linear(width, entry)
        self.text_bridge = nn.Linear(text_width, inner) if options.direct else None
        self.head = nn.Linear(inner, steps)

    def forward(self, batch: Batch, frames: Tensor, sentences: Tensor) -> Prediction:
        """Scores for `batch`; `frames` (F, width) and `sentences` (S, text width) are those of all videos."""
        if self.options.inputs != "vision" and not len(sentences):
            raise InputError("the features hold no sentences", hint="use the variant vision-only")
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
                presence = presence + F.softplus(witness.scale_at_all) * so_far
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

    def _in_context(self, batch: Batch, frames: Tensor, sentences: Tensor) -> Tensor:
        """The paper's model: (B, L, N)."""
        assert self.transformer is not None
        seen = F.embedding(batch.frame, sentences if self.options.inputs == "text" else frames)
        there = batch.sentence >= 0
        heard = F.embedding(batch.sentence.clamp(min=0), sentences) if self.options.inputs != "vision" else None
        if self.fusion is not None and heard is not None:
            seen = self.fusion(seen, heard, there)
        hidden = self.bridge(self._with_borders(seen, batch))
        if self.text_bridge is not None and heard is not None:
            hidden = self._side_by_side(self.text_bridge(heard[:, :, heard.shape[2] // 2]), hidden, there, batch)
        else:
            hidden = self.transformer(hidden, _mask(batch.video, batch.video, hidden.dtype), batch.place)
        return self.head(hidden)  # type: ignore[no-any-return]

    def _with_borders(self, seen: Tensor, batch: Batch) -> Tensor:
        """`[start]` and `[end]` in the place of the fused vectors at the borders."""
        border = self.borders((batch.kind == END).long())
        if self.names is not None:
            border = border + self.names(batch.step.clamp(min=0))
        at_border = (batch.kind == START) | (batch.kind == END)
        return torch.where(at_border[..., None], border.to(seen.dtype), seen)

    def _side_by_side(self, heard: Tensor, seen: Tensor, there: Tensor, batch: Batch) -> Tensor:
        """VisualBERT†: the middle sentence of every token beside the token itself."""
        middle = batch.video * there[..., there.shape[-1] // 2]
        mask = _mask(torch.cat([batch.video] * 2, 1), torch.cat([middle, batch.video], 1), seen.dtype)
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
        loss = loss + F.binary_cross_entropy_with_logits(prediction.presence[batch.asked], target)
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

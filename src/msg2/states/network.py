"""The state network (Sec. 4.1): frames and sentences in, one ordinal score per step and token out.

    A = MHA(query = frames, keys = values = sentences)        Eq. 1, no skip connection around it
    H = FeedForward(A) + A                                    Eq. 2
    [start] and [end] take the place of H at the borders of labelled segments
    ŝ = Linear(Transformer(H))                                Eq. 3

Its input is a `Batch` of tokens: several videos may share a row, and attention stays within each of them. Its targets
are in `dataset`, its loss (Eq. 4) in `loss_and_optimizer`.

Two parts go beyond the paper and add to the scores: evidence of a step in single frames and sentences, and labels that
occur together.

    evidence:       e_t[n] = max over s ≤ t of smooth(z_s[n] - z_s[background]),  z = Linear(x)
    co-occurrence:  a logistic regression per step on the labels of the other steps
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from msg2.errors import InputError, optional_dependency
from msg2.states.configuration import StateModelOptions
from msg2.states.dataset import END, EXTRA_FEATURES, FOLDS, START, Batch

if TYPE_CHECKING:
    from msg2.states.transformer_encoders import SequenceEncoder


def transform_rows(function: Callable[[Tensor], Tensor], vectors: Tensor, rows: Tensor) -> Tensor:
    """Apply a function to chosen rows of a matrix; on a CPU once to each distinct row, with one draw of dropout."""
    rows = rows.clamp(min=0)
    if rows.is_cuda:  # which would have to wait for how many distinct rows there are
        return function(F.embedding(rows, vectors))
    distinct, rows = torch.unique(rows, return_inverse=True)
    return F.embedding(rows, function(F.embedding(distinct, vectors)))


@dataclass(frozen=True, slots=True, eq=False)
class StateModelOutput:
    """What the model computes for a batch."""

    scores: Tensor  # ŝ, (B, L, N)
    evidence: Tensor | None = None  # (B, L, N): the evidence of each step at each token; with evidence models only
    presence: Tensor | None = None
    """(B, L, N): the log-odds that a step is in the video at all, at its last token; with co-occurrence only."""
    step_logits: tuple[Tensor, ...] = ()
    """Of each evidence model, (B, L, FOLDS, N + 1): which step each token shows, or background."""


class Fusion(nn.Module):
    """Eq. 1 and 2: every frame asks the W sentences around it; what it gets replaces it (or is added, with `skip`).

    With other streams, such as audio, it asks what these hold at its own time as well: W + 1 keys, and so on.
    """

    def __init__(
        self, width: int, text_width: int, heads: int, dropout: float, skip: bool,
        *, streams: Mapping[str, int] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        super().__init__()
        self.heads, self.skip = heads, skip
        inner = heads * -(-width // heads)
        self.query, self.out = nn.Linear(width, inner), nn.Linear(inner, width)
        self.hears = text_width > 0
        if self.hears:
            self.key, self.value = nn.Linear(text_width, inner), nn.Linear(text_width, inner)
        self.streams = nn.ModuleDict({name: nn.Linear(size, 2 * inner) for name, size in streams.items()})
        self.feed_forward = nn.Sequential(
            nn.Linear(width, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, width)
        )
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(dropout)

    def forward(
        self, frames: Tensor, sentences: Tensor, rows: Tensor, streams: Mapping[str, Tensor] = MappingProxyType({})
    ) -> Tensor:
        """Enrich frames by sentences, and by the vectors of other streams at the same tokens."""
        query = self.query(frames).unflatten(-1, (self.heads, -1)).unsqueeze(-3)  # (B, L, 1, heads, each)
        heard = [transform_rows(linear, sentences, rows) for linear in (self.key, self.value)] if self.hears else []
        others = [self.streams[name](vectors[..., None, :]).chunk(2, -1) for name, vectors in streams.items()]
        pairs = zip(*([heard] if heard else []), *others, strict=True)
        # (B, L, W + streams, heads, each)
        key, value = (torch.unflatten(torch.cat(each, -2), -1, (self.heads, -1)) for each in pairs)
        exists = F.pad(rows[..., : rows.shape[-1] * self.hears] >= 0, (0, len(streams)), value=True)
        match = (query * key).sum(-1) * key.shape[-1] ** -0.5  # (B, L, W, heads)
        match = match.masked_fill(~exists[..., None], torch.finfo(match.dtype).min)
        share = self.dropout(match.softmax(-2)) * exists[..., None]
        attended = self.out((share[..., None] * value).sum(-3).flatten(-2)) * exists.any(-1, keepdim=True)
        attended = self.dropout(attended) + (frames if self.skip else 0)
        return self.norm(self.feed_forward(attended) + attended)  # type: ignore[no-any-return]


class StateModel(nn.Module):
    """One ordinal score per step at every token; only those at `[start]` and `[end]` are trained and read."""

    def __init__(
        self, steps: int, frame_width: int, text_width: int, options: StateModelOptions,
        streams: Mapping[str, int] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        super().__init__()
        self.options = options
        self._require_sentences(text_width)
        width = text_width if options.inputs == "text" else frame_width
        sources = {"vision": {"frames": frame_width}, "text": {"sentences": text_width}}
        given = sources.get(options.inputs, sources["vision"] | sources["text"]) | dict(streams)
        seen = given if options.evidence else {}
        evidence = {what: EvidenceModel(steps, size, options.evidence_dropout) for what, size in seen.items()}
        self.evidence_models: Mapping[str, EvidenceModel] = nn.ModuleDict(evidence)  # type: ignore[assignment]
        self.bias = nn.Parameter(torch.zeros(1)) if options.evidence else None
        self.cooccurrence = CooccurrenceModel(steps) if options.cooccurrence else None
        # How much the evidence counts for whether a step is there at all.
        scaled = self.evidence_models if options.cooccurrence else ()
        self.presence_scale = nn.ParameterDict({what: torch.zeros(1) for what in scaled})
        self.transformer: SequenceEncoder | None = None
        if not options.context:
            return
        with optional_dependency("a model with a transformer", "video"):
            from msg2.states.transformer_encoders import VisualBert, load_encoder
        self.transformer = load_encoder(options.encoder)
        if options.direct and not isinstance(self.transformer, VisualBert):
            raise InputError(f"direct goes with a VisualBERT encoder, not with {options.encoder}")
        fuses = (options.inputs != "vision" or bool(streams)) and not options.direct
        sizes = width, 0 if options.inputs == "vision" else text_width, options.heads
        self.fusion = Fusion(*sizes, options.dropout, options.skip, streams=streams) if fuses else None
        inner = self.transformer.width
        entry = self.transformer.visual_width if isinstance(self.transformer, VisualBert) and options.direct else inner
        self.borders = nn.Embedding(2, width)
        self.input_projection = nn.Identity() if width == entry else nn.Linear(width, entry)
        self.text_projection = nn.Linear(text_width, inner) if options.direct else None
        self.head = nn.Linear(inner, steps)

    def forward(
        self, batch: Batch, frames: Tensor, sentences: Tensor, streams: Mapping[str, Tensor] = MappingProxyType({})
    ) -> StateModelOutput:
        """Compute the scores of a batch."""
        self._require_sentences(len(sentences))
        given = {"frames": frames, "sentences": sentences, **streams}
        scores = torch.zeros(()) if self.transformer is None else self._transformer_scores(batch, **given)
        scores = scores if self.bias is None else scores + self.bias
        presence = None
        if self.cooccurrence is not None:
            completion, presence = self.cooccurrence(batch.label_features)
            scores = scores + completion
        step_logits, evidence = [], []
        for what, model in self.evidence_models.items():
            rows = batch.sentence if what == "sentences" else batch.frame[..., None]
            logits = model.step_logits(given[what], rows, batch)
            # Recognition is learned from frames alone: through a maximum, the scores would only teach it by heart.
            now, so_far = model(logits.detach(), batch)
            scores = scores + so_far
            if presence is not None:
                presence = presence + F.softplus(self.presence_scale[what]) * so_far
            step_logits.append(logits)
            evidence.append(now)
        total = torch.stack(evidence).sum(0) if evidence else None
        return StateModelOutput(scores, total, presence, tuple(step_logits))

    def penalty(self) -> Tensor:
        """The L2 penalty of the evidence and co-occurrence models: what is learned from few videos must stay small."""
        weights = [(self.options.evidence_l2, model.linear.weight) for model in self.evidence_models.values()]
        if self.cooccurrence is not None:
            # Whether a step is there is asked once per video, when it is completed at every border.
            weights += [(self.options.cooccurrence_l2, self.cooccurrence.completion.weight)]
            weights += [(10 * self.options.cooccurrence_l2, self.cooccurrence.presence.weight)]
        penalties = [cost * each.square().sum() for cost, each in weights]
        return torch.stack([torch.zeros((), device=self.device), *penalties]).sum()

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def _require_sentences(self, count: int) -> None:
        if self.options.inputs != "vision" and not count:
            raise InputError("the features hold no sentences", hint="use the variant vision-only")

    def _transformer_scores(self, batch: Batch, frames: Tensor, sentences: Tensor, **streams: Tensor) -> Tensor:
        """The paper's model: (B, L, N)."""
        assert self.transformer is not None
        seen = F.embedding(batch.frame, sentences if self.options.inputs == "text" else frames)
        if self.fusion is not None:
            now = {name: F.embedding(batch.frame, vectors) for name, vectors in streams.items()}
            seen = self.fusion(seen, sentences, batch.sentence, now)
        # `[start]` and `[end]` take the place of the fused vectors at the borders.
        border = self.borders((batch.kind == END).long())
        at_border = (batch.kind == START) | (batch.kind == END)
        hidden = self.input_projection(torch.where(at_border[..., None], border.to(seen.dtype), seen))
        queries = keys = batch.video
        texts: tuple[Tensor, ...] = ()
        if self.text_projection is not None:  # VisualBERT†: the middle sentence of every token beside the token itself
            middle = batch.sentence[..., batch.sentence.shape[-1] // 2]
            texts = (transform_rows(self.text_projection, sentences, middle),)
            queries, keys = torch.cat([queries] * 2, 1), torch.cat([keys * (middle >= 0), keys], 1)
        # (B, 1, L, L), added to attention: 0 within a video, `_MASKED` to other videos; padding sees padding.
        others = (queries[:, :, None] != keys[:, None, :])[:, None]
        mask = torch.zeros_like(others, dtype=hidden.dtype).masked_fill(others, _MASKED)
        return self.head(self.transformer(hidden, mask, batch.position, *texts))  # type: ignore[no-any-return]


_MASKED = -1e4
"""Its exponential is exactly 0. The lowest of all numbers would be -∞ after GPU kernels have scaled it, and NaN where
a query has no key, or none in a whole block of keys, as in a row of several videos."""

_NO_EVIDENCE = -8.0  # log-odds of a step where it cannot be: low, and finite for the smoothing


class EvidenceModel(nn.Module):
    """What frames (or sentences) have shown of each step so far; not in the paper.

    z = Linear(x) recognises one of N steps or background in every token, trained by cross-entropy on what the labels
    say. e_t[n] is the highest smoothed z[n] - z[background] up to token t; tokens that are labelled as another step do
    not count. There are `FOLDS` linear layers. Each learns from the videos of all folds but its own, and scores those
    of its own fold. A video that none has seen is scored by the mean of all of them.
    """

    def __init__(self, steps: int, width: int, dropout: float) -> None:
        super().__init__()
        self.linear = nn.Linear(width, FOLDS * (steps + 1))
        nn.init.zeros_(self.linear.weight)  # what was not learned is no evidence
        nn.init.zeros_(self.linear.bias)
        self.scale = nn.Parameter(torch.zeros(1))
        self.dropout = nn.Dropout(dropout)

    def step_logits(self, vectors: Tensor, rows: Tensor, batch: Batch) -> Tensor:
        """Tell how much each token looks like each step, and like background: the mean over its W vectors."""
        exists = rows >= 0
        share = exists / exists.sum(-1, keepdim=True).clamp(min=1)
        each = (transform_rows(self._project, vectors, rows) * share[..., None]).sum(-2)
        # The mean over the video is taken off: what is there all the time says nothing about a step.
        video = batch.video.flatten()
        sums = each.new_zeros(int(video.max()) + 1, each.shape[-1]).index_add(0, video, each.flatten(0, 1))
        means = sums / video.bincount(minlength=len(sums)).clamp(min=1)[:, None]
        return (each - means[batch.video] + self.linear.bias).reshape(*batch.video.shape, FOLDS, -1)

    def _project(self, vectors: Tensor) -> Tensor:
        """The linear layer without its bias."""
        normalized = F.layer_norm(vectors, vectors.shape[-1:])  # so that one learning rate fits all encoders
        return F.linear(self.dropout(normalized), self.linear.weight)

    def forward(self, step_logits: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Turn logits into evidence."""
        odds = step_logits[..., :-1] - step_logits[..., -1:]
        own = F.one_hot(batch.fold.clamp(min=0), FOLDS).to(odds.dtype)
        fold_weight = torch.where((batch.fold < 0)[..., None], 1 / FOLDS, own)
        odds = (odds * fold_weight[..., None]).sum(-2)
        odds = odds.masked_fill(batch.inside.any(-1, keepdim=True) & ~batch.inside, _NO_EVIDENCE)  # of another step
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

    It has two logistic regressions per step on the features of the other labels: one for ŝ, and one for whether the
    step is there at all, which learns from dropped labels (there) and from steps without a label (not there).
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

"""The networks: a moment of a video in, a score of every step for being next out.

    STAM     z_t = H_t + step_t + place_t;                          ŷ = Linear(Temporal([class, z_1 … z_T])_class)
    ViViT    z_t = Spatial([class, H_t, frame_t, sentence_t, step_t])_class + place_t;     the rest as in STAM
    ours     tokens are the steps done and the sentences heard since the last of them began

H_t is the frame enriched by the sentences around it (Eq. 2), in the place of patches, as the paper has it. What is
done scores −∞. Places are counted back from the present: the latest is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor, nn

from msg2.options import ForeseeingOptions, StateModelOptions
from msg2.states.model import Fusion
from msg2.states.temporal.films import Films
from msg2.states.temporal.moments import Moments


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many steps there are, and how wide frames and sentences are."""

    steps: int
    frame: int
    sentence: int

    @staticmethod
    def of(films: Films) -> Sizes:
        """Those of a task."""
        return Sizes(len(films.steps), films.frames.shape[1], films.sentences.shape[1])


class Classed(nn.Module):
    """A transformer that sums up a set of tokens in one more: the class token."""

    def __init__(self, layers: int, options: ForeseeingOptions) -> None:
        super().__init__()
        width = options.width
        layer = nn.TransformerEncoderLayer(
            width, options.heads, 2 * width, options.dropout, "gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.token = nn.Parameter(torch.randn(width) / width**0.5)

    def forward(self, tokens: Tensor, there: Tensor) -> Tensor:
        """(B, L, width), (B, L) -> (B, width): what the class token has gathered from those that are there."""
        first = self.token.expand(len(tokens), 1, -1)
        missing = nn.functional.pad(~there, (1, 0))
        return self.layers(torch.cat([first, tokens], 1), src_key_padding_mask=missing)[:, 0]  # type: ignore[no-any-return]


class Frames(nn.Module):
    """The tokens of every frame: H, the frame itself, the sentence nearest to it and, with labels, its step."""

    def __init__(self, sizes: Sizes, options: ForeseeingOptions) -> None:
        super().__init__()
        width = options.width
        self.frame, self.sentence = nn.Linear(sizes.frame, width), nn.Linear(sizes.sentence, width)
        self.fusion = Fusion(width, sizes.sentence, options.heads, options.dropout, StateModelOptions().skip)
        self.step = nn.Embedding(sizes.steps, width) if options.labels else None

    def forward(self, moments: Moments, films: Films) -> Tensor:
        """(B, K, P, tokens, width)."""
        seen = self.frame(looked_up(films.frames, moments.frames, self.frame))
        heard = films.sentences if len(films.sentences) else torch.zeros(1, self.sentence.in_features)
        fused = self.fusion(seen.flatten(1, 2), heard, moments.around.flatten(1, 2))
        nearest = looked_up(heard, moments.around[..., moments.around.shape[3] // 2], self.sentence)
        tokens = [fused.unflatten(1, seen.shape[1:3]), seen, self.sentence(nearest)]
        if self.step is not None:
            step = self.step(moments.steps.clamp(min=0))
            tokens.append(step[:, :, None].expand_as(seen))
        return torch.stack(tokens, 3)


class Stam(nn.Module):
    """Temporal attention over frames. A frame is one token, so that nothing is left for the spatial stage."""

    def __init__(self, sizes: Sizes, options: ForeseeingOptions) -> None:
        super().__init__()
        self.frames, self.over_time = Frames(sizes, options), OverTime(sizes, options)

    def forward(self, moments: Moments, films: Films) -> Tensor:
        """(B, N)."""
        fused, _, _, *step = self.frames(moments, films).unbind(3)
        return self.over_time(fused + step[0] if step else fused, moments)  # type: ignore[no-any-return]


class Vivit(nn.Module):
    """The factorised encoder: attention over the tokens of a frame, then over the frames."""

    def __init__(self, sizes: Sizes, options: ForeseeingOptions) -> None:
        super().__init__()
        self.frames, self.over_time = Frames(sizes, options), OverTime(sizes, options)
        self.kind = nn.Parameter(torch.randn(4 if options.labels else 3, options.width) / options.width**0.5)
        self.within = Classed(options.spatial_layers, options)

    def forward(self, moments: Moments, films: Films) -> Tensor:
        """(B, N)."""
        tokens = self.frames(moments, films) + self.kind  # (B, K, P, tokens, width)
        there = torch.ones(tokens.shape[:-1], dtype=torch.bool)
        there[..., 1] = moments.frames >= 0
        there[..., 2] = moments.around[..., moments.around.shape[3] // 2] >= 0
        summed = self.within(tokens.flatten(0, 2), there.flatten(0, 2)).unflatten(0, tokens.shape[:3])
        return self.over_time(summed, moments)  # type: ignore[no-any-return]


class OverTime(nn.Module):
    """The temporal stage and the head: (B, K, P, width) -> (B, N)."""

    def __init__(self, sizes: Sizes, options: ForeseeingOptions) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.randn(sizes.steps, options.frames, options.width) / options.width**0.5)
        self.along, self.head = Classed(options.layers, options), nn.Linear(options.width, sizes.steps)

    def forward(self, frames: Tensor, moments: Moments) -> Tensor:
        """Frames of steps that are not there have no part in it."""
        there = (moments.steps >= 0)[..., None].expand(frames.shape[:3])
        placed = frames + self.place[: frames.shape[1]]
        return left(self.head(self.along(placed.flatten(1, 2), there.flatten(1, 2))), moments)


class TextAndLabels(nn.Module):
    """Ours: no frames; each step done is a token, and each sentence since the last of them began."""

    def __init__(self, sizes: Sizes, options: ForeseeingOptions) -> None:
        super().__init__()
        width, count = options.width, sizes.steps
        self.step, self.sentence = nn.Embedding(count, width), nn.Linear(sizes.sentence, width)
        self.step_place = nn.Parameter(torch.randn(count, width) / width**0.5)
        self.sentence_place = nn.Parameter(torch.randn(options.heard, width) / width**0.5)
        self.all, self.head = Classed(options.layers, options), nn.Linear(width, count)

    def forward(self, moments: Moments, films: Films) -> Tensor:
        """(B, N)."""
        steps = self.step(moments.steps.clamp(min=0)) + self.step_place[: moments.steps.shape[1]]
        said = looked_up(films.sentences, moments.heard, self.sentence)
        heard = self.sentence(said) + self.sentence_place[: moments.heard.shape[1]]
        there = torch.cat([moments.steps, moments.heard], 1) >= 0
        return left(self.head(self.all(torch.cat([steps, heard], 1), there)), moments)


Network: TypeAlias = Stam | Vivit | TextAndLabels
NETWORKS: Mapping[str, Callable[[Sizes, ForeseeingOptions], Network]] = {
    "stam": Stam, "vivit": Vivit, "text+labels": TextAndLabels,
}  # fmt: skip


def looked_up(vectors: Tensor, places: Tensor, reader: nn.Linear) -> Tensor:
    """(*places.shape, width of what is read): the vectors in these places, zeros for -1."""
    if not len(vectors):
        return torch.zeros(*places.shape, reader.in_features)
    return vectors[places.clamp(min=0)] * (places >= 0)[..., None]


def left(scores: Tensor, moments: Moments) -> Tensor:
    """−∞ for the steps that are done: each comes once."""
    return scores.masked_fill(moments.done, float("-inf"))

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

from experiments.forecasting.video_transformers.labelled_videos import LabelledVideos
from experiments.forecasting.video_transformers.step_histories import StepHistories
from experiments.forecasting.video_transformers.transformer_options import VideoTransformerOptions
from msg2.states.configuration import StateModelOptions
from msg2.states.network import Fusion


@dataclass(frozen=True, slots=True)
class InputSizes:
    """How many steps there are, and how wide frames and sentences are."""

    steps: int
    frame: int
    sentence: int

    @staticmethod
    def of(videos: LabelledVideos) -> InputSizes:
        """Those of a task."""
        return InputSizes(len(videos.steps), videos.frames.shape[1], videos.sentences.shape[1])


class ClassTokenEncoder(nn.Module):
    """A transformer that sums up a set of tokens in one more: the class token."""

    def __init__(self, layers: int, options: VideoTransformerOptions) -> None:
        super().__init__()
        width = options.width
        layer = nn.TransformerEncoderLayer(
            width, options.heads, 2 * width, options.dropout, "gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.token = nn.Parameter(torch.randn(width) / width**0.5)

    def forward(self, tokens: Tensor, there: Tensor) -> Tensor:
        """Return what the class token has gathered from the tokens that are there.

        Parameters
        ----------
        tokens : Tensor
            Shape (B, L, width).
        there : Tensor
            Shape (B, L): false for padding.

        Returns
        -------
        Tensor
            Shape (B, width).
        """
        first = self.token.expand(len(tokens), 1, -1)
        missing = nn.functional.pad(~there, (1, 0))
        return self.layers(torch.cat([first, tokens], 1), src_key_padding_mask=missing)[:, 0]  # type: ignore[no-any-return]


class FrameTokens(nn.Module):
    """The tokens of every frame: H, the frame itself, the sentence nearest to it and, with labels, its step."""

    def __init__(self, sizes: InputSizes, options: VideoTransformerOptions) -> None:
        super().__init__()
        width = options.width
        self.frame, self.sentence = nn.Linear(sizes.frame, width), nn.Linear(sizes.sentence, width)
        self.fusion = Fusion(width, sizes.sentence, options.heads, options.dropout, StateModelOptions().skip)
        self.step = nn.Embedding(sizes.steps, width) if options.labels else None

    def forward(self, histories: StepHistories, videos: LabelledVideos) -> Tensor:
        """Return the tokens of P frames of each of K steps.

        Parameters
        ----------
        histories : StepHistories
            What is known at B moments.
        videos : LabelledVideos
            The frames and sentences that the histories point to.

        Returns
        -------
        Tensor
            Shape (B, K, P, tokens, width).
        """
        seen = self.frame(gather_vectors(videos.frames, histories.frames, self.frame))
        heard = videos.sentences if len(videos.sentences) else torch.zeros(1, self.sentence.in_features)
        fused = self.fusion(seen.flatten(1, 2), heard, histories.nearby_sentences.flatten(1, 2))
        nearest = gather_vectors(
            heard, histories.nearby_sentences[..., histories.nearby_sentences.shape[3] // 2], self.sentence
        )
        tokens = [fused.unflatten(1, seen.shape[1:3]), seen, self.sentence(nearest)]
        if self.step is not None:
            step = self.step(histories.steps.clamp(min=0))
            tokens.append(step[:, :, None].expand_as(seen))
        return torch.stack(tokens, 3)


class Stam(nn.Module):
    """Temporal attention over frames. A frame is one token, so that nothing is left for the spatial stage."""

    def __init__(self, sizes: InputSizes, options: VideoTransformerOptions) -> None:
        super().__init__()
        self.frames, self.over_time = FrameTokens(sizes, options), TemporalEncoder(sizes, options)

    def forward(self, histories: StepHistories, videos: LabelledVideos) -> Tensor:
        """Return a score of every step for being next.

        Parameters
        ----------
        histories : StepHistories
            What is known at B moments.
        videos : LabelledVideos
            The frames and sentences that the histories point to.

        Returns
        -------
        Tensor
            Shape (B, N).
        """
        fused, _, _, *step = self.frames(histories, videos).unbind(3)
        return self.over_time(fused + step[0] if step else fused, histories)  # type: ignore[no-any-return]


class Vivit(nn.Module):
    """The factorised encoder: attention over the tokens of a frame, then over the frames."""

    def __init__(self, sizes: InputSizes, options: VideoTransformerOptions) -> None:
        super().__init__()
        self.frames, self.over_time = FrameTokens(sizes, options), TemporalEncoder(sizes, options)
        self.kind = nn.Parameter(torch.randn(4 if options.labels else 3, options.width) / options.width**0.5)
        self.within = ClassTokenEncoder(options.spatial_layers, options)

    def forward(self, histories: StepHistories, videos: LabelledVideos) -> Tensor:
        """Return a score of every step for being next.

        Parameters
        ----------
        histories : StepHistories
            What is known at B moments.
        videos : LabelledVideos
            The frames and sentences that the histories point to.

        Returns
        -------
        Tensor
            Shape (B, N).
        """
        tokens = self.frames(histories, videos) + self.kind  # (B, K, P, tokens, width)
        there = torch.ones(tokens.shape[:-1], dtype=torch.bool)
        there[..., 1] = histories.frames >= 0
        there[..., 2] = histories.nearby_sentences[..., histories.nearby_sentences.shape[3] // 2] >= 0
        summed = self.within(tokens.flatten(0, 2), there.flatten(0, 2)).unflatten(0, tokens.shape[:3])
        return self.over_time(summed, histories)  # type: ignore[no-any-return]


class TemporalEncoder(nn.Module):
    """The temporal stage and the head: (B, K, P, width) -> (B, N)."""

    def __init__(self, sizes: InputSizes, options: VideoTransformerOptions) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.randn(sizes.steps, options.frames, options.width) / options.width**0.5)
        self.along, self.head = ClassTokenEncoder(options.layers, options), nn.Linear(options.width, sizes.steps)

    def forward(self, frames: Tensor, histories: StepHistories) -> Tensor:
        """Return a score of every step for being next; frames of padding have no part in it.

        Parameters
        ----------
        frames : Tensor
            Shape (B, K, P, width).
        histories : StepHistories
            What is known at B moments.

        Returns
        -------
        Tensor
            Shape (B, N).
        """
        there = (histories.steps >= 0)[..., None].expand(frames.shape[:3])
        placed = frames + self.place[: frames.shape[1]]
        return mask_done_steps(self.head(self.along(placed.flatten(1, 2), there.flatten(1, 2))), histories)


class TextLabelTransformer(nn.Module):
    """Ours: no frames; each step done is a token, and each sentence since the last of them began."""

    def __init__(self, sizes: InputSizes, options: VideoTransformerOptions) -> None:
        super().__init__()
        width, count = options.width, sizes.steps
        self.step, self.sentence = nn.Embedding(count, width), nn.Linear(sizes.sentence, width)
        self.step_place = nn.Parameter(torch.randn(count, width) / width**0.5)
        self.sentence_place = nn.Parameter(torch.randn(options.heard, width) / width**0.5)
        self.all, self.head = ClassTokenEncoder(options.layers, options), nn.Linear(width, count)

    def forward(self, histories: StepHistories, videos: LabelledVideos) -> Tensor:
        """Return a score of every step for being next.

        Parameters
        ----------
        histories : StepHistories
            What is known at B moments.
        videos : LabelledVideos
            The frames and sentences that the histories point to.

        Returns
        -------
        Tensor
            Shape (B, N).
        """
        steps = self.step(histories.steps.clamp(min=0)) + self.step_place[: histories.steps.shape[1]]
        said = gather_vectors(videos.sentences, histories.recent_sentences, self.sentence)
        heard = self.sentence(said) + self.sentence_place[: histories.recent_sentences.shape[1]]
        there = torch.cat([histories.steps, histories.recent_sentences], 1) >= 0
        return mask_done_steps(self.head(self.all(torch.cat([steps, heard], 1), there)), histories)


Network: TypeAlias = Stam | Vivit | TextLabelTransformer
NETWORKS: Mapping[str, Callable[[InputSizes, VideoTransformerOptions], Network]] = {
    "stam": Stam, "vivit": Vivit, "text+labels": TextLabelTransformer,
}  # fmt: skip


def gather_vectors(vectors: Tensor, places: Tensor, reader: nn.Linear) -> Tensor:
    """(*places.shape, width of what is read): the vectors in these places, zeros for -1.

    Parameters
    ----------
    vectors : Tensor
        Shape (n, width).
    places : Tensor
        Indices into the vectors; -1 for none.
    reader : nn.Linear
        The layer that reads the result; it knows the width where there are no vectors.

    Returns
    -------
    Tensor
        Shape (*places.shape, width).
    """
    if not len(vectors):
        return torch.zeros(*places.shape, reader.in_features)
    return vectors[places.clamp(min=0)] * (places >= 0)[..., None]


def mask_done_steps(scores: Tensor, histories: StepHistories) -> Tensor:
    """−∞ for the steps that are done: each comes once.

    Parameters
    ----------
    scores : Tensor
        Shape (B, N).
    histories : StepHistories
        What is known at B moments.

    Returns
    -------
    Tensor
        Shape (B, N).
    """
    return scores.masked_fill(histories.done, float("-inf"))

"""Transformers that read a sequence of vectors: T5 (the paper's), ViT and VisualBERT (its ablation).

Each is loaded from an official checkpoint by name or folder, or built from a named size without weights. All take
vectors of their own width, an additive mask and the place of every token in its video, and return as many vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from transformers import AutoConfig, T5Config, T5EncoderModel, VisualBertConfig, VisualBertModel, ViTConfig, ViTModel

from msg2.errors import InputError, shortened


class T5(nn.Module):
    """T5's encoder; its relative positions need no places, and videos may share a row."""

    def __init__(self, core: Any) -> None:
        super().__init__()
        # Token embeddings are never used: vectors come in.
        core.shared = core.encoder.embed_tokens = nn.Embedding(1, 1)
        self.core = core.encoder
        self.width: int = core.config.d_model

    def forward(self, vectors: Tensor, mask: Tensor, place: Tensor) -> Tensor:
        """(B, L, width), (B, 1, L, L), (B, L) -> (B, L, width)."""
        return self.core(inputs_embeds=vectors, attention_mask=mask).last_hidden_state  # type: ignore[no-any-return]


class ViT(nn.Module):
    """ViT's layers; its learnt places of patches serve for the tokens, stretched over longer videos."""

    def __init__(self, core: Any) -> None:
        super().__init__()
        self.places = nn.Parameter(core.embeddings.position_embeddings.detach()[0, 1:].clone())
        self.layers, self.norm = core.layers, core.layernorm
        self.width: int = core.config.hidden_size

    def forward(self, vectors: Tensor, mask: Tensor, place: Tensor) -> Tensor:
        """(B, L, width), (B, 1, L, L), (B, L) -> (B, L, width)."""
        longest, known = int(place.max()) + 1, len(self.places)
        if longest > known:
            place = place * (known - 1) // (longest - 1)
        hidden = vectors + self.places[place]
        for layer in self.layers:
            hidden = layer(hidden, mask)
        return self.norm(hidden)  # type: ignore[no-any-return]


class VisualBert(nn.Module):
    """VisualBERT over one sequence of vectors, or over sentences and frames side by side."""

    def __init__(self, core: Any) -> None:
        super().__init__()
        core.embeddings.word_embeddings = core.pooler = None
        self.core = core
        self.width: int = core.config.hidden_size
        self.visual_width: int = core.config.visual_embedding_dim

    def forward(self, vectors: Tensor, mask: Tensor, place: Tensor) -> Tensor:
        """(B, L, width), (B, 1, L, L), (B, L) -> (B, L, width)."""
        place = place.clamp(max=self.core.config.max_position_embeddings - 1)
        embedded = self.core.embeddings(inputs_embeds=vectors, position_ids=place)
        return self.core.encoder(embedded, attention_mask=mask)[0]  # type: ignore[no-any-return]

    def side_by_side(self, texts: Tensor, visuals: Tensor, mask: Tensor, place: Tensor) -> Tensor:
        """(B, L, width), (B, L, visual width), (B, 1, 2L, 2L), (B, L) -> (B, L, width) of the visual half."""
        place = place.clamp(max=self.core.config.max_position_embeddings - 1)
        embedded = self.core.embeddings(inputs_embeds=texts, position_ids=place, visual_embeds=visuals)
        return self.core.encoder(embedded, attention_mask=mask)[0][:, texts.shape[1] :]  # type: ignore[no-any-return]


Encoder: TypeAlias = T5 | ViT | VisualBert


def _t5(width: int, inner: int, layers: int, heads: int, dropout: float = 0.1) -> Callable[[], Encoder]:
    """T5 v1.1: gated GELU, heads of 64 (in the small ones width / heads)."""
    each = width // heads if width < 512 else 64
    return lambda: T5(
        T5EncoderModel(
            T5Config(
                d_model=width, d_ff=inner, num_layers=layers, num_heads=heads, d_kv=each, vocab_size=2,
                feed_forward_proj="gated-gelu", dropout_rate=dropout, is_encoder_decoder=False, use_cache=False,
            )
        )
    )  # fmt: skip


def _vit(width: int, inner: int, layers: int, heads: int) -> Callable[[], Encoder]:
    return lambda: ViT(
        ViTModel(
            ViTConfig(hidden_size=width, intermediate_size=inner, num_hidden_layers=layers, num_attention_heads=heads),
            add_pooling_layer=False,
        )
    )


def _visualbert(width: int, inner: int, layers: int, heads: int, visual: int) -> Callable[[], Encoder]:
    return lambda: VisualBert(
        VisualBertModel(  # type: ignore[no-untyped-call]
            VisualBertConfig(
                vocab_size=2, hidden_size=width, intermediate_size=inner, num_hidden_layers=layers,
                num_attention_heads=heads, visual_embedding_dim=visual,
            )
        )
    )  # fmt: skip


SIZES: Mapping[str, Callable[[], Encoder]] = {
    "t5-tiny": _t5(64, 128, 2, 4),
    "t5-mini": _t5(128, 256, 4, 4),
    "t5-small": _t5(512, 1024, 8, 6),
    "t5-base": _t5(768, 2048, 12, 12),
    "t5-large": _t5(1024, 2816, 24, 16),
    "vit-tiny": _vit(64, 128, 2, 4),
    "vit-large": _vit(1024, 4096, 24, 16),
    "visualbert-tiny": _visualbert(64, 128, 2, 4, 64),
    "visualbert-base": _visualbert(768, 3072, 12, 12, 2048),
}
"""Encoders without weights, by name."""

_CHECKPOINTS: Mapping[str, tuple[Any, Callable[[Any], Encoder]]] = {
    "t5": (T5EncoderModel, T5),
    "vit": (ViTModel, ViT),
    "visual_bert": (VisualBertModel, VisualBert),
}
"""By the model type in a checkpoint's configuration."""


def encoder(name: str) -> Encoder:
    """The encoder of this name: one of `SIZES`, a folder with a checkpoint, or the name of an official one."""
    if name in SIZES:
        return SIZES[name]()
    where: dict[str, Any] = {"local_files_only": True} if Path(name).is_dir() else {}
    hint = f"give a folder with the checkpoint, or a size without weights: {', '.join(SIZES)}"
    try:
        kind = AutoConfig.from_pretrained(name, **where).model_type
        if kind not in _CHECKPOINTS:
            raise InputError(f"the encoder {shortened(name)} is a {kind!r}, not a T5, ViT or VisualBERT", hint=hint)
        loader, wrapper = _CHECKPOINTS[kind]
        return wrapper(loader.from_pretrained(name, dtype=torch.float32, **where))
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"the encoder {shortened(name)} cannot be loaded ({reason})", hint=hint) from error

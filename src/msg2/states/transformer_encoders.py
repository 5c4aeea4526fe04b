"""Transformers that read a sequence of vectors: T5 (the paper's), ViT and VisualBERT (its ablation).

Each is loaded from an official checkpoint by name or folder, or built without weights, from a named size or from the
configuration that it keeps. All take vectors of their own width, an additive mask and the position of every token in
its video, and return as many vectors.
"""

import json
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import TypeAlias

import torch
from pydantic import JsonValue
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from transformers import AutoConfig, T5EncoderModel, VisualBertModel, ViTModel
from transformers.activations import NewGELUActivation

from msg2.errors import InputError, require
from msg2.text import short_repr
from msg2.text_encoders import Model, find_checkpoint


class T5(nn.Module):
    """T5's encoder; its positions are relative, and videos may share a row."""

    def __init__(self, core: Model) -> None:
        super().__init__()
        # Token embeddings are never used: vectors come in.
        core.shared = core.encoder.embed_tokens = nn.Embedding(1, 1)
        self.core = core.encoder
        self.config = _plain_config(core.config)
        self.width: int = core.config.d_model

    def forward(self, vectors: Tensor, mask: Tensor, position: Tensor) -> Tensor:
        """Encode a sequence of vectors."""
        if vectors.is_cuda:
            return self.forward_fused(vectors, mask)
        return self.core(inputs_embeds=vectors, attention_mask=mask).last_hidden_state  # type: ignore[no-any-return]

    def forward_fused(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """Encode with fused kernels, without going back to single precision: the same up to rounding, for a GPU."""
        drop, length = self.core.dropout, vectors.shape[1]
        bias = self.core.block[0].layer[0].SelfAttention.compute_bias(length, length) + mask
        mixed = torch.is_autocast_enabled(vectors.device.type)
        dtype = torch.get_autocast_dtype(vectors.device.type) if mixed else vectors.dtype
        # Fused attention is for a bias whose keys lie side by side.
        bias = bias.to(dtype).contiguous()
        hidden = drop(vectors)
        for block in self.core.block:
            attention, feed_forward = block.layer
            normalized = _rms_norm(attention.layer_norm, hidden)
            hidden = hidden + drop(_self_attention(attention.SelfAttention, normalized, bias))
            normalized = _rms_norm(feed_forward.layer_norm, hidden)
            hidden = hidden + drop(_feed_forward(feed_forward.DenseReluDense, normalized))
        return drop(_rms_norm(self.core.final_layer_norm, hidden))  # type: ignore[no-any-return]


def _rms_norm(norm: Model, hidden: Tensor) -> Tensor:
    return F.rms_norm(hidden, norm.weight.shape, norm.weight.to(hidden.dtype), norm.variance_epsilon)


def _self_attention(attention: Model, hidden: Tensor, bias: Tensor) -> Tensor:
    query, key, value = (
        linear(hidden).unflatten(-1, (attention.n_heads, -1)).transpose(1, 2)
        for linear in (attention.q, attention.k, attention.v)
    )
    dropout = attention.dropout if attention.training else 0.0
    attended = F.scaled_dot_product_attention(query, key, value, attn_mask=bias, dropout_p=dropout, scale=1.0)
    return attention.o(attended.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


def _feed_forward(layer: Model, hidden: Tensor) -> Tensor:
    """With a gate (v1.1) or without one."""
    gated = hasattr(layer, "wi_0")
    inner = (layer.wi_0 if gated else layer.wi)(hidden)
    inner = F.gelu(inner, approximate="tanh") if isinstance(layer.act, NewGELUActivation) else layer.act(inner)
    return layer.wo(layer.dropout(inner * layer.wi_1(hidden) if gated else inner))  # type: ignore[no-any-return]


class ViT(nn.Module):
    """ViT's layers; its learned positions of patches serve for the tokens, stretched over a longer video."""

    def __init__(self, core: Model) -> None:
        super().__init__()
        self.positions = nn.Parameter(core.embeddings.position_embeddings.detach()[0, 1:].clone())
        self.layers, self.norm = core.layers, core.layernorm
        self.config = _plain_config(core.config)
        self.width: int = core.config.hidden_size

    def forward(self, vectors: Tensor, mask: Tensor, position: Tensor) -> Tensor:
        """Encode a sequence of vectors."""
        # The position of the last token of the same video.
        last = torch.where(mask[:, 0] == 0, position[:, None, :], 0).amax(-1)
        known = len(self.positions)
        stretched = position * (known - 1) // last.clamp(min=1)
        hidden = vectors + self.positions[torch.where(last < known, position, stretched)]
        for layer in self.layers:
            hidden = layer(hidden, mask)
        return self.norm(hidden)  # type: ignore[no-any-return]


class VisualBert(nn.Module):
    """VisualBERT over one sequence of vectors, or over sentences and frames side by side."""

    def __init__(self, core: Model) -> None:
        super().__init__()
        core.embeddings.word_embeddings = core.pooler = None
        self.core = core
        self.config = _plain_config(core.config)
        self.width: int = core.config.hidden_size
        self.visual_width: int = core.config.visual_embedding_dim

    def forward(self, vectors: Tensor, mask: Tensor, position: Tensor, texts: Tensor | None = None) -> Tensor:
        """Encode a sequence of vectors, or frames with the sentences beside them."""
        position = position.clamp(max=self.core.config.max_position_embeddings - 1)
        inputs = {"inputs_embeds": vectors}
        if texts is not None:  # frames have no positions of their own: each gets that of the text beside it
            inputs = {"inputs_embeds": texts, "visual_embeds": vectors, "image_text_alignment": position[..., None]}
        hidden = self.core.encoder(self.core.embeddings(position_ids=position, **inputs), attention_mask=mask)[0]
        return hidden[:, -vectors.shape[1] :]  # type: ignore[no-any-return]


SequenceEncoder: TypeAlias = T5 | ViT | VisualBert


def _plain_config(config: Model) -> dict[str, JsonValue]:
    """A configuration as plain values, without what depends on where and by whom it was made."""
    origin = ("transformers_version", "_name_or_path", "dtype")
    return {name: value for name, value in config.to_diff_dict().items() if name not in origin}


SIZES: Mapping[str, dict[str, JsonValue]] = json.loads(files("msg2.states").joinpath("encoder_sizes.json").read_bytes())
"""Configurations of encoders without weights, by name; the T5 are of version 1.1, with gated GELU."""

_KINDS: Mapping[str, tuple[Model, Callable[[Model], SequenceEncoder]]] = {
    "t5": (T5EncoderModel, T5),
    "vit": (ViTModel, ViT),
    "visual_bert": (VisualBertModel, VisualBert),
}
"""The class of `transformers` and our wrapper, by the model type in a configuration."""


def load_encoder(name: str) -> SequenceEncoder:
    """Load the encoder of this name: one of `SIZES`, a folder with a checkpoint, or the name of one on the hub.

    Only the last is looked for on the network, see `find_checkpoint`. An encoder can also be named by its whole
    configuration, as JSON: that needs no files, and gives no weights.

    >>> load_encoder(json.dumps(load_encoder("t5-tiny").config)).width
    64
    """
    hint = f"give a folder with the checkpoint, or a size without weights: {', '.join(SIZES)}"
    try:
        if name in SIZES or name.startswith("{"):
            config = SIZES[name] if name in SIZES else json.loads(name)
            loader, wrapper = _KINDS[str(config["model_type"])]
            return wrapper(loader(loader.config_class.from_dict(config)))
        folder = find_checkpoint(name, "transformer").folder
        kind = AutoConfig.from_pretrained(folder, local_files_only=True).model_type
        require(kind in _KINDS, f"is a {kind!r}, not a T5, ViT or VisualBERT")
        loader, wrapper = _KINDS[kind]
        whole = {"dtype": torch.float32, "output_loading_info": True, "ignore_mismatched_sizes": True}
        model, loading = loader.from_pretrained(folder, local_files_only=True, **whole)
        if misfits := sorted(weight for weight, *_ in loading["mismatched_keys"]):
            raise ValueError(f"the weights {misfits[0]} do not fit its configuration")
        return wrapper(model)
    except Exception as error:  # of many kinds: whatever is missing, damaged or does not fit
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        why = error.what if isinstance(error, InputError) else f"cannot be loaded ({reason})"
        raise InputError(f"the encoder {short_repr(name)} {why}", hint=hint) from error

"""The encoders against the models they are taken from, or against PyTorch's own layers; checkpoints from folders."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertModel,
    T5Config,
    T5EncoderModel,
    T5ForConditionalGeneration,
    VisualBertConfig,
    VisualBertForPreTraining,
    VisualBertModel,
    ViTConfig,
    ViTForImageClassification,
    ViTModel,
)

from msg2.errors import InputError
from msg2.states.transformer_encoders import SIZES, T5, VisualBert, ViT, load_encoder

B, L, WIDTH = 3, 11, 32
LENGTHS = torch.tensor([11, 7, 1])


def t5_config() -> T5Config:
    return T5Config(
        d_model=WIDTH, d_ff=48, num_layers=3, num_heads=4, d_kv=8, vocab_size=9, feed_forward_proj="gated-gelu",
        num_decoder_layers=1, decoder_start_token_id=0,
    )  # fmt: skip


def vit_config(image: int = 16) -> ViTConfig:
    return ViTConfig(hidden_size=WIDTH, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                     image_size=image, patch_size=4)  # fmt: skip


def visualbert_config() -> VisualBertConfig:
    return VisualBertConfig(
        vocab_size=9, hidden_size=WIDTH, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        visual_embedding_dim=20, max_position_embeddings=16,
    )  # fmt: skip


@pytest.fixture
def inputs() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Vectors, which of them are there, the additive mask, and places: three sequences of different lengths."""
    torch.manual_seed(0)
    there = torch.arange(L) < LENGTHS[:, None]
    mask = torch.zeros(B, 1, L, L).masked_fill(~there[:, None, None, :], torch.finfo(torch.float32).min)
    return torch.randn(B, L, WIDTH), there, mask, torch.arange(L).expand(B, L)


def shaken(model: Any) -> Any:
    """The model with all its parameters drawn anew, so that none is 0 or 1 by chance of its initialisation."""
    torch.manual_seed(1)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2)
    return model.eval()


def close(one: Tensor, other: Tensor, there: Tensor) -> None:
    assert one.shape == other.shape
    torch.testing.assert_close(one[there], other[there], atol=1e-5, rtol=1e-5)


# --- equal to what they are taken from ---


@torch.no_grad()
def test_t5_is_the_encoder_of_transformers(inputs: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
    vectors, there, mask, place = inputs
    original = shaken(T5EncoderModel(t5_config()))
    expected = original(inputs_embeds=vectors, attention_mask=there.long()).last_hidden_state
    wrapped = T5(original).eval()
    assert wrapped.width == WIDTH
    close(wrapped(vectors, mask, place), expected, there)


@torch.no_grad()
def test_visualbert_is_that_of_transformers(inputs: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
    vectors, there, mask, place = inputs
    original = shaken(VisualBertModel(visualbert_config()))  # type: ignore[no-untyped-call]
    expected = original(inputs_embeds=vectors, attention_mask=there.long()).last_hidden_state
    wrapped = VisualBert(original).eval()
    assert (wrapped.width, wrapped.visual_width) == (WIDTH, 20)
    close(wrapped(vectors, mask, place), expected, there)


@torch.no_grad()
def test_vit_is_pre_norm_attention_with_learnt_places(inputs: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
    """ViT reads pictures, so its layers are compared with PyTorch's, given the same weights."""
    vectors, there, mask, place = inputs
    original = shaken(ViTModel(vit_config(), add_pooling_layer=False))
    places = original.embeddings.position_embeddings[0, 1:].clone()  # the first one is the class token's
    hidden = vectors + places[:L]
    assert original.config.hidden_act == "gelu"
    for layer in original.layers:
        hidden = _as_torch_layer(layer)(hidden, src_key_padding_mask=~there)
    expected = original.layernorm(hidden)
    wrapped = ViT(original).eval()
    assert (wrapped.width, len(wrapped.positions)) == (WIDTH, 16)
    close(wrapped(vectors, mask, place), expected, there)


def _as_torch_layer(layer: Any) -> nn.TransformerEncoderLayer:
    made = nn.TransformerEncoderLayer(
        WIDTH, 4, 48, activation="gelu", batch_first=True, norm_first=True, layer_norm_eps=1e-12
    )
    attention = layer.attention
    for part in ("weight", "bias"):
        each = [getattr(getattr(attention, f"{name}_proj"), part) for name in "qkv"]
        getattr(made.self_attn, f"in_proj_{part}").copy_(torch.cat(each))
        for theirs, ours in (
            (attention.o_proj, made.self_attn.out_proj), (layer.mlp.fc1, made.linear1), (layer.mlp.fc2, made.linear2),
            (layer.layernorm_before, made.norm1), (layer.layernorm_after, made.norm2),
        ):  # fmt: skip
            getattr(ours, part).copy_(getattr(theirs, part))
    return made.eval()


@torch.no_grad()
def test_vit_stretches_its_places_over_longer_videos() -> None:
    wrapped = shaken(ViT(ViTModel(vit_config(8), add_pooling_layer=False)))  # 4 places
    vectors = torch.zeros(1, 7, WIDTH)
    caught: list[Tensor] = []
    wrapped.layers[0].register_forward_pre_hook(lambda _, given: caught.append(given[0]))
    wrapped(vectors, torch.zeros(1, 1, 7, 7), torch.arange(7)[None])
    used = [int((wrapped.positions == row).all(-1).nonzero()) for row in caught[0][0]]
    assert used == sorted(used)
    assert (used[0], used[-1], set(used)) == (0, 3, {0, 1, 2, 3})


@torch.no_grad()
def test_longer_videos_than_visualbert_has_places_for() -> None:
    wrapped = shaken(VisualBert(VisualBertModel(visualbert_config())))  # type: ignore[no-untyped-call]
    out = wrapped(torch.randn(1, 40, WIDTH), torch.zeros(1, 1, 40, 40), torch.arange(40)[None])
    assert torch.isfinite(out).all()


@pytest.mark.parametrize("name", ["t5-tiny", "vit-tiny", "visualbert-tiny"])
@torch.no_grad()
def test_the_mask_is_obeyed(name: str) -> None:
    """Two sequences in one row see as much of each other as in two rows: nothing."""
    made = shaken(load_encoder(name))
    vectors = torch.randn(1, 10, made.width)
    whose, place = torch.tensor([0] * 6 + [1] * 4), torch.tensor([*range(6), *range(4)])[None]
    low = torch.finfo(torch.float32).min
    mask = torch.zeros(1, 1, 10, 10).masked_fill(whose[:, None] != whose[None, :], low)
    both = made(vectors, mask, place)
    for part in (slice(0, 6), slice(6, 10)):
        length = part.stop - part.start
        alone = made(vectors[:, part], torch.zeros(1, 1, length, length), torch.arange(length)[None])
        torch.testing.assert_close(both[:, part], alone, atol=2e-6, rtol=1e-5)
    free = made(vectors, torch.zeros(1, 1, 10, 10), place)
    assert not torch.allclose(free, both, atol=1e-3)


@pytest.mark.parametrize(("name", "kind", "million"), [("t5-large", T5, 308), ("vit-large", ViT, 302), ("visualbert-base", VisualBert, 87)])  # noqa: E501 # fmt: skip
def test_the_layouts_of_the_paper(name: str, kind: type, million: int) -> None:
    with torch.device("meta"):
        made = load_encoder(name)
    assert isinstance(made, kind)
    assert sum(parameter.numel() for parameter in made.parameters()) / 1e6 == pytest.approx(million, abs=3)


# --- from folders ---


def saved(model: Any, folder: Path) -> Any:
    shaken(model).save_pretrained(folder)
    return model


CHECKPOINTS: dict[str, Callable[[], Any]] = {
    "t5 encoder": lambda: T5EncoderModel(t5_config()),
    "t5 whole": lambda: T5ForConditionalGeneration(t5_config()),  # as google/t5-v1_1-large is
    "vit": lambda: ViTModel(vit_config()),
    "vit classifier": lambda: ViTForImageClassification(vit_config()),  # as google/vit-large-patch16-224 is
    "visualbert": lambda: VisualBertModel(visualbert_config()),  # type: ignore[no-untyped-call]
    "visualbert pretraining": lambda: VisualBertForPreTraining(visualbert_config()),  # type: ignore[no-untyped-call]
}


def wrapped_directly(model: Any) -> Any:
    if isinstance(model, T5EncoderModel | T5ForConditionalGeneration):
        return T5(model)
    if isinstance(model, ViTModel | ViTForImageClassification):
        return ViT(getattr(model, "vit", model))
    return VisualBert(getattr(model, "visual_bert", model))


@pytest.mark.parametrize("which", CHECKPOINTS)
@torch.no_grad()
def test_a_folder_gives_the_same_encoder(
    which: str, tmp_path: Path, inputs: tuple[Tensor, Tensor, Tensor, Tensor]
) -> None:
    vectors, _, mask, place = inputs
    model = saved(CHECKPOINTS[which](), tmp_path)
    loaded = load_encoder(str(tmp_path)).eval()
    expected = wrapped_directly(model).eval()
    assert type(loaded) is type(expected)
    assert torch.equal(loaded(vectors, mask, place), expected(vectors, mask, place))
    assert all(parameter.dtype == torch.float32 for parameter in loaded.parameters())


def test_half_precision_checkpoints_are_read_as_single(tmp_path: Path) -> None:
    saved(T5EncoderModel(t5_config()).to(torch.bfloat16), tmp_path)
    assert {parameter.dtype for parameter in load_encoder(str(tmp_path)).parameters()} == {torch.float32}


# --- what cannot be loaded ---


def complaint(name: str) -> str:
    with pytest.raises(InputError) as caught:
        load_encoder(name)
    what, hint = str(caught.value).split("\n")
    assert "t5-small" in hint
    return what


@pytest.mark.parametrize("name", ["t5-tinny", "no-such/encoder", "a b/../c", "/nowhere/at/all", "google/t5-v1_1-large"])
def test_unknown_names_are_said_in_one_line(name: str) -> None:
    assert complaint(name).startswith("the encoder '")


def test_a_name_too_long_for_any_disk() -> None:
    complaint("x" * 300)


def test_offline_nobody_knocks_at_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    knocks = []
    monkeypatch.setattr(socket.socket, "connect", lambda _, address: knocks.append(address))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *where, **_: knocks.append(where))
    complaint("no-such/encoder")
    assert not knocks


def test_another_kind_of_model(tmp_path: Path) -> None:
    BertModel(BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, eos_token_id=None, pad_token_id=0)).save_pretrained(tmp_path)  # noqa: E501 # fmt: skip
    assert complaint(str(tmp_path)).endswith("is a 'bert', not a T5, ViT or VisualBERT")


def test_an_empty_folder(tmp_path: Path) -> None:
    assert "cannot be loaded" in complaint(str(tmp_path))


def test_a_folder_without_weights(tmp_path: Path) -> None:
    saved(T5EncoderModel(t5_config()), tmp_path)
    (tmp_path / "model.safetensors").unlink()
    assert "cannot be loaded" in complaint(str(tmp_path))


def test_a_folder_with_a_damaged_configuration(tmp_path: Path) -> None:
    saved(T5EncoderModel(t5_config()), tmp_path)
    (tmp_path / "config.json").write_text("{")
    assert "cannot be loaded" in complaint(str(tmp_path))


def test_a_folder_with_truncated_weights(tmp_path: Path) -> None:
    saved(T5EncoderModel(t5_config()), tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    assert "cannot be loaded" in complaint(str(tmp_path))


def test_a_folder_whose_weights_do_not_fit_its_configuration(tmp_path: Path) -> None:
    saved(T5EncoderModel(t5_config()), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "d_ff": 50}))
    assert "cannot be loaded" in complaint(str(tmp_path))


def test_sizes_need_no_files() -> None:
    for name in SIZES:
        with torch.device("meta"):
            assert load_encoder(name).width > 0


def test_a_visualbert_is_built_without_remarks() -> None:
    made = load_encoder("visualbert-tiny")
    assert isinstance(made, VisualBert)
    end = made.core.config.eos_token_id
    assert end is None or end < made.core.config.vocab_size


# --- in few kernels, as on a GPU ---


@pytest.mark.parametrize("forwards", ["gated-gelu", "relu", "gated-silu"])
def test_t5_in_few_kernels_is_t5(forwards: str, inputs: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
    """Scores and gradients, of every weight, are those of the library's own encoder."""
    vectors, there, mask, places = inputs
    torch.manual_seed(1)
    one = load_encoder(json.dumps({**t5_config().to_dict(), "feed_forward_proj": forwards}))
    assert isinstance(one, T5)
    for weights in one.parameters():
        torch.nn.init.normal_(weights, std=0.3)  # norms and biases must matter, too
    results = []
    for run in (lambda: one(vectors, mask, places), lambda: one.forward_fused(vectors, mask)):
        one.eval().zero_grad()
        found = run()
        (found[there] ** 2).sum().backward()
        gradients = {name: w.grad.clone() for name, w in one.named_parameters() if w.grad is not None}
        results.append((found[there].detach(), gradients))
    (plain, slopes), (lean, others) = results
    torch.testing.assert_close(lean, plain, atol=1e-4, rtol=1e-4)
    assert len(slopes) > 20
    torch.testing.assert_close(others, slopes, atol=1e-3, rtol=1e-3)


def test_t5_in_few_kernels_drops_as_often(inputs: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
    """In training, both wander about their means equally far."""
    vectors, there, mask, places = inputs
    torch.manual_seed(2)
    one = load_encoder(json.dumps({**t5_config().to_dict(), "dropout_rate": 0.2})).train()
    assert isinstance(one, T5)
    with torch.no_grad():
        spreads = [
            torch.stack([run()[there] for _ in range(200)]).std(0).mean().item()
            for run in (lambda: one(vectors, mask, places), lambda: one.forward_fused(vectors, mask))
        ]
    assert spreads[1] == pytest.approx(spreads[0], rel=0.05)

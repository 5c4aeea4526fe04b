"""CLIP: a small model without training, saved and loaded as a real one is, against direct calls of transformers."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msg2 import text_encoders
from msg2.errors import InputError, MissingExtraError
from msg2.media.image_encoders import image_encoder
from msg2.text_encoders import text_encoder

SAID = ["flip the bread", "a", "", "jack up the car " * 40, "ψωμί 🍞"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CLIP model of a few thousand parameters, in the files of a real one."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    place = tmp_path_factory.mktemp("models") / "clip-tiny"
    letters = sorted(pytest.importorskip("tokenizers").pre_tokenizers.ByteLevel.alphabet())
    pieces = ["<|startoftext|>", "<|endoftext|>", *letters, *(letter + "</w>" for letter in letters)]
    tokenizer = transformers.CLIPTokenizer(
        vocab={piece: k for k, piece in enumerate(pieces)}, merges=[], model_max_length=77
    )
    layers = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    ends = {"vocab_size": len(pieces), "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    config = transformers.CLIPConfig(
        text_config=layers | ends, vision_config=layers | {"image_size": 32, "patch_size": 8}, projection_dim=24
    )
    torch.manual_seed(0)
    transformers.CLIPModel(config).save_pretrained(place)
    tokenizer.save_pretrained(place)
    transformers.CLIPImageProcessorPil(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}
    ).save_pretrained(place)
    return place


def images() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [(32, 32), (48, 88), (224, 126), (20, 20), (33, 32)]
    return [rng.integers(0, 256, (*shape, 3), dtype=np.uint8) for shape in shapes] + [np.zeros((40, 40, 3), np.uint8)]


def unit(vectors: Any) -> np.ndarray:
    array = vectors.pooler_output.detach().cpu().numpy()
    return array / np.linalg.norm(array, axis=1, keepdims=True)


def test_images_are_those_of_transformers(folder: Path) -> None:
    import torch
    from PIL import Image
    from transformers import CLIPImageProcessorPil, CLIPModel

    prepare, direct = CLIPImageProcessorPil.from_pretrained(folder), CLIPModel.from_pretrained(folder).eval()
    with torch.no_grad():
        pixels = prepare([Image.fromarray(image) for image in images()], return_tensors="pt")
        theirs = unit(direct.get_image_features(**pixels))
    encoder = image_encoder(str(folder))
    ours = encoder(images())
    assert (ours.dtype, ours.shape, encoder.width) == (np.float32, (6, 24), 24)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(ours, axis=1), 1, atol=1e-6)


def test_texts_are_those_of_transformers(folder: Path) -> None:
    import torch
    from transformers import AutoTokenizer, CLIPModel

    tokenizer, direct = AutoTokenizer.from_pretrained(folder), CLIPModel.from_pretrained(folder).eval()
    ours = text_encoder(str(folder))(SAID)
    for text, vector in zip(SAID, ours, strict=True):
        tokens = tokenizer([text], truncation=True, return_tensors="pt")
        assert tokens["input_ids"].shape[1] <= 77
        with torch.no_grad():
            np.testing.assert_allclose(vector, unit(direct.get_text_features(**tokens))[0], atol=1e-6)


def test_batches_have_no_part_in_it(folder: Path) -> None:
    of_images, of_texts = image_encoder(str(folder)), text_encoder(str(folder))
    for batch in (1, 4):
        np.testing.assert_allclose(replace(of_images, batch_size=batch)(images()), of_images(images()), atol=1e-6)
        np.testing.assert_allclose(replace(of_texts, batch_size=batch)(SAID), of_texts(SAID), atol=1e-6)
    assert of_images([]).shape == of_texts([]).shape == (0, 24)


def test_both_sides_of_one_model_in_memory(folder: Path) -> None:
    text_encoders.load_clip.cache_clear()
    images, texts = image_encoder(str(folder)), text_encoder(str(folder))
    assert images.name == texts.name
    assert images.name.startswith("clip-tiny@")
    assert images.versions.keys() == {"numpy", "pillow", "torch", "transformers"}
    assert text_encoders.load_clip.cache_info()[:2] == (1, 1)


def test_a_name_says_which_model_wherever_it_lies(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copytree(folder, tmp_path / "other")
    mark = image_encoder(str(folder)).name.rpartition("@")[2]
    asked: list[str] = []

    def fetched(name: str, revision: str | None, allow_patterns: list[str]) -> str:
        asked.append(name)
        assert revision is None
        return str(copy)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetched)
    assert text_encoder("some/clip").name == image_encoder("some/clip").name == f"some/clip@{mark}"
    assert asked == ["some/clip", "some/clip"]
    settings = json.loads((copy / "preprocessor_config.json").read_text())
    (copy / "preprocessor_config.json").write_text(json.dumps(settings | {"image_mean": [0.5, 0.5, 0.5]}))
    assert image_encoder(str(copy)).name.startswith("other@")
    assert not image_encoder(str(copy)).name.endswith(mark)


def test_older_weights_give_the_same_features(folder: Path, tmp_path: Path) -> None:
    older = shutil.copytree(folder, tmp_path / "older")
    torch, tensors = pytest.importorskip("torch"), pytest.importorskip("safetensors.torch")
    torch.save(tensors.load_file(older / "model.safetensors"), older / "pytorch_model.bin")
    (older / "model.safetensors").unlink()
    np.testing.assert_allclose(text_encoder(str(older))(SAID), text_encoder(str(folder))(SAID), atol=1e-6)


def test_what_is_no_clip(folder: Path, tmp_path: Path) -> None:
    bare = shutil.copytree(folder, tmp_path / "bare")
    (bare / "model.safetensors").unlink()
    (bare / "pytorch_model.bin").write_bytes(b"pickled")
    with pytest.raises(InputError, match="is not a CLIP model"):
        image_encoder(str(bare))
    (bare / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(InputError, match=r"is not a CLIP model \(its config.json says 'bert'\)"):
        image_encoder(str(bare))
    (bare / "config.json").write_text("{")
    with pytest.raises(InputError, match=r"config.json: \$: Invalid JSON"):
        text_encoder(str(bare))


def test_without_torch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text_encoders.load_clip.cache_clear()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"msg2\[video\]"):
        image_encoder(str(folder))

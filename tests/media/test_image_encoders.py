"""Descriptors of images against brute force over pixels, and what should and should not matter to them."""

from __future__ import annotations

import colorsys
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from msg2.errors import InputError
from msg2.media.image_encoders import ImageDescriptors, image_encoder

PICTURES = hnp.arrays(np.uint8, st.tuples(st.integers(1, 90), st.integers(1, 90), st.just(3)))


def smooth(height: int, width: int, seed: int = 0) -> np.ndarray:
    """A colourful picture of any size with the same content: a few waves."""
    rng = np.random.default_rng(seed)
    y, x = np.meshgrid((np.arange(height) + 0.5) / height, (np.arange(width) + 0.5) / width, indexing="ij")
    waves = [
        sum(math.sin(seed + 3) * np.sin(2 * np.pi * (a * x + b * y + c)) for a, b, c in rng.uniform(0, 2, (3, 3)))
        for _ in range(3)
    ]
    return np.clip(127 + 60 * np.stack(waves, axis=2), 0, 255).astype(np.uint8)


def by_hand(image: np.ndarray) -> np.ndarray:
    """The formula of `ImageDescriptors`, pixel by pixel, for a picture of 64 x 64."""
    share = image / 255
    colours, edges, histogram = np.zeros((4, 4, 6)), np.zeros((4, 4, 8)), np.zeros((16, 6, 3))
    grey = share.mean(axis=2)
    for i, j in product(range(4), range(4)):
        cell = share[16 * i : 16 * i + 16, 16 * j : 16 * j + 16].reshape(-1, 3)
        colours[i, j] = [*cell.mean(axis=0), *cell.std(axis=0)]
    for y, x in product(range(64), range(64)):
        above, below, left, right = max(y - 1, 0), min(y + 1, 63), max(x - 1, 0), min(x + 1, 63)
        down = (grey[below, x] - grey[above, x]) / (below - above)
        along = (grey[y, right] - grey[y, left]) / (right - left)
        place = math.degrees(math.atan2(down, along)) % 180 / 22.5
        first = math.floor(place)
        edges[y // 16, x // 16, first % 8] += math.hypot(down, along) * (1 - (place - first))
        edges[y // 16, x // 16, (first + 1) % 8] += math.hypot(down, along) * (place - first)
        hue, _, value = colorsys.rgb_to_hsv(*share[y, x])
        level = min(int(6 * math.sqrt(share[y, x].max() - share[y, x].min())), 5)
        histogram[min(int(16 * hue), 15) if level else 0, level, min(int(3 * value), 2)] += 1
    blocks = [np.sqrt(block.ravel() / (block.sum() or 1)) for block in (colours, edges, histogram)]
    vector = np.concatenate(blocks)
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize("seed", range(3))
def test_they_are_the_formula(seed: int) -> None:
    image = smooth(64, 64, seed)
    image[:, :, 0] = 2 * (image[:, :, 0] // 2)
    expected = by_hand(image)
    vector = ImageDescriptors()([image])[0]
    # a colour on the border of two bins may fall into either, by rounding: one pixel of 4096
    np.testing.assert_allclose(vector[:224], expected[:224], atol=2e-4)
    assert np.abs(vector[224:] ** 2 - expected[224:] ** 2).sum() < 0.005


@settings(max_examples=25)
@given(st.lists(PICTURES, max_size=3))
def test_any_picture_has_a_vector_of_length_one(images: list[np.ndarray]) -> None:
    vectors = ImageDescriptors()(images)
    assert (vectors.dtype, vectors.shape) == (np.float32, (len(images), 512))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    for image, vector in zip(images, vectors, strict=True):
        np.testing.assert_array_equal(ImageDescriptors()([image])[0], vector)


@pytest.mark.parametrize("shade", [0, 1, 127, 255])
def test_a_blank_picture(shade: int) -> None:
    vector = ImageDescriptors()([np.full((48, 88, 3), shade, np.uint8)])[0]
    assert np.isfinite(vector).all()
    assert vector @ vector == pytest.approx(1)
    assert not vector[96:224].any()  # no edges


def test_size_and_shape_matter_little_content_much() -> None:
    encoder = ImageDescriptors()
    image = encoder([smooth(224, 224)])[0]
    for height, width in ((112, 112), (224, 398), (64, 500), (720, 405)):
        assert image @ encoder([smooth(height, width)])[0] > 0.97
    noise = np.random.default_rng(0).integers(-3, 4, (224, 224, 3))
    noisy = np.clip(smooth(224, 224).astype(int) + noise, 0, 255).astype(np.uint8)
    assert image @ encoder([noisy])[0] > 0.98
    others = encoder([smooth(224, 224, seed) for seed in range(1, 8)])
    assert (others @ image).max() < 0.9
    mirrored = encoder([smooth(224, 224)[:, ::-1]])[0]
    assert mirrored @ image < 0.97


def test_an_encoder_by_name(tmp_path: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    assert image_encoder().name == image_encoder("descriptors").name == "descriptors"
    assert ImageDescriptors().versions == {"numpy": np.__version__}
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match="is not a CLIP model"):
        image_encoder("no-such/model")
    with pytest.raises(InputError, match=r"is not a CLIP model \(its config.json says None"):
        image_encoder(str(tmp_path))

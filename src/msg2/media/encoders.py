"""Encoders, by name: images or texts -> vectors; the cosine of two vectors is their similarity.

`image_encoder` knows classical descriptors and CLIP models, `text_encoder` hashed words, sentence encoders and CLIP
models. CLIP has images and texts in one space, where an image is near the words that describe it.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Generic, Protocol, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from msg2.errors import InputError
from msg2.media import pretrained_models
from msg2.media.feature_store import l2_normalize
from msg2.media.pretrained_models import Checkpoint, Model, find_checkpoint, wrong_model_error

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Encoder(Protocol[T_contra]):
    """Turns n things into float32 vectors of shape (n, width), each of length 1 (or 0, where a text says nothing)."""

    name: str
    """Identifies the encoder: with the same name and width, the vectors are the same."""
    width: int
    """Length of a vector."""
    versions: Mapping[str, str]
    """Package -> version, of every package that affects the numbers."""

    def __call__(self, items: Sequence[T_contra], /) -> NDArray[np.float32]:
        """Encode things: vectors of shape (n, width)."""


Image: TypeAlias = NDArray[np.uint8]  # RGB, shape (height, width, 3)
ImageEncoder: TypeAlias = Encoder[Image]
TextEncoder: TypeAlias = Encoder[str]


def encode_in_batches(
    encode: Callable[[list[T]], NDArray[np.float32]], items: Sequence[T], size: int, width: int
) -> NDArray[np.float32]:
    """Encode things batch by batch, and scale their vectors to length 1."""
    vectors = np.zeros((len(items), width))
    for first in range(0, len(items), size):
        vectors[first : first + size] = encode(list(items[first : first + size]))
    return l2_normalize(vectors).astype(np.float32)


def image_encoder(name: str = "descriptors") -> ImageEncoder:
    """Return the encoder of that name: "descriptors", the folder of a CLIP model, or its name on the hub.

    >>> image_encoder("descriptors").width
    512
    """
    return ImageDescriptors() if name == "descriptors" else load_clip(name).image_encoder


def text_encoder(name: str = "words") -> TextEncoder:
    """Return the encoder of that name: "words", or a sentence encoder or CLIP model by its folder or hub name.

    >>> text_encoder("words").width
    512
    """
    if name == "words":
        return HashedWords()
    checkpoint = find_checkpoint(name, _SENTENCE_ENCODER_KIND)
    return load_clip(checkpoint).text_encoder if checkpoint.kind == "clip" else SentenceEncoder(checkpoint)


IMAGE_BATCH_SIZE, TEXT_BATCH_SIZE = 32, 64  # images and texts that a model takes at once

_CLIP_KIND = "CLIP model"
_IMAGE_SETTINGS = (
    "do_resize", "size", "resample", "do_center_crop", "crop_size", "do_rescale", "rescale_factor",
    "do_normalize", "image_mean", "image_std",
)  # fmt: skip
"""Settings of an image processor that have a part in the numbers."""


@dataclass(slots=True)
class ClipEncoder(Generic[T]):
    """One side of a model: n images, or n texts -> float32 vectors of shape (n, width) and length 1."""

    name: str
    width: int
    versions: Mapping[str, str]
    batch_size: int
    encode_batch: Callable[[list[T]], NDArray[np.float32]]

    def __call__(self, items: Sequence[T]) -> NDArray[np.float32]:
        """Encode items, batch by batch: vectors of shape (n, width)."""
        return encode_in_batches(self.encode_batch, items, self.batch_size, self.width)


class ClipModel:
    """A CLIP model that `transformers` can load, from a folder or by its name on the Hugging Face hub.

    An image is prepared as the model's own settings say (as a rule: its shorter side scaled to 224, the middle square
    of that, standardised colours). A text is cut at what the model can take (77 tokens).
    """

    def __init__(self, path: str | Path | Checkpoint) -> None:
        checkpoint = find_checkpoint(path, _CLIP_KIND)
        if checkpoint.kind != "clip":
            raise wrong_model_error(checkpoint.folder, _CLIP_KIND, f"its config.json says {checkpoint.kind!r}")
        with pretrained_models.loading_model(checkpoint, _CLIP_KIND) as (torch, transformers):
            self._prepare = checkpoint.load(transformers.CLIPImageProcessorPil)
            self._tokenizer = checkpoint.load(transformers.AutoTokenizer)
            self._model = pretrained_models.prepare_for_inference(checkpoint.load(transformers.CLIPModel), torch)
        self._torch = torch
        self._tokens = min(self._tokenizer.model_max_length, self._model.config.text_config.max_position_embeddings)
        prepared = [(key, getattr(self._prepare, key, None)) for key in _IMAGE_SETTINGS]
        self._name = f"{checkpoint.name}@{pretrained_models.fingerprint(self._model, prepared, self._tokens)}"

    @property
    def image_encoder(self) -> ClipEncoder[Image]:
        """The encoder of images."""
        return self._encoder(self._encode_images, IMAGE_BATCH_SIZE)

    @property
    def text_encoder(self) -> ClipEncoder[str]:
        """The encoder of texts."""
        return self._encoder(self._encode_texts, TEXT_BATCH_SIZE)

    def _encoder(self, encode_batch: Callable[[list[T]], NDArray[np.float32]], batch_size: int) -> ClipEncoder[T]:
        width = int(self._model.config.projection_dim)
        versions = pretrained_models.package_versions("pillow")
        return ClipEncoder(self._name, width, versions, batch_size, encode_batch)

    def _encode_images(self, images: list[Image]) -> NDArray[np.float32]:
        prepared = self._prepare(images, input_data_format="channels_last", return_tensors="pt")
        return self._project(self._model.get_image_features, prepared)

    def _encode_texts(self, texts: list[str]) -> NDArray[np.float32]:
        tokens = self._tokenizer(texts, padding=True, truncation=True, max_length=self._tokens, return_tensors="pt")
        return self._project(self._model.get_text_features, tokens)

    def _project(self, features: Callable[..., Model], inputs: Model) -> NDArray[np.float32]:
        with self._torch.inference_mode():
            vectors = features(**inputs.to(self._model.device)).pooler_output
        return np.asarray(vectors.cpu().numpy(), np.float32)


_loaded_models: WeakValueDictionary[Path, ClipModel] = WeakValueDictionary()


def load_clip(path: str | Path | Checkpoint) -> ClipModel:
    """Load a model, once for as long as one of its encoders is in use."""
    checkpoint = find_checkpoint(path, _CLIP_KIND)
    folder = checkpoint.folder.resolve()
    return _loaded_models.get(folder) or _loaded_models.setdefault(folder, ClipModel(checkpoint))


_SIDE = 64  # rows and columns to which an image is averaged first, so that its size and shape have no part in the rest
_CELLS = 4
_ANGLES = 8
_HUES, _CHROMAS, _VALUES = 16, 6, 3


class ImageDescriptors:
    """Colours and edges, cell by cell, and the colours of the whole; needs no model and knows no objects.

    The image, averaged to 64 x 64, gives three blocks of numbers that are never negative:

    - colour, 4 x 4 cells x 6: mean and standard deviation of red, green and blue in each cell;
    - edges, 4 x 4 cells x 8: the gradients of grey in each cell, by angle (mod 180 degrees, each shared between the two
      nearest of 8), summed by magnitude;
    - histogram, 16 x 6 x 3: the share of pixels by hue, root of chroma (max - min of red, green and blue) and value
      (max). What has next to no chroma has no hue, and counts under the first.

    With blocks b, the vector is the concatenation of sqrt(b / sum b), scaled to length 1: cosines are mean overlaps
    (Bhattacharyya coefficients) of the blocks. A block without edges is 0; the histogram never is.

    >>> black, red, rose = (np.full((90, 160, 3), colour, np.uint8) for colour in ((0,) * 3, (200, 0, 0), (210, 9, 9)))
    >>> x, y, z = ImageDescriptors()([black, red, rose])
    >>> bool(x @ y < 0.1), bool(y @ z > 0.9)
    (True, True)
    """

    name = "descriptors"
    width = _CELLS**2 * (6 + _ANGLES) + _HUES * _CHROMAS * _VALUES

    def __init__(self) -> None:
        self.versions: Mapping[str, str] = {"numpy": np.__version__}

    def __call__(self, images: Sequence[Image]) -> NDArray[np.float32]:
        """Vectors of shape (n, 512)."""
        small = np.array([_downsample(image) for image in images], np.float32).reshape(-1, _SIDE, _SIDE, 3)
        blocks = _colour_block(small), _edge_block(small), _histogram_block(small)
        shares = np.concatenate([_normalize_block(block) for block in blocks], axis=1)
        return l2_normalize(np.sqrt(shares)).astype(np.float32)


def _downsample(image: Image) -> NDArray[np.float32]:
    """The means over 64 x 64 equal parts of the image (pixels repeated where it is smaller), from 0 to 1."""
    rows, columns = (np.arange(_SIDE + 1) * length // _SIDE for length in image.shape[:2])
    sums = np.add.reduceat(image, rows[:-1], axis=0, dtype=np.uint32)
    sums = np.add.reduceat(sums, columns[:-1], axis=1)
    areas = np.multiply.outer(*(np.maximum(np.diff(edges), 1) for edges in (rows, columns)))
    return np.asarray(sums / (255 * areas[..., None]), np.float32)


def _normalize_block(block: NDArray[np.float32]) -> NDArray[np.float64]:
    """(n, ...) -> (n, k): the numbers of each image as shares of their sum, or 0 where that is 0."""
    flat = block.reshape(len(block), math.prod(block.shape[1:])).astype(np.float64)
    sums = flat.sum(axis=1, keepdims=True)
    return np.asarray(flat / np.where(sums > 0, sums, 1))


def _split_cells(pixels: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n, 64, 64, k) -> (n, 16, 256, k): the pixels of each cell."""
    (n, *_, channels), side = pixels.shape, _SIDE // _CELLS
    split = pixels.reshape(n, _CELLS, side, _CELLS, side, channels).swapaxes(2, 3)
    return split.reshape(n, _CELLS**2, side**2, channels)


def _colour_block(small: NDArray[np.float32]) -> NDArray[np.float32]:
    cells = _split_cells(small)
    return np.concatenate([cells.mean(axis=2), cells.std(axis=2)], axis=2)


def _edge_block(small: NDArray[np.float32]) -> NDArray[np.float32]:
    down, right = np.gradient(small.mean(axis=3), axis=(1, 2))
    angle = np.arctan2(down, right) * np.float32(_ANGLES / np.pi) % _ANGLES
    distance = np.abs(angle[..., None] - np.arange(_ANGLES, dtype=np.float32))
    shared = np.maximum(0, 1 - np.minimum(distance, _ANGLES - distance))  # the angles are a circle
    weights = np.hypot(down, right)[..., None] * shared
    return np.asarray(_split_cells(weights).sum(axis=2))


def _histogram_block(small: NDArray[np.float32]) -> NDArray[np.float32]:
    n = len(small)
    red, green, blue = np.moveaxis(small, 3, 0)
    value = small.max(axis=3)
    chroma = value - small.min(axis=3)
    parts = np.where(chroma > 0, chroma, 1)
    under_red, under_green, under_blue = (green - blue) / parts % 6, 2 + (blue - red) / parts, 4 + (red - green) / parts
    hue = np.select([value == red, value == green], [under_red, under_green], under_blue)
    level = _bin_index(np.sqrt(chroma), _CHROMAS)
    hue_bin = np.where(level > 0, _bin_index(hue / 6, _HUES), 0)
    index = (hue_bin * _CHROMAS + level) * _VALUES + _bin_index(value, _VALUES)
    bins = _HUES * _CHROMAS * _VALUES
    counted = np.bincount((index + bins * np.arange(n)[:, None, None]).ravel(), minlength=n * bins)
    return counted.reshape(n, bins).astype(np.float32)


def _bin_index(share: NDArray[np.float32], bins: int) -> NDArray[np.intp]:
    """Which of so many equal parts of 0 to 1 a number falls into."""
    return np.minimum((share * bins).astype(np.intp), bins - 1)


class HashedWords:
    """Words and pairs of neighbouring words, each hashed to a place and a sign; needs no model and knows no language.

    A word (or pair) w that occurs n times in a text adds s(w) (1 + ln n) at place h(w) of its vector.

    >>> said, same, other = HashedWords()(["Flip the bread!", "flip the BREAD", "jack up the car"])
    >>> bool(said @ same > 0.99), bool(said @ other < 0.5)
    (True, True)
    """

    name = "words"

    def __init__(self, width: int = 512) -> None:
        self.width = width
        self.versions: Mapping[str, str] = {"numpy": np.__version__}

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (n, width); a text without words has length 0."""
        vectors = np.zeros((len(texts), self.width))
        for vector, text in zip(vectors, texts, strict=True):
            words = re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())
            for term, count in Counter([*words, *map(" ".join, pairwise(words))]).items():
                index, sign = self._hash(term)
                vector[index] += sign * (1 + math.log(count))
        return l2_normalize(vectors).astype(np.float32)

    def _hash(self, term: str) -> tuple[int, int]:
        """The place and the sign of a term; Python's own `hash` would be another one in every process."""
        number = int.from_bytes(hashlib.blake2b(term.encode(), digest_size=8).digest(), "little")
        return (number >> 1) % self.width, 1 if number & 1 else -1


BATCH_SIZE = 64  # sentences that a sentence encoder takes at once
_POOLINGS = ("mean", "cls")
_MODULES = ("Transformer", "Pooling", "Normalize")
_SENTENCE_ENCODER_KIND = "sentence encoder"


class SentenceEncoder:
    """A sentence encoder that `transformers` can load, from a folder or by its name on the Hugging Face hub.

    The vector of a sentence is the mean of its tokens' last states, or the first of them where the pooling that the
    model brings in `1_Pooling/config.json` says so. A folder is never looked for on the network.
    """

    def __init__(self, path: str | Path | Checkpoint) -> None:
        checkpoint = find_checkpoint(path, _SENTENCE_ENCODER_KIND)
        self._pooling = _pooling(checkpoint)
        with pretrained_models.loading_model(checkpoint, _SENTENCE_ENCODER_KIND) as (torch, transformers):
            self._tokenizer = checkpoint.load(transformers.AutoTokenizer)
            model = checkpoint.load(transformers.AutoModel, trust_remote_code=False)
            self._model = pretrained_models.prepare_for_inference(model, torch)
        self._torch = torch
        self._max_tokens = _max_tokens(checkpoint, self._tokenizer, self._model.config)
        self.width = int(self._model.config.hidden_size)
        self.name = f"{checkpoint.name}@{pretrained_models.fingerprint(self._model, self._pooling, self._max_tokens)}"
        self.versions = pretrained_models.package_versions()

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (n, width)."""
        with self._torch.inference_mode():
            return encode_in_batches(self._encode_batch, texts, BATCH_SIZE, self.width)

    def _encode_batch(self, texts: list[str]) -> NDArray[np.float32]:
        """The states of the tokens, shape (n, tokens, width), pooled to (n, width); padding has no part in it."""
        tokens = self._tokenizer(texts, padding=True, truncation=True, max_length=self._max_tokens, return_tensors="pt")
        tokens = tokens.to(self._model.device)
        states = self._model(**tokens).last_hidden_state
        present = tokens["attention_mask"].unsqueeze(-1).to(states.dtype)
        means = (states * present).sum(1) / present.sum(1).clamp(min=1e-9)
        return np.asarray((states[:, 0] if self._pooling == "cls" else means).cpu().numpy(), np.float32)


def _pooling(model: Checkpoint) -> str:
    """How the model pools, by its own account; the mean where it gives none."""
    for module in model.settings("modules.json", list[dict[str, JsonValue]]) or []:
        kind = str(module["type"]).rpartition(".")[2]
        if kind not in _MODULES:
            raise InputError(f"has a module {kind!r}, msg2 knows only {', '.join(_MODULES)}", where=model.folder)
    settings = model.settings("1_Pooling/config.json", dict[str, JsonValue]) or {"pooling_mode": "mean"}
    older = [key.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
             for key, on in settings.items() if key.startswith("pooling_mode_") and on]  # fmt: skip
    chosen = settings.get("pooling_mode", older[0] if len(older) == 1 else older)
    if chosen not in _POOLINGS:
        raise InputError(f"pools by {chosen}, msg2 knows only {' and '.join(_POOLINGS)}", where=model.folder)
    return str(chosen)


def _max_tokens(model: Checkpoint, tokenizer: Model, config: Model) -> int:
    """Longer sentences are cut: at the model's own setting, else at what it can take."""
    limits = (tokenizer.model_max_length, getattr(config, "max_position_embeddings", None))
    settings = model.settings("sentence_bert_config.json", dict[str, int | bool | None]) or {}
    return int(settings.get("max_seq_length") or min(limit for limit in limits if limit))

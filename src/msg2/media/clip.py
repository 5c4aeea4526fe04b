"""CLIP: images and texts -> vectors in one space, where an image is near the words that describe it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from msg2.media import pretrained_models
from msg2.media.encoders import encode_in_batches
from msg2.media.image_encoders import Image
from msg2.media.pretrained_models import Checkpoint, find_checkpoint, wrong_model_error

T = TypeVar("T")

IMAGE_BATCH_SIZE, TEXT_BATCH_SIZE = 32, 64
"""Images and texts that a model takes at once."""

_KIND = "CLIP model"
_IMAGE_SETTINGS = (
    "do_resize", "size", "resample", "do_center_crop", "crop_size", "do_rescale", "rescale_factor",
    "do_normalize", "image_mean", "image_std",
)  # fmt: skip
"""Settings of an image processor that have a part in the numbers."""


@dataclass(frozen=True, slots=True)
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
        found = path if isinstance(path, Checkpoint) else find_checkpoint(path, _KIND)
        if found.kind != "clip":
            raise wrong_model_error(found.folder, _KIND, f"its config.json says {found.kind!r}")
        with pretrained_models.loading_model(found, _KIND) as (torch, transformers):
            self._prepare = found.load(transformers.CLIPImageProcessorPil)
            self._tokenizer = found.load(transformers.AutoTokenizer)
            self._model = pretrained_models.prepare_for_inference(found.load(transformers.CLIPModel), torch)
        self._torch = torch
        self._tokens = min(self._tokenizer.model_max_length, self._model.config.text_config.max_position_embeddings)
        prepared = [(key, getattr(self._prepare, key, None)) for key in _IMAGE_SETTINGS]
        self._name = f"{found.name}@{pretrained_models.fingerprint(self._model, prepared, self._tokens)}"

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

    def _project(self, features: Callable[..., Any], inputs: Any) -> NDArray[np.float32]:
        with self._torch.inference_mode():
            vectors = features(**inputs.to(self._model.device)).pooler_output
        return np.asarray(vectors.cpu().numpy(), np.float32)


_loaded_models: WeakValueDictionary[Path, ClipModel] = WeakValueDictionary()


def load_clip(path: str | Path | Checkpoint) -> ClipModel:
    """Load a model, once for as long as one of its encoders is in use."""
    found = path if isinstance(path, Checkpoint) else find_checkpoint(path, _KIND)
    folder = found.folder.resolve()
    model = _loaded_models.get(folder)
    if model is None:
        model = _loaded_models[folder] = ClipModel(found)
    return model

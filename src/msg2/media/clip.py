"""CLIP: pictures and texts -> vectors in one space, where a picture is near the words that describe it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from msg2.media import checkpoints
from msg2.media.checkpoints import Checkpoint, checkpoint, no_encoder
from msg2.media.pictures import Picture
from msg2.options import PictureOptions, TextOptions

T = TypeVar("T")

_WANTED = "CLIP model"
_PREPARATION = (
    "do_resize", "size", "resample", "do_center_crop", "crop_size", "do_rescale", "rescale_factor",
    "do_normalize", "image_mean", "image_std",
)  # fmt: skip
"""Settings of an image processor that have a part in the numbers."""


@dataclass(frozen=True, slots=True)
class ClipEncoder(Generic[T]):
    """One side of a model: n pictures, or n texts -> float32 vectors of shape (n, width) and length 1."""

    name: str
    width: int
    versions: Mapping[str, str]
    batch: int
    features: Callable[[list[T]], NDArray[np.float32]]
    """Of one batch."""

    def __call__(self, items: Sequence[T]) -> NDArray[np.float32]:
        """The vectors, batch by batch."""
        vectors = np.zeros((len(items), self.width))
        for first in range(0, len(items), self.batch):
            vectors[first : first + self.batch] = self.features(list(items[first : first + self.batch]))
        return checkpoints.of_length_one(vectors)


class Clip:
    """A CLIP model that `transformers` can load, from a folder or by its name on the Hugging Face hub.

    A picture is prepared as the model's own settings say (as a rule: its shorter side scaled to 224, the middle square
    of that, standardised colours). A text is cut at what the model can take (77 tokens).
    """

    def __init__(self, path: str | Path | Checkpoint) -> None:
        found = path if isinstance(path, Checkpoint) else checkpoint(path, _WANTED)
        if found.kind != "clip":
            raise no_encoder(found.folder, _WANTED, f"its config.json says {found.kind!r}")
        with checkpoints.loading(found, _WANTED) as (torch, transformers):
            place = {"pretrained_model_name_or_path": found.folder, "local_files_only": True}
            self._prepare = transformers.CLIPImageProcessorPil.from_pretrained(**place)
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(**place)
            self._model = checkpoints.ready(transformers.CLIPModel.from_pretrained(**place), torch)
        self._torch = torch
        self._tokens = min(self._tokenizer.model_max_length, self._model.config.text_config.max_position_embeddings)
        prepared = [(key, getattr(self._prepare, key, None)) for key in _PREPARATION]
        self._name = f"{found.name}@{checkpoints.fingerprint(self._model, prepared, self._tokens)}"

    @property
    def pictures(self) -> ClipEncoder[Picture]:
        """The encoder of pictures."""
        return self._encoder(self._picture_features, PictureOptions().batch)

    @property
    def texts(self) -> ClipEncoder[str]:
        """The encoder of texts."""
        return self._encoder(self._text_features, TextOptions().batch)

    def _encoder(self, features: Callable[[list[T]], NDArray[np.float32]], batch: int) -> ClipEncoder[T]:
        width = int(self._model.config.projection_dim)
        return ClipEncoder(self._name, width, checkpoints.versions("pillow"), batch, features)

    def _picture_features(self, images: list[Picture]) -> NDArray[np.float32]:
        prepared = self._prepare(images, input_data_format="channels_last", return_tensors="pt")
        return self._projected(self._model.get_image_features, prepared)

    def _text_features(self, texts: list[str]) -> NDArray[np.float32]:
        tokens = self._tokenizer(texts, padding=True, truncation=True, max_length=self._tokens, return_tensors="pt")
        return self._projected(self._model.get_text_features, tokens)

    def _projected(self, features: Callable[..., Any], inputs: Any) -> NDArray[np.float32]:
        with self._torch.inference_mode():
            vectors = features(**inputs.to(self._model.device)).pooler_output
        return np.asarray(vectors.cpu().numpy(), np.float32)


_in_use: WeakValueDictionary[Path, Clip] = WeakValueDictionary()


def clip(path: str | Path | Checkpoint) -> Clip:
    """The model, loaded once for as long as one of its encoders is in use."""
    found = path if isinstance(path, Checkpoint) else checkpoint(path, _WANTED)
    folder = found.folder.resolve()
    model = _in_use.get(folder)
    if model is None:
        model = _in_use[folder] = Clip(found)
    return model

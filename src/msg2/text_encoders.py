"""Encoders of texts, by name: texts -> vectors; the cosine of two vectors is their similarity.

`text_encoder` knows hashed words, sentence encoders and CLIP models, which have images and texts in one space. Models
are found by their folder or their name on the Hugging Face hub, and run by `transformers`, which is imported when one
is loaded.
"""

import hashlib
import logging
import math
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from pickle import UnpicklingError
from types import ModuleType
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from msg2.errors import InputError, errors_at, optional_dependency, require
from msg2.options import from_json
from msg2.text import short_repr

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


TextEncoder: TypeAlias = Encoder[str]
Image: TypeAlias = NDArray[np.uint8]  # RGB, shape (height, width, 3)
Model: TypeAlias = Any  # a model, tokenizer or class of `transformers`, whose types are not known before it is imported


def text_encoder(name: str = "words") -> TextEncoder:
    """Return the encoder of that name: "words", or a sentence encoder or CLIP model by its folder or hub name.

    >>> text_encoder("words").width
    512
    """
    if name == "words":
        return HashedWords()
    checkpoint = find_checkpoint(name, SENTENCE_ENCODER)
    return load_clip(checkpoint)[1] if checkpoint.kind == "clip" else load_sentence_encoder(checkpoint)


def l2_normalize(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale vectors, shape (…, width), to length 1; a vector of zeros stays.

    >>> l2_normalize(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1))


@dataclass(slots=True)
class HashedWords:
    """Words and pairs of neighbouring words, each hashed to a place and a sign; needs no model and knows no language.

    A word (or pair) w that occurs n times in a text adds s(w) (1 + ln n) at place h(w) of its vector.

    >>> said, same, other = HashedWords()(["Flip the bread!", "flip the BREAD", "jack up the car"])
    >>> bool(said @ same > 0.99), bool(said @ other < 0.5)
    (True, True)
    """

    width: int = 512
    name: str = "words"
    versions: Mapping[str, str] = field(default_factory=lambda: {"numpy": np.__version__})

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (n, width); a text without words has length 0."""
        vectors = np.zeros((len(texts), self.width))
        for vector, text in zip(vectors, texts, strict=True):
            words = re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())
            for term, count in Counter([*words, *map(" ".join, pairwise(words))]).items():
                # Python's own `hash` would be another one in every process.
                number = int.from_bytes(hashlib.blake2b(term.encode(), digest_size=8).digest(), "little")
                vector[(number >> 1) % self.width] += (1 if number & 1 else -1) * (1 + math.log(count))
        return l2_normalize(vectors).astype(np.float32)


# -- pretrained models ------------------------------------------------------------------------------------------

_log = logging.getLogger(__name__)
ALLOW_PICKLE = "MSG2_ALLOW_PICKLE"
"""Variable of the environment: weights of the hub may also be pickles, which PyTorch reads without running anything."""
_FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]
"""What is fetched of a model on the hub: weights as safetensors, which hold numbers and nothing that could be run."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder with a model, and what it is called."""

    name: str
    folder: Path

    @property
    def kind(self) -> str | None:
        """Its `model_type`, such as "clip", by its own account."""
        kind = (self.settings("config.json", dict[str, JsonValue]) or {}).get("model_type")
        return kind if isinstance(kind, str) else None

    def settings(self, file: str, kind: type[T]) -> T | None:
        """Read a JSON file of the folder, if it is there."""
        path = self.folder / file
        with errors_at(path):
            return from_json(kind, path.read_bytes(), "$") if path.is_file() else None

    def load(self, part: Model, **settings: object) -> Model:
        """Load a part of the model, from its folder alone."""
        return part.from_pretrained(self.folder, local_files_only=True, **settings)


def find_checkpoint(path: str | Path, wanted: str) -> Checkpoint:
    """Find a model: the folder of that path, or else what the Hugging Face hub has under that name."""
    if Path(path).is_dir():
        return Checkpoint(Path(path).resolve().name, Path(path))
    with optional_dependency(f"the {wanted} {short_repr(str(path))}", "video"):
        import huggingface_hub
    name, _, revision = str(path).partition("@")
    try:
        folder = Path(huggingface_hub.snapshot_download(name, revision=revision or None, allow_patterns=_FILES))
    except (OSError, ValueError) as error:
        raise wrong_model_error(path, wanted, NOT_FOUND) from error
    if not [*folder.rglob("*.safetensors")]:
        if not os.environ.get(ALLOW_PICKLE):
            what = "has no weights as safetensors on the Hugging Face hub"
            raise InputError(what, where=path, hint=_hint_at_safetensors(name))
        _log.warning("%s has its weights in a pickle, which is read as numbers only (--allow-pickle)", path)
        patterns = [*_FILES, "pytorch_model*.bin"]
        folder = Path(huggingface_hub.snapshot_download(name, revision=revision or None, allow_patterns=patterns))
    if not revision:
        _log.warning("%s is the newest of its revisions; %s@%s is always this one", name, name, folder.name)
    return Checkpoint(name, folder)


def _hint_at_safetensors(name: str) -> str:
    """Name the newest pull request that converts the weights, if the hub tells of one, and other ways out."""
    import huggingface_hub

    hub, revision = huggingface_hub.HfApi(), "refs/pr/1 if that has them"
    with suppress(Exception):  # whatever keeps the hub from telling, it is only a hint
        requests = hub.list_repo_refs(name, include_pull_requests=True).pull_requests or []
        for ref in sorted((request.ref for request in requests), key=lambda ref: -int(ref.rpartition("/")[2])):
            if any(file.endswith(".safetensors") for file in hub.list_repo_files(name, revision=ref)):
                revision = f"{ref} (anyone may have proposed that: look at it first)"
                break
    return f"ask for {name}@{revision}, or say: msg2 --allow-pickle …"


NOT_FOUND = "there is no such folder, and none came from the Hugging Face hub"
_HINT = "give the name of a built-in encoder, the folder of a model for transformers, or its name on the hub"


def wrong_model_error(path: str | Path, wanted: str, why: str, hint: str = _HINT) -> InputError:
    """Make the error to raise where `path` is not the model that was wanted."""
    first = (why.strip().splitlines() or [""])[0]
    return InputError(f"is not a {wanted} ({short_repr(first, 200)[1:-1]})", where=path, hint=hint)


@contextmanager
def loading_model(checkpoint: Checkpoint, wanted: str) -> Iterator[tuple[ModuleType, ModuleType]]:
    """Import torch and transformers, silence their progress bars and logs, and turn their errors into `InputError`."""
    with optional_dependency(f"the {wanted} {short_repr(checkpoint.name)}", "video"):
        import torch
        import transformers
        from safetensors import SafetensorError
    log: ModuleType = transformers.utils.logging
    level, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield torch, transformers
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, UnpicklingError, SafetensorError) as error:
        raise wrong_model_error(checkpoint.folder, wanted, str(error)) from None
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()


def prepare_for_inference(model: Model, torch: ModuleType) -> Model:
    """Prepare a model for use without training: in single precision, on the GPU where there is one."""
    return model.float().eval().to("cuda" if torch.cuda.is_available() else "cpu")


def fingerprint(model: Model, *settings: object) -> str:
    """Hash the weights and settings of a model, wherever they lie."""
    digest = hashlib.sha256(" ".join(map(str, settings)).encode())
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode() + tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:12]


IMAGE_BATCH_SIZE, TEXT_BATCH_SIZE = 32, 64  # images and texts that a model takes at once
CLIP, SENTENCE_ENCODER = "CLIP model", "sentence encoder"

_IMAGE_SETTINGS = (
    "do_resize", "size", "resample", "do_center_crop", "crop_size", "do_rescale", "rescale_factor",
    "do_normalize", "image_mean", "image_std",
)  # fmt: skip
"""Settings of an image processor that have a part in the numbers."""
_POOLINGS = ("mean", "cls")
_MODULES = ("Transformer", "Pooling", "Normalize")


@dataclass(slots=True)
class ModelEncoder(Generic[T]):
    """An encoder that runs a pretrained model, batch by batch."""

    name: str
    width: int
    versions: Mapping[str, str]
    batch_size: int
    encode_batch: Callable[[list[T]], Model]
    """n things -> a tensor of shape (n, width)."""

    def __call__(self, items: Sequence[T]) -> NDArray[np.float32]:
        """Encode things, and scale their vectors to length 1."""
        vectors = np.zeros((len(items), self.width))
        for first in range(0, len(items), self.batch_size):
            batch = list(items[first : first + self.batch_size])
            vectors[first : first + self.batch_size] = self.encode_batch(batch).cpu().numpy()
        return l2_normalize(vectors).astype(np.float32)


def _package_versions(*packages: str) -> dict[str, str]:
    """The versions of the packages that every model needs, and of `packages`."""
    return {name: version(name) for name in sorted({"numpy", "torch", "transformers", *packages})}


@lru_cache(maxsize=1)  # frames and sentences share the model
def load_clip(checkpoint: Checkpoint) -> tuple[ModelEncoder[Image], ModelEncoder[str]]:
    """Load both sides of a CLIP model, encoders of images and of texts, with the model's own image settings."""
    if checkpoint.kind != "clip":
        raise wrong_model_error(checkpoint.folder, CLIP, f"its config.json says {checkpoint.kind!r}")
    with loading_model(checkpoint, CLIP) as (torch, transformers):
        prepare = checkpoint.load(transformers.CLIPImageProcessorPil)
        tokenizer = checkpoint.load(transformers.AutoTokenizer)
        model = prepare_for_inference(checkpoint.load(transformers.CLIPModel), torch).requires_grad_(False)
    longest = min(tokenizer.model_max_length, model.config.text_config.max_position_embeddings)
    settings = [(key, getattr(prepare, key, None)) for key in _IMAGE_SETTINGS]

    def encode_images(images: list[Image]) -> Model:
        prepared = prepare(images, input_data_format="channels_last", return_tensors="pt")
        return model.get_image_features(**prepared.to(model.device)).pooler_output

    def encode_texts(texts: list[str]) -> Model:
        tokens = tokenizer(texts, padding=True, truncation=True, max_length=longest, return_tensors="pt")
        return model.get_text_features(**tokens.to(model.device)).pooler_output

    name = f"{checkpoint.name}@{fingerprint(model, settings, longest)}"
    same = name, int(model.config.projection_dim), _package_versions("pillow")
    return ModelEncoder(*same, IMAGE_BATCH_SIZE, encode_images), ModelEncoder(*same, TEXT_BATCH_SIZE, encode_texts)


def load_sentence_encoder(checkpoint: Checkpoint) -> ModelEncoder[str]:
    """Load a sentence encoder: a sentence is the mean of its tokens' last states, or the first, as the model pools."""
    pooling = _pooling(checkpoint)
    with loading_model(checkpoint, SENTENCE_ENCODER) as (torch, transformers):
        tokenizer = checkpoint.load(transformers.AutoTokenizer)
        model = checkpoint.load(transformers.AutoModel, trust_remote_code=False)
        model = prepare_for_inference(model, torch).requires_grad_(False)
    # Longer sentences are cut: at the model's own setting, else at what it can take.
    settings = checkpoint.settings("sentence_bert_config.json", dict[str, int | bool | None]) or {}
    limits = (tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None))
    longest = int(settings.get("max_seq_length") or min(filter(None, limits)))

    def encode(texts: list[str]) -> Model:
        tokens = tokenizer(texts, padding=True, truncation=True, max_length=longest, return_tensors="pt")
        tokens = tokens.to(model.device)
        states = model(**tokens).last_hidden_state
        present = tokens["attention_mask"].unsqueeze(-1).to(states.dtype)  # padding has no part in the mean
        return states[:, 0] if pooling == "cls" else (states * present).sum(1) / present.sum(1).clamp(min=1e-9)

    name = f"{checkpoint.name}@{fingerprint(model, pooling, longest)}"
    return ModelEncoder(name, int(model.config.hidden_size), _package_versions(), TEXT_BATCH_SIZE, encode)


def _pooling(model: Checkpoint) -> str:
    """How the model pools, by its own account; the mean where it gives none."""
    for module in model.settings("modules.json", list[dict[str, JsonValue]]) or []:
        kind = str(module["type"]).rpartition(".")[2]
        require(kind in _MODULES, f"has a module {kind!r}, msg2 knows only {', '.join(_MODULES)}", where=model.folder)
    settings = model.settings("1_Pooling/config.json", dict[str, JsonValue]) or {"pooling_mode": "mean"}
    older = [key.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
             for key, on in settings.items() if key.startswith("pooling_mode_") and on]  # fmt: skip
    chosen = settings.get("pooling_mode", older[0] if len(older) == 1 else older)
    require(chosen in _POOLINGS, f"pools by {chosen}, msg2 knows only {' and '.join(_POOLINGS)}", where=model.folder)
    return str(chosen)

"""Folders of models for `transformers`, given as such or by a name on the Hugging Face hub: found, named, loaded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, MissingExtraError, shortened

_FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]
"""What is fetched of a model on the hub: no weights for other frameworks."""
_OLDER = ["pytorch_model*.bin", "pytorch_model.bin.index.json"]
"""Weights of models that have no safetensors; PyTorch reads numbers from them, and runs nothing that they hold."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder with a model, and what it is called."""

    name: str
    folder: Path

    @property
    def kind(self) -> str | None:
        """Its `model_type`, such as "clip", by its own account."""
        settings = self.settings("config.json", {})
        return settings.get("model_type") if isinstance(settings, dict) else None

    def settings(self, file: str, default: Any) -> Any:
        """What a JSON file in the folder holds, or `default` where there is none."""
        path = self.folder / file
        try:
            return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else default
        except (OSError, ValueError) as error:
            raise InputError(f"cannot be read ({error})", where=path) from None


def checkpoint(path: str | Path, wanted: str) -> Checkpoint:
    """The folder of that path, which is never looked for on the network, or else what the hub has under that name."""
    if Path(path).is_dir():
        return Checkpoint(Path(path).resolve().name, Path(path))
    try:
        import huggingface_hub
    except ImportError:
        raise MissingExtraError(f"the {wanted} {shortened(str(path))}", "states") from None
    try:
        folder = Path(huggingface_hub.snapshot_download(str(path), allow_patterns=_FILES))
        if not [*folder.rglob("*.safetensors")]:
            huggingface_hub.snapshot_download(str(path), allow_patterns=_OLDER)
        return Checkpoint(str(path), folder)
    except (OSError, ValueError) as error:
        why = "there is no such folder, and none came from the Hugging Face hub"
        raise no_encoder(path, wanted, why) from error


def no_encoder(path: str | Path, wanted: str, why: str) -> InputError:
    """What to raise where `path` is not the encoder that was `wanted`."""
    hint = "give the name of a built-in encoder, the folder of a model for transformers, or its name on the hub"
    first = (why.strip().splitlines() or [""])[0]
    return InputError(f"is not a {wanted} ({shortened(first, 200)[1:-1]})", where=path, hint=hint)


@contextmanager
def loading(found: Checkpoint, wanted: str) -> Iterator[tuple[Any, Any]]:
    """(torch, transformers), without their progress bars and remarks, while a model is loaded with them."""
    try:
        import torch
        import transformers
        from safetensors import SafetensorError
    except ImportError:
        raise MissingExtraError(f"the {wanted} {shortened(found.name)}", "states") from None
    log: Any = transformers.utils.logging
    level, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield torch, transformers
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, UnpicklingError, SafetensorError) as error:
        raise no_encoder(found.folder, wanted, str(error)) from None
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()


def ready(model: Any, torch: Any) -> Any:
    """The model for use alone, in single precision, on the GPU where there is one."""
    return model.float().eval().to("cuda" if torch.cuda.is_available() else "cpu")


def fingerprint(model: Any, *settings: object) -> str:
    """Says which weights and settings these are, wherever they lie."""
    digest = hashlib.sha256(" ".join(map(str, settings)).encode())
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode() + tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:12]


def versions(*packages: str) -> Mapping[str, str]:
    """Package -> version; those that every model needs, and `packages`."""
    return {name: version(name) for name in sorted({"numpy", "torch", "transformers", *packages})}


def of_length_one(vectors: NDArray[np.float64]) -> NDArray[np.float32]:
    """The vectors, shape (n, width), each scaled to length 1; a vector of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)

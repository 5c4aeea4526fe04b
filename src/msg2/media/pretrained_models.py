"""Find and load pretrained models of `transformers`, by their folder or their name on the Hugging Face hub."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from pickle import UnpicklingError
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

from pydantic import JsonValue

from msg2.errors import InputError, optional_dependency
from msg2.options import from_json
from msg2.text import short_repr

_T = TypeVar("_T")
Model: TypeAlias = Any  # a model, tokenizer or class of `transformers`, whose types are not known before it is imported

_log = logging.getLogger(__name__)
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

    def settings(self, file: str, kind: type[_T]) -> _T | None:
        """Read a JSON file of the folder, if it is there."""
        path = self.folder / file
        try:
            return from_json(kind, path.read_bytes(), file) if path.is_file() else None
        except (OSError, InputError) as error:
            raise InputError(f"cannot be read ({error})", where=path) from None

    def load(self, part: Model, **settings: object) -> Model:
        """Load a part of the model, from its folder alone."""
        return part.from_pretrained(self.folder, local_files_only=True, **settings)


def find_checkpoint(path: str | Path | Checkpoint, wanted: str) -> Checkpoint:
    """Find a model: the folder of that path, or else what the Hugging Face hub has under that name."""
    if isinstance(path, Checkpoint):
        return path
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
        hint = f"name a revision that has them, such as {name}@refs/pr/1, or convert it and give its folder"
        raise InputError("has no weights as safetensors on the Hugging Face hub", where=path, hint=hint)
    if not revision:
        _log.warning("%s is the newest of its revisions; %s@%s is always this one", name, name, folder.name)
    return Checkpoint(name, folder)


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


def package_versions(*packages: str) -> Mapping[str, str]:
    """Return the versions of the packages that every model needs, and of `packages`."""
    return {name: version(name) for name in sorted({"numpy", "torch", "transformers", *packages})}

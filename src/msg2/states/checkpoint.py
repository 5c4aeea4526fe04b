"""What a trained model is and how far its training has come: plain values, every type of which is checked when read.

A trained model on disk: weights as safetensors, everything else as JSON; nothing that runs when it is read.

model.json                  what it is: task, steps, options, widths, videos, versions, and how far training has come
best-000120.safetensors     the weights that did best in validation, after the epoch of the card's best validation
last-000123.safetensors     the latest weights and the moments of Adam, after the card's epoch: where training resumes
log.jsonl                   one line per validation

Tensors are named after their epoch, and the card is put in place after them: killed at any moment, the card describes
tensors that are there and its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from msg2.errors import InputError
from msg2.files import write_together, write_whole
from msg2.options import from_json
from msg2.states.configuration import SamplingOptions, StateModelOptions, TrainingOptions
from msg2.states.network import StateModel
from msg2.states.optimization import torch_seed
from msg2.task import Step


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What a checkpoint is, and how far its training has come."""

    task: str
    steps: tuple[Step, ...]
    frame_width: int
    text_width: int
    model: StateModelOptions
    sampling: SamplingOptions
    training: TrainingOptions
    videos: Mapping[str, tuple[str, ...]]
    """The ids of the videos for "training" and for "validation"."""
    data: Mapping[str, str] = field(default_factory=dict)
    """Digests of their labels and features, see `StateDataset.digests`."""
    encoder: Mapping[str, Any] = field(default_factory=dict)
    """The configuration of the transformer: without it, what it was loaded from would be needed for ever."""
    epoch: int = 0
    """Epochs that are done."""
    best: Mapping[str, int | float] = field(default_factory=dict)
    """The best validation so far: epoch, loss, accuracy."""
    stale: int = 0
    """Validations since then."""
    accuracy: float | None = None
    """Of completion, at the last validation."""
    finished: bool = False
    """No epoch is left, or patience has come to its end."""

    def __post_init__(self) -> None:
        for name in ("frame_width", "text_width", "epoch", "stale"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} is {getattr(self, name)}, it must be 0 or more")
        if self.epoch > self.training.epochs or (self.epoch == self.training.epochs and not self.finished):
            raise InputError(f"epoch is {self.epoch} of {self.training.epochs} in an unfinished training")
        if set(self.videos) != {"training", "validation"}:
            raise InputError("videos must be for training and validation")

    @property
    def last_file(self) -> str:
        """Name of the file with the weights and moments after the last epoch."""
        return f"last-{self.epoch:06}.safetensors"

    @property
    def best_file(self) -> str:
        """Name of the file with the weights of the best validation."""
        return f"best-{int(self.best.get('epoch', 0)):06}.safetensors"

    def fresh_model(self) -> StateModel:
        """Build the model of this card before training: its weights are pretrained, or drawn from the seed."""
        torch.manual_seed(torch_seed(self.training.seed))
        return StateModel(len(self.steps), self.frame_width, self.text_width, self.model)

    def empty_model(self) -> StateModel:
        """Build the model of this card for weights to be put in; needs no file of its transformer."""
        options = replace(self.model, encoder=json.dumps(dict(self.encoder))) if self.encoder else self.model
        return StateModel(len(self.steps), self.frame_width, self.text_width, options)

    def same_training(self, other: ModelCard) -> bool:
        """Whether the training of `other` can be resumed as this one's; where it runs may differ."""
        return _identity(self) == _identity(other)


def _identity(card: ModelCard) -> ModelCard:
    """The card without how far it has come, and where it runs."""
    training = replace(card.training, device="auto", save_seconds=1.0)
    return replace(card, training=training, encoder={}, epoch=0, best={}, stale=0, accuracy=None, finished=False)


FORMAT = "msg2.states/2"
_FORMAT_1 = "msg2.states/1"
_FORMAT_1_NAMES = {
    "witness": "evidence",
    "witness_dropout": "evidence_dropout",
    "witness_l2": "evidence_l2",
    "witness_rate": "evidence_rate",
    "habits": "cooccurrence",
    "habits_l2": "cooccurrence_l2",
    "witnesses": "evidence_models",
    "trust": "presence_scale",
    "when": "completion",
    "whether": "presence",
    "bridge": "input_projection",
    "text_bridge": "text_projection",
    "forwards": "feed_forward",
    "places": "positions",
}
"""What options and parts of tensor names were called in the first format."""
_RETRAIN = "train it again into another folder"


def save_checkpoint(
    folder: Path, card: ModelCard, last: Mapping[str, Tensor], best: Mapping[str, Tensor] | None
) -> None:
    """Write the card and the tensors, all or none; tensors of other epochs are removed."""
    document = {"format": FORMAT, **asdict(card), "versions": {name: version(name) for name in ("msg2", "torch")}}
    contents: dict[Path, Any] = {folder / card.last_file: serialize_tensors(last)}
    if best is not None:
        contents[folder / card.best_file] = serialize_tensors(best)
    contents[folder / "model.json"] = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
    write_together(contents)
    for which, current in (("last", card.last_file), ("best", card.best_file)):
        for path in folder.glob(f"{which}-{'[0-9]' * 6}.safetensors"):
            if path.name != current:
                with suppress(OSError):
                    path.unlink()


def serialize_tensors(tensors: Mapping[str, Tensor]) -> memoryview:
    """The bytes of a safetensors file of tensors in single precision: gigabytes, copied no more than once.

    It is the length of the header in 8 bytes, the header in JSON, and one tensor after the other.
    """
    ends = list(accumulate((value.nbytes for value in tensors.values()), initial=0))
    header = {
        name: {"dtype": "F32", "shape": list(value.shape), "data_offsets": list(span)}
        for (name, value), span in zip(tensors.items(), pairwise(ends), strict=True)
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    begin = 8 + len(text)
    content = np.empty(begin + ends[-1], dtype=np.uint8)  # NumPy asks for large pages, which halves the time
    content[:begin] = np.frombuffer(len(text).to_bytes(8, "little") + text, dtype=np.uint8)
    numbers = torch.from_numpy(content[begin:].view(np.float32))
    for value, (start, end) in zip(tensors.values(), pairwise(ends), strict=True):
        numbers[start // 4 : end // 4].view(value.shape).copy_(value.detach())
    return content.data


def read_card(folder: Path) -> ModelCard:
    """Read and check the card of the checkpoint in `folder`."""
    path = folder / "model.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        hint = "make one with `msg2 states train`"
        raise InputError("is no trained model: it has no model.json", where=folder, hint=hint) from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot be read ({error})", where=path, hint=_RETRAIN) from error
    if not isinstance(document, dict) or (form := document.pop("format", None)) not in (FORMAT, _FORMAT_1):
        raise InputError(f"is not a model in the format {FORMAT!r}", where=path, hint=_RETRAIN)
    document.pop("versions", None)
    if form == _FORMAT_1:
        for part in ("model", "training"):
            if isinstance(document.get(part), dict):
                document[part] = {_FORMAT_1_NAMES.get(name, name): value for name, value in document[part].items()}
    try:
        return from_json(ModelCard, json.dumps(document), "the card")
    except InputError as error:
        raise InputError(f"is damaged ({error!s})", where=path, hint=_RETRAIN) from error


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file; those of the first format get their present names."""
    try:
        tensors = load(path.read_bytes())
    except (OSError, SafetensorError) as error:
        raise InputError(f"cannot be read ({error})", where=path, hint=_RETRAIN) from error
    return {".".join(_FORMAT_1_NAMES.get(part, part) for part in name.split(".")): tensors[name] for name in tensors}


def load_weights(model: StateModel, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Put weights into a model."""
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise InputError(f"does not fit the model ({reason})", where=where, hint=_RETRAIN) from error


def load_checkpoint(folder: Path) -> tuple[ModelCard, StateModel]:
    """Load the best model of a training, ready to predict, whether or not the training has finished."""
    card = read_card(folder)
    path = folder / card.best_file
    if not card.best and not path.exists():
        raise InputError("has not come to its first validation", where=folder, hint="let the training go on")
    model = empty_model(folder, card)
    load_weights(model, read_tensors(path), path)
    return card, model.eval()


def empty_model(folder: Path, card: ModelCard) -> StateModel:
    """Build the model of the card in `folder`, for weights to be put in."""
    try:
        return card.empty_model()
    except InputError as error:
        raise InputError(f"is damaged ({error.what})", where=folder / "model.json", hint=_RETRAIN) from error


def read_log(folder: Path, epoch: int) -> list[dict[str, Any]]:
    """Read the log of a training up to an epoch, and remove the lines of later ones, whose work was lost."""
    path = folder / "log.jsonl"
    if not path.is_file():
        return []
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        kept = [line for line in lines if line["epoch"] <= epoch]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"cannot be read ({error})", where=path, hint="remove it") from error
    if kept != lines:
        write_log(folder, kept)
    return kept


def write_log(folder: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Write the log of a training."""
    content = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    write_whole(folder / "log.jsonl", content)

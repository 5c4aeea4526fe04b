"""A trained state model on disk: weights as safetensors, everything else as JSON. Nothing in it runs when it is read.

model.json                  the card: task, steps, options, widths, videos, versions, and how far training has come
best-000120.safetensors     the weights of the best validation, after the epoch that the card names
last-000123.safetensors     the latest weights and the moments of Adam, after the card's epoch; training resumes here
log.jsonl, log.csv          one line per validation

Tensors are named after their epoch, and the card is written after them. If training is killed at any moment, the card
still describes tensors that exist.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Literal, TypeAlias

import torch
from pydantic import JsonValue, NonNegativeInt
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from msg2.errors import InputError, require
from msg2.files import write_together
from msg2.options import from_json
from msg2.states.configuration import SamplingOptions, StateModelOptions, TrainingOptions
from msg2.states.loss_and_optimizer import torch_seed
from msg2.states.network import StateModel
from msg2.task import Step

SplitName: TypeAlias = Literal["training", "validation"]


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What a checkpoint is, and how far its training has come."""

    task: str
    steps: tuple[Step, ...]
    frame_width: NonNegativeInt
    text_width: NonNegativeInt
    model: StateModelOptions
    sampling: SamplingOptions
    training: TrainingOptions
    videos: Mapping[SplitName, tuple[str, ...]]
    """The ids of the videos that a training learns from, and of those that it is validated on."""
    data: Mapping[str, str] = field(default_factory=dict)
    """Digests of their labels and features, see `StateDataset.digests`."""
    streams: Mapping[str, NonNegativeInt] = field(default_factory=dict)
    """The width of each stream that it reads besides frames and sentences."""
    encoder: Mapping[str, JsonValue] = field(default_factory=dict)
    """The configuration of the transformer, so that loading the model never needs the original checkpoint."""
    epoch: NonNegativeInt = 0
    """Finished epochs."""
    best: Mapping[str, int | float] = field(default_factory=dict)
    """The best validation so far: epoch, loss, accuracy."""
    stale: NonNegativeInt = 0
    """Validations since then."""
    accuracy: float | None = None
    """Accuracy of completion at the last validation."""
    finished: bool = False
    """No epoch is left, or training stopped early."""
    format: Literal["msg2.states/2"] = "msg2.states/2"
    versions: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Versions of msg2 and torch that wrote the file."""

    def __post_init__(self) -> None:
        if self.epoch > self.training.epochs or (self.epoch == self.training.epochs and not self.finished):
            raise InputError(f"epoch is {self.epoch} of {self.training.epochs} in an unfinished training")
        require(len(self.videos) == 2, "videos must be for training and validation")

    @property
    def last_file(self) -> str:
        """Name of the file with the weights and moments after the last epoch."""
        return f"last-{self.epoch:06}.safetensors"

    @property
    def best_file(self) -> str:
        """Name of the file with the weights of the best validation."""
        return f"best-{int(self.best.get('epoch', 0)):06}.safetensors"

    def fresh_model(self) -> StateModel:
        """Build the model before training: its weights are pretrained, or drawn from the seed."""
        torch.manual_seed(torch_seed(self.training.seed))
        return StateModel(len(self.steps), self.frame_width, self.text_width, self.model, self.streams)

    def empty_model(self, folder: Path) -> StateModel:
        """Build the model of the card in `folder`, to be filled with weights; needs no file of its transformer."""
        options = replace(self.model, encoder=json.dumps(dict(self.encoder))) if self.encoder else self.model
        with damage_at(folder / "model.json"):
            return StateModel(len(self.steps), self.frame_width, self.text_width, options, self.streams)

    def same_training(self, other: ModelCard) -> bool:
        """Whether the training of `other` can be resumed as this one's, however far it is and wherever it runs."""
        training = replace(other.training, device=self.training.device, save_seconds=self.training.save_seconds)
        progress = {name: getattr(self, name) for name in ("encoder", "epoch", "best", "stale", "accuracy", "finished")}
        return replace(other, training=training, **progress) == self


RETRAIN = "train it again into another folder"


@contextmanager
def damage_at(path: Path, what: str = "is damaged", hint: str = RETRAIN) -> Iterator[None]:
    """Turn whatever is wrong with a file of a model into an `InputError` about that file."""
    try:
        yield
    except (OSError, InputError, KeyError, RuntimeError, SafetensorError) as error:
        what = "cannot be read" if isinstance(error, OSError) else what
        reason = error.what if isinstance(error, InputError) else str(error).strip().rpartition("\n")[2].strip()
        raise InputError(f"{what} ({reason})", where=path, hint=hint) from error


def save_checkpoint(
    folder: Path, card: ModelCard, last: Mapping[str, Tensor], best: Mapping[str, Tensor] | None
) -> None:
    """Write the card and the tensors, all or none; tensors of other epochs are removed."""
    versions = {name: version(name) for name in ("msg2", "torch")}
    document = {"format": card.format, **asdict(replace(card, versions=versions))}
    contents: dict[Path, str | bytes] = {folder / card.last_file: serialize_tensors(last)}
    if best is not None:
        contents[folder / card.best_file] = serialize_tensors(best)
    contents[folder / "model.json"] = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
    write_together(contents)
    remove_other_epochs(folder, card)


def remove_other_epochs(folder: Path, card: ModelCard) -> None:
    """Remove the tensors that the card does not name."""
    for which, current in (("last", card.last_file), ("best", card.best_file)):
        for path in folder.glob(f"{which}-{'[0-9]' * 6}.safetensors"):
            if path.name != current:
                with suppress(OSError):
                    path.unlink()


def serialize_tensors(tensors: Mapping[str, Tensor]) -> bytes:
    """The bytes of a safetensors file."""
    return save({name: value.detach().contiguous() for name, value in tensors.items()})


def read_card(folder: Path) -> ModelCard:
    """Read and check the card of the checkpoint in `folder`."""
    path = folder / "model.json"
    hint = "make one with `msg2 states train`"
    require(path.exists(), "is no trained model: it has no model.json", where=folder, hint=hint)
    with damage_at(path):
        return from_json(ModelCard, path.read_bytes(), "the card")


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file."""
    with damage_at(path):
        return load(path.read_bytes())


def load_weights(model: StateModel, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Put weights into a model."""
    with damage_at(where, "does not fit the model"):
        model.load_state_dict(tensors)


def load_checkpoint(folder: Path) -> tuple[ModelCard, StateModel]:
    """Load the best model of a training, ready to predict, whether or not the training has finished."""
    card = read_card(folder)
    path = folder / card.best_file
    if not card.best and not path.exists():
        raise InputError("has not come to its first validation", where=folder, hint="let the training go on")
    model = card.empty_model(folder)
    load_weights(model, read_tensors(path), path)
    return card, model.eval()


LogLine: TypeAlias = dict[str, int | float]  # the figures of a validation, by name; one of them is the epoch


def read_log(folder: Path, epoch: int) -> list[LogLine]:
    """Read the log of a training up to an epoch; the work of later lines was lost, and is logged anew."""
    path = folder / "log.jsonl"
    if not path.is_file():
        return []
    with damage_at(path, hint="remove it"):
        lines = [from_json(LogLine, line, "its log") for line in path.read_bytes().splitlines()]
        return [line for line in lines if line["epoch"] <= epoch]


def write_log(folder: Path, lines: Sequence[LogLine]) -> None:
    """Write the log of a training, as JSON lines and as a table."""
    columns = list(dict.fromkeys(name for line in lines for name in line))
    rows = [columns, *([str(line.get(name, "")) for name in columns] for line in lines)]
    write_together({
        folder / "log.jsonl": "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines),
        folder / "log.csv": "".join(",".join(row) + "\n" for row in rows),
    })  # fmt: skip

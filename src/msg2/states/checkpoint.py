"""A trained model on disk: weights as safetensors, everything else as JSON; nothing that runs when it is read.

model.json           what it is: task, steps, options, widths, videos, versions, and how far training has come
best.safetensors     the weights that did best in validation
last.safetensors     the latest weights and the moments of Adam: where training goes on
log.jsonl            one line per validation
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from msg2.errors import InputError
from msg2.files import write_together
from msg2.options import SamplingOptions, StateModelOptions, TrainingOptions
from msg2.states.model import StateModel
from msg2.task import Step

FORMAT = "msg2.states/1"
_AGAIN = "train it again into another folder"


@dataclass(frozen=True, slots=True)
class Card:
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
    epoch: int = 0
    """Epochs that are done."""
    best: Mapping[str, float] = field(default_factory=dict)
    """The best validation so far: epoch, loss, accuracy."""
    stale: int = 0
    """Validations since then."""
    finished: bool = False

    def fresh_model(self) -> StateModel:
        """The model of this card, its weights drawn from the seed."""
        torch.manual_seed(self.training.seed)
        return StateModel(len(self.steps), self.frame_width, self.text_width, self.model)

    def same_training(self, other: Card) -> bool:
        """Whether the training of `other` can be taken up as this one's; where it runs may differ."""
        return _essence(self) == _essence(other)


def _essence(card: Card) -> Card:
    where = replace(card.training, device="auto", save_seconds=1.0)
    return replace(card, training=where, epoch=0, best={}, stale=0, finished=False)


def save_checkpoint(folder: Path, card: Card, last: Mapping[str, Tensor], best: Mapping[str, Tensor] | None) -> None:
    """Write the card and the tensors, all or none; `best` only where it is new."""
    document = {"format": FORMAT, **asdict(card), "versions": {name: version(name) for name in ("msg2", "torch")}}
    contents: dict[Path, str | bytes] = {folder / "last.safetensors": save(dict(last))}
    if best is not None:
        contents[folder / "best.safetensors"] = save(dict(best))
    contents[folder / "model.json"] = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
    write_together(contents)


def read_card(folder: Path) -> Card:
    """The card of the checkpoint in `folder`, checked."""
    path = folder / "model.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        hint = "make one with `msg2 states train`"
        raise InputError("is no trained model: it has no model.json", where=folder, hint=hint) from None
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InputError(f"cannot be read ({error})", where=path, hint=_AGAIN) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(f"is not a model in the format {FORMAT!r}", where=path, hint=_AGAIN)
    try:
        return Card(
            **{
                **{one.name: document[one.name] for one in fields(Card)},
                "steps": tuple(document["steps"]),
                "model": StateModelOptions(**document["model"]),
                "sampling": SamplingOptions(**document["sampling"]),
                "training": TrainingOptions(**document["training"]),
                "videos": {name: tuple(ids) for name, ids in document["videos"].items()},
            }
        )
    except (KeyError, TypeError, AttributeError, InputError) as error:
        raise InputError(f"is damaged ({error!s})", where=path, hint=_AGAIN) from error


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file."""
    try:
        return dict(load(path.read_bytes()))
    except (OSError, SafetensorError) as error:
        raise InputError(f"cannot be read ({error})", where=path, hint=_AGAIN) from error


def load_weights(model: StateModel, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Put the tensors into the model; they must be its own, every one of them."""
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise InputError(f"does not fit the model ({reason})", where=where, hint=_AGAIN) from error


def load_model(folder: Path) -> tuple[Card, StateModel]:
    """The best model of a training, ready to predict, whether or not the training has finished."""
    card = read_card(folder)
    model = card.fresh_model()
    path = folder / "best.safetensors"
    load_weights(model, read_tensors(path), path)
    return card, model.eval()


def to_json(value: Any) -> str:
    """One line of JSON."""
    return json.dumps(value, ensure_ascii=False) + "\n"

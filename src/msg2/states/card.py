"""What a trained model is and how far its training has come: plain values, every type of which is checked when read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import torch

from msg2.errors import InputError, shortened
from msg2.options import SamplingOptions, StateModelOptions, TrainingOptions
from msg2.states.model import StateModel
from msg2.task import Step


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
    data: Mapping[str, str] = field(default_factory=dict)
    """Digests of their labels and features, see `Footage.digests`."""
    encoder: Mapping[str, Any] = field(default_factory=dict)
    """The configuration of the transformer: without it, what it was loaded from would be needed for ever."""
    epoch: int = 0
    """Epochs that are done."""
    best: Mapping[str, float] = field(default_factory=dict)
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
        """The model of this card before training: its weights are pretrained, or drawn from the seed."""
        torch.manual_seed(torch_seed(self.training.seed))
        return StateModel(len(self.steps), self.frame_width, self.text_width, self.model)

    def empty_model(self) -> StateModel:
        """The model of this card for weights to be put in; needs no file, whatever its transformer was loaded from."""
        built = replace(self.model, encoder=json.dumps(dict(self.encoder))) if self.encoder else self.model
        return StateModel(len(self.steps), self.frame_width, self.text_width, built)

    def same_training(self, other: Card) -> bool:
        """Whether the training of `other` can be taken up as this one's; where it runs may differ."""
        return _essence(self) == _essence(other)


def _essence(card: Card) -> Card:
    where = replace(card.training, device="auto", save_seconds=1.0)
    return replace(card, training=where, encoder={}, epoch=0, best={}, stale=0, accuracy=None, finished=False)


def torch_seed(*numbers: int) -> int:
    """A seed for PyTorch, which takes 64 bits, of numbers of any size from 0 up."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0]) >> 1


def typed(kind: Any, value: Any, name: str) -> Any:
    """`value`, as JSON gives it, as the type `kind`; `name` is what a complaint calls it.

    >>> typed(tuple[int, ...], [1, 2], "x")
    (1, 2)
    >>> typed(int, "1", "x")
    Traceback (most recent call last):
    msg2.errors.InputError: x is '1', not of the type int
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        fitting = next((one for one in inner if _fits(one, value)), inner[0])
        return typed(fitting, value, name)
    if is_dataclass(kind) and isinstance(value, dict):
        kinds = get_type_hints(kind)
        strange = next((key for key in value if key not in kinds), None)
        if strange is not None:
            raise InputError(f"{name} has no {shortened(strange)}")
        return kind(**{key: typed(kinds[key], one, f"{name}.{key}") for key, one in value.items()})  # type: ignore[operator]
    if origin is tuple and isinstance(value, list):
        return tuple(typed(inner[0], one, f"{name}[{place}]") for place, one in enumerate(value))
    if origin is Mapping and isinstance(value, dict):
        return {key: typed(inner[1], one, f"{name}.{key}") for key, one in value.items()}
    if not _fits(kind, value):
        raise InputError(f"{name} is {shortened(str(value))}, not of the type {getattr(kind, '__name__', kind)}")
    return value


def _fits(kind: Any, value: Any) -> bool:
    """Whether a single value is of the type `kind`; true and false are no numbers, whole numbers are numbers."""
    if kind is Any:
        return True
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    return type(value) in ((int, float) if kind is float else (kind,))

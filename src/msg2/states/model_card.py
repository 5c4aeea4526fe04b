"""What a trained model is and how far its training has come: plain values, every type of which is checked when read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from msg2.errors import InputError
from msg2.states.configuration import SamplingOptions, StateModelOptions, TrainingOptions
from msg2.states.determinism import torch_seed
from msg2.states.state_model import StateModel
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

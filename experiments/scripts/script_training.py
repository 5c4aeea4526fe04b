"""Fine-tuning on scripts, with their events numbered anew in every epoch, so that numbers say nothing.

scripts.json                what was trained on what, and how far it has come
last-000003.safetensors     weights and moments of Adam after that epoch, until training ends
config.json, …              after its end: a model for `transformers`, which any T5 can be replaced by

Everything random in an epoch follows from the seed and the number of the epoch: a training that is taken up again ends
with the weights of one that was never interrupted.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from experiments.scripts.proscript import Script, to_json_lines
from experiments.scripts.script_model import CARD, ScriptModel
from experiments.scripts.script_options import ScriptOptions
from msg2.errors import InputError
from msg2.files import write_together
from msg2.options import from_json
from msg2.progress import Progress, no_progress
from msg2.states.checkpoint import read_tensors, serialize_tensors
from msg2.states.loss_and_optimizer import (
    adam_moments,
    learning_rate,
    optimizer_step,
    restore_moments,
    set_learning_rate,
    torch_seed,
)
from msg2.states.training import select_device

FORMAT = "msg2.scripts/1"
_AGAIN = "train it again into another folder"
_IGNORED_LABEL = -100
"""The label that PyTorch's cross-entropy leaves out."""


@dataclass(frozen=True, slots=True)
class ScriptTrainingCard:
    """What is trained on what, and how far it has come."""

    base: str
    """Fingerprint of the model before training."""
    scripts: str
    """Digest of the scripts."""
    options: ScriptOptions
    losses: tuple[float, ...] = ()
    """Mean loss of every epoch that is done."""
    finished: bool = False

    @property
    def last_file(self) -> str:
        """Name of the file with the weights and moments after the last epoch."""
        return f"last-{len(self.losses):06}.safetensors"

    def same_training(self, other: ScriptTrainingCard) -> bool:
        """Whether the training of `other` can be taken up as this one's; where it runs and lies may differ."""
        return _comparable(self) == _comparable(other)


def _comparable(card: ScriptTrainingCard) -> ScriptTrainingCard:
    return replace(card, options=replace(card.options, base="", device="auto"), losses=(), finished=False)


def train(
    scripts: Sequence[Script],
    folder: Path,
    options: ScriptOptions,
    progress: Progress = no_progress,
) -> ScriptTrainingCard:
    """Fine-tune a T5 model; a training that is already in the folder goes on, or is found finished.

    Parameters
    ----------
    scripts : sequence of Script
        What it learns from.
    folder : Path
        Where the model goes, and what is needed to go on after an interruption.
    options : ScriptOptions
        The base model, and how it is trained.
    progress : Progress
        Called after every epoch.

    Returns
    -------
    ScriptTrainingCard
        What was trained, with the loss of every epoch.

    Raises
    ------
    InputError
        Where the folder holds another training, the training diverges, or there is no such model or device.
    """
    device = select_device(options.device)
    held = ScriptModel(options.base)
    card = ScriptTrainingCard(held.fingerprint, hashlib.sha256(to_json_lines(scripts).encode()).hexdigest(), options)
    found = _read_card(folder, card)
    if found is not None and found.finished:
        return found
    held.model.to(device)
    optimizer = torch.optim.Adam(held.model.parameters())
    if found is not None:
        card = replace(card, losses=found.losses)
        _resume(held.model, optimizer, folder / card.last_file)
    for epoch in range(len(card.losses), options.epochs):
        loss = _train_epoch(held, optimizer, scripts, epoch, options)
        if not math.isfinite(loss):
            raise InputError("the training diverged: its loss is not a number", hint="use a lower --learning-rate")
        card = replace(card, losses=(*card.losses, loss))
        weights = {f"model.{name}": value for name, value in held.model.named_parameters()}
        _save(folder, card, {card.last_file: serialize_tensors(weights | adam_moments(held.model, optimizer))})
        progress(epoch + 1, options.epochs, f"loss {loss:.3f}")
    card = replace(card, finished=True)
    _save(folder, card, _model_files(held))
    return card


# -- an epoch ---------------------------------------------------------------------------------------------------


def _train_epoch(
    held: ScriptModel, optimizer: torch.optim.Adam, scripts: Sequence[Script], epoch: int, options: ScriptOptions
) -> float:
    """One pass over the scripts; the mean loss of its steps."""
    torch.manual_seed(torch_seed(options.seed, epoch))
    batches = list(_batches(scripts, epoch, options))
    losses = []
    held.model.train()
    for number, batch in enumerate(batches):
        done, steps = epoch * len(batches) + number, options.epochs * len(batches)
        set_learning_rate(optimizer, learning_rate(done, steps, peak=options.learning_rate, warmup=options.warmup))
        loss = optimizer_step(optimizer, held.model.parameters(), partial(_loss, held, batch, options), options.clip)
        losses.append(float(loss))
    held.model.eval()
    return float(np.mean(losses))


def _loss(held: ScriptModel, batch: list[Script], options: ScriptOptions) -> Tensor:
    loss: Tensor = held.model(**held.questions(batch), labels=_target_tokens(held, batch, options)).loss
    return loss


def _batches(scripts: Sequence[Script], epoch: int, options: ScriptOptions) -> Iterator[list[Script]]:
    """The scripts in an order of this epoch, their events in another one."""
    rng = np.random.default_rng([options.seed, epoch])
    order = rng.permutation(len(scripts)).tolist()
    for first in range(0, len(order), options.batch):
        chosen = [scripts[number] for number in order[first : first + options.batch]]
        yield [script.renumber(rng.permutation(len(script.events)).tolist()) for script in chosen]


def _target_tokens(held: ScriptModel, scripts: Sequence[Script], options: ScriptOptions) -> Tensor:
    """The tokens of the orders, shape (scripts, tokens)."""
    written = [
        torch.tensor(held.grammar(len(script.events), options).encode_edges(script.reduced_edges()))
        for script in scripts
    ]
    padded = torch.nn.utils.rnn.pad_sequence(written, batch_first=True, padding_value=_IGNORED_LABEL)
    return padded.to(held.model.device)


# -- on disk ----------------------------------------------------------------------------------------------------


def _save(folder: Path, card: ScriptTrainingCard, files: dict[str, Any]) -> None:
    """Write the files and then the card, all or none; weights of other epochs go."""
    document = json.dumps({"format": FORMAT, **asdict(card)}, ensure_ascii=False, indent=1) + "\n"
    write_together({folder / name: content for name, content in {**files, CARD: document}.items()})
    for path in folder.glob(f"last-{'[0-9]' * 6}.safetensors"):
        if path.name not in files:
            path.unlink(missing_ok=True)


def _model_files(held: ScriptModel) -> dict[str, Any]:
    """A folder that `transformers` can load: name -> content."""
    weights = save(dict(held.model.named_parameters()), metadata={"format": "pt"})
    with TemporaryDirectory() as name:
        held.tokenizer.save_pretrained(name)
        held.model.config.save_pretrained(name)
        small = {path.name: path.read_bytes() for path in sorted(Path(name).iterdir())}
    return {**small, "model.safetensors": weights}


def _read_card(folder: Path, wanted: ScriptTrainingCard) -> ScriptTrainingCard | None:
    """The card of the training in `folder`, which must be that of `wanted`; None where there is none."""
    path = folder / CARD
    if folder.exists() and not folder.is_dir():
        raise InputError("is a file, a folder is to be made there", where=folder)
    if not path.exists():
        if (folder / "config.json").exists():
            raise InputError("holds another model", where=folder, hint="choose another folder")
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
            raise InputError(f"not in the format {FORMAT!r}")
        card: ScriptTrainingCard = from_json(ScriptTrainingCard, json.dumps(document), "the card")
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise InputError(f"cannot be read ({error})", where=path, hint=_AGAIN) from error
    if not wanted.same_training(card):
        raise InputError(
            "holds another training (other scripts, options or another base)", where=folder,
            hint="choose another folder, or remove this one",
        )  # fmt: skip
    return card


def _resume(model: Any, optimizer: torch.optim.Adam, path: Path) -> None:
    """Go on from the weights and moments in a file."""
    tensors = read_tensors(path)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            value = tensors.get(f"model.{name}")
            if value is None or value.shape != parameter.shape:
                raise InputError(f"the weights {name} are missing or do not fit", where=path, hint=_AGAIN)
            parameter.copy_(value)
    restore_moments(optimizer, model, tensors, path)

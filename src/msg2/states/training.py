"""Training the state predictor (App. A): Adam, a cosine with warm-up, and a training that can be killed at any moment.

Everything random in an epoch follows from the seed and the number of the epoch, so that a training that is taken up
again ends with the weights of one that was never interrupted.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from msg2.errors import InputError, shortened
from msg2.options import SamplingOptions, StateModelOptions, TrainingOptions
from msg2.states import checkpoint
from msg2.states.batch import Batch
from msg2.states.card import Card, torch_seed
from msg2.states.footage import Footage, batch, in_batches
from msg2.states.model import StateModel, ordinal_loss, training_loss
from msg2.states.optimizer import adam, learning_rate, moments, restore, set_rate
from msg2.states.sampling import COMPLETED
from msg2.states.step import Step
from msg2.states.threads import one_thread

_log = logging.getLogger(__name__)

_ROWS = 2
"""Of which a multiple is in every batch that a CUDA graph is for: fewer shapes, for few empty rows."""
_HIDING = 7_001
"""Stream of the labels that are hidden in validation: the same in every epoch."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How a training stands after an epoch."""

    epoch: int
    epochs: int
    loss: float
    accuracy: float | None
    """Of completion, at the last validation."""


Report = Callable[[Progress], None]


def train(
    footage: Footage,
    folder: Path,
    *,
    model: StateModelOptions,
    sampling: SamplingOptions,
    training: TrainingOptions,
    report: Report = lambda _: None,
) -> Card:
    """Train a model on `footage` into `folder`; a training that is already there is taken up, or found finished."""
    device = _device(training)
    numbers = _split(footage, training)
    card = Card(
        footage.task, footage.steps, footage.frames.shape[1], footage.sentences.shape[1], model, sampling, training,
        {name: tuple(footage.clips[number].video for number in part) for name, part in numbers.items()},
        footage.digests(),
    )  # fmt: skip
    found = _found(folder, card)
    if found is not None and found.finished:
        return found
    footage = replace(footage.to(device), learnt=frozenset(card.videos["training"]))
    if found is None:
        run = _Run(card, card.fresh_model().to(device), footage, numbers, folder)
    else:
        run = _Run(found, checkpoint.empty_model(folder, found).to(device), footage, numbers, folder)
        run.take_up()
    with one_thread(not model.context):
        run.go(report)
    return run.card


def _found(folder: Path, card: Card) -> Card | None:
    """The card of the training in `folder`, which must be that of `card`; None where there is none."""
    if folder.exists() and not folder.is_dir():
        raise InputError("is a file, a folder is to be made there", where=folder)
    if not (folder / "model.json").exists():
        return None
    found = checkpoint.read_card(folder)
    if not card.same_training(found):
        raise InputError(
            "holds another training (other labels, features or options)", where=folder,
            hint="choose another folder, or remove this one",
        )  # fmt: skip
    return replace(found, training=card.training)


def _device(training: TrainingOptions) -> torch.device:
    there = torch.cuda.is_available()
    if training.device == "cuda" and not there:
        raise InputError("there is no GPU that PyTorch can use", hint="leave out --device, or use --device cpu")
    return torch.device("cuda" if there and training.device != "cpu" else "cpu")


def _split(footage: Footage, training: TrainingOptions) -> dict[str, tuple[int, ...]]:
    """The numbers of the clips for training and validation; all are for training where none is to be kept."""
    held = round(training.validation * len(footage))
    if training.validation > 0:
        if len(footage) < 2:
            what = f"task {shortened(footage.task)} has {len(footage)} video(s) with labels and features"
            raise InputError(what, hint="two are needed, one of them for validation")
        held = min(max(1, held), len(footage) - 1)
    order = np.random.default_rng(training.seed).permutation(len(footage)).tolist()
    return {"training": tuple(sorted(order[held:])), "validation": tuple(sorted(order[:held]))}


class _Run:
    """One training: what changes from step to step."""

    def __init__(
        self, card: Card, model: StateModel, footage: Footage, numbers: dict[str, tuple[int, ...]], folder: Path
    ) -> None:
        self.model, self.footage, self.numbers, self.folder = model, footage, numbers, folder
        self.card = replace(card, encoder={} if model.transformer is None else model.transformer.config)
        on_gpu = footage.frames.is_cuda
        options = card.training
        self.optimizer = adam(model, options)
        self.mixed = options.precision == "bfloat16" or (options.precision == "auto" and on_gpu)
        # Rows are as long as their longest video, on a GPU all of the same length: a CUDA graph is for one shape.
        packed = (footage.longest(card.sampling) if on_gpu else 1) if card.model.context else 0
        self.row = packed if options.row is None else options.row
        # A stream of its own, since a copy to the GPU waits for all that came before it.
        self.beside: AbstractContextManager[Any] = nullcontext()
        if on_gpu:
            self.beside = torch.cuda.stream(torch.cuda.Stream())  # type: ignore[no-untyped-call]
        # What witnesses and habits count depends on the batch, and the program would have to wait for it.
        captured = on_gpu and options.captured and not (card.model.witness or card.model.habits)
        self.multiple = _ROWS if captured and self.row else 1
        self.step = Step(model, self.optimizer, self.loss, options.clip, captured=captured)
        self.log = checkpoint.log_until(folder, card.epoch)
        self.best: dict[str, Tensor] | None = None
        # What saving costs is not known yet: weights and moments, at half a gigabyte a second.
        self.saved, self.cost = time.monotonic(), sum(weights.nbytes for weights in model.parameters()) * 3 / 5e8

    def go(self, report: Report) -> None:
        """Epoch after epoch, to the end; what is saved is always how things stand when one has ended."""
        options = self.card.training
        made = self.batches(self.card.epoch)
        while not self.card.finished:
            waiting = self.epoch(self.card.epoch, made)
            following = self.batches(self.card.epoch + 1)  # while a GPU is at work
            loss = float(waiting)
            made = following
            self.end_epoch(loss)
            try:
                report(Progress(self.card.epoch, options.epochs, loss, self.card.accuracy))
            except KeyboardInterrupt:
                self.save()
                raise
            # What is quickly saved is saved after every epoch or so.
            often = min(options.save_seconds, 20 * self.cost)
            if self.card.finished or time.monotonic() - self.saved > often:
                self.save()

    def batches(self, epoch: int) -> list[Batch]:
        """The batches of an epoch, where the model is; they hold no features, so all of them are small."""
        options = self.card.training
        seed = [options.seed, epoch]
        order = np.random.default_rng(seed).permutation(self.numbers["training"]).tolist()
        made = []
        for part in in_batches(order, options.batch):
            tokens = [self.footage.tokens(number, self.card.sampling, seed) for number in part]
            made.append(batch(self.footage, part, tokens, row=self.row, multiple=self.multiple))
        with self.beside:
            return [one.to(self.footage.frames.device) for one in made]

    def epoch(self, epoch: int, batches: Sequence[Batch]) -> Tensor:
        """One pass over the training videos; the mean loss of its steps, for which a GPU lets wait."""
        options = self.card.training
        torch.manual_seed(torch_seed(options.seed, epoch))
        losses = []
        self.model.train()
        for number, made in enumerate(batches):
            total = options.epochs * len(batches)
            set_rate(self.optimizer, learning_rate(epoch * len(batches) + number, total, options))
            losses.append(self.step(made))
        return torch.stack(losses).mean()

    def loss(self, made: Batch) -> Tensor:
        """What a step makes smaller."""
        with self._precision():
            prediction = self.model(made, self.footage.frames, self.footage.sentences)
            return training_loss(prediction, made, self.card.model) + self.model.penalty()

    def end_epoch(self, loss: float) -> None:
        """Count the epoch, validate where it is time, and see whether it was the last one."""
        if not math.isfinite(loss):
            raise InputError("the training diverged: its loss is not a number", hint="use a lower --learning-rate")
        options, epoch = self.card.training, self.card.epoch + 1
        last = epoch == options.epochs
        card = self.validated(epoch, loss) if last or epoch % options.validate_every == 0 else self.card
        impatient = options.patience is not None and card.stale >= options.patience
        self.card = replace(card, epoch=epoch, finished=last or impatient)

    def _precision(self) -> AbstractContextManager[Any]:
        if not self.mixed:
            return nullcontext()
        return torch.autocast(self.footage.frames.device.type, dtype=torch.bfloat16)

    def validated(self, epoch: int, loss: float) -> Card:
        """The card after a validation, which is logged: where it is the best one, these weights are kept."""
        scored = self._validation_scores() if self.numbers["validation"] else {"loss": loss}
        line = {"epoch": epoch, "training_loss": loss, **{f"validation_{k}": v for k, v in scored.items()}}
        self.log.append(line)
        checkpoint.write_log(self.folder, self.log)
        card = replace(self.card, accuracy=scored.get("accuracy"))
        if self.numbers["validation"] and not scored["loss"] < card.best.get("loss", math.inf):
            return replace(card, stale=card.stale + 1)
        self.best = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        return replace(card, best={"epoch": epoch, **scored}, stale=0)

    @torch.no_grad()
    def _validation_scores(self) -> dict[str, float]:
        """Over the validation videos: the loss, and how often ŝ ≥ b says completed rightly, of hidden steps."""
        chosen = self.card.model
        self.model.eval()
        total, right, counted = 0.0, 0, 0
        for made, hidden in self._validation_batches:
            with self._precision():
                scores = self.model(made, self.footage.frames, self.footage.sentences).scores.float()
            total += float(ordinal_loss(scores, made.state, made.weight, chosen.threshold, chosen.in_progress))
            asked = hidden & (made.weight > 0)
            right += int((((scores >= chosen.threshold) == (made.state == COMPLETED)) & asked).sum())
            counted += int(asked.sum())
        return {"loss": total / len(self._validation_batches), **({"accuracy": right / counted} if counted else {})}

    @cached_property
    def _validation_batches(self) -> list[tuple[Batch, Tensor]]:
        """A video per row, with (B, 1, N) which of its steps are hidden; the same in every validation."""
        options, device = self.card.training, self.footage.frames.device
        made = []
        for part in in_batches(self.numbers["validation"], options.batch):
            tokens = [self.footage.tokens(number, self.card.sampling, [options.seed, _HIDING]) for number in part]
            hidden = torch.from_numpy(np.stack([one.dropped for one in tokens]))[:, None, :]
            made.append((batch(self.footage, part, tokens).to(device), hidden.to(device)))
        return made

    def save(self) -> None:
        """Write the checkpoint."""
        began = time.monotonic()
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        if not self.card.finished:  # nobody goes on from a finished one
            tensors |= moments(self.model, self.optimizer)
        checkpoint.save_checkpoint(self.folder, self.card, tensors, self.best)
        self.best = None
        self.saved = time.monotonic()
        self.cost = self.saved - began

    def take_up(self) -> None:
        """Go on from the checkpoint in the folder."""
        path = self.folder / self.card.last_file
        tensors = checkpoint.read_tensors(path)
        weights = {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}
        checkpoint.load_weights(self.model, weights, path)
        restore(self.optimizer, self.model, tensors, path)
        _log.info("%s: going on after epoch %d of %d", self.card.task, self.card.epoch, self.card.training.epochs)

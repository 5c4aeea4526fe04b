"""Training the state predictor (App. A): Adam, a cosine with warm-up, and a training that can be killed at any moment.

Everything random in an epoch follows from the seed and the number of the epoch, so that a training that is taken up
again ends with the weights of one that was never interrupted.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
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
from msg2.states.optimizer import adam, learning_rate, moments, restore
from msg2.states.sampling import COMPLETED
from msg2.states.threads import one_thread

_log = logging.getLogger(__name__)

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
        packs = on_gpu and card.model.context
        self.row = (footage.longest(card.sampling) if packs else 0) if options.row is None else options.row
        if model.transformer is not None and (on_gpu if options.compiled is None else options.compiled):
            torch.set_float32_matmul_precision("high")
            for block in model.transformer.blocks:  # they are alike: what is compiled for one serves all
                block.compile()
        self.log = checkpoint.log_until(folder, card.epoch)
        self.best: dict[str, Tensor] | None = None
        self.saved, self.cost = time.monotonic(), 0.0

    def go(self, report: Report) -> None:
        """Epoch after epoch, to the end; what is saved is always how things stand when one has ended."""
        options = self.card.training
        with ThreadPoolExecutor(1) as ahead:  # the batches of the next epoch are made while this one is at work
            coming = ahead.submit(self.batches, self.card.epoch)
            while not self.card.finished:
                made, coming = coming.result(), ahead.submit(self.batches, self.card.epoch + 1)
                loss = self.epoch(self.card.epoch, made)
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
        """The batches of an epoch; they hold no features, so all of them are small."""
        options = self.card.training
        seed = [options.seed, epoch]
        order = np.random.default_rng(seed).permutation(self.numbers["training"]).tolist()
        made = []
        for part in in_batches(order, options.batch):
            tokens = [self.footage.tokens(number, self.card.sampling, seed) for number in part]
            made.append(batch(self.footage, part, tokens, row=self.row))
        return [one.pinned() for one in made] if self.footage.frames.is_cuda else made

    def epoch(self, epoch: int, batches: Sequence[Batch]) -> float:
        """One pass over the training videos; the mean loss of its steps."""
        options = self.card.training
        torch.manual_seed(torch_seed(options.seed, epoch))
        losses = []
        self.model.train()
        for step, waiting in enumerate(batches):
            made = waiting.to(self.footage.frames.device)
            rate = learning_rate(epoch * len(batches) + step, options.epochs * len(batches), options)
            for group in self.optimizer.param_groups:
                group["lr"] = rate * group["pace"]
            with self._precision():
                prediction = self.model(made, self.footage.frames, self.footage.sentences)
                loss = training_loss(prediction, made, self.card.model) + self.model.penalty()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), options.clip)
            self.optimizer.step()
            losses.append(loss.detach())
        return float(torch.stack(losses).mean())

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
        options, chosen = self.card.training, self.card.model
        self.model.eval()
        total, right, counted, parts = 0.0, 0, 0, 0
        for part in in_batches(self.numbers["validation"], options.batch):
            tokens = [self.footage.tokens(number, self.card.sampling, [options.seed, _HIDING]) for number in part]
            made = batch(self.footage, part, tokens).to(self.footage.frames.device)
            # Other shapes, not worth a compilation of their own.
            with torch.compiler.set_stance("force_eager"), self._precision():
                scores = self.model(made, self.footage.frames, self.footage.sentences).scores.float()
            total += float(ordinal_loss(scores, made.state, made.weight, chosen.threshold, chosen.in_progress))
            parts += 1
            hidden = torch.from_numpy(np.stack([one.dropped for one in tokens])).to(scores.device)[:, None, :]
            asked = hidden & (made.weight > 0)
            right += int((((scores >= chosen.threshold) == (made.state == COMPLETED)) & asked).sum())
            counted += int(asked.sum())
        return {"loss": total / parts, **({"accuracy": right / counted} if counted else {})}

    def save(self) -> None:
        """Write the checkpoint."""
        began = time.monotonic()
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        if not self.card.finished:  # nobody goes on from a finished one
            tensors |= moments(self.model, self.optimizer)
        best = None if self.best is None else _on_cpu(self.best)
        checkpoint.save_checkpoint(self.folder, self.card, _on_cpu(tensors), best)
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


def _on_cpu(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().cpu().contiguous() for name, value in tensors.items()}

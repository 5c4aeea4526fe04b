"""Training the state predictor (App. A): Adam, a cosine with warm-up, and a training that can be killed at any moment.

Everything random in an epoch follows from the seed and the number of the epoch, so that a training that is taken up
again ends with the weights of one that was never interrupted.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
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
from msg2.states.checkpoint import Card, load_weights, read_card, read_tensors, save_checkpoint, to_json
from msg2.states.footage import Footage, batch, in_batches
from msg2.states.model import Batch, StateModel, ordinal_loss, training_loss
from msg2.states.sampling import COMPLETED

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
    )  # fmt: skip
    footage = replace(footage.to(device), learnt=frozenset(card.videos["training"]))
    run = _Run(card, card.fresh_model().to(device), footage, numbers, folder)
    if (folder / "model.json").exists():
        run.take_up(read_card(folder))
    if not run.card.finished:
        run.go(report)
    return run.card


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
        self.card, self.model, self.footage, self.numbers, self.folder = card, model, footage, numbers, folder
        on_gpu = footage.frames.is_cuda
        options = card.training
        self.optimizer = torch.optim.Adam(_paces(model, options), fused=on_gpu)
        self.mixed = options.precision == "bfloat16" or (options.precision == "auto" and on_gpu)
        self.row = (512 if on_gpu and card.model.context else 0) if options.row is None else options.row
        if model.transformer is not None and (on_gpu if options.compiled is None else options.compiled):
            torch.set_float32_matmul_precision("high")
            model.transformer.compile(dynamic=None)
        self.best: dict[str, Tensor] | None = None
        self.saved = time.monotonic()

    def go(self, report: Report) -> None:
        """Epoch after epoch, to the end; what was reached is saved however it ends."""
        options = self.card.training
        accuracy: float | None = self.card.best.get("accuracy")
        try:
            for epoch in range(self.card.epoch, options.epochs):
                loss = self.epoch(epoch)
                self.card = replace(self.card, epoch=epoch + 1)
                if (epoch + 1) % options.validate_every == 0 or epoch + 1 == options.epochs:
                    accuracy = self.validate(epoch + 1, loss)
                report(Progress(epoch + 1, options.epochs, loss, accuracy))
                if options.patience is not None and self.card.stale >= options.patience:
                    break
                if time.monotonic() - self.saved > options.save_seconds:
                    self.save()
        except KeyboardInterrupt:
            self.save()
            raise
        self.card = replace(self.card, finished=True)
        self.save()

    def epoch(self, epoch: int) -> float:
        """One pass over the training videos; the mean loss of its steps."""
        options = self.card.training
        torch.manual_seed((options.seed << 32) + epoch)
        order = np.random.default_rng([options.seed, epoch]).permutation(self.numbers["training"]).tolist()
        losses = []
        self.model.train()
        parts = list(in_batches(order, options.batch))
        for step, made in enumerate(self._batches(parts, epoch)):
            rate = learning_rate(epoch * len(parts) + step, options.epochs * len(parts), options)
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

    def _batches(self, parts: Sequence[Sequence[int]], epoch: int) -> Iterator[Batch]:
        """The batches of an epoch, each made while the one before it is at work."""
        seed = [self.card.training.seed, epoch]

        def made(part: Sequence[int]) -> Batch:
            tokens = [self.footage.tokens(number, self.card.sampling, seed) for number in part]
            return batch(self.footage, part, tokens, absent=self.card.model.absent, row=self.row)

        with ThreadPoolExecutor(1) as ahead:
            for coming in [ahead.submit(made, part) for part in parts]:
                yield coming.result().to(self.footage.frames.device)

    def _precision(self) -> AbstractContextManager[Any]:
        if not self.mixed:
            return nullcontext()
        return torch.autocast(self.footage.frames.device.type, dtype=torch.bfloat16)

    @torch.no_grad()
    def validate(self, epoch: int, loss: float) -> float | None:
        """Loss and accuracy of completion where a share of the labels of unseen videos is hidden; logged."""
        options = self.card.training
        scored = self._validation_scores() if self.numbers["validation"] else {"loss": loss}
        line = {"epoch": epoch, "training_loss": loss, **{f"validation_{k}": v for k, v in scored.items()}}
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write(to_json(line))
        if not math.isfinite(loss):
            raise InputError("the training diverged: its loss is not a number", hint="use a lower --learning-rate")
        if scored["loss"] < self.card.best.get("loss", math.inf) or not self.numbers["validation"]:
            self.best = {name: value.detach().cpu().clone() for name, value in self.model.state_dict().items()}
            self.card = replace(self.card, best={"epoch": epoch, **scored}, stale=0)
        else:
            self.card = replace(self.card, stale=self.card.stale + 1)
        return scored.get("accuracy")

    def _validation_scores(self) -> dict[str, float]:
        """Over the validation videos: the loss, and how often ŝ ≥ b says completed rightly, of hidden steps."""
        options, chosen = self.card.training, self.card.model
        self.model.eval()
        total, right, counted, parts = 0.0, 0, 0, 0
        for part in in_batches(self.numbers["validation"], options.batch):
            tokens = [self.footage.tokens(number, self.card.sampling, [options.seed, _HIDING]) for number in part]
            made = batch(self.footage, part, tokens, absent=chosen.absent).to(self.footage.frames.device)
            with self._precision():
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
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                tensors[f"adam.{key}.{name}"] = value
        last = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        save_checkpoint(self.folder, self.card, last, self.best)
        self.best = None
        self.saved = time.monotonic()

    def take_up(self, found: Card) -> None:
        """Go on from the checkpoint in the folder."""
        if not self.card.same_training(found):
            raise InputError(
                "holds another training (other labels, features or options)", where=self.folder,
                hint="choose another folder, or remove this one",
            )  # fmt: skip
        path = self.folder / "last.safetensors"
        tensors = read_tensors(path)
        weights = {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}
        load_weights(self.model, weights, path)
        for name, parameter in self.model.named_parameters():
            found_state = {key: tensors.get(f"adam.{key}.{name}") for key in ("step", "exp_avg", "exp_avg_sq")}
            if any(value is not None for value in found_state.values()):
                self.optimizer.state[parameter] = {
                    key: value.to(parameter.device if key != "step" or parameter.is_cuda else "cpu")
                    for key, value in found_state.items()
                    if value is not None
                }
        self.card = replace(found, training=self.card.training)
        _log.info("%s: going on after epoch %d of %d", found.task, found.epoch, found.training.epochs)


def _paces(model: StateModel, options: TrainingOptions) -> list[dict[str, Any]]:
    """The parameters in groups, each with its multiple of the learning rate.

    Witnesses have few weights and start at none; the single numbers that weigh them go faster still.
    """
    witness = options.witness_rate / options.learning_rate
    groups: dict[float, list[Tensor]] = {}
    for name, parameter in model.named_parameters():
        quick = name == "bias" or name.startswith("witnesses.")
        groups.setdefault((4 * witness if parameter.numel() == 1 else witness) if quick else 1.0, []).append(parameter)
    return [{"params": parameters, "pace": pace} for pace, parameters in groups.items()]


def learning_rate(step: int, steps: int, options: TrainingOptions) -> float:
    """Linear over the warm-up, then half a cosine down to 0.

    >>> options = TrainingOptions(learning_rate=1.0, warmup=2)
    >>> [round(learning_rate(step, 6, options), 3) for step in range(6)]
    [0.5, 1.0, 1.0, 0.854, 0.5, 0.146]
    """
    warmup = min(options.warmup, steps // 2)  # a short training has a shorter warm-up
    if step < warmup:
        return options.learning_rate * (step + 1) / warmup
    return options.learning_rate * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup))) / 2

"""Train the state model (App. A): Adam, a cosine with warm-up, validation, and checkpoints to resume from.

Everything random in an epoch follows from the seed and the number of the epoch, so a resumed training ends with the
same weights as one that was never interrupted.
"""

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from msg2.errors import InputError, require
from msg2.files import locked_folder
from msg2.progress import Progress, no_progress
from msg2.states import checkpoint, loss_and_optimizer
from msg2.states.checkpoint import ModelCard, SplitName
from msg2.states.configuration import SamplingOptions, StateModelOptions, TrainingOptions
from msg2.states.dataset import COMPLETED, Batch, StateDataset, chunks, collate
from msg2.states.loss_and_optimizer import TrainStep, learning_rate, ordinal_loss, torch_seed, training_loss
from msg2.states.network import StateModel
from msg2.text import short_repr

_log = logging.getLogger(__name__)

ROW_MULTIPLE = 2  # rows of a batch that a CUDA graph is for come in multiples of this: fewer shapes, for few empty rows
_HIDING = 7_001  # random stream of the labels that are hidden in validation: the same in every epoch


@dataclass(frozen=True, slots=True)
class EpochReport:
    """The figures of an epoch of training."""

    epoch: int
    epochs: int
    loss: float
    accuracy: float | None  # of completion, at the last validation
    rate: float = 0.0
    """The learning rate at its end."""
    validation_loss: float | None = None
    """That of this epoch, if it was validated."""

    def __str__(self) -> str:
        accuracy = "" if self.accuracy is None else f", {self.accuracy:.1%} right"
        return f"loss {self.loss:.3f}{accuracy}"


EpochCallback: TypeAlias = Callable[[EpochReport], None]


def train_model(
    dataset: StateDataset,
    folder: Path,
    *,
    model: StateModelOptions,
    sampling: SamplingOptions,
    training: TrainingOptions,
    progress: Progress = no_progress,
    on_epoch: EpochCallback = lambda _: None,
) -> ModelCard:
    """Train a model into a folder; a training that is already there is resumed, or returned if it has finished."""
    device = select_device(training.device)
    card = ModelCard(
        dataset.task, dataset.steps, dataset.frames.shape[1], dataset.sentences.shape[1], model, sampling, training,
        _split_videos(dataset, training), dataset.digests(),
        streams={name: vectors.shape[1] for name, vectors in dataset.streams.items()},
    )  # fmt: skip
    earlier = _read_matching_card(folder, card)
    with locked_folder(folder):
        if earlier is not None:
            checkpoint.remove_other_epochs(folder, earlier)  # of a run that was killed before it did
        if earlier is not None and earlier.finished:
            return earlier
        dataset = replace(dataset.to(device), training_videos=frozenset(card.videos["training"]))
        network = card.fresh_model() if earlier is None else earlier.empty_model(folder)
        run = _TrainingRun(earlier or card, network.to(device), dataset, folder)
        if earlier is not None:
            run.resume()
        with loss_and_optimizer.single_thread(not model.context):
            run.run(progress, on_epoch)
    return run.card


def _read_matching_card(folder: Path, card: ModelCard) -> ModelCard | None:
    """The card of the training in `folder`, which must be that of `card`; None where there is none."""
    require(folder.is_dir() or not folder.exists(), "is a file, a folder is to be made there", where=folder)
    if not (folder / "model.json").exists():
        return None
    earlier = checkpoint.read_card(folder)
    what = "holds another training (other labels, features or options)"
    require(card.same_training(earlier), what, where=folder, hint="choose another folder, or remove this one")
    return replace(earlier, training=card.training)


def select_device(device: str) -> torch.device:
    """Select the device to train on; "auto" is a GPU where there is one."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    chosen = torch.device(device if device != "auto" else "cuda" if gpus else "cpu")
    there = {"cuda": (chosen.index or 0) < gpus, "mps": torch.backends.mps.is_available()}.get(chosen.type, True)
    hint = f"there are {gpus}, numbered from cuda:0" if gpus else "leave out --device, or use --device cpu"
    require(there, f"there is no GPU {device!r} that PyTorch can use", hint=hint)
    if chosen.index is not None:
        torch.cuda.set_device(chosen)  # where streams and CUDA graphs are
    return chosen


def _split_videos(dataset: StateDataset, training: TrainingOptions) -> dict[SplitName, tuple[str, ...]]:
    """The ids of the videos for training and validation; all are for training where none is to be kept."""
    held_out = round(training.validation * len(dataset))
    if training.validation > 0:
        what = f"task {short_repr(dataset.task)} has {len(dataset)} video(s) with labels and features"
        require(len(dataset) >= 2, what, hint="two are needed, one of them for validation")
        held_out = min(max(1, held_out), len(dataset) - 1)
    chosen = np.random.default_rng(training.seed).permutation(len(dataset))[:held_out]
    return {
        "training": tuple(video.video for number, video in enumerate(dataset.videos) if number not in chosen),
        "validation": tuple(video.video for number, video in enumerate(dataset.videos) if number in chosen),
    }


def progress_part(progress: Progress, number: int, parts: int, prefix: str = "") -> Progress:
    """Show the progress of a training as a part of several that are equally long."""

    def show(done: int, total: int | None, message: str) -> None:
        progress(number * (total or 0) + done, parts * (total or 0), prefix + message)

    return show


@contextmanager
def tensorboard_curves(folder: Path) -> Iterator[EpochCallback]:
    """Open a TensorBoard log in `folder`; yields a callback that writes the loss and accuracy of an epoch."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        what = "--tensorboard needs TensorBoard, which is not installed"
        raise InputError(what, hint="pip install tensorboard") from None
    with closing(SummaryWriter(str(folder))) as writer:

        def write(report: EpochReport) -> None:
            writer.add_scalar("training loss", report.loss, report.epoch)
            writer.add_scalar("learning rate", report.rate, report.epoch)
            if report.validation_loss is not None:
                writer.add_scalar("validation loss", report.validation_loss, report.epoch)
                if report.accuracy is not None:
                    writer.add_scalar("validation accuracy", report.accuracy, report.epoch)

        yield write


class _TrainingRun:
    """One training: what changes from step to step."""

    def __init__(self, card: ModelCard, model: StateModel, dataset: StateDataset, folder: Path) -> None:
        self.model, self.dataset, self.folder = model, dataset, folder
        places = {video.video: number for number, video in enumerate(dataset.videos)}
        self.numbers = {part: [places[video] for video in videos] for part, videos in card.videos.items()}
        self.card = replace(card, encoder={} if model.transformer is None else model.transformer.config)
        on_gpu = dataset.frames.is_cuda
        options = card.training
        self.optimizer = loss_and_optimizer.build_optimizer(model, options)
        mixed = options.precision == "bfloat16" or (options.precision == "auto" and on_gpu)
        self.precision = torch.autocast(dataset.frames.device.type, torch.bfloat16, enabled=mixed)
        # Rows are as long as their longest video, on a GPU all of the same length: a CUDA graph is for one shape.
        packed = (dataset.longest(card.sampling) if on_gpu else 1) if card.model.context else 0
        self.row = packed if options.row is None else options.row
        # A stream of its own, since a copy to the GPU waits for all that came before it.
        self.copy_stream = torch.cuda.stream(torch.cuda.Stream() if on_gpu else None)  # type: ignore[no-untyped-call]
        # Which tokens the evidence and co-occurrence models count depends on the batch: a graph would have to wait.
        captured = on_gpu and options.captured and not (card.model.evidence or card.model.cooccurrence)
        self.multiple = ROW_MULTIPLE if captured and self.row else 1
        self.step = TrainStep(model, self.optimizer, self.loss, options.clip, captured=captured)
        self.log = checkpoint.read_log(folder, card.epoch)
        self.rate = 0.0
        self.best: dict[str, Tensor] | None = None
        # What saving costs is not known yet: weights and moments, at half a gigabyte a second.
        self.saved, self.cost = time.monotonic(), sum(weights.nbytes for weights in model.parameters()) * 3 / 5e8

    def run(self, progress: Progress, on_epoch: EpochCallback) -> None:
        """Epoch after epoch, to the end; what is saved is always the state at the end of one."""
        options = self.card.training
        batches = self.training_batches(self.card.epoch)
        while not self.card.finished:
            pending = self.run_epoch(self.card.epoch, batches)
            batches = self.training_batches(self.card.epoch + 1)  # while a GPU is at work
            loss = float(pending)
            self.end_epoch(loss)
            last = self.log[-1] if self.log else {}
            validated = last.get("validation_loss") if last.get("epoch") == self.card.epoch else None
            report = EpochReport(self.card.epoch, options.epochs, loss, self.card.accuracy, self.rate, validated)
            try:
                on_epoch(report)
                progress(report.epoch, report.epochs, str(report))
            except KeyboardInterrupt:
                self.save()
                raise
            # What is quickly saved is saved after every epoch or so.
            if self.card.finished or time.monotonic() - self.saved > min(options.save_seconds, 20 * self.cost):
                self.save()

    def training_batches(self, epoch: int) -> list[Batch]:
        """The batches of an epoch."""
        seed = [self.card.training.seed, epoch]
        order = np.random.default_rng(seed).permutation(self.numbers["training"]).tolist()
        return self.batches(order, seed, self.row, self.multiple)

    @cached_property
    def validation_batches(self) -> list[Batch]:
        """A video per row, some of its labels hidden; the same in every validation."""
        return self.batches(self.numbers["validation"], [self.card.training.seed, _HIDING])

    def batches(self, numbers: Sequence[int], seed: Sequence[int], row: int = 0, multiple: int = 1) -> list[Batch]:
        """Batches of some videos, on the device of the model; they hold no features, so all of them are small."""
        batches = []
        for part in chunks(numbers, self.card.training.batch):
            tokens = [self.dataset.tokens(number, self.card.sampling, seed) for number in part]
            batches.append(collate(self.dataset, part, tokens, row=row, multiple=multiple))
        with self.copy_stream:
            return [batch.to(self.dataset.frames.device) for batch in batches]

    def run_epoch(self, epoch: int, batches: Sequence[Batch]) -> Tensor:
        """One pass over the training videos; the mean loss of its steps, which a GPU may still be computing."""
        options = self.card.training
        torch.manual_seed(torch_seed(options.seed, epoch))
        losses = []
        self.model.train()
        steps = options.epochs * len(batches)
        for number, batch in enumerate(batches, start=epoch * len(batches)):
            self.rate = learning_rate(number, steps, peak=options.learning_rate, warmup=options.warmup)
            loss_and_optimizer.set_learning_rate(self.optimizer, self.rate)
            losses.append(self.step(batch))
        return torch.stack(losses).mean()

    def loss(self, batch: Batch) -> Tensor:
        """What a step makes smaller."""
        with self.precision:
            output = self.model(batch, *self.dataset.vectors)
            return training_loss(output, batch, self.card.model) + self.model.penalty()

    def end_epoch(self, loss: float) -> None:
        """Count the epoch, validate where it is time, and see whether it was the last one."""
        if not math.isfinite(loss):
            raise InputError("the training diverged: its loss is not a number", hint="use a lower --learning-rate")
        options, epoch = self.card.training, self.card.epoch + 1
        last = epoch == options.epochs
        card = self.validate(epoch, loss) if last or epoch % options.validate_every == 0 else self.card
        impatient = options.patience is not None and card.stale >= options.patience
        self.card = replace(card, epoch=epoch, finished=last or impatient)

    def validate(self, epoch: int, loss: float) -> ModelCard:
        """The card after a validation, which is logged: where it is the best one, these weights are kept."""
        scores = self._validation_scores() if self.numbers["validation"] else {"loss": loss}
        validated = {f"validation_{name}": score for name, score in scores.items()}
        self.log.append({"epoch": epoch, "learning_rate": self.rate, "training_loss": loss, **validated})
        checkpoint.write_log(self.folder, self.log)
        card = replace(self.card, accuracy=scores.get("accuracy"))
        if self.numbers["validation"] and not scores["loss"] < card.best.get("loss", math.inf):
            return replace(card, stale=card.stale + 1)
        self.best = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        return replace(card, best={"epoch": epoch, **scores}, stale=0)

    @torch.no_grad()
    def _validation_scores(self) -> dict[str, float]:
        """Over the validation videos: the loss, and how often ŝ ≥ b says completed rightly, of hidden steps."""
        options = self.card.model
        self.model.eval()
        total, right, counted = 0.0, 0, 0
        for batch in self.validation_batches:
            with self.precision:
                scores = self.model(batch, *self.dataset.vectors).scores.float()
            total += float(ordinal_loss(scores, batch.state, batch.weight, options.threshold, options.in_progress))
            hidden = (batch.present & batch.asked).any(1, keepdim=True)  # (B, 1, N)
            asked = hidden & (batch.weight > 0)
            right += int((((scores >= options.threshold) == (batch.state == COMPLETED)) & asked).sum())
            counted += int(asked.sum())
        return {"loss": total / len(self.validation_batches), **({"accuracy": right / counted} if counted else {})}

    def save(self) -> None:
        """Write the checkpoint."""
        began = time.monotonic()
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        if not self.card.finished:  # nobody resumes a finished one
            tensors |= loss_and_optimizer.adam_moments(self.model, self.optimizer)
        checkpoint.save_checkpoint(self.folder, self.card, tensors, self.best)
        self.best, self.saved = None, time.monotonic()
        self.cost = self.saved - began

    def resume(self) -> None:
        """Go on from the checkpoint in the folder."""
        path = self.folder / self.card.last_file
        tensors = checkpoint.read_tensors(path)
        weights = {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}
        checkpoint.load_weights(self.model, weights, path)
        loss_and_optimizer.restore_moments(self.optimizer, self.model, tensors, path)
        _log.info("%s: going on after epoch %d of %d", self.card.task, self.card.epoch, self.card.training.epochs)

"""The state predictor at the paper's scale on one GPU: `python -m benchmarks.gpu` (`--smoke` for seconds on a CPU).

T5-Large (v1.1, without weights), batches of 32 videos of up to 190 frames and their delimiters, features of width 512.
A naive loop and the program's own, one improvement after the other, take the same steps in the same run; then one task
is trained from beginning to end, and the losses of its first epochs are laid beside those of the naive loop.
In TFLOP/s, "useful" counts the tokens of the videos only, "done" padding and attention between videos in a row, too.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from benchmarks.training import Epochs, Work, naive, program, synthetic, work
from msg2.states.configuration import SamplingOptions, StateModelOptions, TrainingOptions
from msg2.states.training import EpochReport, train_model

TARGET_SECONDS, TARGET_RATIO = 60.0, 7.0
"""Of one task from beginning to end, and of its epochs in the naive loop against those in the program's own."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is measured."""

    encoder: str = "t5-large"
    width: int = 512
    batch: int = 32
    full: int = 64
    """Videos of the timings: two whole batches an epoch."""
    task: int = 54
    """Videos of the task: after 15 % for validation there are 46, a batch of 32 and one of 14 an epoch."""
    epochs: int = 600
    warm: int = 6
    """Epochs before the clock is read: most shapes of batches have come twice then."""
    timed: int = 15
    curve: int = 75
    """Epochs of which the losses are compared."""
    rows: tuple[int, ...] = (216,)
    """Tokens of the packed rows."""


SMOKE = Scale("t5-tiny", width=16, batch=4, full=8, task=7, epochs=6, warm=1, timed=2, curve=4)


# -- what is measured -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Timing:
    """One loop on full batches."""

    loop: str
    videos: str
    milliseconds: float
    """Of a step."""
    first_seconds: float
    """Of the first epoch, in which libraries get ready."""
    tokens: float
    """Of a step, those of the videos."""
    useful_teraflops: float
    """Per second."""
    done_teraflops: float
    gigabytes: float
    """At the peak, on the GPU."""


def timing(loop: str, videos: str, scale: Scale, run: Callable[[], Epochs], done: Work) -> Timing:
    """Run a loop and say how long its steps took."""
    _forget()
    epochs = run()
    step = sum(epochs.seconds[scale.warm :]) / (scale.timed * (scale.full // scale.batch))
    peak = torch.cuda.max_memory_allocated() / 1e9 if torch.cuda.is_available() else 0.0
    rates = done.useful / step / 1e12, done.done / step / 1e12
    found = Timing(loop, videos, 1e3 * step, epochs.seconds[0], done.tokens, *rates, peak)
    print(f"{videos}, {loop}: {found.milliseconds:.1f} ms a step, first epoch {found.first_seconds:.1f} s", flush=True)
    return found


def _forget() -> None:
    """Nothing of one measurement is to serve the next."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def timings(scale: Scale, model: StateModelOptions) -> list[Timing]:
    """Every loop on full batches of videos of different lengths; naive and packed also on full-length videos."""
    training = TrainingOptions(
        epochs=scale.epochs, batch=scale.batch, validation=0, validate_every=scale.epochs, save_seconds=1e9
    )
    epochs = scale.warm + scale.timed
    found: list[Timing] = []
    for videos, full in (("varied lengths", False), ("full length", True)):
        held = synthetic(scale.full, scale.width, full=full)
        everything = range(len(held))
        loops: dict[str, tuple[Callable[[], Epochs], int]] = {
            "naive, float32": (partial(naive, held, everything, model, training, epochs), 0),
            "bfloat16": (partial(naive, held, everything, model, training, epochs, mixed=True), 0),
            "+ few kernels, fused Adam, features on the GPU": (
                partial(program, held, model, replace(training, captured=False, row=0), epochs), 0,
            ),
        }  # fmt: skip
        for row in scale.rows:
            packed = replace(training, row=row)
            loops[f"+ packed in rows of {row}, CUDA graphs"] = (partial(program, held, model, packed, epochs), row)
        for number, (name, (run, row)) in enumerate(loops.items()):
            if not full or number not in (1, 2):
                done = work(held, model, training, range(scale.warm, epochs), row)
                found.append(timing(name, videos, scale, run, done))
    return found


# -- one task, from beginning to end --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WholeTask:
    """One training as a user starts it, and the naive loop's first epochs beside it."""

    seconds: float
    """The making of the model, validation and checkpoints included."""
    steps: int
    first_epoch_seconds: float
    epoch_seconds: float
    """The median of the others."""
    validation_seconds: float
    """What the epochs with a validation take beyond that, all together."""
    ending_seconds: float
    """After the last epoch: the checkpoint."""
    naive_seconds: float
    """By the median of its epochs; without validation and checkpoints."""
    accuracy: float | None
    """Of completion, of hidden steps of the validation videos, at the best validation."""
    naive_losses: list[float]
    losses: list[float]
    other_losses: list[float]
    """Of the program without packing and graphs: the same batches, other draws of dropout."""


def whole_task(scale: Scale, model: StateModelOptions) -> WholeTask:
    """Train one task of `scale.task` videos with the options that are the default."""
    _forget()
    held = synthetic(scale.task, scale.width)
    training = TrainingOptions(epochs=scale.epochs, batch=scale.batch)
    stamps, losses = [time.perf_counter()], []

    def report(figures: EpochReport) -> None:
        stamps.append(time.perf_counter())
        losses.append(figures.loss)

    with TemporaryDirectory() as folder:
        card = train_model(
            held, Path(folder), model=model, sampling=SamplingOptions(), training=training, on_epoch=report
        )
        end = time.perf_counter()
    spent = np.diff(stamps)
    validated = np.arange(1, len(spent) + 1) % training.validate_every == 0
    median = float(np.median(spent[~validated]))
    steps = len(spent) * -(-len(card.videos["training"]) // training.batch)
    print(f"one task, {steps} steps: {end - stamps[0]:.1f} s, {1e3 * median:.1f} ms an epoch", flush=True)
    _forget()
    other = program(held, model, replace(training, captured=False, row=0), scale.curve)
    _forget()
    number_of = {video.video: number for number, video in enumerate(held.videos)}
    numbers = [number_of[video] for video in card.videos["training"]]
    plain = naive(held, numbers, model, training, scale.curve)
    return WholeTask(
        end - stamps[0], steps, float(spent[0]), median, float((spent[validated] - median).sum()), end - stamps[-1],
        scale.epochs * statistics.median(plain.seconds), card.best.get("accuracy"),
        plain.losses, losses[: scale.curve], other.losses,
    )  # fmt: skip


# -- what is told ---------------------------------------------------------------------------------------------------


def markdown(rows: Sequence[Timing], task: WholeTask, windows: int = 5) -> str:
    """The tables."""
    slowest = {one.videos: one.milliseconds for one in reversed(rows)}  # the naive loop comes first
    lines = [
        "| Videos | Loop | ms/step | steps/s | useful TFLOP/s | done TFLOP/s | peak GB | 1,200 steps | × naive |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
        *(
            f"| {one.videos} ({one.tokens:.0f} tokens) | {one.loop} | {one.milliseconds:.1f} | "
            f"{1e3 / one.milliseconds:.1f} | {one.useful_teraflops:.0f} | {one.done_teraflops:.0f} | "
            f"{one.gigabytes:.1f} | {1.2 * one.milliseconds:.0f} s | {slowest[one.videos] / one.milliseconds:.1f} |"
            for one in rows
        ),
        "",
        f"One task, {task.steps} steps: {task.seconds:.1f} s, naive {task.naive_seconds:.0f} s "
        f"({task.naive_seconds / task.seconds:.1f} ×). First epoch {task.first_epoch_seconds:.1f} s, then "
        f"{1e3 * task.epoch_seconds:.1f} ms each, validations {task.validation_seconds:.1f} s, "
        f"last checkpoint {task.ending_seconds:.1f} s.",
        "",
        "| Epochs | naive, float32 | the program's own | other draws of dropout |",
        "|---|--:|--:|--:|",
    ]
    for part in np.array_split(np.arange(len(task.losses)), windows):
        if len(part):
            means = (np.mean(np.take(curve, part)) for curve in (task.naive_losses, task.losses, task.other_losses))
            lines.append(f"| {part[0] + 1}-{part[-1] + 1} | {' | '.join(f'{mean:.4f}' for mean in means)} |")
    return "\n".join(lines)


def _keep(document: dict[str, Any]) -> None:
    if "OUT" in os.environ:
        Path(os.environ["OUT"], "gpu.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure everything; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="a tiny model and few steps, on any machine")
    parser.add_argument("--rows", type=int, nargs="+", default=Scale().rows, help="tokens of the packed rows to time")
    given = parser.parse_args(arguments)
    smoke = given.smoke
    if not smoke and not torch.cuda.is_available():
        parser.error("there is no GPU that PyTorch can use; --smoke needs none")
    logging.disable(logging.WARNING)
    scale = replace(SMOKE if smoke else Scale(), rows=tuple(given.rows))
    model = StateModelOptions(encoder=scale.encoder)
    rows = timings(scale, model)
    document: dict[str, Any] = {"torch": torch.__version__, "timings": [asdict(one) for one in rows]}
    _keep(document)
    task = whole_task(scale, model)
    _keep({**document, "task": asdict(task)})
    print(markdown(rows, task))
    ratio = task.naive_seconds / (scale.epochs * task.epoch_seconds)
    good = task.seconds < TARGET_SECONDS and ratio >= TARGET_RATIO
    return 0 if good or smoke else 1


if __name__ == "__main__":
    sys.exit(main())

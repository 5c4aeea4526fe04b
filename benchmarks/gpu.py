"""The state predictor at the paper's scale on one GPU: `python -m benchmarks.gpu` (`--smoke` for seconds on a CPU).

T5-Large (v1.1, without weights), batches of 32 videos of up to 190 frames and their delimiters, features of width 512.
A naive loop and the program's own, one improvement after the other, take the same steps in the same run; then one task
is trained from beginning to end, and the losses of its first epochs are laid beside those of the naive loop.

    FLOP of a step = 6 · parameters · tokens + 12 · layers · width of all heads · Σ (tokens that attend each other)²

"Useful" counts the tokens of the videos only, "done" padding and the attention between videos in a row, too.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from msg2.media.features import Features
from msg2.options import SamplingOptions, StateModelOptions, TrainingOptions
from msg2.states.footage import Footage, batch, footage, in_batches
from msg2.states.model import StateModel, training_loss
from msg2.states.training import Progress, learning_rate, train
from msg2.task import Segment, Task, Video

TARGET_SECONDS, TARGET_RATIO = 60.0, 7.0
"""Of one task from beginning to end, and of a step of the naive loop against one of the program's own."""


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
    warm: int = 3
    """Epochs before the clock is read."""
    timed: int = 15
    curve: int = 75
    """Epochs of which the losses are compared."""
    rows: tuple[int, ...] = (512,)
    """Tokens of the packed rows."""


SMOKE = Scale("t5-tiny", width=16, batch=4, full=8, task=7, epochs=6, warm=1, timed=2, curve=4)


# -- what is trained on ---------------------------------------------------------------------------------------------


def synthetic(videos: int, width: int, *, full: bool = False, steps: int = 12, seed: int = 0) -> Footage:
    """Videos of 8 to 12 steps, a frame a second; 40 to 190 labelled seconds and more, or with `full` at least 190."""
    rng = np.random.default_rng([seed, videos])
    looks, sounds = rng.normal(size=(2, steps + 1, width))
    shown, held = [], {}
    for number in range(videos):
        count = int(rng.integers(8, steps + 1))
        labelled = 400.0 if full else float(np.clip(rng.lognormal(np.log(110), 0.6), 40, 600))
        lengths = 5 + (labelled - 5 * count) * rng.dirichlet(np.full(count, 3.0))
        ends = np.cumsum(lengths + rng.uniform(1, 10, size=count))
        chosen = np.sort(rng.permutation(steps)[:count])
        spans = list(zip(chosen, ends - lengths, ends, strict=True))
        video = Video(f"v{number}", [Segment(f"step {step:02d}", *map(float, span)) for step, *span in spans])
        frames, starts = np.arange(0, ends[-1] + 5), np.arange(0, ends[-1] + 5, 3.5)
        seen, heard = (_steps_at(times, spans, steps) for times in (frames, starts))
        held[video.id] = Features(
            frames,
            looks[seen] + rng.normal(size=(len(frames), width)),
            np.stack([starts, starts + 3.5], axis=1),
            sounds[heard] + rng.normal(size=(len(starts), width)),
        )
        shown.append(video)
    return footage(Task("synthetic", [f"step {step:02d}" for step in range(steps)], shown), held.get)


def _steps_at(times: np.ndarray, spans: Sequence[tuple[int, float, float]], background: int) -> np.ndarray:
    """The step that is performed at each of the times."""
    at = np.full(len(times), background)
    for step, start, end in spans:
        at[(times >= start) & (times <= end)] = step
    return at


# -- the loops ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Epochs:
    """What a loop did: seconds and mean loss of every epoch."""

    seconds: list[float]
    losses: list[float]


class _EnoughError(Exception):
    """The epochs that were wanted are done."""


def program(held: Footage, model: StateModelOptions, training: TrainingOptions, epochs: int) -> Epochs:
    """The first epochs of the program's own loop, as `msg2 states train` goes it."""
    done = Epochs([], [])
    before = time.perf_counter()

    def report(progress: Progress) -> None:
        nonlocal before
        now = time.perf_counter()  # the loss of the epoch has been read, so the GPU is done
        done.seconds.append(now - before)
        done.losses.append(progress.loss)
        before = now
        if len(done.losses) == epochs:
            raise _EnoughError

    with TemporaryDirectory() as folder:
        try:
            train(held, Path(folder), model, SamplingOptions(), training, report)
        except _EnoughError:
            pass
    return done


def naive(
    held: Footage, numbers: Sequence[int], model: StateModelOptions, training: TrainingOptions, epochs: int,
    *, mixed: bool = False,
) -> Epochs:  # fmt: skip
    """The loop that one would write first: padded, eager, unfused Adam, features copied in every step.

    It starts from the same weights as the program's and sees the same tokens in the same order; only the draws of
    dropout differ.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_float32_matmul_precision("highest")
    torch.manual_seed(training.seed)
    predictor = StateModel(len(held.steps), held.frames.shape[1], held.sentences.shape[1], model).to(device).train()
    optimizer = torch.optim.Adam(predictor.parameters(), foreach=False, fused=False)
    precision: Callable[[], Any] = (lambda: torch.autocast(device.type, torch.bfloat16)) if mixed else nullcontext
    done = Epochs([], [])
    step = 0
    for epoch in range(epochs):
        before, losses = time.perf_counter(), []
        for _, made in _batches(held, numbers, training, epoch):
            for group in optimizer.param_groups:
                steps = training.epochs * -(-len(numbers) // training.batch)
                group["lr"] = learning_rate(step, steps, training)
            with precision():
                predicted = predictor(made.to(device), held.frames.to(device), held.sentences.to(device))
                loss = training_loss(predicted, made.to(device), model)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(predictor.parameters(), training.clip)
            optimizer.step()
            losses.append(loss.item())
            step += 1
        done.seconds.append(time.perf_counter() - before)
        done.losses.append(statistics.fmean(losses))
    return done


def _batches(
    held: Footage, numbers: Sequence[int], training: TrainingOptions, epoch: int, row: int = 0
) -> Iterator[tuple[list[int], Any]]:
    """Lengths of the videos and the batch, for every step of an epoch: the draws are those of the program."""
    order = np.random.default_rng([training.seed, epoch]).permutation(numbers).tolist()
    for part in in_batches(order, training.batch):
        tokens = [held.tokens(number, SamplingOptions(), [training.seed, epoch]) for number in part]
        yield [len(one.kind) for one in tokens], batch(held, part, tokens, row=row)


# -- what is measured -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Timing:
    """One loop on full batches."""

    loop: str
    videos: str
    milliseconds: float
    """Of a step."""
    first_seconds: float
    """Of the first epoch, in which encoders are compiled."""
    tokens: float
    """Of a step, those of the videos."""
    useful_teraflops: float
    """Per second."""
    done_teraflops: float
    gigabytes: float
    """At the peak, on the GPU."""
    task_seconds: float
    """1,200 such steps."""
    ratio: float
    """To the naive loop on the same videos."""


@dataclass(frozen=True, slots=True)
class Work:
    """A mean step of the timed epochs."""

    tokens: float
    useful: float
    """FLOP."""
    done: float


def work(held: Footage, model: StateModelOptions, training: TrainingOptions, epochs: range, row: int) -> Work:
    """What the steps of these epochs take, by the formula above."""
    with torch.device("meta"):
        predictor = StateModel(len(held.steps), held.frames.shape[1], held.sentences.shape[1], model)
    assert predictor.transformer is not None
    config = predictor.transformer.core.config
    size = sum(parameter.numel() for parameter in predictor.parameters())
    square = 12 * config.num_layers * config.num_heads * config.d_kv
    steps = []
    for epoch in epochs:
        for lengths, made in _batches(held, range(len(held)), training, epoch, row):
            rows, length = made.kind.shape
            useful = 6 * size * sum(lengths) + square * sum(one**2 for one in lengths)
            steps.append((sum(lengths), useful, 6 * size * rows * length + square * rows * length**2))
    return Work(*np.mean(steps, axis=0).tolist())


def timing(loop: str, videos: str, scale: Scale, run: Callable[[], Epochs], done: Work, before: Sequence[Timing]) -> Timing:
    """Run a loop and say how long its steps took; `before` holds the naive loop's timing on the same videos."""
    _forget()
    epochs = run()
    step = sum(epochs.seconds[scale.warm :]) / (scale.timed * (scale.full // scale.batch))
    first = next((one.milliseconds for one in before if one.videos == videos), step * 1e3)
    found = Timing(
        loop, videos, step * 1e3, epochs.seconds[0], done.tokens, done.useful / step / 1e12, done.done / step / 1e12,
        torch.cuda.max_memory_allocated() / 1e9 if torch.cuda.is_available() else 0.0, 1200 * step, first / (step * 1e3),
    )  # fmt: skip
    print(f"{videos}, {loop}: {found.milliseconds:.1f} ms a step, first epoch {found.first_seconds:.1f} s", flush=True)
    return found


def _forget() -> None:
    """Nothing of one measurement, no compiled code either, is to serve the next."""
    gc.collect()
    torch.compiler.reset()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def timings(scale: Scale, model: StateModelOptions) -> list[Timing]:
    """Every loop on full batches of videos of different lengths; the naive and the packed ones on full-length videos."""
    gpu = torch.cuda.is_available()
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
            "+ fused Adam, features on the GPU, compiled": (
                partial(program, held, model, replace(training, compiled=gpu, row=0), epochs), 0,
            ),
        }  # fmt: skip
        for row in scale.rows:
            packed = replace(training, compiled=gpu, row=row)
            loops[f"+ packed in rows of {row}"] = (partial(program, held, model, packed, epochs), row)
        for number, (name, (run, row)) in enumerate(loops.items()):
            if not full or number not in (1, 2):
                done = work(held, model, training, range(scale.warm, epochs), row)
                found.append(timing(name, videos, scale, run, done, found))
    return found


# -- one task, from beginning to end --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WholeTask:
    """One training as a user starts it, and the naive loop's first epochs beside it."""

    seconds: float
    """Compilation, validation and checkpoints included."""
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
    """Of the program without compilation and packing: the same batches, other draws of dropout."""


def whole_task(scale: Scale, model: StateModelOptions) -> WholeTask:
    """Train one task of `scale.task` videos with the options that are the default."""
    _forget()
    held = synthetic(scale.task, scale.width)
    training = TrainingOptions(epochs=scale.epochs, batch=scale.batch)
    stamps, losses = [time.perf_counter()], []

    def report(progress: Progress) -> None:
        stamps.append(time.perf_counter())
        losses.append(progress.loss)

    with TemporaryDirectory() as folder:
        card = train(held, Path(folder), model, SamplingOptions(), training, report)
        end = time.perf_counter()
    spent = np.diff(stamps)
    validated = np.arange(1, len(spent) + 1) % training.validate_every == 0
    median = float(np.median(spent[~validated]))
    steps = len(spent) * -(-len(card.videos["training"]) // training.batch)
    print(f"one task, {steps} steps: {end - stamps[0]:.1f} s, {1e3 * median:.1f} ms an epoch", flush=True)
    _forget()
    other = program(held, model, replace(training, compiled=False, row=0), scale.curve)
    _forget()
    number_of = {clip.video: number for number, clip in enumerate(held.clips)}
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
    lines = [
        "| Videos | Loop | ms/step | steps/s | useful TFLOP/s | done TFLOP/s | peak GB | 1,200 steps | × naive |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
        *(
            f"| {one.videos} ({one.tokens:.0f} tokens) | {one.loop} | {one.milliseconds:.1f} | "
            f"{1e3 / one.milliseconds:.1f} | {one.useful_teraflops:.0f} | {one.done_teraflops:.0f} | "
            f"{one.gigabytes:.1f} | {one.task_seconds:.0f} s | {one.ratio:.1f} |"
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
    good = task.seconds < TARGET_SECONDS and task.naive_seconds / task.seconds >= TARGET_RATIO
    return 0 if good or smoke else 1


if __name__ == "__main__":
    sys.exit(main())

"""Synthetic videos for the state predictor, the program's own training and a naive one, and what a step of them takes.

FLOP of a step = 6 · parameters · tokens + 12 · layers · width of all heads · Σ (tokens that attend each other)²
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from msg2.formats.feature_store import VideoFeatures
from msg2.states.checkpoint import torch_seed
from msg2.states.configuration import SamplingOptions, StateModelOptions, TrainingOptions
from msg2.states.dataset import Batch, StateDataset, build_dataset, chunks, collate
from msg2.states.loss_and_optimizer import learning_rate, training_loss
from msg2.states.network import StateModel
from msg2.states.training import EpochReport, train_model
from msg2.task import Segment, Task, Video

# -- what is trained on ---------------------------------------------------------------------------------------------


def synthetic(videos: int, width: int, *, full: bool = False, steps: int = 12, seed: int = 0) -> StateDataset:
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
        video = Video(
            f"v{number}", [Segment(f"step {step:02d}", float(since), float(end)) for step, since, end in spans]
        )
        frames, starts = np.arange(0, ends[-1] + 5), np.arange(0, ends[-1] + 5, 3.5)
        seen, heard = (_steps_at(times, spans, steps) for times in (frames, starts))
        held[video.id] = VideoFeatures(
            frames,
            looks[seen] + rng.normal(size=(len(frames), width)),
            np.stack([starts, starts + 3.5], axis=1),
            sounds[heard] + rng.normal(size=(len(starts), width)),
        )
        shown.append(video)
    return build_dataset(Task("synthetic", [f"step {step:02d}" for step in range(steps)], shown), held.get)


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


def program(held: StateDataset, model: StateModelOptions, training: TrainingOptions, epochs: int) -> Epochs:
    """The first epochs of the program's own loop, as `msg2 states train` goes it."""
    done = Epochs([], [])
    before = time.perf_counter()

    def report(figures: EpochReport) -> None:
        nonlocal before
        now = time.perf_counter()  # the loss of the epoch has been read, so the GPU is done
        done.seconds.append(now - before)
        done.losses.append(figures.loss)
        before = now
        if len(done.losses) == epochs:
            raise _EnoughError

    with TemporaryDirectory() as folder, suppress(_EnoughError):
        train_model(held, Path(folder), model=model, sampling=SamplingOptions(), training=training, on_epoch=report)
    return done


def naive(
    held: StateDataset, numbers: Sequence[int], model: StateModelOptions, training: TrainingOptions, epochs: int,
    *, mixed: bool = False,
) -> Epochs:  # fmt: skip
    """The loop that one would write first: the library's encoder, padded, unfused Adam, features copied in every step.

    It starts from the same weights as the program's and sees the same tokens in the same order; only the draws of
    dropout differ.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_float32_matmul_precision("highest")
    torch.manual_seed(torch_seed(training.seed))
    predictor = StateModel(len(held.steps), held.frames.shape[1], held.sentences.shape[1], model).to(device).train()
    t5: Any = predictor.transformer
    t5.forward = lambda vectors, mask, _: t5.core(inputs_embeds=vectors, attention_mask=mask).last_hidden_state
    optimizer = torch.optim.Adam(predictor.parameters(), foreach=False, fused=False)
    precision: Callable[[], Any] = (lambda: torch.autocast(device.type, torch.bfloat16)) if mixed else nullcontext
    done = Epochs([], [])
    step, steps = 0, training.epochs * -(-len(numbers) // training.batch)
    for epoch in range(epochs):
        before, losses = time.perf_counter(), []
        for _, made in _batches(held, numbers, training, epoch):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step, steps, peak=training.learning_rate, warmup=training.warmup)
            there = made.to(device)
            with precision():
                predicted = predictor(there, held.frames.to(device), held.sentences.to(device))
                loss = training_loss(predicted, there, model)
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
    held: StateDataset, numbers: Sequence[int], training: TrainingOptions, epoch: int, row: int = 0
) -> Iterator[tuple[list[int], Batch]]:
    """Lengths of the videos and the batch, for every step of an epoch: the draws are those of the program."""
    order = np.random.default_rng([training.seed, epoch]).permutation(numbers).tolist()
    for part in chunks(order, training.batch):
        tokens = [held.tokens(number, SamplingOptions(), [training.seed, epoch]) for number in part]
        yield [len(one.kind) for one in tokens], collate(held, part, tokens, row=row)


# -- what a step takes --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Work:
    """A mean step of the timed epochs."""

    tokens: float
    useful: float
    """FLOP."""
    done: float


def work(held: StateDataset, model: StateModelOptions, training: TrainingOptions, epochs: range, row: int) -> Work:
    """What the steps of these epochs take, by the formula above."""
    with torch.device("meta"):
        predictor = StateModel(len(held.steps), held.frames.shape[1], held.sentences.shape[1], model)
    config: Any = predictor.get_submodule("transformer.core").config
    size = sum(parameter.numel() for parameter in predictor.parameters())
    square = 12 * config.num_layers * config.num_heads * config.d_kv
    steps = []
    for epoch in epochs:
        for lengths, made in _batches(held, range(len(held)), training, epoch, row):
            rows, length = made.kind.shape
            useful = 6 * size * sum(lengths) + square * sum(one**2 for one in lengths)
            steps.append((sum(lengths), useful, 6 * size * rows * length + square * rows * length**2))
    return Work(*np.mean(steps, axis=0).tolist())

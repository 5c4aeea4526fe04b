"""How long the methods take, and how that grows with videos and steps.

Times are for `infer` on a task that is already loaded, evidence and explanations included: the best of several runs.
This kind of figure depends on the machine, so everything is also a ratio to always-before in the same run.
"""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from msg2.inference import infer
from msg2.task import Segment, Task, Video

RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "always-before": ("always-before", {"delta": 0.8}),
    "msg2": ("msg2", {"delta": 0.8}),
    "msg2, delta auto": ("msg2", {}),
    "likelihood": ("likelihood", {}),
}
BASELINE = "always-before"


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of a run, and as a multiple of the baseline."""

    run: str
    seconds: float
    ratio: float


def synthetic(steps: int, videos: int, seed: int = 0) -> Task:
    """A task whose steps come in a fixed order up to local disorder; each is left out of 30 % of the videos."""
    rng = np.random.default_rng(seed)
    names = [f"step {number:03d}" for number in range(steps)]
    segments = [Segment(name) for name in names]
    places = np.arange(steps) + rng.normal(0, steps / 12, size=(videos, steps))
    kept = rng.random((videos, steps)) < 0.7
    return Task(
        f"{steps} steps, {videos} videos",
        names,
        [
            Video(f"v{number:06d}", [segments[step] for step in order if kept[number, step]])
            for number, order in enumerate(np.argsort(places, axis=1))
        ],
    )


def seconds(tasks: Sequence[Task], run: str, repeats: int = 3) -> float:
    """The least time of `repeats` in which all tasks are learnt."""
    method, options = RUNS[run]
    times = []
    for _ in range(repeats):
        gc.collect()
        begin = time.perf_counter()
        for task in tasks:
            infer(task, method, **options)
        times.append(time.perf_counter() - begin)
    return min(times)


def timings(tasks: Sequence[Task], runs: Sequence[str] = tuple(RUNS), repeats: int = 3) -> list[Timing]:
    """Every run on the same tasks."""
    taken = {run: seconds(tasks, run, repeats) for run in runs}
    return [Timing(run, value, value / taken[BASELINE]) for run, value in taken.items()]


def growth(sizes: Sequence[int], taken: Sequence[float]) -> float:
    """The exponent e of time ~ size^e: slope of the least-squares line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(taken), 1)[0])


def peak_megabytes() -> float:
    """The most memory that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

"""How long the methods take, and how that grows with videos and steps.

Times are for `infer` on a task that is already loaded, evidence and explanations included: the best of several runs.
This kind of figure depends on the machine, so everything is also a ratio to always-before in the same run; of all
experiments it is the one whose numbers are not the same twice.
"""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.experiment_options import ExperimentOptions
from experiments.result_tables import Dot, Result, Table, Value
from msg2.inference import infer
from msg2.progress import Progress
from msg2.task import Segment, Task, Video

RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "always-before": ("always-before", {"delta": 0.8}),
    "msg2": ("msg2", {"delta": 0.8}),
    "msg2, delta auto": ("msg2", {}),
    "likelihood": ("likelihood", {}),
}
BASELINE = "always-before"
SIZES = ((25, 20), (60, 1_000), (60, 10_000), (300, 2_000))
"""(steps, videos) of the tasks."""
VIDEOS, STEPS = (1000, 2000, 4000, 8000), (20, 40, 80, 160)
"""Growth is measured over these."""


def run(data: Path | None, options: ExperimentOptions, progress: Progress) -> Result:
    """Seconds and ratios by size, and the exponents of growth.

    Parameters
    ----------
    data : Path or None
        Folder of the annotation sets; an experiment that simulates does not read it.
    options : ExperimentOptions
        What can be set.
    progress : Progress
        Shows how far the work is.

    Returns
    -------
    Result
        The tables, the facts that make them repeatable, and the chart.
    """
    rows: list[list[Value]] = []
    chart: dict[str, dict[str, Dot]] = {}
    sizes = SIZES[:1] if options.quick else SIZES
    for number, (steps, videos) in enumerate(sizes):
        progress(number, len(sizes) + 1, f"{steps} steps, {videos} videos")
        found = measure_timings([synthetic_task(steps, videos)], repeats=3 if videos < 100 else 1)
        rows += [[steps, videos, one.run, one.seconds, one.ratio] for one in found]
        chart[f"{steps} steps, {videos} videos"] = {one.run: Dot(one.seconds) for one in found}
    progress(len(sizes), len(sizes) + 1, "growth")
    exponents: list[list[Value]] = (
        [] if options.quick else [[run, *growth_exponents(run)] for run in ("msg2", BASELINE)]
    )
    return Result(
        "scale",
        [
            Table("Seconds to learn a graph", ["steps", "videos", "method", "seconds", f"times {BASELINE}"], rows,
                  ["Each step is left out of 30 % of the videos; the order is fixed up to local disorder."]),
            Table("Growth: time ~ size^e", ["method", "e for videos (40 steps)", "e for steps (1000 videos)"],
                  exponents),
        ],
        chart=chart,
    )  # fmt: skip


def growth_exponents(run: str) -> tuple[float, float]:
    """The exponents of growth with videos and with steps."""
    by_videos = growth_exponent(VIDEOS, [inference_seconds([synthetic_task(40, n)], run) for n in VIDEOS])
    return by_videos, growth_exponent(STEPS, [inference_seconds([synthetic_task(n, 1000)], run) for n in STEPS])


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of a run, and as a multiple of the baseline."""

    run: str
    seconds: float
    ratio: float


def synthetic_task(steps: int, videos: int, seed: int = 0) -> Task:
    """A task whose steps come in a fixed order up to local disorder; each is left out of 30 % of the videos.

    Parameters
    ----------
    steps : int
        How many steps.
    videos : int
        How many videos.
    seed : int
        Of everything random.

    Returns
    -------
    Task
        Without times.
    """
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


def inference_seconds(tasks: Sequence[Task], run: str, repeats: int = 3) -> float:
    """The least time of `repeats` in which all tasks are learnt.

    Parameters
    ----------
    tasks : sequence
        What is learned.
    run : str
        A name in `RUNS`.
    repeats : int
        How often it is measured.

    Returns
    -------
    float
        Seconds of the fastest repeat.
    """
    method, options = RUNS[run]
    times = []
    for _ in range(repeats):
        gc.collect()
        begin = time.perf_counter()
        for task in tasks:
            infer(task, method, **options)
        times.append(time.perf_counter() - begin)
    return min(times)


def measure_timings(tasks: Sequence[Task], runs: Sequence[str] = tuple(RUNS), repeats: int = 3) -> list[Timing]:
    """Every run on the same tasks.

    Parameters
    ----------
    tasks : sequence
        What is learned.
    runs : sequence
        Names in `RUNS`.
    repeats : int
        How often it is measured.

    Returns
    -------
    list[Timing]
        One per run.
    """
    taken = {run: inference_seconds(tasks, run, repeats) for run in runs}
    return [Timing(run, value, value / taken[BASELINE]) for run, value in taken.items()]


def growth_exponent(sizes: Sequence[int], taken: Sequence[float]) -> float:
    """The exponent e of time ~ size^e: slope of the least-squares line through the logarithms.

    Parameters
    ----------
    sizes : sequence
        Of the tasks.
    taken : sequence
        Seconds for each.

    Returns
    -------
    float
        The exponent.
    """
    return float(np.polyfit(np.log(sizes), np.log(taken), 1)[0])


def peak_megabytes() -> float:
    """The most memory that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

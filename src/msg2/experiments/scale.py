"""How long the methods take, and how that grows with videos and steps.

Times are for `infer` on a task that is already loaded, evidence and explanations included: the best of several runs.
This kind of figure depends on the machine, so everything is also a ratio to always-before in the same run; of all
experiments it is the one whose numbers are not the same twice.
"""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from msg2.experiments.tables import Cell, Dot, Result, Table
from msg2.inference import infer
from msg2.options import ExperimentOptions
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
MOST = 100_000
"""Labels of the largest task that `likelihood` learns here: it takes a hundred times as long as the others."""
VIDEOS, STEPS = (1000, 2000, 4000, 8000), (20, 40, 80, 160)
"""Growth is measured over these."""


def run(data: Path | None, options: ExperimentOptions, report: Callable[[str], None]) -> Result:
    """Seconds and ratios by size, and the exponents of growth."""
    rows: list[list[Cell]] = []
    chart: dict[str, dict[str, Dot]] = {}
    for steps, videos in SIZES[:1] if options.quick else SIZES:
        runs = [run for run in RUNS if run != "likelihood" or steps * videos <= MOST]
        report(f"{steps} steps, {videos} videos")
        found = timings([synthetic(steps, videos)], runs, repeats=3 if videos < 100 else 1)
        rows += [[steps, videos, one.run, one.seconds, one.ratio] for one in found]
        chart[f"{steps} steps, {videos} videos"] = {one.run: Dot(one.seconds) for one in found}
    report("growth")
    exponents: list[list[Cell]] = [] if options.quick else [[run, *grown(run)] for run in ("msg2", BASELINE)]
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


def grown(run: str) -> tuple[float, float]:
    """The exponents of growth with videos and with steps."""
    by_videos = growth(VIDEOS, [seconds([synthetic(40, n)], run) for n in VIDEOS])
    return by_videos, growth(STEPS, [seconds([synthetic(n, 1000)], run) for n in STEPS])


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

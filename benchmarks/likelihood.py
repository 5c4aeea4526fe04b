"""How long `likelihood` takes where orders are entangled, and how that grows: `python -m benchmarks.likelihood`.

Positions of the steps are disturbed with a spread of two places. What is timed is inference only, from arrays; each
figure is also a ratio to always-before on the same arrays in the same run. `--before FOLDER` measures the smaller sizes
with an earlier checkout of the project as well, in the same run. Fails where growth is above linear in videos (each of
which is a variant of its own here), cubic in steps, or above the power 2.5 in the activities of random processes.
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.graph_learning.process_trees import add_loops, random_tree, simulate_log
from experiments.graph_learning.runtime_scaling import growth_exponent
from experiments.process_discovery.exported_models import as_task
from msg2.inference import infer
from msg2.inference.baselines import AlwaysBeforeOptions, learn_always_before
from msg2.inference.bootstrap import bootstrap
from msg2.inference.likelihood import LikelihoodOptions, learn
from msg2.sequences import Sequences
from msg2.task import LabelColumns, Task

SIZES = ((25, 20), (60, 1_000), (60, 10_000), (60, 1_000_000), (300, 2_000))
"""(steps, videos)."""
BEFORE_SIZES = SIZES[:2]
"""Those that an earlier version learns within a minute."""
SPREAD = 2.0
"""Places by which a step is disturbed, standard deviation."""
SAMPLES = 200
VIDEOS, STEPS = (2_000, 4_000, 8_000, 16_000), (20, 40, 80, 160)
"""Growth is measured over these: of 20 steps, and of 200 videos."""
ACTIVITIES, CASES, NOISE = (100, 200, 400), 1_000, 0.05
"""Growth is measured over these, too: of random processes with choices, optional parts and loops, and CPU time."""
MOST = {"videos": 1.15, "steps": 3.0, "activities": 2.5}
"""Exponents: linear, but for noise; cubic; and less than cubic where a case has only some of the activities."""
_BLOCK = 20_000
_LEARN_ORDERS = """
import logging, sys, time
import numpy as np
from msg2.inference.likelihood import LikelihoodOptions, learn
from msg2.sequences import Sequences
from msg2.task import Segment, Task, Video

logging.disable(logging.WARNING)
orders = np.frombuffer(sys.stdin.buffer.read(), dtype=np.int16).reshape(-1, int(sys.argv[1]))
steps = [f"step {number:03d}" for number in range(orders.shape[1])]
segments = [Segment(name) for name in steps]
videos = [Video(str(number), [segments[one] for one in order]) for number, order in enumerate(orders.tolist())]
sequences = Sequences.from_task(Task("entangled", steps, videos))
begin = time.perf_counter()
learn(sequences, LikelihoodOptions())
print(time.perf_counter() - begin)
"""
"""Learns from orders that it is given, through what every version of the project has."""


def entangled_orders(steps: int, videos: int, seed: int = 0) -> NDArray[np.int16]:
    """Draw the order of the steps of every video, shape (videos, steps).

    Parameters
    ----------
    steps, videos : int
        How many.
    seed : int
        Of everything random.

    Returns
    -------
    array
        Indices of steps.
    """
    rng, orders = np.random.default_rng(seed), np.empty((videos, steps), dtype=np.int16)
    for low in range(0, videos, _BLOCK):
        part = orders[low : low + _BLOCK]
        places = np.arange(steps, dtype=np.float32) + SPREAD * rng.standard_normal(part.shape, dtype=np.float32)
        part[:] = np.argsort(places, axis=1)
    return orders


def sequences_of(orders: NDArray[np.int16]) -> Sequences:
    """Return videos that do the steps in these orders, as arrays."""
    videos, steps = orders.shape
    start = np.tile(np.arange(steps, dtype=np.float64), videos)
    names, video = tuple(map(str, range(videos))), np.repeat(np.arange(videos, dtype=np.int32), steps)
    columns = LabelColumns(names, video, orders.ravel().astype(np.int32), start, start + 1, is_timed=False)
    return Sequences.from_task(Task.from_columns("entangled", _step_names(steps), columns))


def _step_names(steps: int) -> tuple[str, ...]:
    return tuple(f"step {number:03d}" for number in range(steps))


def seconds(work: Callable[[], object], repeats: int = 1) -> float:
    """Measure the least time that some work takes.

    Parameters
    ----------
    work : callable
        What is measured.
    repeats : int
        How often.

    Returns
    -------
    float
    """
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def measure_sizes(sizes: Sequence[tuple[int, int]]) -> None:
    """Print a line for each size."""
    for steps, videos in sizes:
        sequences = sequences_of(entangled_orders(steps, videos))
        repeats = 5 if videos < 100 else 1
        taken = seconds(partial(_learn, sequences), repeats)
        usual = seconds(partial(_learn_always_before, sequences), repeats)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        ratio = f"{taken / usual:8.1f} x always-before"
        print(f"{steps:4} steps x {videos:9,} videos {taken:9.3f} s {ratio}; {peak:.2f} GB", flush=True)


def _learn(sequences: Sequences) -> None:
    learn(replace(sequences), LikelihoodOptions())  # a copy, which has nothing in its caches


def _learn_always_before(sequences: Sequences) -> None:
    learn_always_before(replace(sequences), AlwaysBeforeOptions(0.8))


def measure_bootstrap() -> None:
    """Print how long the bootstrap of the smallest size takes, with one process and with two."""
    sequences = sequences_of(entangled_orders(*SIZES[0]))
    learned = learn(sequences, LikelihoodOptions())
    assert learned.relearn is not None
    for jobs in (1, 2):
        taken = seconds(partial(bootstrap, sequences, learned.relearn, SAMPLES, 0, jobs=jobs))
        print(f"bootstrap of {SAMPLES} on {SIZES[0][0]} x {SIZES[0][1]}, {jobs} process(es) {taken:8.2f} s", flush=True)


def measure_growth() -> dict[str, float]:
    """Return the exponents of growth with videos, with steps and with activities."""

    def taken(steps: int, videos: int) -> float:
        sequences = sequences_of(entangled_orders(steps, videos))
        return seconds(partial(_learn, sequences))

    return {
        "videos": growth_exponent(VIDEOS, [taken(20, videos) for videos in VIDEOS]),
        "steps": growth_exponent(STEPS, [taken(steps, 200) for steps in STEPS]),
        "activities": growth_exponent(ACTIVITIES, [seconds_of_process(count) for count in ACTIVITIES]),
    }


def seconds_of_process(activities: int) -> float:
    """Measure the CPU time of learning from a log of a random process with so many activities, and print it."""
    rng = np.random.default_rng([activities, 5])
    tree = add_loops(random_tree(rng, (activities, activities)), rng)
    log = as_task(simulate_log(tree, CASES, NOISE, seed=1))
    begin = time.process_time()
    infer(log, absent="skipped")
    taken = time.process_time() - begin
    print(f"{activities} activities, {CASES:,} cases {taken:8.1f} s of CPU time", flush=True)
    return taken


def measure_before(checkout: Path) -> None:
    """Print what an earlier version of the project takes for the smaller sizes."""
    for steps, videos in BEFORE_SIZES:
        ran = subprocess.run(
            [sys.executable, "-c", _LEARN_ORDERS, str(steps)],
            env={**os.environ, "PYTHONPATH": str(checkout / "src")},
            input=entangled_orders(steps, videos).tobytes(),
            capture_output=True,
            check=True,
        )
        print(f"{steps:4} steps x {videos:9,} videos {float(ran.stdout):8.2f} s before, with {checkout}", flush=True)


def main() -> int:
    """Run everything; 1 where the fitted growth is above that of `MOST`."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="a checkout of an earlier version")
    parser.add_argument("--quick", action="store_true", help="the smallest size only")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    if given.before is not None:
        measure_before(given.before)
    measure_sizes(SIZES[:1] if given.quick else SIZES)
    if given.quick:
        return 0
    measure_bootstrap()
    found = measure_growth()
    for what, most in MOST.items():
        print(f"likelihood grows with {what} to the power {found[what]:.2f} (at most {most})")
    return int(any(found[what] > most for what, most in MOST.items()))


if __name__ == "__main__":
    sys.exit(main())

"""How long a live run keeps a user waiting, and whether memory stays flat: `python -m benchmarks.assistant`.

Runs of 60 steps in entangled orders, one after the other: after each step the assistant is told of it and asked what
comes next. Beside the milliseconds: their ratio to `OnlineMonitor` alone on the same runs. Every tenth run is saved and
loaded in the middle, and must go on as if it had not been. Fails where that changes an answer, where memory grows, or
where a step takes longer than `MOST_MS`.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time

import numpy as np

from benchmarks.likelihood import entangled_orders
from msg2.assist import Assistant
from msg2.assist.events import answer_event
from msg2.inference import infer
from msg2.task import Segment, Task, Video

STEPS, VIDEOS, RUNS = 60, 100, 10_000
MOST_MS = {"median": 1.0, "99th percentile": 5.0}
MOST_GROWTH_MB = 20.0
"""Of memory, from the first tenth of the runs to the last."""


def trained_assistant(steps: int = STEPS, videos: int = VIDEOS) -> Assistant:
    """Make an assistant of a task with steps in entangled orders, ready to answer.

    Parameters
    ----------
    steps, videos : int
        Sizes of the task it learns from.

    Returns
    -------
    Assistant
    """
    names = [f"step {number:02}" for number in range(steps)]
    shown = [
        Video(str(number), [Segment(names[one], 10 * place, 10 * place + 5) for place, one in enumerate(order)])
        for number, order in enumerate(entangled_orders(steps, videos).tolist())
    ]
    task = Task("entangled", names, shown)
    assistant = Assistant(infer(task, "always-before"), task)
    answer_event(assistant, {"ask": True})  # what is learned when it is first needed
    return assistant


def measure_runs(assistant: Assistant, runs: int) -> dict[str, float]:
    """Follow runs step by step.

    Parameters
    ----------
    assistant : Assistant
        Trained.
    runs : int
        How many.

    Returns
    -------
    dict
        Milliseconds per step (median and 99th percentile), the ratio of the sum to that of the monitor alone, and the
        growth of memory in megabytes.

    Raises
    ------
    AssertionError
        Where a run that was saved and loaded goes on differently.
    """
    names, tenth, memory = assistant.graph.steps, max(runs // 10, 1), 0.0
    seconds, monitor_seconds = np.empty((runs, len(names))), 0.0
    for number, order in enumerate(entangled_orders(len(names), runs, seed=1).tolist()):
        run, monitor = assistant.new_run(), assistant.new_run()._model.monitor.copy()
        for place, one in enumerate(order):
            begin = time.perf_counter()
            run.did(names[one], at=10.0 * place)
            run.next(5)
            seconds[number, place] = time.perf_counter() - begin
            if number % 10 == 0 and place == len(order) // 2:
                loaded = assistant.new_run()
                loaded.replay(json.loads(json.dumps(run.to_json()))["events"])
                assert answer_event(loaded, {"ask": True}) == answer_event(run, {"ask": True})
                run = loaded
        begin = time.perf_counter()
        for one in order:
            monitor.step(names[one])
        monitor_seconds += time.perf_counter() - begin
        if number == tenth:
            memory = _megabytes()
    return {
        "median": 1e3 * float(np.median(seconds)),
        "99th percentile": 1e3 * float(np.quantile(seconds, 0.99)),
        "ratio to the monitor alone": float(seconds.sum()) / monitor_seconds,
        "growth of memory, MB": _megabytes() - memory,
    }


def main() -> int:
    """Print the figures; exit 1 where a bound is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    runs = parser.parse_args().runs
    begin = time.perf_counter()
    assistant = trained_assistant()
    print(f"{STEPS} steps, learned from {VIDEOS} videos in {time.perf_counter() - begin:.1f} s")
    found = measure_runs(assistant, runs)
    print(f"{runs:,} runs of {STEPS} steps, each step told and the next five asked for:")
    for what, value in found.items():
        print(f"  {what}: {value:.3f}{' ms' if what in MOST_MS else ''}")
    kept = all(found[what] <= most for what, most in MOST_MS.items())
    return 0 if kept and found["growth of memory, MB"] <= MOST_GROWTH_MB else 1


def _megabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())

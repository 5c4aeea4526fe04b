"""How long a live run keeps a user waiting, and whether memory stays flat: `python -m benchmarks.assistant`.

Runs of 60 steps in entangled orders, one after the other: each step is told (`did`) and the next five are asked for; a
recogniser reports it (`saw`, 25 classes); or a stream of frames shows it (`observe`, 5 Hz). Times are CPU time per
call. Every tenth run is saved and loaded in the middle, and must go on as if it had not been. Fails where that changes
an answer, where memory grows from run to run, or where a figure is above its bound.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.likelihood import entangled_orders
from msg2.assist import Assistant
from msg2.assist.assistant import GraphSource
from msg2.assist.events import answer_event
from msg2.inference import infer
from msg2.task import Segment, Task, Video

STEPS, VIDEOS, RUNS = 60, 100, 10_000
CLASSES = 25
"""That a recogniser reports at once."""
FRAMES_PER_SECOND = 5
MOST_MS = {"did + next": 1.0, "saw": 3.0, "observe": 2.0}
"""Milliseconds at the median; three times as many at the 99th percentile."""
MOST_START_SECONDS = {"learning": 1.0, "from a saved model": 0.05}
"""CPU time until an assistant answers, scipy.optimize being imported already."""
LONG_RUN, MOST_LONG_RUN_MB = 100_000, 100.0
"""Events of a very long run, and the memory that it may take."""
MOST_RUN_MB = 1.0
"""Of memory that one run takes."""
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
        Video(str(number), [Segment(names[index], 10 * place, 10 * place + 5) for place, index in enumerate(order)])
        for number, order in enumerate(entangled_orders(steps, videos).tolist())
    ]
    task = Task("entangled", names, shown)
    return _started(infer(task, "always-before"), task)[0]


def _started(graph: GraphSource, videos: Task | None = None) -> tuple[Assistant, float]:
    """An assistant that has learned all it needs, and the CPU seconds that this took."""
    begin = time.process_time()
    assistant = Assistant(graph, videos)
    answer_event(assistant, {"ask": True})  # what is learned when it is first needed
    return assistant, time.process_time() - begin


def measure_starts(assistant: Assistant) -> dict[str, float]:
    """CPU seconds until an assistant of the same graph and videos answers: learning, or from a saved model."""
    with TemporaryDirectory() as folder:
        assistant.save_model(file := Path(folder, "model.json"))
        from_file = [_started(file)[1] for _ in range(3)]
    return {"learning": _started(assistant.graph, assistant._model.videos)[1], "from a saved model": min(from_file)}


def measure_long_run(assistant: Assistant, events: int = LONG_RUN) -> dict[str, float]:
    """Megabytes that one run of very many events takes, without and with a log on disk."""
    names, found = assistant.graph.steps, {}
    with TemporaryDirectory() as folder:
        for title, log in (("in memory", None), ("with a log on disk", Path(folder, "run.jsonl"))):
            run = assistant.new_run(log)
            tracemalloc.start()
            for number in range(events):
                run.did(names[number % len(names)], at=float(number), id=str(number))
            found[title] = tracemalloc.get_traced_memory()[1] / 2**20
            tracemalloc.stop()
    return found


def measure_runs(assistant: Assistant, runs: int, noisy: int = 20) -> dict[str, float]:
    """Follow runs step by step.

    Parameters
    ----------
    assistant : Assistant
        Trained.
    runs : int
        How many are told.
    noisy : int
        How many are seen by a recogniser, and how many in frames.

    Returns
    -------
    dict
        CPU milliseconds per call (median and 99th percentile) of each kind, the memory of a run and its growth from run
        to run, in megabytes.

    Raises
    ------
    AssertionError
        Where a run that was saved and loaded goes on differently.
    """
    names, tenth, memory = assistant.graph.steps, max(runs // 10, 1), 0.0
    told = []
    for number, order in enumerate(entangled_orders(len(names), runs, seed=1).tolist()):
        run = assistant.new_run()
        for place, step in enumerate(order):
            begin = time.process_time()
            run.did(names[step], at=10.0 * place)
            run.next(5)
            told.append(time.process_time() - begin)
            if number % 10 == 0 and place == len(order) // 2:
                loaded = assistant.new_run()
                loaded.replay(json.loads(json.dumps(run.to_json()))["events"])
                assert answer_event(loaded, {"ask": True}) == answer_event(run, {"ask": True})
                run = loaded
        if number == tenth:
            memory = _megabytes()
    growth = _megabytes() - memory
    orders = entangled_orders(len(names), noisy, seed=2).tolist()
    found = {"did + next": told, "saw": _seen(assistant, orders), "observe": _observed(assistant, orders)}
    figures = {}
    for kind, seconds in found.items():
        figures[f"{kind}: median"] = 1e3 * float(np.median(seconds))
        figures[f"{kind}: 99th percentile"] = 1e3 * float(np.quantile(seconds, 0.99))
    return {**figures, "memory of a run, MB": _run_megabytes(assistant, orders[0]), "growth of memory, MB": growth}


def _seen(assistant: Assistant, orders: list[list[int]]) -> list[float]:
    """CPU seconds of each `saw`: the right step with 70 %, the rest spread over others."""
    names, rng, seconds = assistant.graph.steps, np.random.default_rng(0), []
    classes = min(CLASSES, len(names))
    for order in orders:
        run = assistant.new_run()
        for place, step in enumerate(order):
            others = rng.permutation([other for other in range(len(names)) if other != step])[: classes - 1]
            report = {names[step]: 0.7} | {names[other]: 0.25 / (classes - 1) for other in others.tolist()}
            begin = time.process_time()
            run.saw(report, at=10.0 * place)
            seconds.append(time.process_time() - begin)
    return seconds


def _observed(assistant: Assistant, orders: list[list[int]]) -> list[float]:
    """CPU seconds of each `observe`; a step lasts five seconds, and so does the pause after it."""
    names, seconds = assistant.graph.steps, []
    for order in orders:
        run = assistant.new_run()
        for frame in range(10 * FRAMES_PER_SECOND * len(order)):
            place, within = divmod(frame, 10 * FRAMES_PER_SECOND)
            shown = {names[order[place]]: 0.8} if within < 5 * FRAMES_PER_SECOND else {}
            begin = time.process_time()
            run.observe(shown, at=frame / FRAMES_PER_SECOND)
            seconds.append(time.process_time() - begin)
    return seconds


def _run_megabytes(assistant: Assistant, order: list[int]) -> float:
    """The memory that a run takes once it is over, beside what all runs share; it was run before."""
    names = assistant.graph.steps

    def follow() -> Assistant:
        run = assistant.new_run()
        for place, step in enumerate(order):
            run.saw({names[step]: 0.9}, at=10.0 * place)
        return run

    follow()  # what is remembered for all runs
    tracemalloc.start()
    kept = [follow() for _ in range(4)]
    size = tracemalloc.get_traced_memory()[0] / len(kept)
    tracemalloc.stop()
    return size / 2**20


def main() -> int:
    """Print the figures; exit 1 where a bound is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--noisy", type=int, default=20)
    chosen = parser.parse_args()
    assistant = trained_assistant()
    print(f"{STEPS} steps, learned from {VIDEOS} videos:")
    starts, long_run = measure_starts(assistant), measure_long_run(assistant)
    for what, seconds in starts.items():
        print(f"  start, {what}: {seconds:.3f} s")
    for what, megabytes in long_run.items():
        print(f"  {LONG_RUN:,} events, {what}: {megabytes:.1f} MB")
    found = measure_runs(assistant, chosen.runs, chosen.noisy)
    print(
        f"{chosen.runs:,} runs told, {chosen.noisy} seen by a recogniser, {chosen.noisy} in frames; {STEPS} steps each:"
    )
    for what, value in found.items():
        print(f"  {what}: {value:.3f}{'' if what.endswith('MB') else ' ms'}")
    broken = [
        what
        for kind, most in MOST_MS.items()
        for what, bound in ((f"{kind}: median", most), (f"{kind}: 99th percentile", 3 * most))
        if found[what] > bound
    ]
    broken += [f"start, {what}" for what, most in MOST_START_SECONDS.items() if starts[what] > most]
    broken += [f"{LONG_RUN:,} events, {what}" for what, size in long_run.items() if size > MOST_LONG_RUN_MB]
    broken += ["memory of a run, MB"] * (found["memory of a run, MB"] > MOST_RUN_MB)
    broken += ["growth of memory, MB"] * (found["growth of memory, MB"] > MOST_GROWTH_MB)
    print(f"above its bound: {', '.join(broken)}" if broken else "all within bounds")
    return 1 if broken else 0


def _megabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())

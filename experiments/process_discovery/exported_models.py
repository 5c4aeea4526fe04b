"""Whether exported models allow what their graphs allow: replayed by pm4py, in an environment of its own.

From 1,000 cases of random processes, with loops and without, a graph is learned and written as PNML, BPMN and POWL.
Other cases that `check` finds no mistake in are replayed on each of them, and the precision is that of the same cases.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import numpy as np

from experiments.experiment_options import ExperimentOptions
from experiments.graph_learning.inductive_miner import ask_pm4py, find_pm4py, pm4py_version
from experiments.graph_learning.process_trees import Trace, add_loops, random_tree, simulate_log
from experiments.result_tables import Result, Table, Value
from msg2.assist import check
from msg2.errors import InputError
from msg2.graph import SubtaskGraph
from msg2.inference import infer
from msg2.progress import Progress
from msg2.task import Segment, Task, Video

SUFFIXES = (".pnml", ".bpmn", ".powl")
CASES, REPLAYED = 1000, 50


def run(data: Path | None, options: ExperimentOptions, progress: Progress) -> Result:
    """Export and replay the models of some random processes."""
    python = find_pm4py()
    if python is None:
        what = "the models are replayed by pm4py, which is not there"
        raise InputError(what, hint="name an environment with it in MSG2_PM4PY")
    rows: list[list[Value]] = []
    for loops in (False, True):
        questions, seeds = [], range(2 if options.quick else options.random_worlds // 2)
        with TemporaryDirectory() as folder:
            for seed in seeds:
                progress(seed + loops * len(seeds), 2 * len(seeds), "")
                graph, accepted = learn(seed, loops=loops)
                for suffix in SUFFIXES:
                    file = graph.show(Path(folder, f"{seed}{suffix}"))
                    questions.append({"file": str(file), "traces": accepted})
            answers = ask_pm4py(python, "replay", questions)
        for place, suffix in enumerate(SUFFIXES):
            own = answers[place :: len(SUFFIXES)]
            fit = fmean(fits for answer in own for fits in answer["fit"])
            precision = fmean(answer["precision"] for answer in own)
            rows.append(["with loops" if loops else "without loops", suffix[1:].upper(), 100 * fit, precision])
    table = Table(
        "Exported models, replayed by pm4py",
        ["processes", "format", "cases that fit, percent of those that the graph accepts", "precision"],
        rows,
        [f"{len(seeds)} processes of each kind; up to {REPLAYED} cases of each, none of them learned from."],
    )
    return Result("exported-models", [table], {"pm4py": pm4py_version(python), "seeds": len(seeds)})


def learn(seed: int, *, loops: bool) -> tuple[SubtaskGraph, list[Trace]]:
    """Learn the graph of a random process, and find new cases that it accepts."""
    tree = random_tree(np.random.default_rng([seed, 5]))
    tree = add_loops(tree, np.random.default_rng([seed, 6])) if loops else tree
    log = simulate_log(tree, CASES + REPLAYED, 0.0, seed)
    graph = infer(as_task(log[:CASES]))
    new = as_task(log[CASES:])
    accused = {mistake.video for mistake in check(graph, new).mistakes if mistake.probability >= 0.5}
    return graph, [trace for video, trace in zip(new, log[CASES:], strict=True) if video.id not in accused]


def as_task(log: list[Trace]) -> Task:
    """The cases of a log as runs without times."""
    videos = [Video(f"{number:05d}", map(Segment, trace)) for number, trace in enumerate(log)]
    return Task("log", sorted({step for trace in log for step in trace}), videos, "skipped")

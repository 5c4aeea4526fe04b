"""Kinds of pairs where clocks are coarse and events simultaneous: which are right, of those that the times can tell.

A pair can be told apart where at least half of the cases with both activities have them at different times.
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from pathlib import Path

from experiments.experiment_options import ExperimentOptions
from experiments.graph_learning.kind_suite import DEVELOPMENT, tree_log
from experiments.process_discovery.true_statements import CLOCKS, on_clock
from experiments.result_tables import Result, Table, Value
from msg2.inference import infer
from msg2.progress import Progress
from msg2.task import Task

TIES = (0.0, 0.2, 0.6)
CASES, NOISE = 1000, 0.05


def run(data: Path | None, options: ExperimentOptions, progress: Progress) -> Result:
    """Learn from the logs of random processes on every clock, with every share of simultaneous events."""
    trees = DEVELOPMENT.trees[: 2 if options.quick else options.random_worlds]
    rows: list[list[Value]] = []
    for ties in TIES:
        shares: list[Value] = []
        for clock in CLOCKS.values():
            progress(len(rows) * len(CLOCKS) + len(shares) // 2, len(TIES) * len(CLOCKS), "")
            found = [_right(seed, clock, ties) for seed in trees]
            right, told, pairs = (sum(column) for column in zip(*found, strict=True))
            shares += [100 * right / told, 100 * told / pairs]
        rows.append([f"{ties:.0%}", *shares])
    columns = ["events that come with the one before", *(c for name in CLOCKS for c in (name, f"{name}, told"))]
    notes = [f"{len(trees)} processes, {CASES:,} cases, 5 % noise; the pairs that the times can tell, of all."]
    table = Table("Kinds of pairs that are right, percent, by clock", columns, rows, notes)
    return Result("kinds-ties", [table], {"seeds": list(trees)})


def _right(seed: int, clock: int, ties: float) -> tuple[int, int, int]:
    """The pairs whose kind is right, those that the times tell apart, and all."""
    log = tree_log(seed, CASES, NOISE)
    task = on_clock(log.traces, clock, ties, seed)
    graph = infer(task.with_first_labels())
    pairs = list(permutations(log.seen, 2))
    unclear = _unclear_pairs(task)
    told = [pair for pair in pairs if pair not in unclear]
    return sum(graph.kind(*pair) == log.kinds[pair] for pair in told), len(told), len(pairs)


def _unclear_pairs(task: Task) -> set[tuple[str, str]]:
    """The pairs that most cases with both have at the same time."""
    same: Counter[tuple[str, str]] = Counter()
    both: Counter[tuple[str, str]] = Counter()
    for video in task.with_first_labels():
        for one, other in permutations(video.segments, 2):
            both[one.step, other.step] += 1
            same[one.step, other.step] += one.start == other.start
    return {pair for pair, count in both.items() if same[pair] > count / 2}

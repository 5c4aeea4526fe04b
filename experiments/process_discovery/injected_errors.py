"""Whether `check` finds errors that were put into cases of random processes, beside DECLARE and the inductive miner.

From 1,000 cases, of which one in twenty is disturbed, each row learns a model. Other cases come in pairs: as they are,
and with an event skipped, two neighbours swapped, an event repeated, a foreign event, or the end cut off. An error is
*detectable* where the process could not have made the changed case; one that it could have made counts as no error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.experiment_options import ExperimentOptions
from experiments.graph_learning.inductive_miner import ask_pm4py, find_pm4py, mined_fitness, pm4py_version
from experiments.graph_learning.process_trees import (
    ProcessTree,
    Trace,
    accepts,
    add_loops,
    random_tree,
    sample_trace,
    simulate_log,
)
from experiments.process_discovery.exported_models import as_task
from experiments.result_tables import Result, Table, Value
from msg2.assist import check
from msg2.inference import infer
from msg2.progress import Progress

ERRORS = ("skip", "swap", "duplicate", "foreign", "early stop")
CASES, NOISE, TESTED = 1000, 0.05, 100
OURS, DECLARE, MINER = "check", "DECLARE", "inductive miner and token replay"
_FOREIGN = "foreign step"


def run(data: Path | None, options: ExperimentOptions, progress: Progress) -> Result:
    """Count errors that are found, and cases that are accused for nothing."""
    python, seeds = find_pm4py(), range(2 if options.quick else options.random_worlds)
    counts: dict[tuple[str, bool], Counter[tuple[str, str]]] = {}
    for loops in (False, True):
        for seed in seeds:
            progress(seed + loops * len(seeds), 2 * len(seeds), "")
            tree = random_tree(np.random.default_rng([seed, 5]))
            tree = add_loops(tree, np.random.default_rng([seed, 6])) if loops else tree
            log, (kinds, traces) = simulate_log(tree, CASES, NOISE, seed), draw_cases(tree, seed)
            for row, flags in judge_all(log, traces, python).items():
                found = counts.setdefault((row, loops), Counter())
                for kind, flagged in zip(kinds, flags, strict=True):
                    found[kind, "flagged" if flagged else "passed"] += 1
    tables = [_table(counts, loops, len(seeds)) for loops in (False, True)]
    return Result("injected-errors", tables, {"pm4py": None if python is None else pm4py_version(python)})


def draw_cases(tree: ProcessTree, seed: int) -> tuple[list[str], list[Trace]]:
    """Draw cases, each as it is and with one error; the kind is "none" where the process could have made the case."""
    rng = np.random.default_rng([seed, 8])
    kinds: list[str] = []
    traces: list[Trace] = []
    for number in range(TESTED):
        trace, kind = sample_trace(tree, rng), ERRORS[number % len(ERRORS)]
        wrong = inject(trace, kind, rng)
        traces += [trace, wrong]
        kinds += ["none", "none" if accepts(tree, wrong) else kind]
    return kinds, traces


def inject(trace: Trace, kind: str, rng: np.random.Generator) -> Trace:
    """The trace with an error of a kind at a random place, or as it is where it is too short."""
    place = int(rng.integers(max(len(trace) - (kind == "swap"), 1)))
    head, tail = trace[:place], trace[place:]
    match kind:
        case "skip":
            return head + tail[1:]
        case "swap":
            return (*head, *tail[1::-1], *tail[2:])
        case "duplicate":
            return head + tail[:1] + tail
        case "foreign":
            return (*head, _FOREIGN, *tail)
    return head or trace[:1]


def judge_all(log: list[Trace], traces: list[Trace], python: Path | None) -> Mapping[str, Sequence[bool]]:
    """Learn every row's model of a log, and say which cases it finds something wrong with."""
    tested = as_task(traces)
    accused = set(check(infer(as_task(log)), tested).accused)
    rows = {OURS: [video.id in accused for video in tested]}
    if python is not None:
        rows[DECLARE] = ask_pm4py(python, "rules", {"log": log, "traces": traces})
        for threshold in (0.0, 0.2):
            fitness = mined_fitness(log, threshold, traces, 0, python).replay
            rows[f"{MINER}, noise {threshold:g}"] = [fit < 1 for fit in fitness]
    return rows


def _table(counts: Mapping[tuple[str, bool], Counter[tuple[str, str]]], loops: bool, processes: int) -> Table:
    rows: list[list[Value]] = []
    for (row, with_loops), found in counts.items():
        if with_loops == loops:
            hits = {kind: found[kind, "flagged"] for kind in ERRORS}
            all_of = {kind: hits[kind] + found[kind, "passed"] for kind in ERRORS}
            flagged = sum(hits.values())
            precision = flagged / max(flagged + found["none", "flagged"], 1)
            recalls = [hits[kind] / all_of[kind] if all_of[kind] else None for kind in ERRORS]
            rows.append([row, precision, flagged / max(sum(all_of.values()), 1), *recalls])
    columns = ["row", "precision", "recall", *ERRORS]
    notes = [f"{processes} processes; recall of detectable errors, in all and by kind, of whole cases."]
    return Table(f"Injected errors, processes {'with' if loops else 'without'} loops", columns, rows, notes)

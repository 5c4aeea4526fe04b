"""What pm4py's inductive miner finds in a log: run by `python -m experiments kinds`, in an environment of its own.

    python benchmarks/pm4py_peer.py LOGS.json TREES.json

pm4py has a licence (AGPL) that msg2 does not, and is never a dependency: this file is the only one that imports it, it
imports nothing of msg2, and the two exchange plain JSON. LOGS.json is {"thresholds": [...], "logs": [[[activity, ...],
...], ...]}. TREES.json is a list per log, of {"tree": ..., "seconds": ...} per threshold. A tree is an activity, null
(nothing is done) or [operator, child, ...] with pm4py's own signs for operators.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path

import pm4py
from pm4py.objects.log.obj import Event, EventLog, Trace


def event_log(traces: list[list[str]]) -> EventLog:
    """Return the log as pm4py has it; cases without an event stay in it."""
    return EventLog([Trace([Event({"concept:name": name}) for name in trace]) for trace in traces])


def as_json(tree: pm4py.ProcessTree) -> object:
    """Return a process tree as nested lists."""
    return tree.label if tree.operator is None else [tree.operator.value, *map(as_json, tree.children)]


def mine(log: EventLog, threshold: float) -> dict[str, object]:
    """Mine a log.

    Parameters
    ----------
    log : EventLog
        The cases.
    threshold : float
        Noise threshold of the inductive miner: 0 is the plain one, above 0 it is "infrequent".

    Returns
    -------
    dict
        The tree, and the seconds that it took.
    """
    begun = time.perf_counter()
    tree = pm4py.discover_process_tree_inductive(log, noise_threshold=threshold)
    return {"tree": as_json(tree), "seconds": time.perf_counter() - begun}


def main() -> None:
    """Mine every log at every threshold."""
    logs_file, trees_file = map(Path, sys.argv[1:])
    warnings.simplefilter("ignore")  # that logs should be data frames, which know no empty case
    given = json.loads(logs_file.read_text(encoding="utf-8"))
    trees = [[mine(log, threshold) for threshold in given["thresholds"]] for log in map(event_log, given["logs"])]
    trees_file.write_text(json.dumps(trees), encoding="utf-8")


if __name__ == "__main__":
    main()

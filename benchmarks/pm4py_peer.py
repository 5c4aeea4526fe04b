"""What pm4py's inductive miner finds in a log, and how well traces fit that: run in an environment of its own.

    python benchmarks/pm4py_peer.py trees LOGS.json TREES.json            for `python -m experiments kinds`
    python benchmarks/pm4py_peer.py fitness TRACES.json FITNESS.json      for `python -m experiments contest`
    python benchmarks/pm4py_peer.py models MODELS.json ACCEPTED.json      for the tests of BPMN and PNML
    python benchmarks/pm4py_peer.py replay MODELS.json REPLAYED.json      for `python -m experiments exported-models`
    python benchmarks/pm4py_peer.py rules RULES.json BROKEN.json          for `python -m experiments injected-errors`
    python benchmarks/pm4py_peer.py follows FILES.json FOLLOWS.json       for tests/drawing/directly_follows.json

pm4py has a licence (AGPL) that msg2 does not, and is never a dependency: this file is the only one that imports it, it
imports nothing of msg2, and the two exchange plain JSON. LOGS.json is {"thresholds": [...], "logs": [[[activity, ...],
...], ...]}. TREES.json is a list per log, of {"tree": ..., "seconds": ...} per threshold. A tree is an activity, null
(nothing is done) or [operator, child, ...] with pm4py's own signs for operators.

TRACES.json is {"thresholds": [...], "log": [[activity, ...], ...], "traces": [[activity, ...], ...], "aligned": N}.
FITNESS.json is a list per threshold, of {"seconds": ..., "replay": [...], "replay_seconds": ..., "alignment": [...],
"alignment_seconds": ...}: the seconds of mining; the fitness of each trace by token replay; and that of the first N of
them by alignments, null where one takes longer than `ALIGN_SECONDS`.

MODELS.json is a list of {"file": ..., "traces": [[activity, ...], ...]}, the file BPMN, PNML or POWL. ACCEPTED.json is
a list per file: whether the model allows each trace, by alignments. REPLAYED.json is a list per file, of {"fit": [...],
"precision": ...}, by token replay.

RULES.json is {"log": [[activity, ...], ...], "traces": [[activity, ...], ...]}; BROKEN.json says of each trace whether
it breaks a rule that DECLARE finds in the log.

FILES.json is a list of XES files. FOLLOWS.json is {stem: [[activity, activity, times], ...]}, null before the first and
after the last activity; of events that start and complete, those that complete count.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path

import pm4py
from pm4py.algo.conformance.alignments.petri_net import algorithm as alignment
from pm4py.objects.log.obj import Event, EventLog, Trace
from pm4py.objects.powl.parser import parse_powl_model_string

ALIGN_SECONDS = 5
"""For one trace, at most: on models of noisy logs some do not end within an hour."""


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


def fitness(log: EventLog, threshold: float, traces: list[list[str]], aligned: int) -> dict[str, object]:
    """Mine a log and say how well traces fit the model.

    Parameters
    ----------
    log : EventLog
        The cases to learn from.
    threshold : float
        As in `mine`.
    traces : list of list of str
        The traces to judge.
    aligned : int
        So many of them, the first ones, are aligned with the model as well, which takes long.

    Returns
    -------
    dict
        Fitness by replay and by alignment, and the seconds of each.
    """
    begun = time.perf_counter()
    net = pm4py.discover_petri_net_inductive(log, noise_threshold=threshold)
    mined = time.perf_counter()
    replayed = pm4py.conformance_diagnostics_token_based_replay(event_log(traces), *net)
    replay_end = time.perf_counter()
    limit = {alignment.Parameters.PARAM_MAX_ALIGN_TIME_TRACE: ALIGN_SECONDS}
    alignments = alignment.apply(event_log(traces[:aligned]), *net, parameters=limit) if aligned else []
    return {
        "seconds": mined - begun,
        "replay": [one["trace_fitness"] for one in replayed],
        "replay_seconds": replay_end - mined,
        "alignment": [None if one is None else -one["cost"] for one in alignments],
        "alignment_seconds": time.perf_counter() - replay_end,
    }


def mine_all(given: dict[str, list]) -> list[object]:
    """Mine every log at every threshold."""
    return [[mine(log, threshold) for threshold in given["thresholds"]] for log in map(event_log, given["logs"])]


def judge_all(given: dict[str, list]) -> list[object]:
    """Judge the traces by the model of each threshold."""
    log = event_log(given["log"])
    return [fitness(log, threshold, given["traces"], given["aligned"]) for threshold in given["thresholds"]]


def read_net(file: str) -> tuple:
    """Read BPMN, PNML or POWL as a Petri net with its first and its last marking."""
    if file.endswith(".bpmn"):
        return pm4py.convert_to_petri_net(pm4py.read_bpmn(file))
    if file.endswith(".powl"):
        return pm4py.convert_to_petri_net(parse_powl_model_string(Path(file).read_text(encoding="utf-8")))
    return pm4py.read_pnml(file)


def replay(file: str, traces: list[list[str]]) -> dict[str, object]:
    """Replay traces on a model: whether each one fits, and how precise the model is on them all."""
    net, log = read_net(file), event_log(traces)
    fits = [one["trace_is_fit"] for one in pm4py.conformance_diagnostics_token_based_replay(log, *net)]
    return {"fit": fits, "precision": pm4py.precision_token_based_replay(log, *net)}


def broken_rules(given: dict[str, list]) -> list[bool]:
    """Mine DECLARE rules from a log and say which traces break one."""
    rules = pm4py.discover_declare(event_log(given["log"]))
    return [one["dev_fitness"] < 1 for one in pm4py.conformance_declare(event_log(given["traces"]), rules)]


def follows(file: str) -> list[list[object]]:
    """Count which activity directly follows which in a log."""
    log = pm4py.read_xes(file)
    if "lifecycle:transition" in log.columns:
        log = log[log["lifecycle:transition"].str.lower() == "complete"]
    pairs, first, last = pm4py.discover_dfg(log)
    ends = [[[None, name, n] for name, n in first.items()], [[name, None, n] for name, n in last.items()]]
    found = [*([*pair, n] for pair, n in pairs.items()), *ends[0], *ends[1]]
    return sorted([[*pair, int(n)] for *pair, n in found], key=str)


def accepted(file: str, traces: list[list[str]]) -> list[bool]:
    """Open a model and say which traces it allows from its beginning to its end.

    Parameters
    ----------
    file : str
        BPMN or PNML.
    traces : list of list of str
        The traces.

    Returns
    -------
    list of bool
    """
    net = read_net(file)
    return [one["fitness"] == 1 for one in alignment.apply(event_log(traces), *net)]


def open_all(given: list[dict]) -> list[list[bool]]:
    """Open every model."""
    return [accepted(one["file"], one["traces"]) for one in given]


def main() -> None:
    """Do what the first argument says."""
    command, given_file, found_file = sys.argv[1:]
    warnings.simplefilter("ignore")  # that logs should be data frames, which know no empty case
    given = json.loads(Path(given_file).read_text(encoding="utf-8"))
    commands = {
        "trees": mine_all,
        "fitness": judge_all,
        "models": open_all,
        "replay": lambda models: [replay(one["file"], one["traces"]) for one in models],
        "rules": broken_rules,
        "follows": lambda files: {Path(file).name.partition(".")[0]: follows(file) for file in files},
    }
    found = commands[command](given)
    Path(found_file).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()

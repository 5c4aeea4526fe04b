"""pm4py's inductive miner as a peer: the same logs, and its trees read by the same definition of kinds.

pm4py lives in an environment of its own, in the folder that `MSG2_PM4PY` names (`.venv-pm4py` in the checkout, where
it names none):

    python3 -m venv .venv-pm4py && .venv-pm4py/bin/pip install pm4py==2.7.23.11

Of two activities a trace shows one of five outcomes: neither, a alone, b alone, both with a first, both with b first;
of a repeated activity the first event counts. The outcomes of a node follow from those of its children, and the kind of
the pair from those of the root. A loop do (redo do)* has the outcomes of its sequences, until no new ones appear.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from experiments.graph_learning.process_trees import Trace
from msg2.errors import InputError
from msg2.graph import PairKind

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "pm4py_peer.py"
DEFAULT_ENVIRONMENT = Path(__file__).parents[2] / ".venv-pm4py"

MinedTree: TypeAlias = str | list["MinedTree"] | None
"""An activity; None: nothing is done; or [operator, child, …] with pm4py's signs: `->`, `+`, `X` and `*`."""
_Outcomes: TypeAlias = frozenset[str]
"""Of "", "a", "b", "ab" and "ba"."""


@dataclass(frozen=True, slots=True)
class MinedLog:
    """The tree that was mined from a log, and the seconds that it took."""

    tree: MinedTree
    seconds: float


def find_pm4py() -> Path | None:
    """Return the interpreter of the environment with pm4py, or None where there is none."""
    python = Path(os.environ.get("MSG2_PM4PY", DEFAULT_ENVIRONMENT)) / "bin" / "python"
    return python if python.exists() else None


def pm4py_version(python: Path) -> str:
    """Return the version of pm4py in an environment."""
    code = "from importlib.metadata import version; print(version('pm4py'))"
    return _run([python, "-c", code]).strip()


def mine_logs(logs: Sequence[Sequence[Trace]], thresholds: Sequence[float], python: Path) -> list[list[MinedLog]]:
    """Mine logs in the other environment.

    Parameters
    ----------
    logs : sequence of sequence of Trace
        Each the traces of its cases.
    thresholds : sequence of float
        Noise thresholds of the miner.
    python : Path
        The interpreter of the environment.

    Returns
    -------
    list of list of MinedLog
        Per log, what each threshold gives.

    Raises
    ------
    InputError
        Where the environment cannot run the script.
    """
    trees = ask_pm4py(python, "trees", {"thresholds": thresholds, "logs": logs})
    return [[MinedLog(one["tree"], one["seconds"]) for one in per_log] for per_log in trees]


@dataclass(frozen=True, slots=True)
class MinedFitness:
    """How well traces fit what was mined from a log, by token replay and by alignments, and the seconds of each."""

    seconds: float
    replay: list[float]
    replay_seconds: float
    alignment: list[float | None]
    alignment_seconds: float


def mined_fitness(
    log: Sequence[Trace], threshold: float, traces: Sequence[Trace], aligned: int, python: Path
) -> MinedFitness:
    """Mine a log in the other environment, and judge traces by it there.

    Parameters
    ----------
    log : sequence of Trace
        The cases to learn from.
    threshold : float
        Noise threshold of the miner.
    traces : sequence of Trace
        Those to judge.
    aligned : int
        So many of them are aligned as well, which takes long.
    python : Path
        The interpreter of the environment.

    Returns
    -------
    MinedFitness
    """
    given = {"thresholds": [threshold], "log": log, "traces": traces, "aligned": aligned}
    return MinedFitness(**ask_pm4py(python, "fitness", given)[0])


def ask_pm4py(python: Path, command: str, question: object) -> Any:
    """Have the other environment answer a question of `benchmarks/pm4py_peer.py`."""
    with TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.json", Path(folder) / "found.json"
        given.write_text(json.dumps(question), encoding="utf-8")
        _run([python, SCRIPT, command, given, found])
        return json.loads(found.read_text(encoding="utf-8"))


def _run(command: Sequence[str | Path]) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        last = (ran.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise InputError(f"pm4py cannot be run: {last}", where=command[0], hint="install it again, or remove it")
    return ran.stdout


# -- kinds ------------------------------------------------------------------------------------------------------


def mined_tree_kinds(tree: MinedTree, activities: Iterable[str]) -> dict[tuple[str, str], PairKind]:
    """The kind of every ordered pair of activities in the language of a mined tree.

    Parameters
    ----------
    tree : MinedTree
        Every activity has at most one leaf.
    activities : iterable of str
        Those to compare; one that is not in the tree is exclusive with all others.

    Returns
    -------
    dict of tuple of str to PairKind
        By (a, b).

    >>> kinds = mined_tree_kinds(["->", "a", ["X", None, "b"], ["*", "c", "d"]], "abcd")
    >>> kinds["a", "b"], kinds["b", "c"], kinds["c", "d"], kinds["d", "c"]
    ('needs', 'after', 'needs', 'free')
    """
    return {(a, b): _kind(_outcomes(tree, a, b)) for a, b in permutations(activities, 2)}


def _kind(outcomes: _Outcomes) -> PairKind:
    if outcomes.isdisjoint({"ab", "ba"}):
        return "exclusive"
    if "ba" in outcomes:
        return "free"
    return "after" if "b" in outcomes else "needs"


def _outcomes(tree: MinedTree, a: str, b: str) -> _Outcomes:
    """What a trace of the tree may show of a and b."""
    if not isinstance(tree, list):
        return frozenset({"a" if tree == a else "b" if tree == b else ""})
    operator, *children = tree
    parts = [_outcomes(child, a, b) for child in children]
    match operator:
        case "X":
            return frozenset().union(*parts)
        case "->":
            return _in_sequence(*parts)
        case "+":
            return _interleaved(*parts)
        case "*":
            first, *others = parts
            again = frozenset().union(*others)
            found = first
            while not (more := _in_sequence(found, again, first)) <= found:
                found |= more
            return found
    raise ValueError(f"a mined tree has the operator {operator!r}")


def _in_sequence(*parts: _Outcomes) -> _Outcomes:
    joined = ("".join(some) for some in product(*parts))
    return frozenset("".join(dict.fromkeys(events)) for events in joined)


def _interleaved(*parts: _Outcomes) -> _Outcomes:
    """The outcomes of parallel children: a child with both keeps its order, as no other child has either."""
    return frozenset("".join(order) for some in product(*parts) for order in permutations(filter(None, some)))

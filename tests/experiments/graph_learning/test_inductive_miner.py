"""Mined trees: kinds against enumerated traces, loops included, and pm4py itself where it is installed."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from experiments.graph_learning import inductive_miner, process_trees
from experiments.graph_learning.inductive_miner import (
    MinedTree,
    find_pm4py,
    mine_logs,
    mined_tree_kinds,
    pm4py_version,
)
from experiments.graph_learning.kind_suite import suite_tree, tree_log
from experiments.graph_learning.process_trees import ProcessTree, Trace, tree_kinds
from msg2.errors import InputError
from tests.experiments.graph_learning.test_process_trees import interleavings, kinds_by_definition

SIGNS = {"sequence": "->", "parallel": "+", "choice": "X"}


def as_mined(tree: ProcessTree) -> MinedTree:
    if tree.operator == "activity":
        return tree.label
    if tree.operator == "optional":
        return ["X", None, as_mined(tree.children[0])]
    return [SIGNS[tree.operator], *map(as_mined, tree.children)]


def language(tree: MinedTree) -> set[Trace]:
    """All traces, with at most three rounds of every loop."""
    if not isinstance(tree, list):
        return {() if tree is None else (tree,)}
    operator, *children = tree
    parts = [language(child) for child in children]
    if operator == "X":
        return set().union(*parts)
    if operator == "*":
        rounds = {(*again, *do) for again, do in product(set().union(*parts[1:]), parts[0])}
        return {(*do, *(one for turn in turns for one in turn))
                for do in parts[0] for count in range(3) for turns in product(rounds, repeat=count)}  # fmt: skip
    traces: set[Trace] = {()}
    for part in parts:
        pairs = product(traces, part)
        traces = {one for a, b in pairs for one in ([(*a, *b)] if operator == "->" else interleavings(a, b))}
    return traces


@pytest.mark.parametrize("seed", range(30))
def test_trees_without_loops_have_the_kinds_of_the_truth(seed: int) -> None:
    tree = suite_tree(seed)
    assert mined_tree_kinds(as_mined(tree), tree.activities) == tree_kinds(tree)


@pytest.mark.parametrize(
    "tree",
    [
        ["*", "a", None],
        ["*", "a", "b"],
        ["*", None, "a", "b"],
        ["*", ["X", "a", "b"], None],
        ["*", ["->", "a", ["X", None, "b"]], "c"],
        ["->", ["*", ["X", "a", "b"], ["X", "c", None]], "d"],
        ["X", ["->", "a", ["*", "b", "c"]], ["+", "d", ["X", None, "e"]]],
        ["*", ["->", "a", ["*", "b", "c"]], "d"],
        ["+", ["*", "a", "b"], "c"],
    ],
)
def test_kinds_with_loops_are_those_of_the_language(tree: MinedTree) -> None:
    traces = language(tree)
    steps = tuple(sorted(set().union(*traces)))
    assert mined_tree_kinds(tree, steps) == kinds_by_definition(traces, steps)


def test_an_activity_that_was_filtered_out_is_exclusive() -> None:
    kinds = mined_tree_kinds(["->", "a", "b"], "abc")
    assert (kinds["a", "b"], kinds["a", "c"], kinds["c", "a"]) == ("needs", "exclusive", "exclusive")


def test_an_operator_that_the_miner_never_uses_is_refused() -> None:
    with pytest.raises(ValueError, match="O"):
        mined_tree_kinds(["O", "a", "b"], "ab")


def test_without_the_environment_there_is_no_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSG2_PM4PY", str(tmp_path))
    assert find_pm4py() is None
    monkeypatch.delenv("MSG2_PM4PY")
    monkeypatch.setattr(inductive_miner, "DEFAULT_ENVIRONMENT", tmp_path)
    assert find_pm4py() is None


def test_an_environment_without_pm4py_is_named(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'no module called pm4py' >&2\nexit 1\n", encoding="utf-8")
    python.chmod(0o755)
    with pytest.raises(InputError, match="no module called pm4py"):
        mine_logs([[("a",)]], [0.0], python)


def test_pm4py_finds_small_trees_again(monkeypatch: pytest.MonkeyPatch) -> None:
    python = find_pm4py()
    if python is None:
        pytest.skip("pm4py is not installed in an environment of its own")
    assert pm4py_version(python)
    monkeypatch.setattr(process_trees, "ACTIVITIES", (4, 5))
    logs = [tree_log(int(seed), 500, 0.0) for seed in np.arange(6)]
    found = mine_logs([*(log.traces for log in logs), [(), ("a",)]], [0.0, 0.2], python)
    for log, (plain, infrequent) in zip(logs, found, strict=False):
        assert mined_tree_kinds(plain.tree, log.seen) == log.kinds
        assert plain.seconds > 0
        assert infrequent.tree is not None
    assert found[-1][0].tree == ["X", None, "a"]  # the empty case is not lost

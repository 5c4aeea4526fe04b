"""ORs that are found: the truth as an order, and the counts of a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments.experiment_options import ExperimentOptions
from experiments.graph_learning import or_recovery
from experiments.graph_learning.or_recovery import OrCell, OrRecoveryOptions, measure_cell, true_order
from msg2.graph import SubtaskGraph, all_of, any_of, step
from msg2.progress import no_progress
from msg2.simulation import RandomWorldOptions


def test_the_truth_as_an_order() -> None:
    a, b, c, d = map(step, "abcd")
    graph = SubtaskGraph("t", "abcde", {"b": a, "c": a, "d": any_of([b, c]), "e": d})
    relation, ors = true_order(graph, tuple("abcde"))
    needed = {("a", "b"), ("a", "c"), ("a", "d"), ("a", "e"), ("d", "e")}  # whichever way is taken
    assert {("abcde"[x], "abcde"[y]) for x, y in np.argwhere(relation)} == needed
    assert ors == {(3, frozenset({1, 2}))}


def test_an_and_is_no_or() -> None:
    graph = SubtaskGraph("t", "abc", {"c": all_of([step("a"), step("b")])})
    assert true_order(graph, tuple("abc"))[1] == frozenset()


def test_a_cell_without_noise() -> None:
    found = measure_cell(OrCell(1, 0.0, 300), RandomWorldOptions(steps=6, depth=2, or_rate=0.5))
    assert found["found_score"] >= found["truth_score"] - 0.01
    assert found["found"]["likelihood"] == found["true"]
    assert found["found"]["always-before"][1] < found["true"][1]


def test_a_search_that_ends_below_the_truth_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = {5: (-10.0, -12.0), 6: (-10.0, -10.0), 7: (-10.0, -9.0)}

    def measured(cell: OrCell, shape: RandomWorldOptions) -> dict[str, object]:
        truth, found = scores[cell.seed]
        right = dict.fromkeys(or_recovery.ROWS, (2, 1))
        return {"true": (4, 2), "found": right, "truth_score": truth, "found_score": found}

    options = OrRecoveryOptions(factors=(0.0,), videos=(50,), worlds=3, first_seed=5)
    monkeypatch.setattr(or_recovery, "measure_cell", measured)
    monkeypatch.setattr(OrRecoveryOptions, "quick", staticmethod(lambda: options))
    result = or_recovery.run(None, replace(ExperimentOptions(), quick=True), no_progress)
    exact, scored = result.tables
    assert [list(row) for row in exact.rows] == [["none", 50, row, 50.0, 50.0] for row in or_recovery.ROWS]
    assert list(scored.rows[0])[2:] == [1, 1, 1, 0.0, pytest.approx(-1 / 3)]

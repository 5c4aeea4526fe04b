"""The curves over noise and videos: ORs counted by hand, a small run, and what goes on after an interruption."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.experiment_options import ExperimentOptions
from experiments.graph_learning import noise_curves
from experiments.graph_learning.noise_curves import (
    NoiseCell,
    NoiseCurveOptions,
    disjunctive_clauses,
    measure_cell,
    plan_cells,
)
from msg2.graph import SubtaskGraph, all_of, any_of, step
from msg2.simulation import NoiseOptions
from tests.experiments.progress_recorder import ProgressRecorder

TINY = NoiseCurveOptions(factors=(0.0, 1.0), videos=(8,), random_worlds=1)


def test_alternatives_are_those_of_the_reduced_graph() -> None:
    a, b, c = map(step, "abc")
    graph = SubtaskGraph("t", "abcde", {"c": a, "d": all_of([any_of([b, c]), a]), "e": any_of([a, b])})
    assert disjunctive_clauses(graph) == {("d", any_of([b, c])), ("e", any_of([a, b]))}
    assert disjunctive_clauses(SubtaskGraph("t", "ab", {"b": a})) == set()


def test_noise_is_scaled_rate_by_rate() -> None:
    assert NoiseOptions().scale(0) == NoiseOptions.none()
    assert NoiseOptions().scale(1) == NoiseOptions()
    assert NoiseOptions().scale(2).unlabelled == pytest.approx(0.4)
    assert NoiseOptions().scale(100).skipped == 1


def test_every_setting_is_planned_once_for_every_world() -> None:
    cells = plan_cells(TINY)
    assert len(set(cells)) == len(cells) == 2 * 1 * (12 + 1)


def test_a_cell_holds_every_method() -> None:
    found = measure_cell(NoiseCell("random", 0, 0.0, 8), TINY)
    assert found["violations"] == 0
    assert set(found) == {"violations", *noise_curves.ROWS}
    for row in noise_curves.ROWS:
        assert 0 <= found[row]["ors_right"] <= min(found[row]["ors"], found[row]["true_ors"])
    assert found == measure_cell(NoiseCell("random", 0, 0.0, 8), TINY)


def test_it_runs_and_goes_on_from_its_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(noise_curves, "household_worlds", lambda: [])
    monkeypatch.setattr(NoiseCurveOptions, "quick", staticmethod(lambda: TINY))
    monkeypatch.setattr(noise_curves, "FAMILIES", {"random": "random worlds"})
    options = ExperimentOptions(quick=True, folder=tmp_path)
    news = ProgressRecorder()
    result = noise_curves.run(None, options, news)
    assert len(news) == 2
    assert [table.columns[-1] for table in result.tables] == ["likelihood is"] * 3 + ["right"]
    assert b"likelihood" in (tmp_path / "noise-random.svg").read_bytes()
    monkeypatch.setattr(noise_curves, "measure_cell", lambda cell, options: pytest.fail("measured again"))
    again = noise_curves.run(None, options, news)
    assert json.dumps(again.to_json()) == json.dumps(result.to_json())

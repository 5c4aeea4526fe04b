"""The curves over noise and videos: ORs counted by hand, a small run, and what goes on after an interruption."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msg2.experiments import noise
from msg2.experiments.noise import Cell, alternatives, measured, planned
from msg2.graph import SubtaskGraph, all_of, any_of, step
from msg2.options import ExperimentOptions, NoiseCurveOptions, NoiseOptions

TINY = NoiseCurveOptions(factors=(0.0, 1.0), videos=(8,), random_worlds=1)


def test_alternatives_are_those_of_the_reduced_graph() -> None:
    a, b, c = map(step, "abc")
    graph = SubtaskGraph("t", "abcde", {"c": a, "d": all_of([any_of([b, c]), a]), "e": any_of([a, b])})
    assert alternatives(graph) == {("d", any_of([b, c])), ("e", any_of([a, b]))}
    assert alternatives(SubtaskGraph("t", "ab", {"b": a})) == set()


def test_noise_is_scaled_rate_by_rate() -> None:
    assert NoiseOptions().scaled(0) == NoiseOptions.none()
    assert NoiseOptions().scaled(1) == NoiseOptions()
    assert NoiseOptions().scaled(2).unlabelled == pytest.approx(0.4)
    assert NoiseOptions().scaled(100).skipped == 1


def test_every_setting_is_planned_once_for_every_world() -> None:
    cells = planned(TINY)
    assert len(set(cells)) == len(cells) == 2 * 1 * (12 + 1)


def test_a_cell_holds_every_method() -> None:
    found = measured(Cell("random", 0, 0.0, 8), TINY)
    assert found["violations"] == 0
    assert set(found) == {"violations", *noise.ROWS}
    for row in noise.ROWS:
        assert 0 <= found[row]["ors_right"] <= min(found[row]["ors"], found[row]["true_ors"])
    assert found == measured(Cell("random", 0, 0.0, 8), TINY)


def test_it_runs_and_goes_on_from_its_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(noise, "worlds", lambda: [])
    monkeypatch.setattr(NoiseCurveOptions, "quick", staticmethod(lambda: TINY))
    monkeypatch.setattr(noise, "FAMILIES", {"random": "random worlds"})
    options = ExperimentOptions(quick=True, folder=tmp_path)
    news: list[str] = []
    result = noise.run(None, options, news.append)
    assert news[-1].startswith("2 of 2 cells")
    assert [table.columns[-1] for table in result.tables] == ["likelihood is"] * 3 + ["right"]
    assert b"likelihood" in (tmp_path / "noise-random.svg").read_bytes()
    monkeypatch.setattr(noise, "measured", lambda cell, options: pytest.fail("measured again"))
    again = noise.run(None, options, news.append)
    assert json.dumps(again.to_json()) == json.dumps(result.to_json())

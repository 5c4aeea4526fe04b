"""Calibration: bins against counting by hand, forecasts that are true, and the plot."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.experiment_options import ExperimentOptions
from experiments.graph_learning import bootstrap_calibration
from experiments.graph_learning.bootstrap_calibration import CalibrationOptions, RelationForecasts, relation_forecasts
from experiments.plots import reliability_plot
from msg2.graph import SubtaskGraph, step
from msg2.inference.bootstrap import GraphFrequencies
from tests.experiments.progress_recorder import ProgressRecorder


def test_true_probabilities_are_calibrated_and_sure_ones_are_not() -> None:
    rng = np.random.default_rng(0)
    probability = rng.random(20_000)
    truth = rng.random(20_000) < probability
    assert RelationForecasts(probability, truth).error(10) < 0.02
    assert RelationForecasts(np.round(probability), truth).error(10) == pytest.approx(0.25, abs=0.02)
    assert RelationForecasts(probability, truth).brier() < RelationForecasts(np.round(probability), truth).brier()


def test_every_relation_is_in_one_bin() -> None:
    found = RelationForecasts(np.array([0, 0.5, 0.99, 1.0]), np.array([False, True, True, False])).bins(4)
    assert [(one.count, one.accuracy) for one in found] == [(1, 0.0), (1, 1.0), (2, 0.5)]


def test_pairs_are_matched_by_name() -> None:
    truth = SubtaskGraph("t", "abc", {"a": step("c"), "b": step("a")})  # its steps are c, a, b
    found = relation_forecasts(GraphFrequencies((truth, SubtaskGraph("t", "abc", {}))), truth)
    assert len(found.truth) == 6
    assert found.probability.tolist() == (found.truth / 2).tolist()


def test_the_experiment_on_one_small_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = CalibrationOptions(worlds=1, videos=6, samples=4)
    monkeypatch.setattr(bootstrap_calibration, "CalibrationOptions", lambda: small)
    news = ProgressRecorder()
    result = bootstrap_calibration.run(None, replace(ExperimentOptions(), folder=tmp_path), news)
    assert [row[0] for row in result.tables[0].rows] == list(bootstrap_calibration.ROWS)
    assert all(row[3] == small.world.steps * (small.world.steps - 1) for row in result.tables[0].rows)
    kinds = [row[0] for row in result.tables[1].rows]
    assert len(kinds) == 3
    assert len(news) == len(bootstrap_calibration.ROWS) + len(kinds)
    pytest.importorskip("matplotlib")
    assert ET.fromstring((tmp_path / "calibration.svg").read_bytes()).tag.endswith("svg")


def test_the_same_bins_give_the_same_plot() -> None:
    pytest.importorskip("matplotlib")
    curves = {"a $5 <b>": [(0.1, 0.2, 3), (0.9, 0.7, 100)], "other": [(0.5, 0.5, 1)]}
    assert reliability_plot(curves, "t") == reliability_plot(curves, "t")

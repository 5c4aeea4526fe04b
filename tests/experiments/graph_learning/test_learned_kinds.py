"""The experiment on a small part of the suite: numbers by hand, files, and going on after an interruption."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.experiment_options import ExperimentOptions
from experiments.graph_learning import learned_kinds
from experiments.graph_learning.inductive_miner import MinedLog
from experiments.graph_learning.kind_suite import DEVELOPMENT, SuiteSeeds, tree_log
from experiments.graph_learning.kind_tables import FAMILIES, KindCell
from experiments.graph_learning.learned_kinds import BASELINES, KindOptions, measure_cell, plan_cells
from msg2.progress import no_progress
from tests.experiments.progress_recorder import ProgressRecorder

TINY = KindOptions((0.0, 0.1), (20, 40), (0.0, 0.3), (20,), trees=2, worlds=1, household=1)
ALWAYS_BEFORE = ("always-before", {})
ALL_METHODS = {**learned_kinds.TREE_METHODS, **learned_kinds.WORLD_METHODS}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The simplest method under the names of all, and no pm4py."""
    for methods in ("TREE_METHODS", "WORLD_METHODS"):
        names = getattr(learned_kinds, methods)
        monkeypatch.setattr(learned_kinds, methods, dict.fromkeys(names, ALWAYS_BEFORE))
    monkeypatch.setattr(KindOptions, "quick", staticmethod(lambda: TINY))
    monkeypatch.setenv("MSG2_PM4PY", str(tmp_path / "nowhere"))


def test_every_tree_and_world_is_planned_once() -> None:
    cells = plan_cells(KindOptions(), held_out=False)
    assert len(set(cells)) == len(cells) == 30 + 20 + 12 + 12
    assert {cell.family for cell in cells} == set(FAMILIES)
    assert all(cell.held_out for cell in plan_cells(TINY, held_out=True))


def test_a_cell_holds_every_log_and_method() -> None:
    found = measure_cell(KindCell("trees", 1, False), TINY, None)["settings"]
    assert [(one["size"], one["rate"]) for one in found] == [(20, 0.0), (20, 0.1), (40, 0.0), (40, 0.1)]
    log = tree_log(DEVELOPMENT.trees[1], 20, 0.0)
    free = found[0]["rows"]["always free"]
    assert free["pairs"] == len(log.seen) * (len(log.seen) - 1) // 2
    both_ways = sum(log.kinds[a, b] == log.kinds[b, a] == "free" for a in log.seen for b in log.seen if a < b)
    assert free["right"] == both_ways
    assert set(found[0]["rows"]) == {*learned_kinds.TREE_METHODS, *BASELINES}
    for row in found[0]["rows"].values():
        assert sum(count for counts in row["confusion"].values() for count in counts.values()) == row["pairs"]


@pytest.mark.parametrize("row", ALL_METHODS)
def test_every_method_says_what_is_measured(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned_kinds, "WORLD_METHODS", {row: ALL_METHODS[row]})
    options = replace(TINY, missing=(0.3,))
    found = measure_cell(KindCell("optional", 0, False), options, None)["settings"][0]["rows"][row]
    assert 0 < found["right"] <= found["pairs"]
    if row.startswith("likelihood"):
        assert 0 <= found["absent rate"] <= 1
    else:
        assert found["absent rate"] is None
        assert all({"after", "exclusive"}.isdisjoint(counts) for counts in found["confusion"].values())


def test_the_peer_has_rows_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def mine(logs: list[list[tuple[str, ...]]], thresholds: list[float], python: Path) -> list[list[object]]:
        asked.append(logs)
        return [[MinedLog(None, 0.5)] * len(thresholds) for _ in logs]

    monkeypatch.setattr(learned_kinds, "mine_logs", mine)
    rows = measure_cell(KindCell("trees", 0, False), TINY, Path("python"))["settings"][0]["rows"]
    for name in learned_kinds.MINERS:
        assert rows[name]["seconds"] == 0.5
        assert rows[name]["right"] == rows[name]["confusion"]["exclusive"]["exclusive"]  # it finds nothing but that
    repeats, none = ([len(trace) - len(set(trace)) for log in logs for trace in log] for logs in asked)
    assert (max(repeats), max(none)) == (1, 0)
    assert set(measure_cell(KindCell("optional", 0, False), TINY, Path("python"))["settings"][0]["rows"]).isdisjoint(
        learned_kinds.MINERS
    )


def test_it_runs_writes_plots_and_goes_on_from_its_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    options = ExperimentOptions(quick=True, folder=tmp_path)
    news = ProgressRecorder()
    result = learned_kinds.run(None, options, news)
    assert len(news) == len(plan_cells(TINY, held_out=False))
    assert "not installed" in result.to_markdown()
    assert [row[0] for row in result.tables[0].rows] == [*learned_kinds.TREE_METHODS, *BASELINES]
    for name in ("kinds.svg", "kinds-missing.svg"):
        assert ET.fromstring((tmp_path / name).read_bytes()).tag.endswith("svg")
    monkeypatch.setattr(learned_kinds, "measure_cell", lambda cell, **_: pytest.fail("measured again"))
    again = learned_kinds.run(None, options, news)
    assert json.dumps(again.to_json()) == json.dumps(result.to_json())


def test_the_held_out_set_has_seeds_and_files_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With seeds that are in neither set: the real ones are run once, and not by a test."""
    pytest.importorskip("matplotlib")
    others = SuiteSeeds(trees=(500, 501), worlds=(500,), household=500)
    monkeypatch.setattr(learned_kinds, "HELD_OUT", others)
    options = ExperimentOptions(quick=True, held_out=True, folder=tmp_path)
    result = learned_kinds.run(None, options, no_progress)
    assert (result.experiment, result.facts["seeds"]["trees"]) == ("kinds-held-out", (500, 501))
    assert {path.name for path in tmp_path.iterdir()} == {
        "kinds-held-out.cells.json", "kinds-held-out.svg", "kinds-held-out-missing.svg",
    }  # fmt: skip
    developed = learned_kinds.run(None, replace(options, held_out=False, folder=None), no_progress)
    assert developed.facts["share right"] != result.facts["share right"]

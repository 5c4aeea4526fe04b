"""The experiment on state prediction: its cells on one small world, its tables against numbers made by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean, pstdev
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("torch")

from experiments import paper_results
from experiments.__main__ import app
from experiments.result_tables import Table
from experiments.state_prediction import state_cells, state_study, state_tables
from experiments.state_prediction.state_cells import (
    LABELS,
    ORACLE,
    PROBE,
    ROWS,
    StateCell,
    StateStudyOptions,
    complete_labels,
    measure_cell,
    plan_cells,
    presence_auc,
)
from experiments.state_prediction.state_study import measure_all_cells
from experiments.state_prediction.state_summary import StateSummary, nan_mean, paired_interval
from msg2.errors import InputError
from msg2.progress import no_progress
from msg2.result_cache import Measurement, measure_cells
from msg2.simulation import NoiseOptions, household_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.states.configuration import TrainingOptions
from msg2.task import Segment, Task, Video

BRIEF = TrainingOptions(epochs=2, device="cpu")
TINY = StateStudyOptions(
    worlds=("Perform CPR",), videos=6, seeds=(1, 2), clutters=(4.0, 7.2), transformers=BRIEF, evidence_models=BRIEF,
    resamples=50,
)  # fmt: skip
TWO = replace(TINY, worlds=("Perform CPR", "Make Coffee"))


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level("ERROR", logger="msg2"):
        yield


def invented(cell: StateCell, options: StateStudyOptions) -> Measurement:
    """Numbers that differ from cell to cell."""
    rng = np.random.default_rng(
        [cell.seed, *map(ord, cell.row + cell.world), int(100 * cell.unlabelled + cell.clutter)]
    )
    if cell.row == PROBE:
        return {"accuracy": rng.random()}
    scores = {str(delta): dict(zip(state_tables.METRICS.values(), rng.random(4).tolist(), strict=True))
              for delta in options.deltas}  # fmt: skip
    if cell.row in (LABELS, ORACLE):
        return {"graphs": scores}
    added, right = 10 + int(rng.integers(9)), int(rng.integers(10))
    return {
        "completion": {"asked": 9, "accuracy": rng.random(), "auc": rng.random()},
        "completion by labels": {"asked": 9, "accuracy": rng.random(), "auc": None},
        "additions": {"added": added, "right": right, "missing": 20},
        "presence": rng.random(),
        "graphs": scores,
    }


@pytest.fixture
def outcome() -> StateSummary:
    return StateSummary({cell: invented(cell, TWO) for cell in plan_cells(TWO)}, TWO)


def line(table: Table, *names: str) -> dict[str, object]:
    """The row that begins with these names; of columns of one name, the first."""
    found = next(row for row in table.rows if tuple(row[: len(names)]) == names)
    return dict(reversed(list(zip(table.columns, found, strict=True))))


def test_every_cell_is_planned_once_and_the_most_important_first() -> None:
    cells = plan_cells(StateStudyOptions())
    assert len(set(cells)) == len(cells)
    kinds = (("evidence", 0.25, 7.2), ("evidence", 0.2, 7.2), ("evidence", 0.25, 10.0), ("vit", 0.25, 7.2))
    by_kind = {
        kind: [place for place, one in enumerate(cells) if (one.row, one.unlabelled, one.clutter) == kind]
        for kind in kinds
    }
    assert [len(places) for places in by_kind.values()] == [36, 12, 12, 12]
    assert list(by_kind) == sorted(by_kind, key=lambda kind: by_kind[kind])


@pytest.mark.parametrize("row", ["evidence", "visualbert-direct", "text-only"])
def test_a_cell_holds_plain_numbers_and_the_same_again(row: str) -> None:
    cell = StateCell(row, "Perform CPR", 1, 0.25, 7.2)
    found = measure_cell(cell, TINY)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert 0 <= found["completion"]["accuracy"] <= 1
    assert set(found["graphs"]) == {"0.96", "0.8", "auto"}
    assert measure_cell(cell, TINY) == found


def test_the_oracle_adds_what_was_performed_and_unlabelled_and_nothing_else() -> None:
    noise = NoiseOptions(unlabelled=0.5)
    simulation = simulate(household_world("Make Coffee"), SimulationOptions(videos=8, noise=noise), 1)
    performed = {show.video: show.performed for show in simulation.demonstrations}
    added = 0
    for before, after in zip(simulation.task, complete_labels(simulation), strict=True):
        new = [segment for segment in after.segments if segment not in before.segments]
        assert set(before.segments) <= set(after.segments)
        assert {one.step for one in new} == {one.step for one in performed[before.id]} - set(before.sequence())
        assert all(one == next(each for each in performed[before.id] if each.step == one.step) for one in new)
        added += len(new)
    assert added > 10
    complete = measure_cell(
        StateCell(ORACLE, "Make Coffee", 1, 0.0, 7.2), TINY
    )  # nothing is unlabelled; labels may be wrong
    assert (
        complete["graphs"].keys() == measure_cell(StateCell(LABELS, "Make Coffee", 1, 0.0, 7.2), TINY)["graphs"].keys()
    )


def test_the_experiment_runs_and_goes_on_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {name: ROWS[name] for name in ("paper", "vision-only", "vit", "evidence")}
    for module in (state_cells, state_tables):
        monkeypatch.setattr(module, "ROWS", rows)
    file = tmp_path / "cells.json"
    result = state_study.state_result(TINY, file, 1, no_progress)
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["experiment"] == "states"
    assert [row[0] for row in result.tables[0].rows] == [LABELS, *rows]
    monkeypatch.setattr(state_study, "measure_cell", lambda cell, options: pytest.fail("measured again"))
    assert state_study.state_result(TINY, file, 1, no_progress).to_json() == result.to_json()


def test_an_interrupted_run_measures_only_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[StateCell] = []

    def stop_at_seven(cell: StateCell, options: StateStudyOptions) -> Measurement:
        asked.append(cell)
        if len(asked) == 7:
            raise KeyboardInterrupt
        return invented(cell, options)

    monkeypatch.setattr(state_study, "measure_cell", stop_at_seven)
    file, cells = tmp_path / "deep" / "cells.json", plan_cells(TINY)
    with pytest.raises(KeyboardInterrupt):
        measure_all_cells(TINY, file=file)
    news: list[tuple[int, int | None]] = []
    found = measure_all_cells(TINY, file=file, progress=lambda done, total, message: news.append((done, total)))
    assert asked == [*cells[:7], *cells[6:]]
    assert found == {cell: invented(cell, TINY) for cell in cells}
    assert news[-1] == (len(cells), len(cells))
    # Other options: measured again, and the old ones stay.
    longer = replace(TINY, evidence_models=replace(BRIEF, epochs=3))
    asked.clear()
    monkeypatch.setattr(
        state_study, "measure_cell", lambda cell, options: asked.append(cell) or invented(cell, options)
    )
    measure_all_cells(longer, file=file)
    assert {cell.row for cell in asked} == {"evidence"}
    asked.clear()
    measure_all_cells(TINY, file=file)
    assert not asked


def test_no_cell_is_begun_when_the_time_is_over(tmp_path: Path) -> None:
    assert measure_all_cells(TINY, seconds=0) == {}
    assert measure_all_cells(TINY, seconds=0, jobs=2) == {}


def test_a_file_of_something_else_is_named(tmp_path: Path) -> None:
    file = tmp_path / "cells.json"
    for content in ("[{]", '[{"video": 1}]', "7"):
        file.write_text(content)
        with pytest.raises(InputError, match="remove it"):
            measure_all_cells(TINY, file=file)


@pytest.mark.slow
def test_processes_find_the_same(tmp_path: Path) -> None:
    cells = [StateCell(row, "Perform CPR", 1, 0.25, 7.2) for row in (LABELS, PROBE)]
    assert measure_cells(cells, partial(measure_cell, options=TINY), jobs=2) == {
        cell: measure_cell(cell, TINY) for cell in cells
    }


def test_the_program_needs_neither_the_command_line_nor_pictures() -> None:
    """And PyTorch only where a cell needs it; that `msg2.states` needs no more either, the layers of the house say."""
    code = (
        "import sys, experiments.state_prediction.state_study;"
        "print([name for name in sys.modules if name in ('typer', 'rich', 'pygraphviz', 'sklearn', 'torch')"
        " or name.startswith(('msg2.drawing', 'msg2.pipeline', 'msg2.cli'))])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_presence_ranks_the_steps_that_the_labels_lack() -> None:
    scores = np.array([[0.0, 0.3, 0.1, 0.2], [9.0, 0.4, 0.9, 0.6]])  # the highest: 9, 0.4, 0.9, 0.6; a is labelled
    prediction = SimpleNamespace(video="v", scores=scores, labelled=np.array([True, False, False, False]))
    model: Any = SimpleNamespace(predict=lambda: [prediction])
    performed = Task("t", "abcd", [Video("v", [Segment("a", 0, 1), Segment("c", 1, 2), Segment("b", 2, 3)])])
    assert presence_auc(model, performed) == 0.5  # c is above d, b is below it


def test_an_experiment_of_minutes_has_no_jobs() -> None:
    ran = CliRunner().invoke(app, ["recovery", "--jobs", "2"])
    assert ran.exit_code == 2
    assert "no --jobs" in ran.stderr


def test_the_ablation_is_the_mean_of_its_cells(outcome: StateSummary) -> None:
    table = state_tables.ablation_table(outcome)
    found = line(table, "paper")
    accuracy = [[100 * invented(StateCell("paper", name, seed, 0.25, 7.2), TWO)["completion"]["accuracy"]
                 for name in TWO.worlds or ()] for seed in TWO.seeds]  # fmt: skip
    assert found["(b)"] == pytest.approx(mean(row[1] for row in accuracy))
    assert found["average"] == pytest.approx(mean(map(mean, accuracy)))
    assert found["± seeds"] == pytest.approx(pstdev(map(mean, accuracy)))
    assert found["paper's average"] == 74.24
    assert line(table, "vit")["± seeds"] is None
    assert line(table, "evidence")["paper's average"] is None


def test_added_labels_are_pooled(outcome: StateSummary) -> None:
    cells = [outcome.cells[StateCell("evidence", name, seed, 0.25, 7.2)]["additions"]
             for name in TWO.worlds or () for seed in TWO.seeds]  # fmt: skip
    right, added = (sum(one[name] for one in cells) for name in ("right", "added"))
    found = line(state_tables.quality_table(outcome), "evidence")
    assert found["precision of added labels"] == pytest.approx(100 * right / added)
    assert found["recall"] == pytest.approx(100 * right / 80)
    assert found["added per video"] == pytest.approx(added / 4 / 6)


def test_gains_are_paired_and_judged(outcome: StateSummary) -> None:
    pairs = [
        [outcome.cells[StateCell(row, name, seed, 0.25, 7.2)]["graphs"]["0.8"]["spoc"] for row in ("evidence", LABELS)]
        for name in TWO.worlds or () for seed in TWO.seeds
    ]  # fmt: skip
    gained = 100 * mean(after - before for after, before in pairs)
    assert line(state_tables.gain_table(outcome, 0.25, ["evidence"], TWO.seeds), "evidence", "0.8")[
        "SPOC"
    ] == pytest.approx(gained)
    judged = line(state_tables.target_table(outcome, "evidence"), "gain of SPOC, δ 0.8")
    assert judged["found"] == pytest.approx(gained)
    assert judged["met"] == ("yes" if gained >= 2 else "no")
    before = line(state_tables.graph_table(outcome, 0.25, [LABELS], TWO.seeds), LABELS, "0.8")["SPOC"]
    after = line(state_tables.graph_table(outcome, 0.25, ["evidence"], TWO.seeds), "evidence", "0.8")["SPOC"]
    assert after - before == pytest.approx(gained)  # type: ignore[operator]


def test_the_curve_has_a_line_per_difficulty(outcome: StateSummary) -> None:
    table = state_tables.difficulty_curve_table(outcome)
    assert [row[0] for row in table.rows] == list(TWO.clutters)
    easy = [outcome.cells[StateCell(PROBE, name, 1, 0.25, 4.0)]["accuracy"] for name in TWO.worlds or ()]
    assert table.rows[0][1] == pytest.approx(100 * mean(easy))


def test_intervals_are_those_of_resampled_means() -> None:
    rng = np.random.default_rng(3)
    differences = rng.normal(2.0, 1.0, size=(3, 40))
    found = paired_interval(differences, replace(TINY, resamples=4000))
    error = differences.std() / np.sqrt(differences.size)
    assert found.value == pytest.approx(differences.mean())
    assert (found.low, found.high) == pytest.approx((found.value - 1.96 * error, found.value + 1.96 * error), abs=0.03)
    assert paired_interval(np.array([np.nan, 3.0]), TINY).value == 3.0


def test_what_is_not_applicable_is_left_out_of_means() -> None:
    found = nan_mean(np.array([[1.0, np.nan], [3.0, np.nan]]), 0)
    assert found[0] == 2
    assert np.isnan(found[1])


def test_the_papers_ablation_adds_up() -> None:
    """Typing slips would show: the paper's averages are those of its rows."""
    assert {one.printed for one in ROWS.values() if one.printed} | {"Ours"} == set(paper_results.STATES)
    for *tasks, average in paper_results.STATES.values():
        assert len(tasks) == 12
        assert mean(tasks) == pytest.approx(average, abs=0.006)

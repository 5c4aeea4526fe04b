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

from msg2.cli.app import app
from msg2.errors import InputError
from msg2.experiments import paper, states, states_cells, states_tables
from msg2.experiments.cells import Found, filled_in
from msg2.experiments.states import measured_cells
from msg2.experiments.states_cells import (
    LABELS,
    ORACLE,
    PROBE,
    ROWS,
    Cell,
    completed,
    measured,
    planned,
    presence,
)
from msg2.experiments.states_outcome import Outcome, mean_of, paired_interval
from msg2.experiments.tables import Table
from msg2.options import NoiseOptions, StatesExperimentOptions, TrainingOptions, WorldOptions
from msg2.task import Segment, Task, Video
from msg2.worlds import simulate, world

BRIEF = TrainingOptions(epochs=2, device="cpu")
TINY = StatesExperimentOptions(
    worlds=("Perform CPR",), videos=6, seeds=(1, 2), clutters=(4.0, 7.2), transformers=BRIEF, witnesses=BRIEF,
    resamples=50,
)  # fmt: skip
TWO = replace(TINY, worlds=("Perform CPR", "Make Coffee"))


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level("ERROR", logger="msg2"):
        yield


def invented(cell: Cell, options: StatesExperimentOptions) -> Found:
    """Numbers that differ from cell to cell."""
    rng = np.random.default_rng(
        [cell.seed, *map(ord, cell.row + cell.world), int(100 * cell.unlabelled + cell.clutter)]
    )
    if cell.row == PROBE:
        return {"accuracy": rng.random()}
    scores = {str(delta): dict(zip(states_tables.METRICS.values(), rng.random(4).tolist(), strict=True))
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
def outcome() -> Outcome:
    return Outcome({cell: invented(cell, TWO) for cell in planned(TWO)}, TWO)


def line(table: Table, *names: str) -> dict[str, object]:
    """The row that begins with these names; of columns of one name, the first."""
    found = next(row for row in table.rows if tuple(row[: len(names)]) == names)
    return dict(reversed(list(zip(table.columns, found, strict=True))))


def test_every_cell_is_planned_once_and_the_most_important_first() -> None:
    cells = planned(StatesExperimentOptions())
    assert len(set(cells)) == len(cells)
    kinds = (("witness", 0.25, 7.2), ("witness", 0.2, 7.2), ("witness", 0.25, 10.0), ("vit", 0.25, 7.2))
    by_kind = {
        kind: [place for place, one in enumerate(cells) if (one.row, one.unlabelled, one.clutter) == kind]
        for kind in kinds
    }
    assert [len(places) for places in by_kind.values()] == [36, 12, 12, 12]
    assert list(by_kind) == sorted(by_kind, key=lambda kind: by_kind[kind])


@pytest.mark.parametrize("row", ["witness", "visualbert-direct", "text-only"])
def test_a_cell_holds_plain_numbers_and_the_same_again(row: str) -> None:
    cell = Cell(row, "Perform CPR", 1, 0.25, 7.2)
    found = measured(cell, TINY)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert 0 <= found["completion"]["accuracy"] <= 1
    assert set(found["graphs"]) == {"0.96", "0.8", "auto"}
    assert measured(cell, TINY) == found


def test_the_oracle_adds_what_was_performed_and_unlabelled_and_nothing_else() -> None:
    noise = NoiseOptions(unlabelled=0.5)
    simulation = simulate(world("Make Coffee"), WorldOptions(videos=8, noise=noise), 1)
    performed = {show.video: show.performed for show in simulation.demonstrations}
    added = 0
    for before, after in zip(simulation.task, completed(simulation), strict=True):
        new = [segment for segment in after.segments if segment not in before.segments]
        assert set(before.segments) <= set(after.segments)
        assert {one.step for one in new} == {one.step for one in performed[before.id]} - set(before.sequence())
        assert all(one == next(each for each in performed[before.id] if each.step == one.step) for one in new)
        added += len(new)
    assert added > 10
    complete = measured(Cell(ORACLE, "Make Coffee", 1, 0.0, 7.2), TINY)  # nothing is unlabelled; labels may be wrong
    assert complete["graphs"].keys() == measured(Cell(LABELS, "Make Coffee", 1, 0.0, 7.2), TINY)["graphs"].keys()


def test_the_experiment_runs_and_goes_on_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {name: ROWS[name] for name in ("paper", "vision-only", "vit", "witness")}
    for module in (states_cells, states_tables):
        monkeypatch.setattr(module, "ROWS", rows)
    file = tmp_path / "cells.json"
    result = states.result(TINY, file, 1, lambda _: None)
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["experiment"] == "states"
    assert [row[0] for row in result.tables[0].rows] == [LABELS, *rows]
    monkeypatch.setattr(states, "measured", lambda cell, options: pytest.fail("measured again"))
    assert states.result(TINY, file, 1, lambda _: None).to_json() == result.to_json()


def test_an_interrupted_run_measures_only_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Cell] = []

    def stop_at_seven(cell: Cell, options: StatesExperimentOptions) -> Found:
        asked.append(cell)
        if len(asked) == 7:
            raise KeyboardInterrupt
        return invented(cell, options)

    monkeypatch.setattr(states, "measured", stop_at_seven)
    file, cells = tmp_path / "deep" / "cells.json", planned(TINY)
    with pytest.raises(KeyboardInterrupt):
        measured_cells(TINY, file=file)
    news: list[str] = []
    found = measured_cells(TINY, file=file, report=news.append)
    assert asked == [*cells[:7], *cells[6:]]
    assert found == {cell: invented(cell, TINY) for cell in cells}
    assert news[-1].startswith(f"{len(cells)} of {len(cells)} cells")
    # Other options: measured again, and the old ones stay.
    longer = replace(TINY, witnesses=replace(BRIEF, epochs=3))
    asked.clear()
    monkeypatch.setattr(states, "measured", lambda cell, options: asked.append(cell) or invented(cell, options))
    measured_cells(longer, file=file)
    assert {cell.row for cell in asked} == {"witness"}
    asked.clear()
    measured_cells(TINY, file=file)
    assert not asked


def test_no_cell_is_begun_when_the_time_is_over(tmp_path: Path) -> None:
    assert measured_cells(TINY, seconds=0) == {}
    assert measured_cells(TINY, seconds=0, jobs=2) == {}


def test_a_file_of_something_else_is_named(tmp_path: Path) -> None:
    file = tmp_path / "cells.json"
    for content in ("[{]", '[{"video": 1}]', "7"):
        file.write_text(content)
        with pytest.raises(InputError, match="remove it"):
            measured_cells(TINY, file=file)


def test_processes_find_the_same(tmp_path: Path) -> None:
    cells = [Cell(row, "Perform CPR", 1, 0.25, 7.2) for row in (LABELS, PROBE)]
    assert filled_in(cells, partial(measured, options=TINY), jobs=2) == {cell: measured(cell, TINY) for cell in cells}


def test_the_program_needs_neither_the_command_line_nor_pictures() -> None:
    """And PyTorch only where a cell needs it; that `msg2.states` needs no more either, the layers of the house say."""
    code = (
        "import sys, msg2.experiments.states;"
        "print([name for name in sys.modules if name in ('typer', 'rich', 'pygraphviz', 'sklearn', 'torch')"
        " or name.startswith(('msg2.drawing', 'msg2.pipeline', 'msg2.cli'))])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_presence_ranks_the_steps_that_the_labels_lack() -> None:
    scores = np.array([[0.0, 0.3, 0.1, 0.2], [9.0, 0.4, 0.9, 0.6]])  # the highest: 9, 0.4, 0.9, 0.6; a is labelled
    reading = SimpleNamespace(video="v", scores=scores, labelled=np.array([True, False, False, False]))
    model: Any = SimpleNamespace(readings=lambda: [reading])
    performed = Task("t", "abcd", [Video("v", [Segment("a", 0, 1), Segment("c", 1, 2), Segment("b", 2, 3)])])
    assert presence(model, performed) == 0.5  # c is above d, b is below it


def test_an_experiment_of_minutes_has_no_jobs() -> None:
    ran = CliRunner().invoke(app, ["experiment", "recovery", "--jobs", "2"])
    assert ran.exit_code == 2
    assert "no --jobs" in ran.stderr


def test_the_ablation_is_the_mean_of_its_cells(outcome: Outcome) -> None:
    table = states_tables.ablation(outcome)
    found = line(table, "paper")
    accuracy = [[100 * invented(Cell("paper", name, seed, 0.25, 7.2), TWO)["completion"]["accuracy"]
                 for name in TWO.worlds or ()] for seed in TWO.seeds]  # fmt: skip
    assert found["(b)"] == pytest.approx(mean(row[1] for row in accuracy))
    assert found["average"] == pytest.approx(mean(map(mean, accuracy)))
    assert found["± seeds"] == pytest.approx(pstdev(map(mean, accuracy)))
    assert found["paper's average"] == 74.24
    assert line(table, "vit")["± seeds"] is None
    assert line(table, "witness")["paper's average"] is None


def test_added_labels_are_pooled(outcome: Outcome) -> None:
    cells = [outcome.cells[Cell("witness", name, seed, 0.25, 7.2)]["additions"]
             for name in TWO.worlds or () for seed in TWO.seeds]  # fmt: skip
    right, added = (sum(one[name] for one in cells) for name in ("right", "added"))
    found = line(states_tables.qualities(outcome), "witness")
    assert found["precision of added labels"] == pytest.approx(100 * right / added)
    assert found["recall"] == pytest.approx(100 * right / 80)
    assert found["added per video"] == pytest.approx(added / 4 / 6)


def test_gains_are_paired_and_judged(outcome: Outcome) -> None:
    pairs = [
        [outcome.cells[Cell(row, name, seed, 0.25, 7.2)]["graphs"]["0.8"]["spoc"] for row in ("witness", LABELS)]
        for name in TWO.worlds or () for seed in TWO.seeds
    ]  # fmt: skip
    gained = 100 * mean(after - before for after, before in pairs)
    assert line(states_tables.gains(outcome, 0.25, ["witness"], TWO.seeds), "witness", "0.8")["SPOC"] == pytest.approx(
        gained
    )
    judged = line(states_tables.bar(outcome, "witness"), "gain of SPOC, δ 0.8")
    assert judged["found"] == pytest.approx(gained)
    assert judged["met"] == ("yes" if gained >= 2 else "no")
    before = line(states_tables.graphs(outcome, 0.25, [LABELS], TWO.seeds), LABELS, "0.8")["SPOC"]
    after = line(states_tables.graphs(outcome, 0.25, ["witness"], TWO.seeds), "witness", "0.8")["SPOC"]
    assert after - before == pytest.approx(gained)  # type: ignore[operator]


def test_the_curve_has_a_line_per_difficulty(outcome: Outcome) -> None:
    table = states_tables.curve(outcome)
    assert [row[0] for row in table.rows] == list(TWO.clutters)
    easy = [outcome.cells[Cell(PROBE, name, 1, 0.25, 4.0)]["accuracy"] for name in TWO.worlds or ()]
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
    found = mean_of(np.array([[1.0, np.nan], [3.0, np.nan]]), 0)
    assert found[0] == 2
    assert np.isnan(found[1])


def test_the_papers_ablation_adds_up() -> None:
    """Typing slips would show: the paper's averages are those of its rows."""
    assert {one.printed for one in ROWS.values() if one.printed} | {"Ours"} == set(paper.STATES)
    for *tasks, average in paper.STATES.values():
        assert len(tasks) == 12
        assert mean(tasks) == pytest.approx(average, abs=0.006)

"""Each experiment on something small, its cells recomputed by hand."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from experiments import paper_results
from experiments.experiment_options import ExperimentOptions
from experiments.forecasting import next_step_labels
from experiments.graph_learning import exact_recovery, household_graphs
from experiments.graph_learning.household_graphs import GraphMethod
from experiments.result_tables import Result
from experiments.state_prediction import state_cells
from msg2 import metrics
from msg2.drawing.plots import dot_plot
from msg2.graph import SubtaskGraph, all_of, any_of, step
from msg2.graph.formula import probability
from msg2.inference import infer
from msg2.progress import no_progress
from msg2.simulation import Simulation, World, household_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Segment, Task, Video
from tests.experiments.progress_recorder import ProgressRecorder

TINY = ExperimentOptions(splits=2, world_seeds=2, random_worlds=1)


def column(result: Result, table: int, name: str) -> dict[Any, Any]:
    """First cell of every row -> its cell in this column."""
    found = result.tables[table]
    return {row[0]: row[list(found.columns).index(name)] for row in found.rows}


def check_writable(result: Result) -> None:
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["experiment"] == result.experiment
    assert all(f"### {table.title}" in result.to_markdown() for table in result.tables)
    assert not any(result.chart.values()) or dot_plot(result.chart, "a chart")


def test_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    two = (household_world("Perform CPR"), household_world("Make Coffee"))
    monkeypatch.setattr(household_graphs, "household_worlds", lambda: two)
    monkeypatch.setattr(household_graphs, "ROWS", {"msgi": GraphMethod("msgi"), "msg2": GraphMethod("msg2:delta=0.8")})
    reported = ProgressRecorder()
    result = household_graphs.run(None, TINY, reported)
    check_writable(result)
    assert len(reported) == 4
    # A null graph is right about a step as often as its precondition holds in a random state, and N/A in compatibility.
    null = mean(mean(float(probability(w.graph.precondition(name))) for name in w.graph.steps) for w in two)
    assert column(result, 0, "accuracy")["msgi"] == pytest.approx(100 * null)
    assert column(result, 0, "compatibility")["msgi"] is None
    assert null < column(result, 0, "accuracy")["msg2"] / 100 <= 1
    assert 0 < column(result, 0, "compatibility")["msg2"] <= 100
    per_world = column(result, 2, "msg2")
    assert mean(per_world.values()) == pytest.approx(column(result, 0, "accuracy")["msg2"])
    assert list(per_world) == [w.name for w in two]
    assert column(result, 1, "accuracy") == {row: values[0] for row, values in paper_results.GRAPHS.items()}
    assert household_graphs.run(None, TINY, reported).to_json() == result.to_json()


def test_graphs_of_labels_that_were_filled_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With a predictor that knows everything in the place of a trained one."""
    coffee = household_world("Make Coffee")
    monkeypatch.setattr(household_graphs, "household_worlds", lambda: (coffee,))
    monkeypatch.setattr(
        household_graphs,
        "ROWS",
        {"alone": GraphMethod("msg2:delta=0.8"), "full": GraphMethod("msg2:delta=0.8", "paper")},
    )
    asked: list[str] = []

    def all_knowing(row: str, simulation: Simulation, *_: Any) -> Task:
        asked.append(row)
        return state_cells.complete_labels(simulation)

    monkeypatch.setattr(household_graphs, "fill_labels_with", all_knowing)
    options = ExperimentOptions(world_seeds=1, folder=tmp_path)
    result = household_graphs.run(None, options, no_progress)
    simulation = simulate(coffee, SimulationOptions(), 0)
    graph = infer(state_cells.complete_labels(simulation).with_first_labels(), "msg2", delta=0.8)
    expected = metrics.score_graph(graph, coffee.graph, simulation.task.with_first_labels())
    assert column(result, 0, "accuracy")["full"] == pytest.approx(100 * expected.accuracy)
    assert column(result, 0, "compatibility")["full"] == pytest.approx(100 * (expected.compatibility or 0))
    assert column(result, 0, "accuracy")["alone"] != column(result, 0, "accuracy")["full"]
    assert household_graphs.run(None, options, no_progress).to_json() == result.to_json()
    assert asked == ["paper"]  # the second time it was known
    monkeypatch.setattr(household_graphs, "states_extra_installed", lambda: False)
    without = household_graphs.run(None, options, no_progress)
    assert list(column(without, 0, "accuracy")) == ["alone"]
    assert "left out" in without.to_markdown()


def test_recovery(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_recovery, "VIDEOS", 300)
    monkeypatch.setattr(exact_recovery, "ROWS", {"always-before": ("always-before", {}), "nothing": ("msgi", {})})
    result = exact_recovery.run(None, TINY, no_progress)
    check_writable(result)
    for table in (0, 1):  # no ORs: exact recovery, and there are no preconditions with an OR
        assert column(result, table, "graphs, percent") == {"always-before": 100, "nothing": 0}
        assert column(result, table, "preconditions without OR, percent") == {"always-before": 100, "nothing": 0}
        assert column(result, table, "preconditions with OR, percent") == {"always-before": None, "nothing": None}
    assert column(result, 2, "preconditions with OR, percent") == {"always-before": 0, "nothing": 0}


def test_recovery_compares_what_can_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """A redundant condition counts as recovered, a missing branch does not."""
    a, b, c = map(step, "abc")
    truth = SubtaskGraph("t", "abcd", {"b": a, "c": b, "d": any_of([b, c])})
    wordy = SubtaskGraph("t", "abcd", {"b": a, "c": all_of([a, b]), "d": b})
    monkeypatch.setattr(exact_recovery, "SETTINGS", exact_recovery.SETTINGS[:1])
    monkeypatch.setattr(exact_recovery, "ROWS", {"wordy": ("msg2", {})})
    monkeypatch.setattr(exact_recovery, "random_world", lambda shape, seed: World(truth))
    monkeypatch.setattr(exact_recovery, "infer", lambda task, method, **options: wordy)
    result = exact_recovery.run(None, TINY, no_progress)
    # d needs b | c, and c needs b: whoever can do d has done b, so the reduction of the truth is b alone.
    assert column(result, 0, "preconditions without OR, percent") == {"wordy": 100}
    assert column(result, 0, "graphs, percent") == {"wordy": 100}


def test_next_step(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = list(paper_results.NEXT_STEP)[:2]
    videos = [Video(str(number), map(Segment, "abc")) for number in range(10)]
    tasks = [Task(names[0], "abc", videos), Task(names[1], "abc", [Video(v.id, v.segments[:2]) for v in videos])]
    asked: list[Path] = []

    def read_all(path: Path) -> list[Task]:
        asked.append(path)
        return tasks

    monkeypatch.setattr(next_step_labels, "read_all", read_all)
    reported = ProgressRecorder()
    result = next_step_labels.run(tmp_path, TINY, reported)
    check_writable(result)
    assert asked == [tmp_path / "crosstask" / "crosstask_release"]
    assert reported == names
    # Always a, b, c. In the second task c is never seen, so nothing tells a graph that it is not as good a start as a.
    assert column(result, 0, "msg2") == {names[0]: 100, names[1]: 75, "mean": 87.5, "spread over splits": 0}
    assert column(result, 0, "bigram")["mean"] == 100
    # The null graph guesses: 1/3, 1/2 and 1 right in a video of three steps, 1/3 and 1/2 in one of two.
    null = [100 * mean([1 / 3, 1 / 2, 1]), 100 * mean([1 / 3, 1 / 2])]
    assert [column(result, 0, "msgi")[name] for name in names] == pytest.approx(null)
    assert column(result, 0, "msgi")["mean"] == pytest.approx(mean(null))
    assert column(result, 0, "paper MSG²-noSSP")["mean"] == 53.39
    assert [len(values) for values in result.facts["splits"]["msg2"].values()] == [2, 2]


def test_the_papers_numbers_add_up() -> None:
    """Typing slips would show: the paper's means are those of its rows."""
    assert len(paper_results.NEXT_STEP) == 18
    for position, printed in enumerate(paper_results.NEXT_STEP_MEAN):
        assert mean(row[position] for row in paper_results.NEXT_STEP.values()) == pytest.approx(printed, abs=0.006)

"""The figures: pictures and tables say the same, and what the command line may ask of them."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from experiments.__main__ import app
from experiments.experiment_options import ExperimentOptions
from experiments.paper_figures import completion_figure, figures_study, search_figure
from experiments.paper_figures.graph_panels import Panel, graph_panels
from experiments.paper_figures.search_trace import SearchRound
from experiments.plots import search_plot
from experiments.result_tables import Table
from msg2.drawing.plots import timeline
from msg2.errors import InputError
from msg2.graph import TRUE, SubtaskGraph, all_of, step
from msg2.inference import infer
from msg2.inference.result import Candidate
from msg2.progress import no_progress
from msg2.task import Segment, Video

QUICK = ExperimentOptions.for_quick_look()


def texts(svg: str | bytes) -> list[str]:
    """What is written in a picture (matplotlib draws letters, and says in a comment which)."""
    text = svg if isinstance(svg, str) else svg.decode()
    return re.findall(r"<!-- (.*) -->", text) or [
        "".join(one.itertext()) for one in ET.fromstring(text).iter() if one.tag.endswith("text")
    ]


# -- graphs beside the truth ----------------------------------------------------------------------------------------


def test_a_sheet_shows_every_graph_with_its_differences() -> None:
    a, b = step("a"), step("b")
    truth = SubtaskGraph("t", "abc", {"b": a, "c": b})
    learnt = SubtaskGraph("t", "abc", {"b": a, "c": a})
    text = graph_panels(Panel("truth <&>", "", truth), [Panel("learnt", "1 & 1", learnt), Panel("same", "", truth)])
    ET.fromstring(text)
    assert [text.count(f'"edge {status}') for status in ("common", "redundant", "missing")] == [2 + 1 + 2, 1, 1]
    assert not re.search(r' id="', text)
    assert [line for line in texts(text) if line.startswith(("truth", "learnt", "same"))] == [
        "truth <&>", "learnt1 & 1", "same",
    ]  # fmt: skip


def test_the_table_counts_the_arrows_of_the_sheet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures_study, "METHODS", ("always-before", "msg2"))
    table = figures_study._compare_graphs("Perform CPR", tmp_path, no_progress)
    notes = [line for line in texts((tmp_path / "figures-graphs-perform-cpr.svg").read_text("utf-8")) if "F1" in line]
    for (method, right, redundant, missing, f1), note in zip(table.rows, notes, strict=True):
        assert note == f"{method}{right} edges in both, {redundant} redundant, {missing} missing (F1 {f1:.2f} %)"
        assert right + missing == 9  # the edges of the true graph
        assert f1 == pytest.approx(200 * right / (2 * right + redundant + missing))


# -- the search -----------------------------------------------------------------------------------------------------


def test_what_the_search_finds_is_what_is_learnt(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    asked = replace(QUICK, task=" perform CPR", step="give chest compressions", folder=tmp_path)
    task = search_figure._find_task("Perform CPR", None)
    for table, (kind, literals) in zip(
        search_figure.search_tables(None, asked, no_progress), search_figure.SEARCHES.items(), strict=True
    ):
        graph = infer(task, "msg2", max_literals=literals)
        (found,) = (row for row in table.rows if row[3] == "found")
        assert found[1] == graph.precondition("give chest compressions").to_english()
        assert found[2] == pytest.approx(graph.evidence["give chest compressions"]["score"])
        shown = texts((tmp_path / f"figures-search-{kind}.svg").read_bytes())
        for row in table.rows:
            assert row[1] in shown
            assert f" {row[2]:.2f}" in shown


def test_without_a_step_it_is_the_last_and_a_first_step_is_not_searched_for(tmp_path: Path) -> None:
    last, _ = search_figure.search_tables(None, QUICK, no_progress)
    assert last.title == "Repot Plant: the exhaustive search for what 'water plant' needs"
    asked = replace(QUICK, task="Perform CPR", step="check scene safety", folder=tmp_path)
    for table in search_figure.search_tables(None, asked, no_progress):
        assert not table.rows
        assert "no step comes before it" in table.notes[-1]
    assert not list(tmp_path.iterdir())


def test_tasks_of_crosstask_are_read_where_they_are(data: Path) -> None:
    asked = replace(QUICK, task="Change a Tire", step="unscrew wheel")
    exhaustive, _ = search_figure.search_tables(data, asked, no_progress)
    assert exhaustive.rows[0][1:3] == ["'jack up'", pytest.approx(1.8271604938271604)]  # as on the page of the tutorial
    with pytest.raises(InputError, match="has no step 'x'"):
        search_figure.search_tables(data, replace(asked, step="x"), no_progress)
    with pytest.raises(InputError, match=r"no world called 'Change a Tire'(.|\n)*--data"):
        search_figure.search_tables(None, asked, no_progress)


def test_a_search_is_drawn_the_same_twice_whatever_the_names() -> None:
    pytest.importorskip("matplotlib")
    a, b = step("a $5 <b>"), step("b" * 200)
    rounds = [
        SearchRound((Candidate(TRUE, 1.0),), "goes on"),
        SearchRound((Candidate(a, 1.5), Candidate(b, -0.25)), "found"),
        SearchRound((Candidate(all_of([a, b]), 1.5),), "no better"),
    ]
    picture = search_plot(rounds, "t")
    assert picture == search_plot(rounds, "t")
    assert [line for line in texts(picture) if ":" in line] == [
        "Nothing needed: the search goes on", "One step: found", "2 steps: nothing better",
    ]  # fmt: skip


# -- completion -----------------------------------------------------------------------------------------------------


def test_the_truth_is_a_line_under_the_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    axes = pytest.importorskip("matplotlib.axes").Axes
    drawn: list[Any] = []
    plot = axes.plot
    monkeypatch.setattr(axes, "plot", lambda self, x, y, **how: (drawn.append((x, y)), plot(self, x, y, **how))[1])
    video = Video("v", [Segment("a", 0, 2), Segment("b", 3, 4, 0.9, "predicted")])
    truth = Video("v", [Segment("a", 0, 3), Segment("a", 7, 8), Segment("c", 5, 6)])
    assert "really completed" in timeline(video, "abc", 10, performed=truth).decode()
    assert [(x, y[0] // 1) for x, y in drawn if x[1] == 10] == [([3, 10], 0), ([6, 10], 2)]
    assert "really completed" not in timeline(video, "abc", 10).decode()


def test_labels_and_what_was_inferred_stand_beside_the_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(completion_figure, "WORLD", "Perform CPR")
    table = completion_figure.completion_table(replace(QUICK, folder=tmp_path), no_progress)
    assert len(table.rows) == 8
    for _, labelled, inferred, confidence, _ in table.rows:
        assert labelled is None or inferred is None
        assert (inferred is None) == (confidence is None)
    ends = [row[-1] for row in table.rows if row[-1] is not None]
    assert ends == sorted(ends)
    assert sum(row[-1] is not None and row[1] is None for row in table.rows) >= 2  # it was chosen for that
    assert "Perform CPR, video" in (tmp_path / "figures-completion.svg").read_text("utf-8")


# -- the whole ------------------------------------------------------------------------------------------------------


@pytest.fixture
def without_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if PyTorch were not installed."""
    monkeypatch.setitem(sys.modules, "torch", None)


@pytest.mark.usefixtures("without_states")
def test_without_the_extra_the_rest_is_there_and_says_so(tmp_path: Path) -> None:
    made = figures_study.run(None, replace(QUICK, folder=tmp_path), no_progress)
    assert [len(table.rows) > 0 for table in made.tables] == [True] * 4
    assert made.tables[1] == Table("Completion", ["left out"], [[made.tables[1].rows[0][0]]])
    assert "pip install 'msg2[video]'" in str(made.tables[1].rows[0][0])
    assert "figures-graphs-perform-cpr.svg" in {path.name for path in tmp_path.iterdir()}


def test_only_figures_take_a_task_and_a_step() -> None:
    run = CliRunner().invoke
    for option in ("--task", "--step"):
        refused = run(app, ["graphs", option, "x"])
        assert refused.exit_code == 2
        assert f"graphs has no {option}" in refused.output

"""`msg2 compare`: what two graphs agree and differ in, in words, as JSON and drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

import msg2 as package
from msg2 import metrics
from msg2.graph import SubtaskGraph, step


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """The graph of `graph`, but that frying comes after heating, if done, which is optional."""
    graph = SubtaskGraph(
        "toast", ["whisk", "dip", "fry", "heat"], {"dip": step("whisk"), "fry": step("dip")},
        order=[("heat", "fry")], optional=["heat"],
    )  # fmt: skip
    return graph.save(tmp_path / "other.json")


def test_what_differs_is_printed(msg2, graph: Path, other: Path) -> None:
    ran = msg2("compare", graph, other)
    assert (ran.code, ran.err) == (0, "")
    rows = [line.split() for line in ran.out.splitlines()]
    assert ["pairs", "toast", "other", "both"] in rows
    assert ["needs", "3", "3", "3"] in rows
    assert ["heat", "fry", "free", "after"] in rows
    assert "Optional only in other: heat." in ran.out
    assert "agree on 83.33 % of the pairs" in ran.out
    assert "step that needs" not in ran.out
    same = msg2("compare", graph, graph).out
    assert "agree on 100.00 %" in same
    assert "before" not in same


def test_the_json_is_that_of_the_library(msg2, graph: Path, truth: Path) -> None:
    found = metrics.compare_graphs(package.load(graph), package.load(truth))
    assert msg2("compare", graph, truth, "--json").json == found.to_json()


def test_it_is_drawn_as_show_draws_it(msg2, graph: Path, truth: Path, tmp_path: Path) -> None:
    drawn, shown = tmp_path / "compared.svg", tmp_path / "shown.svg"
    assert msg2("compare", graph, truth, "-o", drawn).out.endswith(f"{drawn}\n")
    assert msg2("show", graph, "--compare", truth, "-o", shown).code == 0
    assert drawn.read_bytes() == shown.read_bytes()
    assert "cannot show a comparison" in msg2("compare", graph, truth, "-o", tmp_path / "t.json").complaint
    assert not (tmp_path / "t.json").exists()


def test_graphs_of_other_steps_are_refused(msg2, graph: Path, tmp_path: Path) -> None:
    other = SubtaskGraph("toast", ["whisk", "dip", "fry"], {}).save(tmp_path / "o.json")
    told = msg2("compare", graph, other, "-o", tmp_path / "x.svg").complaint
    assert "the step 'heat' is in the first graph but not in the second graph" in told
    assert not (tmp_path / "x.svg").exists()

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
    assert "agree on 83 % of the pairs" in ran.out
    assert "fry needs" not in ran.out
    assert "truth" not in ran.out
    same = msg2("compare", graph, graph).out
    assert "agree on 100 %" in same
    assert "before" not in same


def test_only_what_is_given_as_the_truth_is_called_that(msg2, graph: Path, other: Path, truth: Path) -> None:
    ran = msg2("compare", graph, other, "--truth", truth)
    rows = [line.split() for line in ran.out.splitlines()]
    assert ["heat", "fry", "free", "after", "needs"] in rows  # neither is right
    assert "Of the pairs, toast has 83 % as in the truth, other 83 %." in ran.out
    alone = msg2("compare", graph, "--truth", truth).out
    assert ["pairs", "toast", "truth", "both"] in [line.split() for line in alone.splitlines()]
    assert "fry needs\n  toast: 'dip'\n  truth: 'dip' and 'heat'" in alone
    assert msg2("compare", graph).code == 2


def test_what_a_constraint_changed(msg2, table: Path, graph: Path, tmp_path: Path) -> None:
    after = tmp_path / "after.json"
    known = ["--method", "msg2", "--set", "delta=0.9", "--require", "heat<fry"]
    assert msg2("infer", table, "-o", after, *known).code == 0
    rows = [line.split() for line in msg2("compare", graph, after).out.splitlines()]
    assert ["heat", "fry", "free", "needs"] in rows


def test_pairs_that_only_follow_are_counted(msg2, tmp_path: Path) -> None:
    chain = SubtaskGraph("t", "abc", {"b": step("a"), "c": step("b")}).save(tmp_path / "chain.json")
    free = SubtaskGraph("t", "abc", {}).save(tmp_path / "free.json")
    said = msg2("compare", chain, free).out
    assert "1 more pair differs, which follows from other steps: --json lists it." in said
    assert "a       c" not in said


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
    other = SubtaskGraph("toast", ["boil", "pour"], {}).save(tmp_path / "o.json")
    assert "the two graphs do not share two steps" in msg2("compare", graph, other).complaint


def test_steps_of_one_graph_only_are_named(msg2, graph: Path, tmp_path: Path) -> None:
    other = SubtaskGraph("toast", ["whisk", "dip", "fry"], {}).save(tmp_path / "o.json")
    assert "Steps only in toast, which are left out here: 'heat'." in msg2("compare", graph, other).out
    told = msg2("compare", graph, other, "-o", tmp_path / "x.svg").complaint
    assert "the step 'heat' is in the first graph but not in the second graph" in told
    assert not (tmp_path / "x.svg").exists()

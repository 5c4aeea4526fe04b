"""`msg2 plan`: the ways to a goal, as the library finds them."""

from __future__ import annotations

from pathlib import Path

import msg2 as package
from tests.cli.conftest import Msg2


def test_plans_with_probabilities(msg2: Msg2, graph: Path, table: Path) -> None:
    found = msg2("plan", graph, "--goal", "fry", "--done", "whisk", "--data", table, "--json").json
    assistant = package.Assistant(package.load(graph), package.read(table, repeats="keep"))
    assistant.accept("whisk")
    assert (found["task"], found["goal"], found["done"]) == ("toast", "fry", ["whisk"])
    assert found["plans"] == [plan.to_json() for plan in assistant.plan("fry", k=3)]
    assert found["plans"][0]["steps"] == ["dip", "fry"]
    lines = msg2("plan", graph, "--goal", "fry", "--done", "whisk", "--data", table).out.splitlines()
    assert lines[0].startswith("1. dip, then fry  (")


def test_a_graph_alone_gives_the_shortest(msg2: Msg2, graph: Path) -> None:
    assert msg2("plan", graph, "--goal", "fry").out == "1. whisk, then dip, then fry\n"
    (plan,) = msg2("plan", graph, "--goal", "fry", "--json").json["plans"]
    assert (plan["probability"], plan["exact"]) == (None, True)
    assert plan["reason"] == "3 steps to 'fry', each possible when it comes"
    longer = msg2("plan", graph, "--goal", "fry", "--length", 4, "-k", 1)
    assert longer.out == "1. heat, then whisk, then dip, then fry\n"


def test_what_cannot_be_planned(msg2: Msg2, graph: Path, table: Path) -> None:
    assert "did you mean 'fry'" in msg2("plan", graph, "--goal", "fri").complaint
    assert "already done" in msg2("plan", graph, "--goal", "dip", "--done", "dip").complaint
    assert msg2("plan", graph, "--goal", "fry", "--length", 1).complaint
    assert msg2("plan", graph, "--goal", "fry", "--overlap", "start").code == 2

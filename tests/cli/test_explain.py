"""`msg2 explain`: every edge with its kind, support and confidence, the surest first."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

import msg2 as package
from msg2.graph import SubtaskGraph, step

STEPS = ["boil", "honey", "milk", "pour", "stir", "sugar"]
EVIDENCE = {
    "pour": {"videos": 12, "edges": {"boil": {"before": 9, "together": 10, "probability": 0.97}}},
    "stir": {"videos": 12, "edges": {"sugar": {"before": 3, "together": 3, "weak": True}}},
    "honey": {"videos": 4, "exclusive": {"sugar": 1}},
    "sugar": {"videos": 7, "exclusive": {"honey": 1}},
}


@pytest.fixture
def tea(tmp_path: Path) -> Path:
    """Sugar or honey; milk needs the tea, without any evidence."""
    graph = SubtaskGraph(
        "tea", STEPS, {"pour": step("boil"), "milk": step("pour")}, None, EVIDENCE,
        order=[("sugar", "stir")], exclusive=[["honey", "sugar"]],
    )  # fmt: skip
    return graph.save(tmp_path / "tea.json")


def test_the_surest_come_first_then_those_with_few_videos_then_those_without_evidence(msg2, tea: Path) -> None:
    edges = msg2("explain", tea, "--json").json["edges"]
    assert [(e["before"], e["after"], e["kind"], e["confidence"]) for e in edges] == [
        ("boil", "pour", "needs", 0.97),
        ("honey", "sugar", "exclusive", 0.9),
        ("sugar", "stir", "after", 1.0),
        ("pour", "milk", "needs", None),
    ]
    assert (edges[0]["together"], edges[0]["share"], edges[0]["weak"]) == (10, 0.9, False)
    assert (edges[1]["supporting"], edges[1]["opposing"]) == (9, 1)  # 4 + 7 videos, one of them with both
    rows = [line.split() for line in msg2("explain", tea).out.splitlines()]
    assert rows[1:] == [
        ["boil", "pour", "needs", "9", "1", "97", "%"],
        ["honey", "sugar", "exclusive", "9", "1", "90", "%"],
        ["sugar", "stir", "after", "3", "0", "100", "%", "weak:", "few", "tell"],
        ["pour", "milk", "needs", "N/A", "N/A", "N/A"],
    ]


def test_the_table_has_the_columns_of_the_data_frame(msg2, tea: Path, graph: Path) -> None:
    pytest.importorskip("pandas")
    rows = list(csv.DictReader(io.StringIO(msg2("explain", tea, "--csv").out)))
    frame = SubtaskGraph("t", "a", {}).to_dataframe()
    assert list(rows[0]) == ["task", *frame.columns]
    assert [row["confidence"] for row in rows] == ["0.97", "0.9", "1.0", ""]
    learnt = [(edge["before"], edge["after"]) for edge in msg2("explain", graph, "--json").json["edges"]]
    assert set(learnt) == package.load(graph).edge_pairs()


def test_one_step_in_words(msg2, tea: Path) -> None:
    ran = msg2("explain", tea, "--step", "sugar")
    assert "A run does it or 'honey' (9 of 10 videos), never both." in ran.out
    found = msg2("explain", tea, "--step", "sugar", "--json").json
    assert found["step"] == "sugar"
    assert found["explanation"] == ran.out.splitlines()[: len(found["explanation"])]
    assert [(edge["before"], edge["after"]) for edge in found["edges"]] == [("honey", "sugar"), ("sugar", "stir")]
    assert "'salt' is not a step of the graph" in msg2("explain", tea, "--step", "salt").complaint


def test_a_graph_without_edges(msg2, tmp_path: Path) -> None:
    path = SubtaskGraph("t", "ab", {}).save(tmp_path / "g.json")
    assert msg2("explain", path).out == "Nothing relates two of its steps.\n"
    assert msg2("explain", path, "--json").json == {"task": "t", "edges": []}


def test_two_ways_to_print_are_one_too_many(msg2, tea: Path) -> None:
    assert msg2("explain", tea, "--json", "--csv").code == 2

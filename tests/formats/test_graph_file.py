"""Graph files: ours and CaptainCook4D task graphs, and everything that can be wrong with one."""

from __future__ import annotations

import json
from pathlib import Path

import networkx
import pytest

from msg2.errors import InputError
from msg2.formats import read_graph
from msg2.graph import SubtaskGraph, all_of, any_of, step

COFFEE = SubtaskGraph("coffee", ["boil", "grind", "open", "pour"], {
    "pour": all_of([step("boil"), any_of([step("grind"), step("open")])])
})  # fmt: skip


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    path.write_text(COFFEE.dumps())
    assert read_graph(path) == COFFEE
    path.write_text("\ufeff" + json.dumps(COFFEE.to_json()))  # one line, as JSON Lines would be
    assert read_graph(path) == COFFEE


def test_a_task_graph(tmp_path: Path) -> None:
    path = tmp_path / "tea.json"
    steps = {"0": "START", "1": "boil", "2": "pour", "3": "END", "7": "add"}
    path.write_text(json.dumps({"steps": steps, "edges": [[0, 1], [1, 7], [1, 2], [7, 2], [2, 3], [0, 7]]}))
    expected = SubtaskGraph("tea", ["boil", "pour", "add"], {
        "add": step("boil"), "pour": all_of([step("add"), step("boil")])
    })  # fmt: skip
    assert read_graph(path) == expected


def test_the_real_task_graphs(data: Path) -> None:
    files = sorted((data / "captaincook4d" / "task_graphs").glob("*.json"))
    assert len(files) == 24
    for file in files:
        graph, value = read_graph(file), json.loads(file.read_text())
        plain = networkx.DiGraph([(value["steps"][str(a)], value["steps"][str(b)]) for a, b in value["edges"]])
        plain.remove_nodes_from(["START", "END"])
        assert graph.edge_pairs() == set(plain.edges)
        assert set(graph.steps) == set(value["steps"].values()) - {"START", "END"}
        assert graph.task == file.stem


GOOD = '{"format": "msg2.graph/1", "task": "t", "steps": ["a", "b"], "preconditions": %s}'


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is not a graph file"),
        (b"steps", "is not a graph file"),
        (b"\xff\xfe{", r"byte 0 \(0xff\) is not UTF-8 text"),
        (b'{"task": "\xe9"}', r"row 1: byte 10 \(0xe9\) is not UTF-8 text"),
        (b"{", "row 1: is not valid JSON"),
        (b'{"a": 1, "a": 2}', "the key 'a' is there twice"),
        (b'{"a": NaN}', "has NaN"),
        (b'{"a": -Infinity}', "has -Infinity"),
        (b"[]", r"g.json: is not a JSON object"),
        (b"{}", r"g.json, format: is missing"),
        (b"[" * 200_000, "is nested too deeply"),
        ((GOOD % ('{"b": ' + '{"not": ' * 500 + '"a"' + "}" * 501)).encode(), "nested more than 100 levels deep"),
        ((GOOD % '{"b": {"all": ["a", "c"]}}').encode(), r"g.json, preconditions of 'b': 'c' is not among"),
        ((GOOD % '{"b": "a", "a": "b"}').encode(), r"g.json, preconditions: the preconditions form a cycle"),
        (b'{"steps": {"1": "a"}, "edges": [[1, 2]]}', r"\$.edges\[0\]: is not a pair of step ids"),
        (b'{"steps": {"1": "a"}, "edges": [1]}', r"\$.edges\[0\]: is not a list"),
        (b'{"steps": {"1": 2}, "edges": []}', r"\$.steps.1: is not text"),
        (b'{"steps": {"1": "a", "2": "a"}, "edges": []}', "the graph has the step 'a' twice"),
        (b'{"steps": {"1": "a", "2": "b"}, "edges": [[1, 2], [2, 1]]}', "form a cycle"),
    ],
)
def test_broken_files(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "g.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=complaint) as caught:
        read_graph(path)
    assert "g.json" in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 3


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder, not a graph file"):
        read_graph(tmp_path)


def test_a_task_graph_on_one_line_is_no_row_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "toast.json"
    path.write_text(json.dumps({"step": 1, "steps": {"0": "fry", "1": "flip"}, "edges": [[0, 1]]}))
    assert read_graph(path).edge_pairs() == {("fry", "flip")}

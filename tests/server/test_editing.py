"""Graphs drawn by hand, and merged by majority."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fastapi.testclient import TestClient

from msg2.graph import Formula, SubtaskGraph, all_of, any_of, step
from msg2.inference.merging import merge_graphs
from tests.server.conftest import learnt, refused, uploaded

A, B, C = map(step, "abc")


def drawn(client: TestClient, formula: Formula, by: str) -> Any:
    graph = SubtaskGraph("tea", "abcd", {"d": formula}, {"name": "by hand", "annotator": by})
    answer = client.post("/api/drawn", json={"graph": graph.to_json()})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_drawing_is_laid_out_and_a_cycle_named(client: TestClient) -> None:
    graph = SubtaskGraph("tea", ["pour", "boil"], {"pour": step("boil")})
    picture = client.post("/api/draw", json={"graph": graph.to_json()}).json()
    assert picture["graph"] == graph.to_json()
    names = re.findall(r'<g id="(s\d+)"', picture["svg"])
    assert sorted(names) == ["s0", "s1"]  # in the order of picture["graph"]["steps"]
    circle = {**graph.to_json(), "preconditions": {"pour": "boil", "boil": "pour"}}
    told = refused(client.post("/api/draw", json={"graph": circle}))
    assert told == "the preconditions form a cycle: 'boil' needs 'pour' needs 'boil'"
    assert refused(client.post("/api/drawn", json={"graph": circle})) == told
    assert client.get("/api/work").json() == {"work": []}


def test_a_drawing_is_kept_and_replaced(client: TestClient) -> None:
    first = drawn(client, A, "Ann")
    assert (first["kind"], first["name"], first["task"], first["edges"]) == ("drawn", "Ann", "tea", 1)
    changed = SubtaskGraph("tea", "abcd", {"d": all_of([A, B])})
    again = client.post("/api/drawn", json={"graph": changed.to_json(), "replaces": first["id"], "version": 0}).json()
    assert (again["id"], again["edges"]) == (first["id"], 2)
    assert client.get(f"/api/work/{first['id']}/as/json").json() == changed.to_json()
    work = learnt(client, uploaded(client)["id"])
    told = refused(client.post("/api/drawn", json={"graph": changed.to_json(), "replaces": work["id"], "version": 0}))
    assert told == "only a graph that was drawn by hand can be replaced"


def test_a_bad_replacement_leaves_the_drawing_as_it_was(client: TestClient) -> None:
    first = drawn(client, A, "Ann")
    before = client.get(f"/api/work/{first['id']}/as/json").content
    refused(
        client.post("/api/drawn", json={"graph": {"format": "msg2.graph/1"}, "replaces": first["id"], "version": 0})
    )
    assert client.get(f"/api/work/{first['id']}/as/json").content == before
    assert client.get(f"/api/work/{first['id']}").json() == first


def test_edits_of_a_drawing_do_not_overwrite_each_other(client: TestClient) -> None:
    first = drawn(client, A, "Ann")
    graphs = [SubtaskGraph("tea", "abcd", {"d": formula}).to_json() for formula in (B, C)]
    edits = [{"graph": graph, "replaces": first["id"], "version": 0, "save_id": graph["preconditions"]["d"]}
             for graph in graphs]  # fmt: skip
    assert client.post("/api/drawn", json=edits[0]).json()["version"] == 1
    conflict = client.post("/api/drawn", json=edits[1])
    assert (conflict.status_code, conflict.json()["error"]) == (409, "somebody else has changed this graph")
    current = conflict.json()["current"]
    assert (current["version"], current["save_id"], current["graph"]) == (1, "b", graphs[0])
    assert client.get(f"/api/work/{first['id']}/as/json").json() == graphs[0]
    assert client.post("/api/drawn", json={**edits[1], "version": 1}).json()["version"] == 2
    assert "version" in refused(client.post("/api/drawn", json={"graph": graphs[0], "replaces": first["id"]}))
    stale = client.patch(f"/api/work/{first['id']}", json={"title": "tea of Ben", "version": 1})
    assert (stale.status_code, stale.json()["current"]["version"]) == (409, 2)


def test_a_name_that_is_given_while_a_graph_is_replaced_stays(client: TestClient) -> None:
    first = drawn(client, A, "Ann")
    body = {"graph": SubtaskGraph("tea", "abcd", {"d": B}).to_json(), "replaces": first["id"]}
    for round in range(5):
        version = client.get(f"/api/work/{first['id']}").json()["version"]
        with ThreadPoolExecutor(2) as threads:
            replacing = threads.submit(client.post, "/api/drawn", json={**body, "version": version})
            time.sleep(0.02 * round)
            named = client.patch(f"/api/work/{first['id']}", json={"title": f"name {round}"})
        assert named.status_code == 200
        assert replacing.result().status_code in (201, 409)
        assert client.get(f"/api/work/{first['id']}").json()["title"] == f"name {round}"


def test_drawings_are_merged_and_disagreement_is_kept(client: TestClient) -> None:
    formulas = {"Ann": all_of([A, B]), "Ben": all_of([A, any_of([B, C])]), "Cem": A}
    kept = [drawn(client, formula, by) for by, formula in formulas.items()]
    made = client.post("/api/merged", json={"work": [work["id"] for work in kept]}).json()
    expected = merge_graphs([SubtaskGraph("tea", "abcd", {"d": f}, {"annotator": by}) for by, f in formulas.items()])
    assert client.get(f"/api/work/{made['id']}/as/json").json() == expected.graph.to_json()
    assert made["annotators"] == ["Ann", "Ben", "Cem"]
    assert made["votes"] == [vote.to_json() for vote in expected.votes]
    outcomes = {str(vote["clause"]): (vote["voters"], vote["outcome"]) for vote in made["votes"]}
    assert outcomes == {
        "a": ([0, 1, 2], "kept"), "b": ([0], "dropped"), "{'any': ['b', 'c']}": ([0, 1], "kept"),
    }  # fmt: skip


def test_every_kind_is_kept_and_voted_on(client: TestClient) -> None:
    relations = [
        {"order": ["ab"], "exclusive": ["cd"], "optional": "c", "repeats": {"d": 0.25}},
        {"order": ["ab"], "exclusive": ["cd"], "optional": "cd"},
        {},
    ]
    graphs = [SubtaskGraph("tea", "abcd", {}, {"name": "by hand"}, **each) for each in relations]  # type: ignore[arg-type]
    kept = [client.post("/api/drawn", json={"graph": graph.to_json()}).json() for graph in graphs]
    assert client.get(f"/api/work/{kept[0]['id']}/as/json").json() == graphs[0].to_json()
    assert kept[0]["edges"] == 1
    made = client.post("/api/merged", json={"work": [work["id"] for work in kept]}).json()
    merged = client.get(f"/api/work/{made['id']}/as/json").json()
    assert (merged["order"], merged["exclusive"], merged["optional"]) == ([["a", "b"]], [["c", "d"]], ["c"])
    assert [(v["kind"], v["step"], v["clause"], v["outcome"]) for v in made["votes"]] == [
        ("after", "b", "a", "kept"), ("exclusive", "c", "d", "kept"), ("optional", "c", True, "kept"),
        ("optional", "d", True, "dropped"),
    ]  # fmt: skip


def test_graphs_of_other_steps_are_not_merged(client: TestClient) -> None:
    toast = learnt(client, uploaded(client)["id"])
    answer = client.post("/api/merged", json={"work": [drawn(client, A, "Ann")["id"], toast["id"]]})
    assert "has not the steps of the first graph" in refused(answer)
    refused(client.post("/api/merged", json={"work": [toast["id"], "0" * 32]}), 404)

"""The JSON API: the same answers as the library, errors in one form, and a schema that is true."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from msg2 import Constraints, Segment, Task, Video, check, forecast, infer, next_steps
from msg2.graph import SubtaskGraph, all_of, any_of, step
from msg2.graph.graph_file import Caution, Loop, ProcedureTexts, Review, StatedRule
from tests.server.conftest import TOAST, refused
from tests.server.live import serving

ROWS = [
    {"video": f"v{number}", "step": name, "start": time, "end": time + 1}
    for number in range(6)
    for time, name in enumerate(["whisk", "dip", "fry"])
]
TASK = Task(
    "toast",
    ["whisk", "dip", "fry"],
    [Video(f"v{number}", [Segment(n, t, t + 1) for t, n in enumerate(["whisk", "dip", "fry"])]) for number in range(6)],
)
GRAPH = SubtaskGraph("t", "abcd", {"c": any_of([step("a"), step("b")]), "d": all_of([step("c"), step("a")])})


@pytest.fixture(scope="module")
def client(shared_client: TestClient) -> TestClient:
    """One app for all of them: nothing is kept of a question."""
    return shared_client


def test_infer(client: TestClient) -> None:
    for method, options in (
        ("msg2", {"delta": 0.9, "max_literals": "none"}),
        ("always-before", {}),
        ("likelihood", {}),
    ):
        given = {name: None if value == "none" else value for name, value in options.items()}
        answer = client.post("/api/infer", json={"labels": ROWS, "task": "toast", "method": method, "options": options})
        assert answer.json() == json.loads(infer(TASK, method, **given).dumps())


def test_what_must_hold(client: TestClient) -> None:
    asked = {"labels": ROWS, "task": "toast", "method": "always-before"}
    kinds = {"require_order": [["fry", "whisk"]], "forbid_order": [["dip", "fry"]], "forbid": [["whisk", "dip"]]}
    known = Constraints(
        forbidden=[("whisk", "dip")], required_order=[("fry", "whisk")], forbidden_order=[("dip", "fry")]
    )
    answer = client.post("/api/infer", json={**asked, **kinds}).json()
    assert answer == json.loads(infer(TASK, "always-before", constraints=known).dumps())
    assert answer["order"] == [["fry", "whisk"]]


def test_the_schema_has_every_key_of_a_graph_file(client: TestClient) -> None:
    rules = [StatedRule(before="a", after="b", by="Ann")]
    full = {"order": ["ab"], "exclusive": ["bc"], "optional": "c", "repeats": {"a": 0.5}, "rules": rules,
            "responses": [("a", step("b"))], "loops": [Loop(steps=["a", "b"], share=0.2)],
            "texts": ProcedureTexts(descriptions={"a": "Do a."}, warnings=[Caution(text="Hot.")], tools=["pan"],
                                    version="1", reviewed=Review(by="Ann"))}  # fmt: skip
    graph = SubtaskGraph("t", "abc", {}, **full).to_json()  # type: ignore[arg-type]
    components = client.get("/api/openapi.json").json()["components"]
    assert set(components["schemas"]["GraphFileContent"]["properties"]) == set(graph)
    schema = {**components["schemas"]["NextStepsRequest"]["properties"]["graph"], "components": components}
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(graph, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**graph, "order": [["a", "b", "c"]]}, schema)


def test_next(client: TestClient) -> None:
    answer = client.post("/api/next", json={"graph": GRAPH.to_json(), "done": ["a"]}).json()
    expected = next_steps(GRAPH, ["a"])
    assert [(one["step"], one["rank"], one["probability"], one["eligible"]) for one in answer["steps"]] == [
        (one.step, one.rank, None, one.eligible) for one in expected
    ]
    assert answer["steps"][-1]["unmet"] == ["c"]
    assert {one["seconds"] for one in answer["steps"]} == {None}


def test_next_learned_from_labels(client: TestClient) -> None:
    times = {"a": 0, "b": 3, "c": 5, "d": 9}
    rows = [
        {"video": f"v{n}", "step": name, "start": times[name] + n, "end": times[name] + n + 1}
        for n in range(3)
        for name in "abcd"
    ]
    task = Task("t", "abcd", [
        Video(f"v{n}", [Segment(s, times[s] + n, times[s] + n + 1) for s in "abcd"]) for n in range(3)
    ])  # fmt: skip
    asked = {"graph": GRAPH.to_json(), "done": ["a"], "labels": rows}
    answer = client.post("/api/next", json=asked).json()
    expected = forecast(GRAPH, ["a"], "learned", task).to_json()["next"]
    assert answer["steps"] == [one | {"probability": pytest.approx(one["probability"])} for one in expected]
    assert answer["steps"][0]["seconds"] is not None
    ranked = client.post("/api/next", json={**asked, "ranker": "recency"}).json()
    assert {one["probability"] for one in ranked["steps"]} == {None}


def test_check(client: TestClient) -> None:
    rows = [{"video": "v", "step": name} for name in "dcba"]
    answer = client.post("/api/check", json={"graph": GRAPH.to_json(), "labels": rows})
    assert answer.json() == check(GRAPH, Video("v", [Segment(name) for name in "dcba"])).to_json()
    assert answer.json()["mistakes"]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("infer", {"labels": [{"video": "v", "step": "a", "end": 1}]}, "start or an end, but not both"),
        ("infer", {"labels": ROWS, "method": "magic"}, "no method 'magic'"),
        ("infer", {"labels": ROWS, "method": "msgi", "options": {"delta": 0.5}}, "has no option 'delta'"),
        ("infer", {"labels": ROWS, "require": [["a", "b"]]}, "'a' is required, forbidden or hinted at, but no step"),
        ("next", {"graph": {**GRAPH.to_json(), "format": "x"}}, "this version of msg2 reads"),
        ("next", {"graph": GRAPH.to_json(), "done": ["z"]}, "'z'"),
        ("next", {"graph": GRAPH.to_json(), "ranker": "luck"}, "no ranker 'luck'"),
        ("next", {"graph": GRAPH.to_json(), "ranker": "learned"}, "the ranker 'learned' learns from videos"),
        ("next", {"graph": GRAPH.to_json(), "labels": [{"video": "v", "step": "z"}]}, "'z' is not a step of the graph"),
        ("check", {"graph": GRAPH.to_json(), "labels": [{"video": "v", "step": "z"}]}, "'z'"),
        (
            "draw",
            {"graph": {**GRAPH.to_json(), "preconditions": {"a": "d", "d": "a"}}},
            "cycle: 'a' needs 'd' needs 'a'",
        ),
        ("draw", {"graph": {**GRAPH.to_json(), "order": [["d", "a"]]}}, "the order form a cycle: 'a' comes after 'd'"),
        ("draw", {"graph": {**GRAPH.to_json(), "order": [["a", "z"]]}}, "'z' is not among the steps of the graph"),
        ("next", {"graph": {**GRAPH.to_json(), "order": [["a"]]}}, "has fewer than 2 steps"),
        ("next", {"graph": {**GRAPH.to_json(), "order": "ab"}}, "is not a list"),
        ("draw", {"graph": {**GRAPH.to_json(), "exclusive": [["a", 1]]}}, "is not a step name"),
        ("drawn", {"graph": {**GRAPH.to_json(), "optional": ["z"] * 100_000}}, "'z' is not among the steps"),
        ("check", {"graph": {**GRAPH.to_json(), "repeats": {"a": 2}}, "labels": ROWS}, "is not a share from 0 to 1"),
        ("draw", {"graph": {**GRAPH.to_json(), "format": "msg2.graph/1", "optional": ["a"]}}, "not a key of a graph"),
        ("infer", {"labels": ROWS, "require_order": [["fry", "z"]]}, "'z' is required, forbidden or hinted at"),
        ("infer", {"labels": ROWS, "require": [["fry", "dip"]], "require_order": [["dip", "fry"]]},
         "these contradict each other: “fry is needed for dip” and “dip (if done) comes before fry”"),
        ("infer", {"labels": ROWS, "require": [["fry", "dip"]], "forbid_order": [["fry", "dip"]]},
         "these contradict each other: “fry is needed for dip” and “fry need not come before dip”"),
    ],
)  # fmt: skip
def test_wrong_input_is_told_in_one_line(client: TestClient, path: str, body: dict[str, Any], words: str) -> None:
    assert words in refused(client.post(f"/api/{path}", json=body))


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"{", b"\xff", b'{"labels": []}', b'{"labels": [{"video": 1, "step": "a"}]}',
        b'{"labels": [{"video": "v", "step": "a", "start": 1e999, "end": 1e999}]}',
        b'{"labels": [{"video": "v", "step": "a", "start": NaN, "end": 1}]}',
        b'{"labels": [{"video": "v", "step": "\\ud800"}]}', b'{"labels": [{"video": "v", "step": "a"}], "x": 1}',
        b'{"labels": [{"video": "v", "step": "a"}], "seed": -1}', b"[" * 100_000, b"9" * 10_000,
    ],
)  # fmt: skip
def test_what_does_not_fit_the_schema_is_refused(client: TestClient, body: bytes) -> None:
    answer = client.post("/api/infer", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    refused(answer, answer.status_code)


def test_numbers_that_no_file_can_hold_are_refused_in_graphs(client: TestClient) -> None:
    text = json.dumps({"graph": {**GRAPH.to_json(), "evidence": {"a": "HERE"}}}).replace('"HERE"', "1e999")
    answer = client.post("/api/next", content=text, headers={"Content-Type": "application/json"})
    assert "no file can hold" in refused(answer, 422)


FUZZER = """
# The server itself gives up after 30 seconds, and says so.
request-timeout = 40
[checks]
max_response_time = 40
# 400 is for input that fits the schema and means nothing, such as a cycle, 409 for a version that is not the
# present one; 422 is never right for what fits.
positive_data_acceptance.expected-statuses = ["2xx", "400", "404", "409"]
# A stream goes on until its run is removed.
[[operations]]
include-path = "/api/runs/{id}/stream"
enabled = false
"""


@pytest.mark.slow
def test_a_fuzzer_finds_the_schema_true(tmp_path: Path) -> None:
    """Every operation of a real server, with what fits its schema and with what does not."""
    (tmp_path / "fuzzer.toml").write_text(FUZZER)
    (tmp_path / "toast.csv").write_text(TOAST)
    fuzzer = [Path(sys.executable).with_name("schemathesis"), "--config-file", "fuzzer.toml", "run", "--checks", "all"]
    with serving(tmp_path, "toast.csv") as address:
        ran = subprocess.run(
            [*fuzzer, "--max-examples", "50", f"{address}api/openapi.json"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert ran.returncode == 0, ran.stdout[-5000:]
    assert "Tested: 48" in ran.stdout

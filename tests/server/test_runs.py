"""Live runs: the answers of the library, kept through a restart, streamed to all who listen, guarded like the rest."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from inspect import signature
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from fastapi.testclient import TestClient

from msg2.assist.assistant import Assistant
from msg2.assist.events import answer_event
from msg2.formats import read, read_graph
from msg2.graph import SubtaskGraph
from msg2.server.settings import ServerSettings
from msg2.server.web_app import create_app
from msg2.server.workspace import Workspace
from tests.server.conftest import PATIENCE, TOAST, Open, learnt, refused, until, uploaded
from tests.server.live import running_app

GRAPH = {
    "format": "msg2.graph/2", "task": "toast", "steps": ["whisk", "dip", "fry"],
    "preconditions": {"dip": "whisk", "fry": "dip"},
}  # fmt: skip
EVENTS: list[dict[str, Any]] = [
    {"did": "whisk", "at": 1.0},
    {"did": "fry", "at": 2.5},
    {"accept": "dip"},
    {"undo": True},
    {"undo": True},
    {"saw": {"dip": 0.9, "fry": 0.05}, "at": 2},
    {"plan": "fry", "k": 2},
    {"ask": True, "now": 4, "ended": True},
]


def drawn(client: TestClient, graph: dict[str, Any] = GRAPH) -> str:
    answer = client.post("/api/drawn", json={"graph": graph})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def opened(client: TestClient, graph: str, **data: Any) -> Any:
    answer = client.post("/api/runs", json={"graph": graph, **data})
    assert answer.status_code == 201, answer.text
    return answer.json()


def told(client: TestClient, run: str, event: dict[str, Any]) -> Any:
    answer = client.post(f"/api/runs/{run}/events", json=event)
    assert answer.status_code == 200, answer.text
    return answer.json()


def library(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what the app adds to it."""
    return {key: value for key, value in answer.items() if key not in ("version", "last")}


# -- answers ----------------------------------------------------------------------------------------------------


def test_answers_are_those_of_the_library(client: TestClient, tmp_path: Path) -> None:
    table, file = tmp_path / "toast.csv", tmp_path / "graph.json"
    table.write_text(TOAST)
    work = learnt(client, uploaded(client)["id"])
    file.write_bytes(client.get(f"/api/work/{work['id']}/as/json").content)
    assistant = Assistant(read_graph(file), read(table, repeats="keep"))
    run = opened(client, work["id"])
    assert (run["task"], run["steps"], run["graph"], run["data"]) == (
        "toast",
        work["steps"],
        work["id"],
        work["job"]["data"],
    )
    assert run["limitations"] == {}
    assert library(run["answer"]) == answer_event(assistant, {"ask": True})
    for event in EVENTS:
        answer = told(client, run["id"], event)
        assert library(answer) == json.loads(json.dumps(answer_event(assistant, event)))
    present = client.get(f"/api/runs/{run['id']}").json()
    assert library(present["answer"]) == answer_event(assistant, {"ask": True})
    assert [one["seen"] for one in present["log"]] == [dict(one.seen) for one in assistant.log()]
    assert present["log"][-1] == present["answer"]["last"]
    assert present["events"] == 2
    assert present["version"] == 6  # questions are no changes
    assert [one["id"] for one in client.get("/api/runs").json()["runs"]] == [run["id"]]


def test_a_graph_alone_ranks_and_says_what_it_cannot_answer(client: TestClient) -> None:
    graph = drawn(client)
    run = opened(client, graph)
    assert run["data"] is None
    assert set(run["limitations"]) == {"next", "finished", "plan", "time_left"}
    assert [one["probability"] for one in run["answer"]["next"]] == [None] * 3
    data = uploaded(client)["id"]
    with_data = opened(client, graph, data=data)
    assert with_data["limitations"] == {}
    assert with_data["answer"]["next"][0]["probability"] > 0.5
    learned = learnt(client, data)["id"]
    assert opened(client, learned)["data"] == data
    assert opened(client, learned, data=None)["data"] is None


def test_mistakes_are_explained_accepted_and_taken_back(client: TestClient) -> None:
    run = opened(client, drawn(client), data=uploaded(client)["id"])["id"]
    told(client, run, {"did": "whisk"})
    mistaken = told(client, run, {"did": "fry"})
    assert mistaken["report"]["mistake"]
    assert "'fry' needs 'dip'" in mistaken["report"]["reason"]
    assert mistaken["last"]["report"] == mistaken["report"]
    assert mistaken["progress"] == ["whisk", "fry"]
    (alarm,) = mistaken["alarms"]
    assert (alarm["step"], alarm["kind"], alarm["reason"]) == ("fry", "need", mistaken["report"]["reason"])
    accepted = told(client, run, {"accept": "fry"})
    assert (accepted["progress"], accepted["alarms"]) == (["whisk", "fry"], [])
    assert accepted["last"]["kind"] == "accept"
    again = told(client, run, {"undo": True})
    assert again["last"]["report"]["mistake"]
    assert again["alarms"] == [alarm]
    assert told(client, run, {"undo": True})["last"]["seen"] == {"whisk": 1.0}
    assert told(client, run, {"undo": True})["last"] is None
    assert refused(client.post(f"/api/runs/{run}/events", json={"undo": True})) == "there is nothing to undo"


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"did": "fly"}, "'fly'"),
        ({"did": 1}, "must be the name of a step"),
        ({"did": "dip", "at": -40}, "45 seconds before the last event at 5"),
        ({"did": "dip", "at": "now"}, "must be a number"),
        ({"did": "dip", "at": 10**400}, "finite number"),
        ({"did": "dip", "confidence": 1.5}, "from 0 to 1"),
        ({"did": "dip", "id": 7}, "must be a text"),
        ({"began": ["dip"]}, "must be the name of a step"),
        ({"observe": {"dip": 1}, "at": 6}, "was told events"),
        ({"correct": "no such id", "did": "dip"}, "no event with the id 'no such id'"),
        ({"correct": "first"}, "either 'did' or 'saw'"),
        ({"undo": "no such id"}, "no event with the id 'no such id'"),
        ({"pause": False}, "must be true"),
        ({"did": "dip", "saw": {"fry": 1}}, "an object with one of "),
        ({"did": "dip", "when": 3}, "has no 'when'"),
        ({"saw": {"dip": 0.9, "fry": 0.9}}, "above 1"),
        ({"saw": {"dip": "much"}}, "from 0 to 1"),
        ({"saw": ["dip"]}, "from steps to probabilities"),
        ({"accept": "fly"}, "'fly'"),
        ({"undo": False}, "must be true or a text"),
        ({"ask": True, "now": 1}, "before the last step"),
        ({"ask": True, "ended": 1}, "must be true or false"),
        ({"plan": "whisk"}, "already done"),
        ({"plan": "fry", "k": 0}, "whole number from 1 up"),
        ({}, "an object with one of "),
    ],
)
def test_a_bad_event_is_one_clear_error_and_changes_nothing(
    runs_app: tuple[TestClient, str], event: dict[str, Any], words: str
) -> None:
    client, run = runs_app
    before = client.get(f"/api/runs/{run}").json()
    problem = client.post(f"/api/runs/{run}/events", json=event)
    assert words in refused(problem)
    assert client.get(f"/api/runs/{run}").json() == before


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'"did"', b'{"did": "\\ud800"}', b'{"did": "dip", "at": NaN}', b"[" * 9999]
)
def test_what_is_no_event_at_all_is_refused(runs_app: tuple[TestClient, str], body: bytes) -> None:
    client, run = runs_app
    before = client.get(f"/api/runs/{run}").json()
    answer = client.post(f"/api/runs/{run}/events", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    refused(answer, answer.status_code)
    assert client.get(f"/api/runs/{run}").json() == before


@pytest.fixture(scope="module")
def runs_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, str]]:
    """An app with one run, in which one step is done at 5 seconds."""
    workspace = Workspace(ServerSettings(folder=tmp_path_factory.mktemp("runs") / "work"))
    with TestClient(create_app(workspace), base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        run = opened(client, drawn(client), data=uploaded(client)["id"])["id"]
        told(client, run, {"did": "whisk", "at": 5, "id": "first"})
        yield client, run


# -- options, ids, late events, frames -----------------------------------------------------------------------------


def test_the_options_of_the_assistant_are_kept(open_app: Open) -> None:
    client = open_app()
    graph, data = drawn(client), uploaded(client)["id"]
    confusion = {"dip": {"dip": 6, "fry": 3, "": 1}, "": {"": 1}}
    options = {"absent": "unknown", "threshold": 0.9, "alarm_cost": None, "missed": 0.2, "confusion": confusion,
               "window": 5}  # fmt: skip
    assert set(options) == set(signature(Assistant).parameters) - {"graph", "data", "log"}
    run = opened(client, graph, data=data, **options)
    assert run["options"] == options
    told(client, run["id"], {"did": "whisk"})
    assert not told(client, run["id"], {"did": "fry"})["report"]["mistake"]  # dip may have been done
    client.__exit__(None, None, None)
    client = open_app()
    kept = client.get(f"/api/runs/{run['id']}").json()
    assert kept["options"] == options
    assert kept["answer"]["alarms"] == []
    usual = opened(client, graph, data=data)["id"]
    told(client, usual, {"did": "whisk"})
    assert told(client, usual, {"did": "fry"})["report"]["mistake"]
    wrong = [{"absent": "perhaps"}, {"threshold": 2}, {"alarm_cost": 0}, {"missed": 1}, {"confusion": [[1]]},
             {"confusion": {"dip": {"fry": -1}}}, {"window": -1}]  # fmt: skip
    for option in wrong:
        refused(client.post("/api/runs", json={"graph": graph, **option}), 422)
    for typo in ({"dpi": {}}, {"dip": {"dpi": 1}}):
        answer = client.post("/api/runs", json={"graph": graph, "confusion": typo})
        assert refused(answer) == "'dpi' is not a step of the graph"
        assert answer.json()["where"] == "confusion"


def test_confusions_and_the_window_are_those_of_the_library(client: TestClient, tmp_path: Path) -> None:
    (tmp_path / "toast.csv").write_text(TOAST)
    steps = list(SubtaskGraph.from_json(GRAPH).steps)
    assert steps == ["whisk", "dip", "fry"]
    rows = np.array([[9, 0, 0, 1], [0, 5, 4, 1], [0, 4, 4, 2], [0, 1, 0, 9]], float)
    confusion = {
        name: dict(zip([*steps, ""], row, strict=True)) for name, row in zip([*steps, ""], rows.tolist(), strict=True)
    }
    del confusion["whisk"]["dip"]  # what is left out is 0
    run = opened(client, drawn(client), data=uploaded(client)["id"], confusion=confusion, window=2)["id"]
    videos = read(tmp_path / "toast.csv", repeats="keep")
    assistant, usual = Assistant(GRAPH, videos, confusion=rows, window=2.0), Assistant(GRAPH, videos)
    for event in ({"saw": {"whisk": 0.9}, "at": 5.0}, {"saw": {"fry": 0.6, "dip": 0.2}, "at": 8.0}):
        answer = told(client, run, event)
        assert library(answer) == json.loads(json.dumps(answer_event(assistant, event)))
        answer_event(usual, event)
    assert answer["done"] != usual.done()
    assert told(client, run, {"did": "dip", "at": 6.5})["last"]["at"] == 8
    assert "2 seconds late" in str(client.post(f"/api/runs/{run}/events", json={"did": "dip", "at": 5.5}).json())


def test_late_events_and_ids(client: TestClient) -> None:
    run, other = (opened(client, drawn(client), data=None)["id"] for _ in range(2))
    told(client, run, {"did": "whisk", "at": 1, "id": "a", "actor": "Ann"})
    too_early = told(client, run, {"did": "fry", "at": 9, "id": "b"})
    assert too_early["report"]["mistake"]
    late = told(client, run, {"did": "dip", "at": 5, "id": "c"})
    assert (late["progress"], late["alarms"]) == (["whisk", "dip", "fry"], [])
    assert told(client, run, {"did": "dip", "at": 5, "id": "c"})["version"] == late["version"]  # nothing new
    for name, at in (("whisk", 1), ("dip", 5), ("fry", 9)):
        told(client, other, {"did": name, "at": at})
    in_order, log = (client.get(f"/api/runs/{id}").json() for id in (other, run))
    assert library(in_order["answer"]) == library(log["answer"])
    assert [(entry["id"], entry["actor"]) for entry in log["log"]] == [("a", "Ann"), ("c", None), ("b", None)]
    assert told(client, run, {"correct": "c", "did": "whisk"})["alarms"]
    assert told(client, run, {"correct": "c", "saw": {"dip": 1}})["alarms"] == []
    assert told(client, run, {"undo": "c"})["progress"] == ["whisk", "fry"]


def test_steps_that_begin_are_warned_of_before_they_are_done(client: TestClient) -> None:
    run = opened(client, drawn(client), data=None)["id"]
    began = told(client, run, {"began": "dip", "at": 1})
    assert (began["report"]["mistake"], began["report"]["kind"], began["progress"]) == (True, "need", [])
    assert not told(client, run, {"did": "dip", "at": 4})["report"]["mistake"]  # once is enough
    told(client, run, {"pause": True, "at": 5})
    assert told(client, run, {"resume": True, "at": 50})["last"]["kind"] == "resume"
    assert told(client, run, {"saw": {}, "at": 51})["progress"] == ["dip"]


def test_frames(client: TestClient) -> None:
    run = opened(client, drawn(client), data=uploaded(client)["id"])["id"]
    versions = set()
    for frame in range(120):
        name = "whisk" if frame < 50 else "dip"
        answer = told(client, run, {"observe": {name: 0.9}, "at": frame / 5})
        versions.add(answer["version"])
    assert answer["progress"] == ["whisk"]
    assert answer["report"]["step"] == "dip"
    assert len(versions) <= 120 / 5 + 1  # a second of frames is one change
    assert client.get(f"/api/runs/{run}").json()["events"] == 0
    assert "observes frames" in refused(client.post(f"/api/runs/{run}/events", json={"did": "fry"}))


def test_what_an_older_version_kept(open_app: Open, tmp_path: Path) -> None:
    client = open_app()
    run = opened(client, drawn(client))["id"]
    client.__exit__(None, None, None)
    file = tmp_path / "work" / "runs" / run / "record.json"
    record = json.loads(file.read_text())
    record["saved"]["format"] = "msg2.run/1"
    file.write_text(json.dumps(record))
    assert "older version" in refused(open_app().get(f"/api/runs/{run}"))


def exact(schema: Any) -> Any:
    """A schema in which objects with properties have no others."""
    if isinstance(schema, list):
        return [exact(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {"additionalProperties": False} if "properties" in schema and schema.get("type") == "object" else {}
    return {**closed, **{key: exact(value) for key, value in schema.items()}}


def test_events_and_answers_are_as_the_schema_says(client: TestClient) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    api = client.get("/api/openapi.json").json()
    components = exact(api["components"])

    def is_valid(value: object, schema: dict[str, Any]) -> bool:
        return bool(jsonschema.Draft202012Validator({**schema, "components": components}).is_valid(value))

    def answers(method: str, path: str, status: str = "200") -> Any:
        return api["paths"][f"/api/runs{path}"][method]["responses"][status]["content"]["application/json"]["schema"]

    event_schema = api["paths"]["/api/runs/{id}/events"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    graph, data = drawn(client), uploaded(client)["id"]
    run, stream = opened(client, graph, data=data), opened(client, graph)
    assert is_valid(run, answers("post", "", "201"))
    named = [
        {"began": "whisk", "id": "e", "actor": "Ann"}, {"did": "whisk", "id": "f"}, {"saw": {}}, {"pause": True},
        {"resume": True}, {"correct": "f", "did": "whisk"}, {"correct": "f", "saw": {"whisk": 1}}, {"undo": "e"},
    ]  # fmt: skip
    for event in [*EVENTS, *named]:
        assert is_valid(event, event_schema)
        assert is_valid(told(client, run["id"], event), answers("post", "/{id}/events"))
    frame = {"observe": {"whisk": 0.9}, "at": 1}
    assert is_valid(frame, event_schema)
    assert is_valid(told(client, stream["id"], frame), answers("post", "/{id}/events"))
    assert is_valid(client.get(f"/api/runs/{run['id']}").json(), answers("get", "/{id}"))
    told(client, run["id"], {"did": "fry", "at": 9})
    taken = client.post(f"/api/runs/{run['id']}/graph", json={"graph": drawn(client, WITHOUT_FRY)}).json()
    assert taken["dropped"]
    assert is_valid(taken, answers("post", "/{id}/graph"))
    for wrong in (
        {"correct": "f"}, {"correct": "f", "did": "dip", "saw": {}}, {"undo": False}, {"observe": {}}, {"did": 1},
        {"did": "dip", "when": 3}, {"saw": {"dip": 2}}, {"plan": "fry", "k": 101}, {},
    ):  # fmt: skip
        assert not is_valid(wrong, event_schema)
        refused(problem := client.post(f"/api/runs/{run['id']}/events", json=wrong), problem.status_code)
    assert not is_valid({**told(client, run["id"], {"ask": True}), "more": 1}, answers("post", "/{id}/events"))


# -- another graph takes over -----------------------------------------------------------------------------------

WITHOUT_FRY = {**GRAPH, "steps": ["whisk", "dip", "serve"], "preconditions": {"serve": "dip"}}


def test_a_graph_that_was_edited_takes_over(client: TestClient, tmp_path: Path) -> None:
    run = opened(client, drawn(client), data=uploaded(client)["id"], confusion={"fry": {"fry": 9, "dip": 1}})
    for event in (
        {"did": "dip", "at": 1, "id": "a"}, {"did": "fry", "at": 2, "actor": "Ann"}, {"pause": True, "at": 3},
        {"saw": {"whisk": 0.6, "fry": 0.3}, "at": 9},
    ):  # fmt: skip
        before = told(client, run["id"], event)
    assert before["alarms"]
    graph = drawn(client, WITHOUT_FRY)
    taken = client.post(f"/api/runs/{run['id']}/graph", json={"graph": graph}).json()
    (gone,) = taken["dropped"]
    assert (gone["kind"], gone["seen"], gone["at"], gone["actor"]) == ("did", {"fry": 1.0}, 2.0, "Ann")
    assert [(entry["kind"], entry["seen"]) for entry in taken["log"]] == [
        ("did", {"dip": 1.0}), ("pause", {}), ("saw", {"whisk": 0.6}),
    ]  # fmt: skip
    assert (taken["id"], taken["graph"], taken["data"], taken["version"]) == (run["id"], graph, run["data"], 5)
    assert set(taken["steps"]) == set(WITHOUT_FRY["steps"])
    assert (taken["answer"]["alarms"], taken["limitations"]) == ([], {})
    # It is as if the run had been one of this graph from the beginning, learned from videos of the steps that it has.
    table = "".join(line for line in TOAST.splitlines(keepends=True) if ",fry," not in line)
    (tmp_path / "known.csv").write_text(table)
    assistant = Assistant(WITHOUT_FRY, read(tmp_path / "known.csv", repeats="keep"))
    for event in ({"did": "dip", "at": 1}, {"pause": True, "at": 3}, {"saw": {"whisk": 0.6}, "at": 9}):
        answer_event(assistant, event)
    assert library(taken["answer"])["next"] == answer_event(assistant, {"ask": True})["next"]
    assert "dip" not in told(client, run["id"], {"undo": "a"})["progress"]
    assert "'fry'" in refused(client.post(f"/api/runs/{run['id']}/events", json={"did": "fry"}))


def test_a_graph_that_was_edited_in_its_place_takes_over_when_it_is_asked_to(client: TestClient) -> None:
    graph = drawn(client)
    run = opened(client, graph)["id"]
    told(client, run, {"did": "fry"})
    changed = {**GRAPH, "preconditions": {}}
    assert client.post("/api/drawn", json={"graph": changed, "replaces": graph, "version": 0}).status_code == 201
    assert "has changed since" in refused(client.post(f"/api/runs/{run}/events", json={"did": "dip"}))
    taken = client.post(f"/api/runs/{run}/graph", json={"graph": graph}).json()
    assert (taken["dropped"], taken["answer"]["progress"], taken["answer"]["alarms"]) == ([], ["fry"], [])
    assert told(client, run, {"did": "dip"})["progress"] == ["fry", "dip"]


def test_what_cannot_take_over_changes_nothing(client: TestClient) -> None:
    run = opened(client, drawn(client), data=uploaded(client)["id"])["id"]
    told(client, run, {"did": "whisk"})
    before = client.get(f"/api/runs/{run}").json()
    tea = drawn(client, {"format": "msg2.graph/2", "task": "tea", "steps": ["boil"], "preconditions": {}})
    nowhere = "0" * 32
    path = f"/api/runs/{run}/graph"
    assert "is not a step of the graph" in refused(client.post(path, json={"graph": tea}))  # of the data, none is
    refused(client.post(path, json={"graph": nowhere}))  # "not found" would be about the run
    refused(client.post(path, json={"graph": tea, "data": nowhere}))
    refused(client.post(f"/api/runs/{nowhere}/graph", json={"graph": tea}), 404)
    assert client.get(f"/api/runs/{run}").json() == before
    taken = client.post(path, json={"graph": tea, "data": None}).json()
    assert [entry["seen"] for entry in taken["dropped"]] == [{"whisk": 1.0}]
    assert taken["answer"]["progress"] == []


# -- what is kept -----------------------------------------------------------------------------------------------


def test_a_restart_goes_on(open_app: Open, tmp_path: Path) -> None:
    first = open_app()
    run = opened(first, learnt(first, uploaded(first)["id"])["id"])["id"]
    for event in EVENTS[:6]:
        told(first, run, event)
    before = first.get(f"/api/runs/{run}").json()
    kept = json.loads((tmp_path / "work" / "runs" / run / "record.json").read_text())
    first.__exit__(None, None, None)
    second = open_app()
    assert second.get(f"/api/runs/{run}").json() == before
    assert kept["saved"]["format"] == "msg2.run/2"
    assert len(kept["saved"]["events"]) == 2
    assert told(second, run, {"undo": True})["version"] == before["version"] + 1


def test_a_worker_that_was_killed_is_made_again(client: TestClient) -> None:
    run = opened(client, drawn(client))["id"]
    told(client, run, {"did": "whisk"})
    (worker,) = client.app.state.workspace.sandbox._idle.values()  # type: ignore[attr-defined]
    worker._process.kill()
    refused(client.post(f"/api/runs/{run}/events", json={"did": "dip"}))
    assert told(client, run, {"did": "dip"})["progress"] == ["whisk", "dip"]


def test_a_run_without_its_graph_says_so(client: TestClient) -> None:
    graph, data = drawn(client), uploaded(client)["id"]
    run, other = opened(client, graph)["id"], opened(client, graph, data=data)["id"]
    assert client.delete(f"/api/data/{data}").status_code == 204
    assert "has been removed" in refused(client.post(f"/api/runs/{other}/events", json={"did": "whisk"}))
    changed = {**GRAPH, "preconditions": {}}
    assert client.post("/api/drawn", json={"graph": changed, "replaces": graph, "version": 0}).status_code == 201
    assert "has changed since" in refused(client.get(f"/api/runs/{run}"))
    assert client.delete(f"/api/work/{graph}").status_code == 204
    assert "has been removed" in refused(client.get(f"/api/runs/{run}"))
    for id in (run, other):
        assert client.delete(f"/api/runs/{id}").status_code == 204
    assert client.get("/api/runs").json() == {"runs": []}


def test_what_does_not_exist(client: TestClient) -> None:
    nowhere, graph = "0" * 32, drawn(client)
    for answer in (
        client.get(f"/api/runs/{nowhere}"),
        client.get(f"/api/runs/{nowhere}/stream"),
        client.post(f"/api/runs/{nowhere}/events", json={"undo": True}),
        client.delete(f"/api/runs/{nowhere}"),
        client.post("/api/runs", json={"graph": nowhere}),
        client.post("/api/runs", json={"graph": graph, "data": nowhere}),
    ):
        refused(answer, 404)
    other = uploaded(client, "video,step\nv,boil\nv,pour\n", "tea.csv")["id"]
    assert "'boil'" in refused(client.post("/api/runs", json={"graph": graph, "data": other}))
    assert client.get("/api/runs").json() == {"runs": []}


# -- limits -----------------------------------------------------------------------------------------------------


def test_runs_and_events_are_bounded(open_app: Open) -> None:
    client = open_app(runs=2, run_events=3)
    graph = drawn(client)
    run = opened(client, graph)["id"]
    other = opened(client, graph)["id"]
    assert refused(client.post("/api/runs", json={"graph": graph}), 429) == "too many runs are kept"
    assert client.delete(f"/api/runs/{other}").status_code == 204
    opened(client, graph)
    for event in ({"did": "whisk"}, {"did": "dip"}, {"accept": "fry"}):
        told(client, run, event)
    for event in ({"did": "fry"}, {"saw": {"fry": 1}}, {"accept": "fry"}):
        assert "3 events" in refused(client.post(f"/api/runs/{run}/events", json=event))
    told(client, run, {"ask": True})
    told(client, run, {"undo": True})
    told(client, run, {"did": "fry"})


def test_few_workers_serve_many_graphs_at_once(open_app: Open) -> None:
    client = open_app(models=2)
    runs = [opened(client, drawn(client))["id"] for _ in range(4)]
    wrong: list[str] = []

    def follow(run: str) -> None:
        for event, done in (({"did": "whisk"}, 1), ({"did": "dip"}, 2), ({"undo": True}, 1), ({"did": "dip"}, 2)):
            answer = client.post(f"/api/runs/{run}/events", json=event)
            if answer.status_code != 200 or len(answer.json()["progress"]) != done:
                wrong.append(answer.text)

    threads = [threading.Thread(target=follow, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(client.app.state.workspace.sandbox._idle) <= 2  # type: ignore[attr-defined]


def test_events_sent_at_once_are_all_kept(client: TestClient) -> None:
    run = opened(client, drawn(client))["id"]
    send = [threading.Thread(target=told, args=(client, run, {"accept": "whisk"})) for _ in range(20)]
    for thread in send:
        thread.start()
    for thread in send:
        thread.join()
    present = client.get(f"/api/runs/{run}").json()
    assert (present["events"], present["version"]) == (20, 20)


def test_events_are_answered_by_one_process_that_has_learned(client: TestClient) -> None:
    """So that an event takes milliseconds."""
    run = opened(client, learnt(client, uploaded(client)["id"])["id"])["id"]
    idle = client.app.state.workspace.sandbox._idle  # type: ignore[attr-defined]
    (worker,) = idle.values()
    for event in [{"did": "whisk"}, {"undo": True}] * 5:
        told(client, run, event)
    assert list(idle.values()) == [worker]


# -- guards -----------------------------------------------------------------------------------------------------


def test_runs_are_guarded_as_the_rest(open_app: Open) -> None:
    token = "a0b1c2d3e4f5a6b7c8d9"
    client = open_app(token=token, body_megabytes=1)
    nobody = [client.get("/api/runs"), client.post("/api/runs", json={}), client.get(f"/api/runs/{'0' * 32}/stream")]
    for answer in nobody:
        refused(answer, 401)
    client.headers["Authorization"] = f"Bearer {token}"
    run = opened(client, drawn(client))["id"]
    elsewhere = {"Origin": "https://evil.example"}
    for method, path in (("GET", ""), ("GET", f"/{run}/stream"), ("POST", f"/{run}/events"), ("DELETE", f"/{run}")):
        refused(client.request(method, f"/api/runs{path}", headers=elsewhere), 403)
    refused(client.get(f"/api/runs/{run}/stream", headers={"Sec-Fetch-Site": "cross-site"}), 403)
    refused(client.post(f"/api/runs/{run}/events", json={"did": "x" * (1 << 20)}), 413)
    assert client.get(f"/api/runs/{run}").json()["events"] == 0


# -- streams ----------------------------------------------------------------------------------------------------


def asked(address: str, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
    connection = http.client.HTTPConnection(address, timeout=PATIENCE)
    content = None if body is None else json.dumps(body)
    connection.request(method, f"/api{path}", content, {"Content-Type": "application/json", **(headers or {})})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    assert answer.status in (200, 201, 204), text
    return json.loads(text) if text else None


class Stream(AbstractContextManager["Stream"]):
    """A listener, who reads one event after the other."""

    def __init__(self, address: str, run: str) -> None:
        self.connection = http.client.HTTPConnection(address, timeout=PATIENCE)
        self.connection.request("GET", f"/api/runs/{run}/stream")
        self.response = self.connection.getresponse()

    def __exit__(self, *_: object) -> None:
        self.response.close()
        self.connection.close()

    def event(self) -> dict[str, str]:
        """The next event, by its fields; a comment has an empty name, and an empty event is the end."""
        fields: dict[str, str] = {}
        while line := self.response.readline().decode():
            if line == "\n":
                return fields
            name, _, value = line.rstrip("\n").partition(": ")
            fields[name] = value
        return fields

    def answer(self) -> Any:
        event = self.event()
        answer = json.loads(event["data"])
        assert int(event["id"]) == answer["version"]
        return answer


def test_all_listeners_get_every_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msg2.server.live_runs._KEEP_ALIVE_SECONDS", 0.2)
    with ExitStack() as streams, running_app(tmp_path, listeners=2) as (url, server):
        address, live_runs = urlsplit(url).netloc, server._app.state.runs
        graph = asked(address, "POST", "/drawn", {"graph": GRAPH})["id"]
        run = asked(address, "POST", "/runs", {"graph": graph})
        path = f"/runs/{run['id']}"
        first = streams.enter_context(Stream(address, run["id"]))
        assert first.response.headers["content-type"].startswith("text/event-stream")
        assert first.answer() == run["answer"]
        told_first = asked(address, "POST", f"{path}/events", {"did": "whisk"})
        second = streams.enter_context(Stream(address, run["id"]))
        late = streams.enter_context(Stream(address, run["id"]))
        assert late.response.status == 429
        assert second.answer()["last"]["seen"] == {"whisk": 1.0}
        assert first.answer() == told_first
        asked(address, "POST", f"{path}/events", {"ask": True})  # nothing changes: nobody is told
        told_last = asked(address, "POST", f"{path}/events", {"undo": True})
        assert first.answer() == second.answer() == told_last
        taken = asked(address, "POST", f"{path}/graph", {"graph": graph})["answer"]
        assert first.answer() == second.answer() == {**taken, "graph": graph}
        assert "" in first.event()  # a comment: still here
        second.__exit__()
        until(lambda: len(live_runs._listeners) == 1)
        asked(address, "DELETE", path)
        while "" in (event := first.event()):
            pass
        assert event["event"] == "removed"
        assert first.event() == {}
        until(lambda: not live_runs._listeners and not live_runs._locks._locks)


def test_a_server_that_ends_ends_its_streams(tmp_path: Path) -> None:
    with ExitStack() as streams, running_app(tmp_path) as (url, _):
        address = urlsplit(url).netloc
        graph = asked(address, "POST", "/drawn", {"graph": GRAPH})["id"]
        run = asked(address, "POST", "/runs", {"graph": graph})["id"]
        stream = streams.enter_context(Stream(address, run))
        stream.answer()
    assert stream.event() == {}
    with running_app(tmp_path) as (url, _):  # which goes on with the run
        address = urlsplit(url).netloc
        with Stream(address, run) as stream:
            assert stream.answer()["version"] == 0
            asked(address, "POST", f"/runs/{run}/events", {"did": "whisk"})
            assert stream.answer()["version"] == 1

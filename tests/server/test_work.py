"""Data in, graphs out; what is kept, and what a restart does to it."""

from __future__ import annotations

import io
import json
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from msg2 import drawing
from msg2.inference import infer
from msg2.options import ServerOptions
from msg2.readers import read
from msg2.server.desk import Desk
from msg2.server.models import Job
from msg2.server.records import Work
from msg2.server.shelf import new_id
from msg2.worlds import export
from tests.server.conftest import TOAST, Open, finished, learnt, refused, uploaded


def test_a_graph_is_what_the_library_learns(client: TestClient, tmp_path: Path) -> None:
    table = tmp_path / "toast.csv"
    table.write_text(TOAST)
    data = uploaded(client)
    assert data["tasks"] == [{"name": "toast", "videos": 8, "steps": ["dip", "fry", "whisk"]}]
    work = learnt(client, data["id"], options={"delta": 0.9})
    graph = client.get(f"/api/work/{work['id']}/as/json").json()
    assert graph == infer(read(table), delta=0.9).to_json()
    assert (work["steps"], work["edges"], work["videos"]) == (
        ["whisk", "dip", "fry"],
        len(graph["preconditions"]) + 1,
        8,
    )


def test_every_format_of_graphs_and_labels_can_be_downloaded(client: TestClient) -> None:
    data = uploaded(client)
    work = learnt(client, data["id"])
    choices = client.get("/api/choices").json()
    assert choices["graph_formats"] == [suffix[1:] for suffix in drawing.SUFFIXES]
    assert choices["label_formats"] == [suffix[1:] for suffix in export.SUFFIXES]
    for kind, id in (("graph", work["id"]), ("label", data["id"])):
        for format in choices[f"{kind}_formats"]:
            answer = client.get(f"/api/{'work' if kind == 'graph' else 'data'}/{id}/as/{format}")
            assert answer.status_code == 200, (format, answer.text)
            assert len(answer.content) > 50
            name = answer.headers["content-disposition"]
            assert name.startswith('attachment; filename="toast.')
            if name.endswith('.zip"'):
                assert zipfile.ZipFile(io.BytesIO(answer.content)).testzip() is None
    again = client.get(f"/api/data/{data['id']}/as/csv").text
    assert uploaded(client, again, "other.csv")["tasks"] == data["tasks"]


def test_constraints_are_obeyed_and_contradictions_named(client: TestClient) -> None:
    data = uploaded(client)
    work = learnt(client, data["id"], require=[["fry", "dip"]])
    graph = client.get(f"/api/work/{work['id']}/as/json").json()
    assert graph["method"]["knowledge"] == {"required": [["fry", "dip"]]}
    begun = client.post("/api/work", json={"data": data["id"], "require": [["fry", "dip"], ["dip", "fry"]]}).json()
    failed = finished(client, begun["id"])
    assert failed["state"] == "failed"
    assert "circle" in failed["problem"]["error"]


def test_an_archive_is_a_folder(client: TestClient) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for video in ("v1", "v2"):
            archive.writestr(f"toast/{video}.csv", "step,start,end\nwhisk,0,1\ndip,1,2\n")
    data = uploaded(client, packed.getvalue(), "my toast.zip")
    assert data["tasks"] == [{"name": "my toast", "videos": 2, "steps": ["dip", "whisk"]}]


def test_one_task_of_many(client: TestClient) -> None:
    rows = "".join(f"{task},v,{step}\n" for task in ("tea", "toast") for step in "ab")
    data = uploaded(client, f"task,video,step\n{rows}")
    assert learnt(client, data["id"], task="tea")["task"] == "tea"
    begun = client.post("/api/work", json={"data": data["id"]}).json()
    assert finished(client, begun["id"])["problem"]["error"] == "holds 2 tasks"


def test_nothing_is_lost_by_a_restart(open_app: Open) -> None:
    first = open_app()
    data = uploaded(first)
    work = learnt(first, data["id"])
    graph = first.get(f"/api/work/{work['id']}/as/json").content
    first.__exit__(None, None, None)
    second = open_app()
    assert second.get("/api/data").json()["data"] == [data]
    assert second.get("/api/work").json()["work"] == [work]
    assert second.get(f"/api/work/{work['id']}/as/json").content == graph
    assert second.get(f"/page/{work['id']}").status_code == 200


def test_jobs_that_were_under_way_are_taken_up_again(open_app: Open, tmp_path: Path) -> None:
    """As after a kill: records that wait, or say that they are running, and the remains of an upload."""
    first = open_app()
    data = uploaded(first)
    first.__exit__(None, None, None)
    desk = Desk(ServerOptions(folder=tmp_path / "work"))
    states = [("waiting", 0), ("running", 1), ("running", 3)]
    ids = [new_id() for _ in states]
    for id, (state, attempts) in zip(ids, states, strict=True):
        job = Job(data=data["id"])
        desk.work.put(Work(id=id, made=time.time(), kind="learnt", state=state, attempts=attempts, job=job))  # type: ignore[arg-type]
    remains, removed = desk.data.place(new_id()), desk.data.root / f"removed-{new_id()}"
    for folder in (remains, removed):
        folder.mkdir()
        (folder / "half").write_text("video,st")
    (removed / "record.json").write_text("{}")
    desk.end()
    second = open_app()
    assert [finished(second, id)["state"] for id in ids] == ["done", "done", "failed"]
    assert "ended 3 times" in second.get(f"/api/work/{ids[2]}").json()["problem"]["error"]
    assert not remains.exists()
    assert not removed.exists()


def test_what_somebody_else_keeps_in_the_folder_stays(open_app: Open, tmp_path: Path) -> None:
    theirs = [tmp_path / "desk" / name / "mine" / "thesis.txt" for name in ("data", "work", "scratch")]
    for file in theirs:
        file.parent.mkdir(parents=True)
        file.write_text("years of work")
    open_app(folder=tmp_path / "desk")
    assert all(file.read_text() == "years of work" for file in theirs)


def test_a_job_that_is_stopped_in_good_order_waits_for_the_next_start(open_app: Open, tmp_path: Path) -> None:
    first = open_app(workers=1)
    data = uploaded(first, _long_table())
    begun = first.post("/api/work", json={"data": data["id"], "samples": 10_000}).json()
    _until(lambda: first.get(f"/api/work/{begun['id']}").json()["news"] == "learning from 10000 samples of the videos")
    first.__exit__(None, None, None)
    record = json.loads((tmp_path / "work" / "work" / begun["id"] / "record.json").read_text())
    assert (record["state"], record.get("attempts", 0)) == ("waiting", 0)


def test_a_job_can_be_given_up(client: TestClient) -> None:
    data = uploaded(client, _long_table())
    begun = client.post("/api/work", json={"data": data["id"], "samples": 10_000}).json()
    _until(lambda: client.get(f"/api/work/{begun['id']}").json()["state"] == "running")
    assert client.delete(f"/api/work/{begun['id']}").status_code == 204
    assert refused(client.get(f"/api/work/{begun['id']}"), 404)
    assert learnt(client, uploaded(client)["id"])
    assert [work["state"] for work in client.get("/api/work").json()["work"]] == ["done"]


def test_a_job_that_takes_too_long_is_ended(open_app: Open) -> None:
    client = open_app(job_seconds=1)
    data = uploaded(client, _long_table())
    begun = client.post("/api/work", json={"data": data["id"], "samples": 10_000}).json()
    assert finished(client, begun["id"])["problem"]["error"] == "took longer than 1 seconds"


def test_a_folder_is_one_server_s_alone(client: TestClient, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="another msg2 serve is using this folder"):
        Desk(ServerOptions(folder=tmp_path / "work"))


def test_too_many_jobs_are_turned_away(open_app: Open) -> None:
    client = open_app(waiting=1, workers=1)
    data = uploaded(client, _long_table())
    job = {"data": data["id"], "samples": 10_000}
    assert client.post("/api/work", json=job).status_code == 201
    assert refused(client.post("/api/work", json=job), 429) == "too many jobs are waiting"


def test_data_and_graphs_that_lie_elsewhere_are_offered(tmp_path: Path) -> None:
    table, graph = tmp_path / "toast.csv", tmp_path / "graph.json"
    table.write_text(TOAST)
    graph.write_text(infer(read(table)).dumps())
    desk = Desk(ServerOptions(folder=tmp_path / "work"))
    for _ in range(2):  # the same paths are the same things
        desk.offer(table)
        desk.offer(graph)
    assert [data.path for data in desk.data.all()] == [str(table)]
    assert [(work.kind, work.name, work.task) for work in desk.work.all()] == [("given", "graph.json", "toast")]
    graph.write_text('{"format": "msg2.graph/1", "preconditions": {}}')
    with pytest.raises(ValueError, match=r"\$.task: is missing"):
        desk.offer(graph)
    desk.end()


def test_graph_files_are_added(client: TestClient, tmp_path: Path) -> None:
    table = tmp_path / "toast.csv"
    table.write_text(TOAST)
    graph = infer(read(table))
    given = client.post("/api/given", params={"name": "ann.json"}, content=graph.dumps())
    assert given.status_code == 201, given.text
    added = given.json()
    assert (added["kind"], added["name"], added["task"]) == ("given", "ann.json", "toast")
    assert client.get(f"/api/work/{added['id']}/as/json").json() == graph.to_json()
    unnamed = '{"steps": {"1": "boil", "2": "pour"}, "edges": [["1", "2"]]}'
    assert client.post("/api/given", params={"name": "tea.json"}, content=unnamed).json()["task"] == "tea"
    for content in (TOAST, "{}", "", '{"format": "msg2.graph/1", "preconditions": {}}'):
        answer = client.post("/api/given", params={"name": "bad.json"}, content=content)
        refused(answer)
        assert answer.json()["where"].startswith("bad.json")
        assert str(tmp_path) not in answer.text
    assert len(client.get("/api/work").json()["work"]) == 2


def test_a_record_that_cannot_be_read_hurts_no_other(
    open_app: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = open_app()
    data = uploaded(client)
    works = [learnt(client, data["id"])["id"] for _ in range(3)]
    for id, content in zip(works, ("{broken", '{"from": "the future"}'), strict=False):
        (tmp_path / "work" / "work" / id / "record.json").write_text(content)
    client.__exit__(None, None, None)
    again = open_app()
    assert [work["id"] for work in again.get("/api/work").json()["work"]] == works[2:]
    assert refused(again.get(f"/api/work/{works[0]}"), 404) == "is no record that can be read"
    assert sorted(caplog.messages) == sorted(
        f"work/{id}/record.json: is no record that can be read" for id in works[:2]
    )
    assert (tmp_path / "work" / "work" / works[0] / "graph.json").is_file()


def test_removed_data_is_gone_and_its_graphs_stay(client: TestClient, tmp_path: Path) -> None:
    data = uploaded(client)
    work = learnt(client, data["id"])
    assert client.delete(f"/api/data/{data['id']}").status_code == 204
    assert refused(client.get(f"/api/data/{data['id']}"), 404)
    assert client.get(f"/page/{work['id']}").status_code == 200
    assert list((tmp_path / "work" / "data").iterdir()) == []
    begun = client.post("/api/work", json={"data": data["id"]})
    assert refused(begun, 404)


def _long_table() -> str:
    """Of a task that takes minutes with ten thousand samples."""
    steps = [f"step {number}" for number in range(30)]
    rows = [f"v{video},{step}\n" for video in range(40) for step in steps[video % 7 :]]
    return "video,step\n" + "".join(rows)


def _until(holds: Any, within: float = 20) -> None:
    end = time.monotonic() + within
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)

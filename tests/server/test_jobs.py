"""The job queue: jobs that wait, are stopped, taken up again, given up; and how far they are."""

from __future__ import annotations

import errno
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from msg2.errors import InputError
from msg2.server import jobs
from msg2.server.sandbox import disk_full_error
from msg2.server.schemas import GraphRecord, JobRequest
from msg2.server.settings import ServerSettings
from msg2.server.workspace import Workspace, new_graph, new_id
from tests.server.conftest import Open, finished, learnt, refused, until, uploaded


def test_jobs_that_were_under_way_are_taken_up_again(open_app: Open, tmp_path: Path) -> None:
    """As after a kill: records that wait, or say that they are running, and the remains of an upload."""
    first = open_app()
    data = uploaded(first)
    first.__exit__(None, None, None)
    workspace = Workspace(ServerSettings(folder=tmp_path / "work"))
    states = [("waiting", 0), ("running", 1), ("running", 3)]
    ids = [new_id() for _ in states]
    for id, (state, attempts) in zip(ids, states, strict=True):
        job = JobRequest(data=data["id"])
        workspace.graphs.put(
            GraphRecord(id=id, made=time.time(), kind="learnt", state=state, attempts=attempts, job=job)
        )  # type: ignore[arg-type]
    remains, removed = workspace.datasets.folder(new_id()), workspace.datasets.root / f"removed-{new_id()}"
    for folder in (remains, removed):
        folder.mkdir()
        (folder / "half").write_text("video,st")
    (removed / "record.json").write_text("{}")
    workspace.close()
    second = open_app()
    assert [(work["state"], work["attempts"]) for work in (finished(second, id) for id in ids)] == [
        ("done", 1),
        ("done", 2),
        ("done", 4),
    ]
    assert not remains.exists()
    assert not removed.exists()


def test_jobs_that_may_have_ended_the_server_come_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken_up: list[GraphRecord] = []
    with Workspace(ServerSettings(folder=tmp_path / "work")) as workspace:
        for attempts, made in [(3, 1), (0, 4), (1, 3), (0, 2)]:
            workspace.graphs.put(new_graph("learnt", state="running", attempts=attempts, made=made))
        queue = jobs.JobQueue(workspace)
        monkeypatch.setattr(queue, "_enqueue", taken_up.append)
        queue.start()
    assert [(record.attempts, record.made) for record in taken_up] == [(0, 2), (0, 4), (1, 3), (3, 1)]


def test_a_job_that_is_stopped_in_good_order_waits_for_the_next_start(open_app: Open, tmp_path: Path) -> None:
    first = open_app(workers=1)
    data = uploaded(first, _long_table())
    begun = first.post("/api/work", json={"data": data["id"], "method": "msg2", "samples": 10_000}).json()
    until(lambda: "samples of the videos" in (first.get(f"/api/work/{begun['id']}").json()["news"] or ""))
    first.__exit__(None, None, None)
    record = json.loads((tmp_path / "work" / "work" / begun["id"] / "record.json").read_text())
    assert (record["state"], record.get("attempts", 0)) == ("waiting", 0)


def test_a_job_says_how_far_it_is(client: TestClient) -> None:
    data = uploaded(client, _long_table())
    begun = client.post("/api/work", json={"data": data["id"], "method": "msg2", "samples": 10_000}).json()
    assert (begun["done"], begun["total"]) == (None, None)
    shown: list[tuple[int, int]] = []

    def is_in_the_samples() -> bool:
        work = client.get(f"/api/work/{begun['id']}").json()
        if work["total"] == 10_000 and (work["done"], work["total"]) not in shown:
            shown.append((work["done"], work["total"]))
        return len(shown) >= 3

    until(is_in_the_samples)
    assert shown == sorted(shown)
    assert all(0 <= done < 10_000 for done, _ in shown)
    listed = client.get("/api/work").json()["work"][0]
    assert listed["done"] >= shown[-1][0]


def test_a_job_can_be_given_up(client: TestClient) -> None:
    data = uploaded(client, _long_table())
    begun = client.post("/api/work", json={"data": data["id"], "method": "msg2", "samples": 10_000}).json()
    until(lambda: client.get(f"/api/work/{begun['id']}").json()["state"] == "running")
    assert client.delete(f"/api/work/{begun['id']}").status_code == 204
    assert refused(client.get(f"/api/work/{begun['id']}"), 404)
    assert learnt(client, uploaded(client)["id"])
    assert [work["state"] for work in client.get("/api/work").json()["work"]] == ["done"]


def test_a_job_that_takes_too_long_is_ended(open_app: Open) -> None:
    client = open_app(job_seconds=1)
    data = uploaded(client, _long_table())
    begun = client.post("/api/work", json={"data": data["id"], "method": "msg2", "samples": 10_000}).json()
    assert finished(client, begun["id"])["problem"]["error"] == "took longer than 1 seconds"


def test_a_full_disk_holds_a_job_up(open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the record that it is running nor its result can be written; once there is room, it is done."""
    client = open_app(workers=1)
    data = uploaded(client)
    monkeypatch.setattr(jobs, "_PAUSE_SECONDS", 0.1)
    put, fulls = client.app.state.workspace.graphs.put, iter([0, 1, 1, 0, 1])  # type: ignore[attr-defined]

    def put_where_there_is_room(record: GraphRecord) -> GraphRecord:
        if next(fulls, 0):
            raise InputError("cannot be written") from OSError(errno.ENOSPC, "No space left on device")
        return put(record)  # type: ignore[no-any-return]

    monkeypatch.setattr(client.app.state.workspace.graphs, "put", put_where_there_is_room)  # type: ignore[attr-defined]
    work = learnt(client, data["id"])
    assert work["attempts"] == 1
    assert next(fulls, None) is None
    assert (tmp_path / "work" / "work" / work["id"] / "graph.json").is_file()


@pytest.mark.parametrize("where", ["record", "process"])
def test_no_accepted_job_is_dropped_where_files_run_out(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    data, graphs = uploaded(client), client.app.state.workspace.graphs  # type: ignore[attr-defined]
    monkeypatch.setattr(jobs, "_PAUSE_SECONDS", 0.1)
    fails, failed = iter([1, 1, 1]), []
    owner, name = (graphs, "get") if where == "record" else (jobs.Worker, "__init__")
    real = getattr(owner, name)

    def out_of_files(*arguments: Any) -> Any:
        if threading.current_thread().name.startswith("msg2-job") and next(fails, 0):
            failed.append(arguments)
            raise OSError(errno.EMFILE, "Too many open files")
        return real(*arguments)

    monkeypatch.setattr(owner, name, out_of_files)
    assert learnt(client, data["id"])["steps"] == ["whisk", "dip", "fry"]
    assert len(failed) == 3


def test_a_record_that_cannot_be_opened_just_now_is_not_gone(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = uploaded(client)

    def out_of_files(_: Path) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", out_of_files)
        for path in ("/api/data", f"/api/data/{data['id']}"):
            assert refused(client.get(path), 503) == "the server has too much to do at the moment"
    assert client.get(f"/api/data/{data['id']}").json() == data


def test_a_job_whose_result_finds_no_room_waits(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    data = uploaded(client)
    real, said = jobs.Worker.call, iter([disk_full_error()])
    seen: list[Any] = []

    def call_where_there_is_room(*arguments: Any, **options: Any) -> Any:
        for error in said:
            raise error
        return real(*arguments, **options)

    monkeypatch.setattr(jobs.Worker, "call", call_where_there_is_room)
    begun = client.post("/api/work", json={"data": data["id"]}).json()
    until(lambda: seen.append(client.get(f"/api/work/{begun['id']}").json()["news"]) or "disk" in (seen[-1] or ""))
    assert seen[-1] == "the disk of the server is full: waiting for room"
    assert finished(client, begun["id"])["state"] == "done"


def test_too_many_jobs_are_turned_away(open_app: Open) -> None:
    client = open_app(waiting=1, workers=1)
    data = uploaded(client, _long_table())
    job = {"data": data["id"], "method": "msg2", "samples": 10_000}
    assert client.post("/api/work", json=job).status_code == 201
    assert refused(client.post("/api/work", json=job), 429) == "too many jobs are waiting"


def _long_table() -> str:
    """Of a task that takes minutes with ten thousand samples."""
    steps = [f"step {number}" for number in range(30)]
    rows = [f"v{video},{step}\n" for video in range(40) for step in steps[video % 7 :]]
    return "video,step\n" + "".join(rows)

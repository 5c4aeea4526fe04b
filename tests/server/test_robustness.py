"""Whatever is sent, and whatever lies in the folder: an answer in one sentence, and the server goes on."""

from __future__ import annotations

import errno
import io
import json
import logging
import lzma
import os
import socket
import urllib.request
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi.testclient import TestClient

from msg2.server import security, web_app
from msg2.server.settings import ServerSettings
from msg2.server.web_app import listening_socket
from tests.server.conftest import PATIENCE, Open, learnt, refused, until, uploaded
from tests.server.live import app_address, running_app

GRAPH = {"format": "msg2.graph/2", "task": "tea", "steps": ["a", "b"], "preconditions": {"b": "a"}}
ROW = {"video": "v", "step": "a"}


def nested(depth: int, value: Any = "a") -> Any:
    for _ in range(depth):
        value = {"all": [value]}
    return value


@pytest.mark.parametrize("depth", [60, 150, 300, 450])
def test_a_body_that_is_nested_hundreds_deep(shared_client: TestClient, depth: int) -> None:
    """Deeper than Python can read, pickle or write; each of them fails at another depth."""
    graph = {**GRAPH, "preconditions": {"b": nested(depth)}}
    for path, body in (
        ("draw", {"graph": graph}), ("drawn", {"graph": graph}), ("next", {"graph": graph}),
        ("check", {"graph": graph, "labels": [ROW]}), ("infer", {"labels": [ROW], "options": {"delta": nested(depth)}}),
        ("infer", nested(depth)), ("infer", {"labels": nested(depth)}),
    ):  # fmt: skip
        answer = shared_client.post(f"/api/{path}", content=json.dumps(body))
        assert answer.status_code in (400, 422), (path, answer.text)
        refused(answer, answer.status_code)
    answer = shared_client.post("/api/infer", content="[" * 100_000)
    refused(answer, answer.status_code)
    assert answer.status_code in (400, 422)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("infer", {"labels": [{"video": "\ud800", "step": "a"}]}),
        ("infer", {"labels": [ROW], "\ud800": 1}),
        ("infer", {"labels": [ROW], "options": {"\udfff": 1}}),
        ("infer", {"labels": [ROW], "method": "\ud800"}),
        ("infer", {"labels": [ROW], "task": "\ud800"}),
        ("draw", {"graph": {**GRAPH, "task": "\ud800"}}),
        ("draw", {"graph": {**GRAPH, "steps": ["\ud800"]}}),
        ("next", {"graph": GRAPH, "done": ["\ud800"]}),
        ("next", {"graph": GRAPH, "ranker": "\ud800"}),
        ("work", {"data": "\ud800"}),
        ("work", {"data": "0" * 32, "method": "\ud800"}),
    ],
)
def test_halves_of_characters(shared_client: TestClient, path: str, body: Any) -> None:
    answer = shared_client.post(f"/api/{path}", content=json.dumps(body))
    assert answer.status_code in (400, 404, 422), answer.text
    refused(answer, answer.status_code)


def test_a_broken_lzma_archive(client: TestClient) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.csv", "video,step\n" + "v,a\n" * 1000)
    broken = bytearray(packed.getvalue())
    broken[60] ^= 0xFF
    with pytest.raises(lzma.LZMAError), zipfile.ZipFile(io.BytesIO(broken)) as archive:  # which is no OSError
        archive.read("a.csv")
    answer = client.post("/api/data", params={"name": "a.zip"}, content=bytes(broken))
    assert refused(answer) == "cannot be unpacked (Corrupt input data)"


def test_a_full_disk(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    data, path_open = uploaded(client), Path.open

    def full(path: Path, mode: Any = "w", *arguments: Any, **options: Any) -> Any:
        if isinstance(mode, str) and "w" not in mode:
            return path_open(path, mode, *arguments, **options)
        raise OSError(errno.ENOSPC, "No space left on device")

    requests = (
        lambda: client.post("/api/data?name=a.csv", content="video,step\nv,a\n"),
        lambda: client.post("/api/work", json={"data": data["id"]}),
        lambda: client.post("/api/infer", json={"labels": [ROW]}),
        lambda: client.post("/api/drawn", json={"graph": GRAPH}),
    )
    for owner, name in ((Path, "mkdir"), (os, "fsync"), (Path, "open")):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, full)
            for place, request in enumerate(requests):
                answer = request()
                assert answer.status_code in (200, 201, 507), (name, place, answer.text)
                if answer.status_code == 507:
                    assert refused(answer, 507) == "the disk of the server is full"
                if place == 0:
                    assert answer.status_code == 507
    assert [one["id"] for one in client.get("/api/data").json()["data"]] == [data["id"]]


def test_what_is_slow_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = b"POST /api/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
    assert (security._PATIENCE_SECONDS, web_app.HEAD_SECONDS) == (30.0, 15.0)
    with app_address(tmp_path) as address, monkeypatch.context() as patched:
        server = urlsplit(address)
        patched.setattr(security, "_PATIENCE_SECONDS", 0.2)
        patched.setattr(web_app, "HEAD_SECONDS", 0.2)
        for sent, said in ((head, b""), (b"", b""), (head + b"\r\n{", b"HTTP/1.1 408")):
            with socket.create_connection((server.hostname, server.port or 80), timeout=PATIENCE) as connection:
                connection.sendall(sent)
                assert connection.recv(12) == said
        patched.undo()
        with socket.create_connection((server.hostname, server.port or 80), timeout=PATIENCE) as connection:
            for part in (b"GET /api/data HT", b"TP/1.1\r\nHost: localhost\r\n", b"\r\n"):  # in time
                connection.sendall(part)
            assert connection.recv(12) == b"HTTP/1.1 200"


def test_answers_are_sent_at_once(tmp_path: Path) -> None:
    """Asyncio turns Nagle's algorithm off for sockets of a known protocol only: it holds answers back for 40 ms."""
    with listening_socket(ServerSettings(folder=tmp_path, port=0)) as listening:
        assert listening.proto == socket.IPPROTO_TCP


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_records_and_pages_that_are_no_files_are_passed_over(
    open_app: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = open_app()
    data = uploaded(client)
    folder, pipe, linked, good = (
        tmp_path / "work" / "work" / learnt(client, data["id"])["id"] for _ in range(4)
    )  # fmt: skip
    for file in (folder / "record.json", pipe / "record.json", linked / "page.html", linked / "graph.json"):
        file.unlink()
    (folder / "record.json").mkdir()
    os.mkfifo(pipe / "record.json")
    (tmp_path / "secret").write_text("nobody's business")
    for name in ("page.html", "graph.json"):
        (linked / name).symlink_to(tmp_path / "secret")
    client.__exit__(None, None, None)
    again = open_app()
    assert {work["id"] for work in again.get("/api/work").json()["work"]} == {linked.name, good.name}
    refused(again.get(f"/api/work/{pipe.name}"), 404)
    for path in (f"/page/{linked.name}", f"/api/work/{linked.name}/as/json"):
        assert "nobody" not in refused(again.get(path), 404)
    for name in (f"work/{folder.name}/record.json", f"work/{pipe.name}/record.json", f"work/{linked.name}/page.html"):
        assert any(message.startswith(name) for message in caplog.messages), name
    assert (folder / "graph.json").is_file()  # left alone


def test_so_many_plans_are_not_made(client: TestClient) -> None:
    graph = client.post("/api/drawn", json={"graph": GRAPH}).json()["id"]
    run = client.post("/api/runs", json={"graph": graph}).json()["id"]
    assert client.post(f"/api/runs/{run}/events", json={"plan": "b", "k": 100}).status_code == 200
    assert "k is more than 100" in refused(client.post(f"/api/runs/{run}/events", json={"plan": "b", "k": 101}), 422)


def test_half_sent_heads_do_not_stop_the_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_app, "_MAX_IDLE", 20, raising=False)
    with running_app(tmp_path) as (address, server), ExitStack() as opened:
        host, port = address.removeprefix("http://").rstrip("/").split(":")
        for _ in range(60):
            half = opened.enter_context(socket.create_connection((host, int(port))))
            half.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: ")
        with urllib.request.urlopen(f"{address}api/choices", timeout=PATIENCE) as answer:
            assert answer.status == 200
        until(lambda: len(server.server_state.connections) <= 20)


def test_a_complaint_that_strangers_cause_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_app(tmp_path):
        for name in ("asyncio", "uvicorn.error"):
            for _ in range(1000):
                logging.getLogger(name).error("of this test: socket.accept() out of system resource")
    assert len(caplog.records) == 1


def test_the_app_may_open_as_many_files_as_the_machine_allows(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1000), most))
    try:
        with running_app(tmp_path) as (_, server):
            now = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            assert now == most or now >= 16_000
            assert server.config.limit_concurrency <= now // 2
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))

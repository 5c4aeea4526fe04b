"""`msg2 serve`: the program, from its first line to its end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Msg2
from tests.server.live import serving

pytest.importorskip("fastapi")


def asked(address: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def test_what_is_named_is_there_and_a_killed_job_is_done_at_the_next_start(table: Path, graph: Path) -> None:
    folder = table.parent
    rows = [f"v{video},step {step}\n" for video in range(60) for step in range(video % 5, 30)]
    (folder / "long.csv").write_text("video,step\n" + "".join(rows))
    with serving(folder, table.name, graph.name, "long.csv", how_to_end=signal.SIGKILL) as address:
        data = {one["name"]: one["id"] for one in asked(address, "api/data")["data"]}
        assert set(data) == {"toast.csv", "long.csv"}
        assert [one["kind"] for one in asked(address, "api/work")["work"]] == ["given"]
        job = asked(address, "api/work", {"data": data["long.csv"], "samples": 25})["id"]
        waiting = asked(address, "api/work", {"data": data["toast.csv"]})["id"]
        _until(lambda: asked(address, f"api/work/{job}")["state"] == "running")
    assert json.loads((folder / "work" / "work" / job / "record.json").read_text())["state"] == "running"
    with serving(folder) as address:
        for id in (job, waiting):
            _until(lambda id=id: asked(address, f"api/work/{id}")["state"] == "done")  # type: ignore[misc]
        assert asked(address, f"api/work/{job}")["attempts"] == 2


def test_wrong_usage_and_wrong_input(msg2: Msg2, tmp_path: Path) -> None:
    assert msg2("serve", "--host", "0.0.0.0", "--folder", tmp_path).code == 2
    assert msg2("serve", "--token", "short", "--folder", tmp_path).code == 2
    assert (
        "is not there" in msg2("serve", tmp_path / "nowhere.csv", "--folder", tmp_path / "work", "--port", 0).complaint
    )
    (tmp_path / "file").write_text("")
    assert "cannot be written to" in msg2("serve", "--folder", tmp_path / "file").complaint
    (tmp_path / "data").write_text("")
    assert "cannot be a folder" in msg2("serve", "--folder", tmp_path, "--port", 0).complaint


def test_the_log_does_not_wait_for_the_end(tmp_path: Path) -> None:
    record = tmp_path / "work" / "work" / ("0" * 32) / "record.json"
    record.parent.mkdir(parents=True)
    record.write_text("{")
    command = [Path(sys.executable).with_name("msg2"), "serve", "--folder", tmp_path / "work", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        assert server.stderr.readline().startswith(f"warning: work/{'0' * 32}/record.json: ")
        server.kill()


def test_without_the_extra(msg2: Msg2, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "msg2.server.web_app", raising=False)
    monkeypatch.delattr("msg2.server.web_app", raising=False)
    assert "pip install 'msg2[server]'" in msg2("serve", "--folder", tmp_path).complaint


def test_a_port_or_a_folder_that_is_taken(msg2: Msg2, tmp_path: Path) -> None:
    with serving(tmp_path) as address:
        port = address.rstrip("/").rpartition(":")[2]
        assert "cannot listen there" in msg2("serve", "--port", port, "--folder", tmp_path / "other").complaint
        assert "another msg2 serve is using this folder" in msg2("serve", "--folder", tmp_path / "work").complaint


def test_an_interrupt_is_the_end(tmp_path: Path) -> None:
    command = [Path(sys.executable).with_name("msg2"), "serve", "--folder", tmp_path / "work", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert server.stdout.readline().startswith("msg2 is at http://127.0.0.1:")
    server.send_signal(signal.SIGINT)
    assert server.communicate(timeout=20) == ("", "msg2: interrupted\n")
    assert server.returncode == 130


def _until(holds: Callable[[], bool], within: float = 30) -> None:
    end = time.monotonic() + within
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)

"""`msg2 serve`: the program, from its first line to its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from tests.cli.conftest import Msg2
from tests.server.conftest import PATIENCE, until
from tests.server.live import serving


def asked(address: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
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
        until(lambda: asked(address, f"api/work/{job}")["state"] == "running")
    assert json.loads((folder / "work" / "work" / job / "record.json").read_text())["state"] == "running"
    with serving(folder) as address:
        for id in (job, waiting):
            until(lambda id=id: asked(address, f"api/work/{id}")["state"] == "done")  # type: ignore[misc]
        assert asked(address, f"api/work/{job}")["attempts"] == 2


def test_wrong_usage_and_wrong_input(msg2: Msg2, tmp_path: Path) -> None:
    assert msg2("serve", "--host", "0.0.0.0", "--no-token", "--folder", tmp_path).code == 2
    assert msg2("serve", "--allow-origin", "https://kitchen.example/", "--folder", tmp_path).code == 2
    (tmp_path / "short").write_text("short\n")
    assert msg2("serve", "--token-file", tmp_path / "short", "--folder", tmp_path).code == 2
    assert "cannot be read" in msg2("serve", "--token-file", tmp_path / "none", "--folder", tmp_path).complaint
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
    assert "pip install 'msg2[app]'" in msg2("serve", "--folder", tmp_path).complaint


def test_a_port_or_a_folder_that_is_taken(msg2: Msg2, tmp_path: Path) -> None:
    with serving(tmp_path) as address:
        port = address.rstrip("/").rpartition(":")[2]
        assert "cannot listen there" in msg2("serve", "--port", port, "--folder", tmp_path / "other").complaint
        assert "another msg2 serve is using this folder" in msg2("serve", "--folder", tmp_path / "work").complaint


@contextmanager
def started(folder: Path, *arguments: str, **environment: str) -> Iterator[str]:
    """The program as people start it, until its end in good order: the address that it prints."""
    command = [Path(sys.executable).with_name("msg2"), "serve", "--folder", "work", "--port", "0", *arguments]
    clean = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")}
    environment = {**clean, **environment}
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().split()[3]
        finally:
            server.send_signal(signal.SIGINT)


def status_of(address: str, **headers: str) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=600) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_the_browser_opens_with_a_token_that_no_command_line_shows(tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text('#!/bin/sh\nprintf %s "$1" > opened.part; mv opened.part opened\n')
    browser.chmod(0o755)
    tokens = set()
    for _ in range(2):  # another token at every start
        with started(tmp_path, BROWSER=f"{browser} %s") as address:
            until((tmp_path / "opened").is_file)
            opened = (tmp_path / "opened").read_text()
            plain, _, token = address.partition("?token=")
            tokens.add(token)
            assert len(token) >= 32
            assert opened.startswith("file:///")
            assert token not in opened
            with urllib.request.urlopen(opened, timeout=600) as page:
                assert f"url={address}" in page.read().decode()
            assert (tmp_path / "work" / "token").read_text() == f"{token}\n"
            assert status_of(f"{plain}api/data") == 401
            assert status_of(f"{plain}api/data", Authorization=f"Bearer {token}") == 200
        (tmp_path / "opened").unlink()
        assert not {"token", "open.html"} & {file.name for file in (tmp_path / "work").iterdir()}
    assert len(tokens) == 2


def test_a_token_of_ones_own_and_no_browser(tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text("#!/bin/sh\ntouch opened\n")
    browser.chmod(0o755)
    (tmp_path / "secret").write_text("from-a-file-0123456789\n")
    own = {"MSG2_TOKEN": "from-the-environment-0123456789"}
    for arguments, token in ((("--token-file", "secret"), "from-a-file-0123456789"), ((), own["MSG2_TOKEN"])):
        allowed = {"Origin": "https://kitchen.example", "Authorization": f"Bearer {token}"}
        sites = ("--allow-origin", "https://display.example", "--allow-origin", "https://kitchen.example")
        with started(tmp_path, "--no-browser", *sites, *arguments, BROWSER=f"{browser} %s", **own) as address:
            assert address.endswith("/")  # what is kept elsewhere is not printed, maybe into a log
            assert status_of(f"{address}api/data", **allowed) == 200
            assert status_of(f"{address}api/data", **{**allowed, "Origin": "https://x.example"}) == 403
    assert not (tmp_path / "opened").exists()


@pytest.mark.skipif(os.name != "posix", reason="other systems have no modes")
def test_nobody_else_on_the_machine_can_look_into_the_folder(table: Path) -> None:
    folder = table.parent
    with serving(folder, table.name):
        pass
    work = folder / "work"
    assert work.stat().st_mode & 0o777 == 0o700
    assert all(file.stat().st_mode & 0o077 == 0 for file in work.rglob("*"))
    work.chmod(0o755)  # as earlier versions made it
    with serving(folder):
        pass
    assert work.stat().st_mode & 0o777 == 0o700


def test_an_interrupt_is_the_end(tmp_path: Path) -> None:
    command = [Path(sys.executable).with_name("msg2"), "serve", "--folder", tmp_path / "work", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert server.stdout.readline().startswith("msg2 is at http://127.0.0.1:")
    server.send_signal(signal.SIGINT)
    assert server.communicate(timeout=PATIENCE) == ("", "msg2: interrupted\n")
    assert server.returncode == 130


@pytest.mark.skipif(os.name != "posix", reason="other systems end a program in another way")
def test_a_signal_to_end_leaves_no_token(tmp_path: Path) -> None:
    command = [Path(sys.executable).with_name("msg2"), "serve", "--folder", tmp_path / "work", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdout is not None
    server.stdout.readline()
    assert (tmp_path / "work" / "token").is_file()
    server.send_signal(signal.SIGTERM)
    assert server.communicate(timeout=PATIENCE) == ("", "")
    assert server.returncode == 0
    assert not {"token", "open.html"} & {file.name for file in (tmp_path / "work").iterdir()}

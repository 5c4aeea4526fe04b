"""Worker tasks that misbehave: what breaks, breaks alone, and is told in one line."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient

from msg2.server.settings import ServerSettings
from msg2.server.workers import DiskFullError, TaskCancelledError, Worker, WorkerPool
from tests.server import misbehaving_tasks


def run_alone(task: Callable[[], object], seconds: float = 20) -> None:
    with Worker(megabytes=2000) as worker:
        worker.run(task, seconds=seconds)


def test_memory_and_crashes_stay_in_their_process(client: TestClient) -> None:
    for task, words in (
        (misbehaving_tasks.greedy, "more than 2,000 MB"),
        (misbehaving_tasks.fatal, "the work broke off"),
        (misbehaving_tasks.deep, "nested too deeply"),
    ):
        with pytest.raises(ValueError, match=words):
            run_alone(task)
    for task in (misbehaving_tasks.full, misbehaving_tasks.nearly_full):
        with pytest.raises(DiskFullError, match="the disk of the server is full"):
            run_alone(task)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run_alone(misbehaving_tasks.wrong)
    with pytest.raises(ValueError, match=r"longer than 0\.3 seconds"):
        run_alone(misbehaving_tasks.endless, seconds=0.3)
    assert client.get("/api/data").status_code == 200


def test_a_pool_keeps_workers_and_replaces_those_that_break() -> None:
    pool = WorkerPool(ServerSettings(answer_seconds=0.5, megabytes=2000, models=1))
    first = pool.run("one", misbehaving_tasks.number).value
    with pytest.raises(ValueError, match="no such thing"):
        pool.run("one", misbehaving_tasks.refuse)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        pool.run("one", misbehaving_tasks.wrong)
    assert pool.run("one", misbehaving_tasks.number).value == first  # what is only refused does not end it
    for task, words in (
        (misbehaving_tasks.fatal, "broke off"),
        (misbehaving_tasks.endless, r"longer than 0\.5 seconds"),
    ):
        with pytest.raises(ValueError, match=words):
            pool.run("one", task)
        assert pool.run("one", misbehaving_tasks.echo).value == "echo"
    assert pool.run("one", misbehaving_tasks.number).value != first
    with pytest.raises(ValueError, match="no such thing"):
        pool.run("two", misbehaving_tasks.refuse)
    assert not pool._seats  # it took the place of the first one, and nothing is kept of what failed at once
    pool.close()
    with pytest.raises(TaskCancelledError):
        pool.run("one", misbehaving_tasks.echo)


@pytest.mark.parametrize(("error", "shown"), [(EOFError("broke off"), False), (OSError("broke off"), True)])
def test_a_process_that_loses_its_parent_while_it_starts_is_silent(
    error: Exception, shown: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # which the module replaces
    fork_server = importlib.reload(importlib.import_module("msg2.server.fork_server"))
    assert sys.excepthook == fork_server._show_error
    sys.excepthook(type(error), error, None)
    assert ("broke off" in capsys.readouterr().err) == shown

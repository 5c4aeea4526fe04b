"""Functions that misbehave in the sandbox: what breaks, breaks alone, and is told in one line."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from fastapi.testclient import TestClient

from msg2.server.sandbox import CallCancelledError, DiskFullError, Sandbox, Worker
from msg2.server.settings import ServerSettings
from tests.server import misbehaving_functions


def call_alone(function: Callable[[], object], seconds: float = 20) -> None:
    with closing(Worker(2000, threading.Event())) as worker:
        worker.call(function, seconds=seconds)


def test_memory_and_crashes_stay_in_their_process(client: TestClient) -> None:
    for function, words in (
        (misbehaving_functions.greedy, "more than 2,000 MB"),
        (misbehaving_functions.fatal, "the work broke off"),
        (misbehaving_functions.deep, "nested too deeply"),
    ):
        with pytest.raises(ValueError, match=words):
            call_alone(function)
    for function in (misbehaving_functions.full, misbehaving_functions.nearly_full):
        with pytest.raises(DiskFullError, match="the disk of the server is full"):
            call_alone(function)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        call_alone(misbehaving_functions.wrong)
    with pytest.raises(ValueError, match=r"longer than 0\.3 seconds"):
        call_alone(misbehaving_functions.endless, seconds=0.3)
    assert client.get("/api/data").status_code == 200


def test_signals_that_end_the_server_do_not_make_its_work_fail() -> None:
    """A terminal, or a manager of services, sends them to all processes at the same time."""
    with closing(Worker(2000, threading.Event())) as worker:
        assert worker.call(misbehaving_functions.outlive_signals, seconds=20).value == "still here"


def test_processes_are_kept_and_those_that_break_are_replaced() -> None:
    sandbox = Sandbox(ServerSettings(answer_seconds=0.5, megabytes=2000, models=1))

    def call(key: str, function: Callable[[], Any]) -> Any:
        return sandbox.call_kept(key, function).value

    first = call("one", misbehaving_functions.number)
    with pytest.raises(ValueError, match="no such thing"):
        call("one", misbehaving_functions.refuse)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        call("one", misbehaving_functions.wrong)
    assert call("one", misbehaving_functions.number) == first  # what is only refused does not end it
    for function, words in (
        (misbehaving_functions.fatal, "broke off"),
        (misbehaving_functions.endless, r"longer than 0\.5 seconds"),
    ):
        with pytest.raises(ValueError, match=words):
            call("one", function)
        assert call("one", misbehaving_functions.echo) == "echo"
    assert call("one", misbehaving_functions.number) != first
    with pytest.raises(ValueError, match="no such thing"):
        call("two", misbehaving_functions.refuse)
    assert not sandbox._idle  # it took the place of the first one, and nothing is kept of what failed at once
    sandbox.close()
    with pytest.raises(CallCancelledError):
        call("one", misbehaving_functions.echo)


@pytest.mark.parametrize(("error", "shown"), [(EOFError("broke off"), False), (OSError("broke off"), True)])
def test_a_process_that_loses_its_parent_while_it_starts_is_silent(
    error: Exception, shown: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # which the module replaces
    fork_server = importlib.reload(importlib.import_module("msg2.server.fork_server"))
    assert sys.excepthook == fork_server._show_error
    sys.excepthook(type(error), error, None)
    assert ("broke off" in capsys.readouterr().err) == shown

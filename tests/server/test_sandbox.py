"""Worker tasks that misbehave: what breaks, breaks alone, and is told in one line."""

from __future__ import annotations

import subprocess
import sys

import pytest
from fastapi.testclient import TestClient

from msg2.server.sandbox import DiskFullError, ProcessLimits, run_in_process
from tests.server import misbehaving_tasks


def test_memory_and_crashes_stay_in_their_process(client: TestClient) -> None:
    limits = ProcessLimits(20, 2000)
    for task, words in (
        (misbehaving_tasks.greedy, "more than 2,000 MB"),
        (misbehaving_tasks.fatal, "the work broke off"),
        (misbehaving_tasks.deep, "nested too deeply"),
    ):
        with pytest.raises(ValueError, match=words):
            run_in_process(task, limits=limits)
    for task in (misbehaving_tasks.full, misbehaving_tasks.nearly_full):
        with pytest.raises(DiskFullError, match="the disk of the server is full"):
            run_in_process(task, limits=limits)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run_in_process(misbehaving_tasks.wrong, limits=limits)
    with pytest.raises(ValueError, match=r"longer than 0\.3 seconds"):
        run_in_process(misbehaving_tasks.endless, limits=ProcessLimits(0.3, 2000))
    assert client.get("/api/data").status_code == 200


@pytest.mark.parametrize(("error", "shown"), [("EOFError", False), ("OSError", True)])
def test_a_process_that_loses_its_parent_while_it_starts_is_silent(error: str, shown: bool) -> None:
    code = f"import msg2.server.fork_server; raise {error}('broke off')"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ("Traceback" in ran.stderr) == shown

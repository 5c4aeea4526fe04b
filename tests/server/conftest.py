"""The app in this process, in a folder of its own, asked as a browser or a program asks it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from fastapi.testclient import TestClient

from msg2.server.settings import ServerSettings
from msg2.server.web_app import create_app
from msg2.server.workspace import Workspace

HERE = "http://127.0.0.1:8765"
PATIENCE = 300.0
"""Seconds after which a test gives up: nothing takes so long, however busy the machine is."""

TOAST = "video,step,start,end\n" + "".join(
    f"v{number},{step},{time},{time + 1}\n" for number in range(8) for time, step in enumerate(["whisk", "dip", "fry"])
)

Open = Callable[..., TestClient]


@pytest.fixture
def open_app(tmp_path: Path) -> Iterator[Open]:
    """`open_app(token=…)`: an app with these options; what is still open is closed at the end."""
    opened: list[TestClient] = []

    def make(**options: Any) -> TestClient:
        workspace = Workspace(ServerSettings(**{"folder": tmp_path / "work", **options}))
        client = TestClient(create_app(workspace), base_url=HERE, raise_server_exceptions=False)
        client.__enter__()
        opened.append(client)
        return client

    yield make
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def client(open_app: Open) -> TestClient:
    """An app with default options."""
    return open_app()


@pytest.fixture(scope="module")
def shared_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """An app for all tests of a module that leave nothing behind."""
    workspace = Workspace(ServerSettings(folder=tmp_path_factory.mktemp("shared") / "work"))
    with TestClient(create_app(workspace), base_url=HERE, raise_server_exceptions=False) as client:
        yield client


def uploaded(client: TestClient, content: str | bytes = TOAST, name: str = "toast.csv") -> Any:
    """The dataset that an upload becomes."""
    answer = client.post("/api/data", params={"name": name}, content=content)
    assert answer.status_code == 201, answer.text
    return answer.json()


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds, however busy the machine is."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def finished(client: TestClient, id: str) -> Any:
    """A job at its end."""
    until(lambda: client.get(f"/api/work/{id}").json()["state"] in ("done", "failed"))
    return client.get(f"/api/work/{id}").json()


def learnt(client: TestClient, data: str, **job: Any) -> Any:
    """A job that has been done, and has not failed."""
    begun = client.post("/api/work", json={"data": data, **job})
    assert begun.status_code == 201, begun.text
    work = finished(client, begun.json()["id"])
    assert work["state"] == "done", work
    return work


def refused(answer: Any, status: int = 400) -> str:
    """The one line of a refusal, which says no more than that."""
    assert answer.status_code == status, answer.text
    problem = answer.json()
    assert set(problem) == {"error", "where", "hint"}
    assert "Traceback" not in answer.text
    assert "\n" not in problem["error"]
    return str(problem["error"])

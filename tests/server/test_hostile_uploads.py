"""Uploads that mean harm: each is refused in one line, or shown as the data it is, and the server goes on answering."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from benchmarks.hostile_files import HOSTILE
from msg2.server.settings import ServerSettings
from msg2.server.web_app import create_app
from msg2.server.workspace import Workspace
from tests.server.conftest import HERE, learnt, refused, uploaded


@pytest.fixture(scope="module")
def one_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """One server for all of them, which goes on."""
    folder = tmp_path_factory.mktemp("hostile") / "work"
    workspace = Workspace(ServerSettings(folder=folder, unpacked_megabytes=20, megabytes=3000))
    with TestClient(create_app(workspace), base_url=HERE, raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize(("name", "content"), HOSTILE.values(), ids=HOSTILE)
def test_refused_in_one_line(one_app: TestClient, name: str, content: bytes) -> None:
    client, folder = one_app, one_app.app.state.workspace.settings.folder  # type: ignore[attr-defined]
    answer = client.post("/api/data", params={"name": name}, content=content)
    told = refused(answer)
    assert 5 < len(told) < 1100
    assert str(folder) not in answer.text
    assert "root:" not in answer.text
    assert list((folder / "data").iterdir()) == []
    assert not list(folder.parent.glob("**/escaped.csv"))
    assert not Path("/tmp/escaped.csv").exists()
    assert client.delete(f"/api/data/{uploaded(client)['id']}").status_code == 204


@pytest.mark.parametrize(
    "name", ["../../../etc/passwd", "/etc/passwd", "a\x01b.csv", "..", "<b>.csv", "x" * 200, "con", "ä.csv"]
)
def test_the_name_of_an_upload_is_only_a_name(client: TestClient, tmp_path: Path, name: str) -> None:
    data = uploaded(client, "video,step\nv1,a\nv1,b\nv2,a\nv2,b\n", name)
    assert data["name"] == name
    place = tmp_path / "work" / "data" / data["id"]
    assert {path.name for path in place.iterdir()} == {data["id"], "record.json"}
    assert re.fullmatch(r"[0-9a-f]{32}", data["id"])
    work = learnt(client, data["id"])
    for path in (f"/api/data/{data['id']}/as/csv", f"/api/work/{work['id']}/as/svg"):
        assert re.fullmatch(r'attachment; filename="[a-z0-9-]+\.\w+"', client.get(path).headers["content-disposition"])


NAMES = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</script><!--",
    "𝒶 😀",
    "שלום",
    "a\u202eb",
    "x" * 300,
]


def test_names_are_data(client: TestClient) -> None:
    rows = "".join(json.dumps({"video": f"v{v}", "step": step}) + "\n" for v in range(3) for step in NAMES)
    work = learnt(client, uploaded(client, rows, "x.jsonl")["id"])
    assert set(work["steps"]) == set(NAMES)
    page = client.get(f"/page/{work['id']}").text
    assert not any(name in page for name in NAMES[:3])
    assert "<img" not in page

"""Uploads that mean harm: each is refused in one line, or shown as the data it is, and the server goes on answering."""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from msg2.server.settings import ServerSettings
from msg2.server.web_app import create_app
from msg2.server.workspace import Workspace
from tests.server.conftest import HERE, learnt, refused, uploaded

BOMB = (
    '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("abcdefghi", "bcdefghij", strict=True))
    + "]>"
)
FILES = {"external": '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>', "bomb": BOMB}


def archive(*entries: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in entries:
            made.writestr(name, content)
    return packed.getvalue()


def link(name: str, target: bytes) -> tuple[zipfile.ZipInfo, bytes]:
    entry = zipfile.ZipInfo(name)
    entry.external_attr = 0o120777 << 16
    return entry, target


def lying(content: bytes) -> bytes:
    """An archive whose directory says that its file is one byte long."""
    packed = bytearray(archive(("a.csv", content)))
    for at in (match.start() for match in re.finditer(rb"PK\x01\x02", bytes(packed))):
        packed[at + 24 : at + 28] = (1).to_bytes(4, "little")
    return bytes(packed)


HOSTILE: dict[str, tuple[str, bytes]] = {
    **{
        f"{name} in {kind}": (f"x.{kind}", f"{head}<{root}>&a;</{root}>".encode())
        for kind, root in (("xes", "log"), ("eaf", "ANNOTATION_DOCUMENT"), ("xml", "annotations"))
        for name, head in FILES.items()
    },
    "zip bomb": ("x.zip", archive(("a.csv", bytes(30_000_000)))),
    "zip that lies about its size": ("x.zip", lying(b"video,step\n" + b"v,a\n" * 10_000)),
    "zip that leads out": ("x.zip", archive(("../../../escaped.csv", b"video,step\nv,a\n"))),
    "zip with an absolute path": ("x.zip", archive(("/tmp/escaped.csv", b"video,step\nv,a\n"))),
    "zip that leads out of Windows": ("x.zip", archive(("..\\escaped.csv", b"video,step\nv,a\n"))),
    "zip with a link": ("x.zip", archive(link("steps.csv", b"/etc/passwd"))),
    "zip with a name twice": ("x.zip", archive(("a.csv", b"video,step\nv,a\n"), ("A/../a.csv", b""))),
    "zip cut off": ("x.zip", archive(("a.csv", b"video,step\nv,a\n"))[:-30]),
    "empty zip": ("x.zip", archive()),
    "zip of zips": ("x.zip", archive(("a.zip", archive(("a.csv", b"video,step\nv,a\n"))))),
    "gzip bomb": ("x.csv.gz", gzip.compress(bytes(50_000_000))),
    "gzip bomb of JSON": ("x.json.gz", gzip.compress(b'{"a": "' + b"a" * 300_000_000, 1)),
    "gzip cut off": ("x.csv.gz", gzip.compress(b"video,step\nv,a\n" * 1000)[:50]),
    "giant number": ("x.csv", b"video,step,start,end\nv,a,0,1e999\n"),
    "number of many digits": ("x.jsonl", b'{"video": "v", "step": "a", "start": 0, "end": ' + b"9" * 10_000 + b"}\n"),
    "not a number": ("x.csv", b"video,step,start,end\nv,a,nan,1\n"),
    "cell of 10 MB": ("x.csv", b"video,step\nv," + b"a" * 10_000_000 + b"\n"),
    "line without an end": ("x.csv", b"video,step\nv," + b'"' + b"a\n" * 6_000_000),
    "JSON nested deeply": ("x.json", b"[" * 100_000),
    "JSON with half a character": ("x.jsonl", b'{"video": "v", "step": "\\ud800"}\n'),
    "Parquet that is none": ("x.parquet", b"PAR1" + bytes(1000) + b"PAR1"),
    "pickle": ("x.pkl", b"\x80\x04\x95\x1d\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94."),
    "NUL bytes": ("x.csv", bytes(1000)),
    "nothing": ("x.csv", b""),
    "no text": ("x.csv", bytes(range(256)) * 100),
}


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

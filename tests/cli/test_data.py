"""`msg2 data`: the list, a download from a server on this machine, and what is said when it fails."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from msg2.formats import downloads
from msg2.formats.downloads import PUBLIC_DATASETS, PublicDataset


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that a server gives out; the set `toast` is in it."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "toast.csv").write_text("video,step\nv1,whisk\nv1,fry\n")
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    url = f"http://127.0.0.1:{server.server_address[1]}/toast.csv"
    toast = PublicDataset("Toast", "https://toast.example.org", "CC0", "1 kB", "toast.csv", {"toast.csv": url})
    monkeypatch.setitem(downloads.PUBLIC_DATASETS, "toast", toast)  # type: ignore[arg-type]
    yield folder
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_sets_are_listed_with_licence_and_size(msg2) -> None:
    ran = msg2("data")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert len(lines) == 1 + len(PUBLIC_DATASETS)
    for (name, one), line in zip(PUBLIC_DATASETS.items(), lines[1:], strict=True):
        assert line.startswith(name)
        assert all(text in line for text in (one.title, one.size, one.licence, one.home))


def test_a_set_is_fetched_and_can_be_used(msg2, home: Path, tmp_path: Path) -> None:
    out = tmp_path / "sets"
    ran = msg2("data", "toast", "-o", out)
    assert (ran.code, ran.out, ran.err) == (0, f"Toast, CC0: {out}/toast/toast.csv\n", "")
    assert msg2("describe", out / "toast" / "toast.csv", "--json").json["tasks"][0]["videos"] == 1
    assert json.loads((out / "toast" / ".download.json").read_text())["files"]["toast.csv"]["bytes"] == 27
    assert msg2("data", "toast", "-o", out).code == 0
    (home / "toast.csv").unlink()
    assert msg2("data", "toast", "-o", out).code == 0, "what is there is not asked for again"


def test_what_is_said_when_it_fails(msg2, home: Path, tmp_path: Path) -> None:
    (home / "toast.csv").unlink()
    complaint = msg2("data", "toast", "-o", tmp_path / "sets").complaint
    assert "the server answers 404" in complaint
    assert f"get the file from https://toast.example.org and put it at {tmp_path}/sets/toast/toast.csv" in complaint
    assert "has to be fetched by hand" in msg2("data", "procel", "-o", tmp_path / "sets").complaint
    ran = msg2("data", "imagenet")
    assert ran.code == 2
    assert "there is no public set 'imagenet'" in ran.err

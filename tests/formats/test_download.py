"""Downloads against a server on this machine: whole, cut off and gone on with, changed, gone, and hostile."""

from __future__ import annotations

import hashlib
import io
import json
import re
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from msg2.errors import InputError
from msg2.formats import downloads
from msg2.formats.archives import extract_zip
from msg2.formats.downloads import PUBLIC_DATASETS, RECORD, PublicDataset, download_dataset, find_dataset

CONTENT = bytes(range(256)) * 2000


@dataclass
class Site:
    """What the server has, and how it misbehaves."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    """Bytes after which every answer breaks off."""
    ranges: bool = True
    length: bool = True
    answers: list[int] = field(default_factory=list)
    """Given before any file, each once."""
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """(path, Range) of every request."""

    def set(self, *names: str) -> PublicDataset:
        files = {name: f"{self.url}/{name}" for name in names}
        return PublicDataset("Some Set", "https://home.example.org", "free", "1 kB", names[0], files)


@pytest.fixture
def site() -> Iterator[Site]:
    here = Site()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            wanted = self.headers["Range"]
            here.asked.append((self.path, wanted))
            body = here.files.get(self.path.lstrip("/"))
            if here.answers or body is None:
                self.send_error(here.answers.pop(0) if here.answers else 404)
                return
            tag = here.versions.get(self.path.lstrip("/"), f'"{hashlib.md5(body).hexdigest()}"')
            start = 0
            if wanted and here.ranges and self.headers["If-Range"] == tag:
                start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])  # type: ignore[index]
                if start >= len(body):
                    self.send_error(416)
                    return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            if here.length:
                self.send_header("Content-Length", str(len(body) - start))
            self.send_header("ETag", tag)
            self.send_header("Connection", "close")
            self.end_headers()
            stop = len(body) if here.cut_after is None else start + here.cut_after
            self.wfile.write(body[start:stop])
            self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    here.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield here
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "TIMEOUT_SECONDS", 2)
    monkeypatch.setattr(downloads, "PAUSE_SECONDS", 0)


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_files_are_fetched_once_and_recorded(site: Site, tmp_path: Path) -> None:
    site.files = {"a.json": b"{}", "b/c.txt": b"x,y\n"}
    wanted, seen = site.set("a.json", "b/c.txt"), []
    assert download_dataset(wanted, tmp_path, lambda *news: seen.append(news)) == tmp_path / "a.json"
    assert seen == [(2, 2, "bytes of a.json"), (4, 4, "bytes of c.txt")]
    record = json.loads((tmp_path / RECORD).read_text())
    assert record["format"] == "msg2.download/1"
    for name, content in site.files.items():
        assert (tmp_path / name).read_bytes() == content
        expected = {"url": f"{site.url}/{name}", "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        assert record["files"][name] == expected
    assert set(contents(tmp_path)) == {"a.json", "b/c.txt", RECORD}
    asked = len(site.asked)
    download_dataset(wanted, tmp_path)
    assert len(site.asked) == asked


def test_what_breaks_off_goes_on(site: Site, tmp_path: Path) -> None:
    site.files, site.cut_after = {"a.bin": CONTENT}, 200_000
    download_dataset(site.set("a.bin"), tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert [wanted for _, wanted in site.asked] == [None, "bytes=200000-", "bytes=400000-"]
    assert set(contents(tmp_path)) == {"a.bin", RECORD}


def test_another_run_goes_on_where_the_last_one_gave_up(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.files, site.cut_after = {"a.bin": CONTENT}, 100_000
    kept = r"broke off after 200,000 of 512,000 bytes.*200,000 bytes have come and are kept"
    with monkeypatch.context() as patch:
        patch.setattr(downloads, "ATTEMPTS", 2)
        with pytest.raises(InputError, match=kept):
            download_dataset(site.set("a.bin"), tmp_path)
    assert not (tmp_path / "a.bin").exists()
    site.cut_after, site.asked = None, []
    download_dataset(site.set("a.bin"), tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert site.asked == [("/a.bin", "bytes=200000-")]


@pytest.mark.parametrize("change", ["content", "no ranges", "weak version", "no more than that"])
def test_two_versions_are_never_mixed(change: str, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site.files, site.cut_after = {"a.bin": CONTENT}, 100_000
    if change == "weak version":
        site.versions["a.bin"] = 'W/"1"'
    with monkeypatch.context() as patch:
        patch.setattr(downloads, "ATTEMPTS", 1)
        with pytest.raises(InputError, match="cannot be downloaded"):
            download_dataset(site.set("a.bin"), tmp_path)
    site.cut_after, site.ranges = None, change != "no ranges"
    if change == "content":
        site.files["a.bin"] = CONTENT[::-1]
    if change == "no more than that":
        tag = f'"{hashlib.md5(CONTENT).hexdigest()}"'
        site.files["a.bin"], site.versions["a.bin"] = CONTENT[:5000], tag
    download_dataset(site.set("a.bin"), tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == site.files["a.bin"]


def test_a_file_without_length_that_is_endless(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site.files, site.length = {"a.bin": CONTENT}, False
    with monkeypatch.context() as patch:
        patch.setattr(downloads, "MAX_BYTES", 100_000)
        with pytest.raises(InputError, match="is larger than 100,000 bytes"):
            download_dataset(site.set("a.bin"), tmp_path)
    assert contents(tmp_path) == {}
    download_dataset(site.set("a.bin"), tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


def test_the_first_download_is_what_counts(site: Site, tmp_path: Path) -> None:
    site.files = {"a.json": b"{}"}
    download_dataset(site.set("a.json"), tmp_path)
    (tmp_path / "a.json").write_text('{"changed": "here"}')
    with pytest.raises(InputError, match=r"a\.json: is not as it was when it was downloaded.*\n  delete it"):
        download_dataset(site.set("a.json"), tmp_path)
    (tmp_path / "a.json").unlink()
    site.files["a.json"] = b'{"changed": "there"}'
    with pytest.raises(InputError, match=r"is not what it was at the first download.*\n  to take the new version"):
        download_dataset(site.set("a.json"), tmp_path)
    assert set(contents(tmp_path)) == {RECORD}
    (tmp_path / RECORD).unlink()
    download_dataset(site.set("a.json"), tmp_path)
    assert (tmp_path / "a.json").read_bytes() == site.files["a.json"]


def test_what_to_do_when_the_page_is_gone(site: Site, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        download_dataset(site.set("a.json"), tmp_path)
    assert str(error.value).splitlines() == [
        f"{site.url}/a.json: the server answers 404 (Not Found)",
        "  give the command again later, or get the file from https://home.example.org "
        f"and put it at {tmp_path}/a.json",
    ]
    assert len(site.asked) == 1
    (tmp_path / "a.json").write_text("{}")  # put there by hand, it is as good
    assert download_dataset(site.set("a.json"), tmp_path).read_text() == "{}"
    assert "a.json" in json.loads((tmp_path / RECORD).read_text())["files"]


def test_other_ways_to_be_gone(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = replace(site.set("a.json"), files={"a.json": "http://nowhere.invalid/a.json"})
    gone = r"^http://nowhere\.invalid/a\.json: cannot be downloaded \(.+\)\n  give"
    with monkeypatch.context() as patch:
        patch.setattr(downloads, "ATTEMPTS", 2)
        with pytest.raises(InputError, match=gone):
            download_dataset(nowhere, tmp_path)
    site.files, site.answers = {"a.json": b"{}"}, [503, 503]
    download_dataset(site.set("a.json"), tmp_path)
    site.files["b.json"] = b"\n<!DOCTYPE html><title>Log in</title>"
    with pytest.raises(InputError, match=r"b\.json: the server sends a web page in place of the file\n  give"):
        download_dataset(site.set("b.json"), tmp_path)
    assert set(contents(tmp_path)) == {"a.json", RECORD}


def test_a_server_that_says_nothing(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/a.json"
        wanted = replace(site.set("a.json"), files={"a.json": url})
        monkeypatch.setattr(downloads, "ATTEMPTS", 1)
        monkeypatch.setattr(downloads, "TIMEOUT_SECONDS", 0.2)
        with pytest.raises(InputError, match=r"cannot be downloaded .*timed out"):
            download_dataset(wanted, tmp_path)


def test_a_broken_record_is_said(site: Site, tmp_path: Path) -> None:
    (tmp_path / RECORD).write_text('{"format": "msg2.download/1", "files": []}')
    with pytest.raises(InputError, match="is no record of downloads"):
        download_dataset(site.set("a.json"), tmp_path)


# -- archives ---------------------------------------------------------------------------------------------------


def archive(**members: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, value in members.items():
            packed.writestr(name, value)
    return content.getvalue()


def test_archives_are_unpacked_beside_themselves(site: Site, tmp_path: Path) -> None:
    site.files = {"release.zip": archive(**{"anything/a.csv": b"1\n", "anything/b/c.csv": b"2\n"})}
    wanted = replace(site.set("release.zip"), entry="release")
    assert download_dataset(wanted, tmp_path) == tmp_path / "release"
    assert contents(tmp_path / "release") == {"a.csv": b"1\n", "b/c.csv": b"2\n"}
    assert set(contents(tmp_path)) == {"release.zip", RECORD, "release/a.csv", "release/b/c.csv"}
    download_dataset(wanted, tmp_path)


def link() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        info = zipfile.ZipInfo("passwords")
        info.external_attr = 0o120777 << 16
        packed.writestr(info, "/etc/passwd")
    return content.getvalue()


def lying() -> bytes:
    """A member that is far longer than its headers say."""
    honest = archive(a=bytes(10_000_000))
    return honest.replace((10_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))


HOSTILE = {
    "traversal": (archive(**{"ok.csv": b"", "../evil.csv": b"x"}), "leads out of its folder"),
    "deep traversal": (archive(**{"a/../../evil.csv": b"x"}), "leads out of its folder"),
    "absolute": (archive(**{"/tmp/evil.csv": b"x"}), "leads out of its folder"),
    "windows": (archive(**{"..\\evil.csv": b"x"}), "leads out of its folder"),
    "drive": (archive(**{"C:evil.csv": b"x"}), "leads out of its folder"),
    "link": (link(), "which is a link"),
    "bomb": (archive(a=bytes(3_000_000)), "unpacks to more than 20 files or 2 MB"),
    "bomb in parts": (archive(**{str(n): bytes(300_000) for n in range(9)}), "unpacks to more than 20 files or 2 MB"),
    "lie": (lying(), "is a zip archive that cannot be read"),
    "too many": (archive(**{f"{n}": b"" for n in range(30)}), "unpacks to more than 20 files or 2 MB"),
    "no archive": (b"PK but not really", "is a zip archive that cannot be read"),
    "cut": (archive(a=b"x" * 1000)[:-30], "is a zip archive that cannot be read"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives_leave_nothing_behind(name: str, tmp_path: Path) -> None:
    content, complaint = HOSTILE[name]
    path = tmp_path / "inner" / "x.zip"
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(InputError, match=complaint):
        extract_zip(path, path.with_suffix(""), max_bytes=2_000_000, max_files=20)
    assert set(contents(tmp_path)) == {"inner/x.zip"}
    assert [p.name for p in path.parent.iterdir()] == ["x.zip"]


# -- the sets themselves ------------------------------------------------------------------------------------------


def test_the_catalogue() -> None:
    for name, one in PUBLIC_DATASETS.items():
        assert re.fullmatch(r"[a-z0-9-]+", name)
        assert one.home.startswith("https://")
        assert all(url.startswith("https://") for url in one.files.values())
        assert not one.files or one.entry in {*one.files, *(file.removesuffix(".zip") for file in one.files)}
        assert not any(Path(file).is_absolute() or ".." in Path(file).parts for file in one.files)
    with pytest.raises(InputError, match=r"no public set 'imagenet'\n  there are crosstask, captaincook4d"):
        find_dataset("imagenet")


def test_sets_that_people_have_to_fetch_themselves(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"^https://www\.khoury.*: ProceL has to be fetched by hand\n  put what you get"
    ):
        download_dataset(PUBLIC_DATASETS["procel"], tmp_path / "procel")
    assert not list(tmp_path.iterdir())


def test_the_layout_is_the_one_of_the_experiments(data: Path) -> None:
    for name in ("crosstask", "captaincook4d"):
        assert (data / name / PUBLIC_DATASETS[name].entry).exists()
        assert all((data / name / file).exists() for file in PUBLIC_DATASETS[name].files if not file.endswith(".zip"))

"""The public annotation sets that msg2 reads (`public_datasets.json`), and their download from their home pages.

A transfer that broke off is resumed, if the server still has the same version of the file (its ETag, or the date of its
last change). The SHA-256 of every file is recorded at its first download and holds from then on. Zip archives are
unpacked beside themselves.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, TypeAdapter, ValidationError

from msg2.errors import InputError, errors_at, require
from msg2.files import file_sha256, write_whole
from msg2.formats.archives import extract_zip
from msg2.progress import Progress, no_progress
from msg2.text import short_repr


@dataclass(frozen=True, slots=True)
class PublicDataset:
    """An annotation set; zip archives among its files are unpacked beside themselves."""

    title: str
    home: str
    licence: str
    size: str
    entry: str  # what is to be given to the other commands, within the set's folder
    files: Mapping[str, str] = field(default_factory=dict)  # path: URL; none, where people have to fetch them by hand


_CATALOGUE = files("msg2.formats").joinpath("public_datasets.json").read_bytes()
PUBLIC_DATASETS = TypeAdapter(dict[str, PublicDataset]).validate_json(_CATALOGUE)
MAX_BYTES = 1_000_000_000  # bytes of the largest file that is downloaded
TIMEOUT_SECONDS = 30.0  # seconds without an answer after which a connection is given up
ATTEMPTS = 4  # connections that are tried for a file; each goes on where the one before it broke off
PAUSE_SECONDS = 2.0  # seconds before the next one
_PASSING = (408, 429, 500, 502, 503, 504)  # answers of a server that may be another one a little later
RECORD = ".download.json"  # in the folder of a set, see `DownloadRecord`


class DownloadedFile(BaseModel):
    """Where a file is from, and what it was."""

    url: str
    bytes: int
    sha256: str


class DownloadRecord(BaseModel):
    """The files of a set that were downloaded, by their paths."""

    format: Literal["msg2.download/1"] = "msg2.download/1"
    files: dict[str, DownloadedFile] = {}


def find_dataset(name: str) -> PublicDataset:
    """The public dataset of this name."""
    if name not in PUBLIC_DATASETS:
        raise InputError(f"there is no public set {short_repr(name)}", hint=f"there are {', '.join(PUBLIC_DATASETS)}")
    return PUBLIC_DATASETS[name]


def download_dataset(dataset: PublicDataset, folder: Path, progress: Progress = no_progress) -> Path:
    """Download what is not there yet of a public dataset, and check all of it."""
    hint = f"put what you get into {folder}, and give it to msg2 from there"
    require(dataset.files, f"{dataset.title} has to be fetched by hand", where=dataset.home, hint=hint)
    path = folder / RECORD
    try:
        record = DownloadRecord.model_validate_json(path.read_bytes()) if path.exists() else DownloadRecord()
    except ValidationError:
        hint = "delete it; the files are then taken as they are"
        raise InputError("is no record of downloads", where=path, hint=hint) from None
    for name, url in dataset.files.items():
        target, known = folder / name, record.files.get(name)
        if not target.exists():
            transfer = _Transfer(url, target)
            hint = f"give the command again later, or get the file from {dataset.home} and put it at {target}"
            with errors_at(url, hint=hint):
                transfer.run(progress)
            if known is not None and known.sha256 != file_sha256(transfer.content):
                transfer.forget()
                hint = f"to take the new version, delete {path}"
                raise InputError("is not what it was at the first download (its SHA-256)", where=url, hint=hint)
            transfer.content.replace(target)
            transfer.forget()
        actual = DownloadedFile(url=url, bytes=target.stat().st_size, sha256=file_sha256(target))
        if known is None:
            record.files[name] = actual
            write_whole(path, record.model_dump_json(indent=2) + "\n")
        elif known.sha256 != actual.sha256:
            hint = "delete it and give the command again"
            raise InputError("is not as it was when it was downloaded (its SHA-256)", where=target, hint=hint)
        if target.suffix == ".zip" and not target.with_suffix("").exists():
            extract_zip(target, target.with_suffix(""))
    return folder / dataset.entry


class _Transfer:
    """The download of one file. What has come of it, and its version, are hidden files beside its place."""

    def __init__(self, url: str, target: Path) -> None:
        self.url, self.name = url, target.name
        self.content, self._version = (target.with_name(f".{target.name}.{part}") for part in ("part", "version"))

    def forget(self) -> None:
        """Delete what has come."""
        self.content.unlink(missing_ok=True)
        self._version.unlink(missing_ok=True)

    def run(self, progress: Progress) -> None:
        """Get the whole file, in several attempts where the connection breaks off."""
        import httpx

        self.content.parent.mkdir(parents=True, exist_ok=True)
        reason = ""
        for attempt in range(ATTEMPTS):
            time.sleep(PAUSE_SECONDS if attempt else 0)
            try:
                self._resume(progress)
                break
            except httpx.HTTPStatusError as error:
                code = error.response.status_code
                if code == 416:  # there is no such rest: the file has changed
                    self.forget()
                elif code not in _PASSING:
                    raise InputError(f"the server answers {code} ({error.response.reason_phrase})") from None
                reason = f"the server answers {code}"
            except (httpx.HTTPError, OSError) as error:  # no such host, no answer, cut off
                reason = str(error) or type(error).__name__
        else:
            received = self.content.stat().st_size if self.content.exists() else 0
            kept = f"; {received:,} bytes have come and are kept" if received else ""
            raise InputError(f"cannot be downloaded ({reason}){kept}")
        with self.content.open("rb") as file:
            head = file.read(1024).lstrip().lower()
        if head.startswith((b"<!doctype html", b"<html")):  # it says "gone" or "log in": no file of a set
            self.forget()
            raise InputError("the server sends a web page in place of the file")

    def _resume(self, progress: Progress) -> None:
        """Ask for the rest of the file over one connection; return when all of it is there."""
        import httpx

        version = self._version.read_text("ascii") if self._version.exists() and self.content.exists() else ""
        have = self.content.stat().st_size if version else 0
        headers = {"User-Agent": "msg2", "Accept-Encoding": "identity"}
        if have:
            headers |= {"Range": f"bytes={have}-", "If-Range": version}
        with httpx.stream("GET", self.url, headers=headers, timeout=TIMEOUT_SECONDS, follow_redirects=True) as response:
            if self.url.startswith("https:") and response.url.scheme != "https":
                raise InputError("leads to a place that is not secure")
            response.raise_for_status()
            if response.status_code != 206:
                have = 0
            elif not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                self.forget()
                raise ConnectionError("the server sent another part than was asked for")
            length = response.headers.get("Content-Length", "")
            total = have + int(length) if length.isdigit() else None
            tag = response.headers.get("ETag", "")  # a weak one is no condition of a later transfer
            version = tag if tag.startswith('"') else response.headers.get("Last-Modified", "")
            self._version.write_text(version if version.isascii() else "", "ascii")
            try:
                with self.content.open("ab" if have else "wb") as file:
                    for chunk in response.iter_raw():
                        have += len(chunk)
                        if max(have, total or 0) > MAX_BYTES:
                            raise InputError(f"is larger than {MAX_BYTES:,} bytes")
                        file.write(chunk)
                        progress(have, total, f"bytes of {self.name}")
            except httpx.RemoteProtocolError:
                if total is None:
                    raise
                raise ConnectionError(f"broke off after {have:,} of {total:,} bytes") from None
            except InputError:
                self.forget()
                raise

"""The public annotation sets that msg2 reads, and their download from their home pages.

A transfer that broke off is resumed, if the server still has the same version of the file (its ETag, or the date of its
last change). The SHA-256 of every file is recorded at its first download and holds from then on. Zip archives are
unpacked beside themselves: nothing outside the folder is written, and nothing endless unpacked.
"""

from __future__ import annotations

import json
import shutil
import stat
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from zipfile import BadZipFile, ZipFile, ZipInfo

from msg2.errors import InputError
from msg2.files import file_sha256, temporary_path, write_whole
from msg2.progress import Progress, no_progress
from msg2.text import short_repr

_GITHUB = "https://raw.githubusercontent.com"
_TASK_GRAPHS = f"{_GITHUB}/fpv-iplab/Differentiable-Task-Graph-Learning/HEAD/data/captaincook4d"
_RECIPES = (
    "blenderbananapancakes", "breakfastburritos", "broccolistirfry", "buttercorncup", "capresebruschetta",
    "cheesepimiento", "coffee", "cucumberraita", "dressedupmeatballs", "herbomeletwithfriedtomatoes",
    "microwaveeggsandwich", "microwavefrenchtoast", "microwavemugpizza", "mugcake", "panfriedtofu", "pinwheels",
    "ramen", "sautedmushrooms", "scrambledeggs", "spicedhotchocolate", "spicytunaavocadowraps", "tomatochutney",
    "tomatomozzarellasalad", "zoodles",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PublicDataset:
    """An annotation set; zip archives among its files are unpacked beside themselves."""

    title: str
    home: str
    licence: str
    size: str
    entry: str  # what is to be given to the other commands, within the set's folder
    files: Mapping[str, str] = field(default_factory=dict)  # path: URL; none, where people have to fetch them by hand


PUBLIC_DATASETS: Mapping[str, PublicDataset] = {
    "crosstask": PublicDataset(
        "CrossTask", "https://github.com/DmZhukov/CrossTask", "BSD 3-Clause (the repository)", "1 MB",
        "crosstask_release",
        {"crosstask_release.zip": "https://www.di.ens.fr/~dzhukov/crosstask/crosstask_release.zip"},
    ),
    "captaincook4d": PublicDataset(
        "CaptainCook4D, with its task graphs", "https://github.com/CaptainCook4D/annotations", "CC BY-NC-SA 4.0",
        "1.5 MB", "complete_step_annotations.json",
        {
            "complete_step_annotations.json": f"{_GITHUB}/CaptainCook4D/annotations/HEAD/annotation_json/"
            "complete_step_annotations.json",
            "task_graph_generation_annotations.json": f"{_TASK_GRAPHS}/task_graph_generation_annotations.json",
            **{f"task_graphs/{name}.json": f"{_TASK_GRAPHS}/ground_truth_task_graphs/{name}.json" for name in _RECIPES},
        },
    ),
    "coin": PublicDataset(
        "COIN", "https://github.com/coin-dataset/annotations", "for research only", "some MB", "COIN.json",
        {"COIN.json": f"{_GITHUB}/coin-dataset/annotations/master/COIN.json"},
    ),
    "epic-tent": PublicDataset(
        "EPIC-Tent", "https://github.com/youngkyoonjang/EPIC_Tent2019", "not stated; ask the authors", "some 100 kB",
        "Synchronised_action_label.txt",
        {
            name: f"{_GITHUB}/youngkyoonjang/EPIC_Tent2019/HEAD/{name}"
            for name in ("Synchronised_action_label.txt", "Synchronised_error_label.txt", "README.md")
        },
    ),
    "assembly101": PublicDataset(
        "Assembly101", "https://github.com/assembly-101/assembly101-annotations", "CC BY-NC 4.0", "by hand",
        "coarse-annotations",
    ),
    "egoprocel": PublicDataset(
        "EgoProceL", "https://sid2697.github.io/egoprocel", "see its page", "by hand", "annotations",
    ),
    "ego-exo4d": PublicDataset(
        "Ego-Exo4D keysteps", "https://ego-exo4d-data.org", "a licence to be signed", "by hand", "annotations",
    ),
    "procel": PublicDataset(
        "ProceL", "https://www.khoury.northeastern.edu/home/eelhami/procel.htm", "see its page", "by hand",
        "ProceL_dataset",
    ),
}  # fmt: skip

MAX_BYTES = 1_000_000_000  # bytes of the largest file that is downloaded
MAX_FILES = 100_000  # files in an archive
_CHUNK = 64 * 1024


def extract_zip(archive: Path, folder: Path, *, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> None:
    """Extract an archive to a folder, which appears whole or not at all."""
    staging = temporary_path(folder.parent)
    content = staging / "content"
    try:
        content.mkdir(parents=True)
        with ZipFile(archive) as packed:
            members = [member for member in packed.infolist() if not member.is_dir()]
            if len(members) > max_files:
                raise InputError(f"holds more than {max_files:,} files", where=archive)
            remaining = max_bytes
            for member in members:
                target = content / _safe_member_path(member, archive)
                target.parent.mkdir(parents=True, exist_ok=True)
                with packed.open(member) as stream, target.open("xb") as file:
                    while chunk := stream.read(_CHUNK):
                        remaining -= len(chunk)  # counted as it comes: the sizes in an archive are mere claims
                        if remaining < 0:
                            raise InputError("unpacks to more bytes than are allowed", where=archive)
                        file.write(chunk)
        entries = list(content.iterdir())
        (entries[0] if len(entries) == 1 and entries[0].is_dir() else content).rename(folder)
    except (BadZipFile, EOFError, zlib.error, NotImplementedError, RuntimeError) as error:
        hint = "delete it and download it again"
        raise InputError(f"is a zip archive that cannot be unpacked ({error})", where=archive, hint=hint) from None
    except FileExistsError as error:
        raise InputError(f"holds {short_repr(Path(str(error.filename)).name)} twice", where=archive) from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _safe_member_path(member: ZipInfo, archive: Path) -> PurePosixPath:
    path = PurePosixPath(member.filename)
    if path.is_absolute() or ".." in path.parts or any(character in member.filename for character in "\\:"):
        raise InputError(f"holds {short_repr(member.filename)}, which leads out of its folder", where=archive)
    if stat.S_ISLNK(member.external_attr >> 16):
        raise InputError(f"holds {short_repr(member.filename)}, which is a link", where=archive)
    return path


TIMEOUT_SECONDS = 30.0  # seconds without an answer after which a connection is given up
ATTEMPTS = 4  # connections that are tried for a file; each goes on where the one before it broke off
PAUSE_SECONDS = 2.0  # seconds before the next one
_PASSING = (408, 429, 500, 502, 503, 504)  # answers of a server that may be another one a little later


class PartialFile(NamedTuple):
    """What has come of a file, and the file with the name of its version."""

    content: Path
    version: Path

    @staticmethod
    def of(target: Path) -> PartialFile:
        """The partial file of `target`: hidden, beside it."""
        return PartialFile(target.with_name(f".{target.name}.part"), target.with_name(f".{target.name}.version"))

    def remove(self) -> None:
        """Delete what has come."""
        for path in self:
            path.unlink(missing_ok=True)


def download_file(url: str, target: Path, progress: Progress) -> PartialFile:
    """Download a whole file, in several attempts where the connection breaks off."""
    import httpx

    partial = PartialFile.of(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    reason = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE_SECONDS)
        try:
            _resume(url, partial, lambda done, total: progress(done, total, f"bytes of {target.name}"))
            return partial
        except httpx.HTTPStatusError as error:
            code = error.response.status_code
            if code == 416:  # there is no such rest: the file has changed
                partial.remove()
            elif code not in _PASSING:
                raise InputError(f"the server answers {code} ({error.response.reason_phrase})", where=url) from None
            reason = f"the server answers {code}"
        except (httpx.HTTPError, OSError) as error:  # no such host, no answer, cut off
            reason = str(error) or type(error).__name__
    received = partial.content.stat().st_size if partial.content.exists() else 0
    kept = f"; {received:,} bytes have come and are kept" if received else ""
    raise InputError(f"cannot be downloaded ({reason}){kept}", where=url)


def _resume(url: str, partial: PartialFile, report: Callable[[int, int | None], None]) -> None:
    """Ask for the rest of a file over one connection; return when all of it is there."""
    import httpx

    version = partial.version.read_text("ascii") if all(path.exists() for path in partial) else ""
    have = partial.content.stat().st_size if version else 0
    headers = {"User-Agent": "msg2", "Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": version}
    with httpx.stream("GET", url, headers=headers, timeout=TIMEOUT_SECONDS, follow_redirects=True) as response:
        if url.startswith("https:") and response.url.scheme != "https":
            raise InputError("leads to a place that is not secure", where=url)
        response.raise_for_status()
        if response.status_code == 206 and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            partial.remove()
            raise ConnectionError("the server sent another part than was asked for")
        if response.status_code != 206:
            have = 0
        length = response.headers.get("Content-Length", "")
        total = have + int(length) if length.isdigit() else None
        partial.version.write_text(_version(response.headers), "ascii")
        try:
            with partial.content.open("ab" if have else "wb") as file:
                for chunk in response.iter_raw():
                    have += len(chunk)
                    if max(have, total or 0) > MAX_BYTES:
                        raise InputError(f"is larger than {MAX_BYTES:,} bytes", where=url)
                    file.write(chunk)
                    report(have, total)
        except httpx.RemoteProtocolError:
            if total is None:
                raise
            raise ConnectionError(f"broke off after {have:,} of {total:,} bytes") from None
        except InputError:
            partial.remove()
            raise


def _version(headers: Mapping[str, str]) -> str:
    """What the condition of a later transfer can be; a weak ETag is none. Empty: begin anew."""
    tag = headers.get("ETag", "")
    version = tag if tag.startswith('"') else headers.get("Last-Modified", "")
    return version if version.isascii() else ""


RECORD = ".download.json"  # in the folder of a set: where its files are from, their sizes and hashes
_FORMAT = "msg2.download/1"


def find_dataset(name: str) -> PublicDataset:
    """The public dataset of this name."""
    if name not in PUBLIC_DATASETS:
        raise InputError(f"there is no public set {short_repr(name)}", hint=f"there are {', '.join(PUBLIC_DATASETS)}")
    return PUBLIC_DATASETS[name]


def download_dataset(dataset: PublicDataset, folder: Path, progress: Progress = no_progress) -> Path:
    """Download what is not there yet of a public dataset, and check all of it."""
    if not dataset.files:
        hint = f"put what you get into {folder}, and give it to msg2 from there"
        raise InputError(f"{dataset.title} has to be fetched by hand", where=dataset.home, hint=hint)
    record = _read_record(folder)
    for name, url in dataset.files.items():
        target, known = folder / name, record.get(name, {}).get("sha256")
        if not target.exists():
            partial = _download(url, target, dataset.home, progress)
            if known not in (None, file_sha256(partial.content)):
                partial.remove()
                hint = f"to take the new version, delete {folder / RECORD}"
                raise InputError("is not what it was at the first download (its SHA-256)", where=url, hint=hint)
            partial.content.replace(target)
            partial.remove()
        actual = file_sha256(target)
        if known is None:
            record[name] = {"url": url, "bytes": target.stat().st_size, "sha256": actual}
            content = {"format": _FORMAT, "files": record}
            write_whole(folder / RECORD, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        elif known != actual:
            hint = "delete it and give the command again"
            raise InputError("is not as it was when it was downloaded (its SHA-256)", where=target, hint=hint)
        if target.suffix == ".zip" and not target.with_suffix("").exists():
            extract_zip(target, target.with_suffix(""))
    return folder / dataset.entry


def _download(url: str, target: Path, home: str, progress: Progress) -> PartialFile:
    """The file, whole, but not in its place yet; or what to do when it cannot be had."""
    try:
        partial = download_file(url, target, progress)
        with partial.content.open("rb") as file:
            head = file.read(1024).lstrip().lower()
        if head.startswith((b"<!doctype html", b"<html")):  # it says "gone" or "log in": no file of a set
            partial.remove()
            raise InputError("the server sends a web page in place of the file", where=url)
    except InputError as error:
        hint = f"give the command again later, or get the file from {home} and put it at {target}"
        raise error.at(url, hint=hint) from None
    return partial


def _read_record(folder: Path) -> dict[str, dict[str, str | int]]:
    """What was recorded of the files in `folder`."""
    path = folder / RECORD
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text("utf-8"))
        files = content["files"] if content["format"] == _FORMAT else None
        if isinstance(files, dict) and all(isinstance(entry, dict) for entry in files.values()):
            return files
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise InputError("is no record of downloads", where=path, hint="delete it; the files are then taken as they are")

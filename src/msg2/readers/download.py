"""Public annotation sets, fetched from their home pages.

The SHA-256 of every file is recorded at its first download and holds from then on: a set that its authors have changed,
or that has been damaged, is not taken for the one that earlier results are from. A file that was put in its place by
hand counts as downloaded.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from msg2.errors import InputError, shortened
from msg2.files import write_whole
from msg2.options import DownloadOptions
from msg2.readers.catalogue import SETS, PublicSet
from msg2.readers.transfer import Partial, Report, transferred
from msg2.readers.unpacking import unpack

RECORD = ".download.json"
"""In the folder of a set: where its files are from, their sizes and hashes."""
_FORMAT = "msg2.download/1"


def public_set(name: str) -> PublicSet:
    """The set of this name.

    >>> public_set("coin").title
    'COIN'
    """
    if name not in SETS:
        raise InputError(f"there is no public set {shortened(name)}", hint=f"there are {', '.join(SETS)}")
    return SETS[name]


def fetch(wanted: PublicSet, folder: Path, report: Report, options: DownloadOptions | None = None) -> Path:
    """Fetch what is not there yet of a set into `folder`, check all of it, and return what to give to msg2."""
    if not wanted.files:
        what = f"{wanted.title} has to be fetched by hand"
        raise InputError(
            what, where=wanted.home, hint=f"put what you get into {folder}, and give it to msg2 from there"
        )
    chosen, record = options or DownloadOptions(), _record(folder)
    for name, url in wanted.files.items():
        target, known = folder / name, record.get(name, {}).get("sha256")
        if not target.exists():
            partial = _arrived(url, target, wanted.home, report, chosen)
            if known not in (None, _sha256(partial.content)):
                partial.remove()
                hint = f"to take the new version, delete {folder / RECORD}"
                raise InputError("is not what it was at the first download (its SHA-256)", where=url, hint=hint)
            partial.content.replace(target)
            partial.remove()
        found = _sha256(target)
        if known is None:
            record[name] = {"url": url, "bytes": target.stat().st_size, "sha256": found}
            content = {"format": _FORMAT, "files": record}
            write_whole(folder / RECORD, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        elif known != found:
            hint = "delete it and give the command again"
            raise InputError("is not as it was when it was downloaded (its SHA-256)", where=target, hint=hint)
        if target.suffix == ".zip" and not target.with_suffix("").exists():
            unpack(target, target.with_suffix(""), chosen)
    return folder / wanted.gives


def _arrived(url: str, target: Path, home: str, report: Report, options: DownloadOptions) -> Partial:
    """The file, whole, but not in its place yet; or what to do when it cannot be had."""
    try:
        partial = transferred(url, target, report, options)
        _refuse_page(url, partial)
    except InputError as error:
        hint = f"give the command again later, or get the file from {home} and put it at {target}"
        raise InputError(error.what, where=error.where, hint=hint) from None
    return partial


def _refuse_page(url: str, partial: Partial) -> None:
    """A page that says "gone" or "log in", with an answer that says all is well, is no file of a set."""
    with partial.content.open("rb") as file:
        head = file.read(1024).lstrip().lower()
    if head.startswith((b"<!doctype html", b"<html")):
        partial.remove()
        raise InputError("the server sends a web page in place of the file", where=url)


def _record(folder: Path) -> dict[str, Any]:
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


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

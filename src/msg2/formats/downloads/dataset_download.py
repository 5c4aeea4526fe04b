"""Download public annotation sets from their home pages.

The SHA-256 of every file is recorded at its first download and holds from then on: a set that its authors have changed,
or that has been damaged, is not taken for the one that earlier results are from. A file that was put in its place by
hand counts as downloaded.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from msg2.errors import InputError
from msg2.files import write_whole
from msg2.formats.downloads.catalogue import PUBLIC_DATASETS, PublicDataset
from msg2.formats.downloads.resumable_download import PartialFile, download_file
from msg2.formats.downloads.zip_archive import extract_zip
from msg2.progress import Progress, no_progress
from msg2.text import short_repr

RECORD = ".download.json"
"""In the folder of a set: where its files are from, their sizes and hashes."""
_FORMAT = "msg2.download/1"


def find_dataset(name: str) -> PublicDataset:
    """The public dataset of this name.

    >>> find_dataset("coin").title
    'COIN'
    """
    if name not in PUBLIC_DATASETS:
        raise InputError(f"there is no public set {short_repr(name)}", hint=f"there are {', '.join(PUBLIC_DATASETS)}")
    return PUBLIC_DATASETS[name]


def download_dataset(dataset: PublicDataset, folder: Path, progress: Progress = no_progress) -> Path:
    """Download what is not there yet of a public dataset, and check all of it.

    Parameters
    ----------
    dataset : PublicDataset
        The dataset, see `find_dataset`.
    folder : Path
        Where its files are put.
    progress : Progress
        Is told the bytes of each file.

    Returns
    -------
    Path
        What to give to msg2: a file or folder in `folder`.

    Raises
    ------
    InputError
        Where a file cannot be had, or is not what it was at the first download.
    """
    if not dataset.files:
        hint = f"put what you get into {folder}, and give it to msg2 from there"
        raise InputError(f"{dataset.title} has to be fetched by hand", where=dataset.home, hint=hint)
    record = _read_record(folder)
    for name, url in dataset.files.items():
        target, known = folder / name, record.get(name, {}).get("sha256")
        if not target.exists():
            partial = _download(url, target, dataset.home, progress)
            if known not in (None, _sha256(partial.content)):
                partial.remove()
                hint = f"to take the new version, delete {folder / RECORD}"
                raise InputError("is not what it was at the first download (its SHA-256)", where=url, hint=hint)
            partial.content.replace(target)
            partial.remove()
        actual = _sha256(target)
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


def _read_record(folder: Path) -> dict[str, Any]:
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

"""Records as plain files: one folder per record, named by its id, with `record.json` and whatever belongs to it.

What an upload left that never came to its end, or a removal, is swept away at the start. A record that cannot be read,
by another version's hand or a person's, is named in the log and left alone.
"""

from __future__ import annotations

import logging
import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import IO, Generic, TypeVar

from pydantic import ValidationError

from msg2.errors import InputError
from msg2.files import write_whole
from msg2.server.records import Dataset, Work

Record = TypeVar("Record", Dataset, Work)

_log = logging.getLogger(__name__)
_ID = re.compile(r"[0-9a-f]{32}")
_FILE = "record.json"
_REMOVED = "removed-"


class NotThereError(InputError):
    """Nothing is kept under this id."""


class UnreadableError(NotThereError):
    """What is kept under this id is no record."""


def new_id() -> str:
    """128 random bits: ids are not counted, guessed, or made of what a visitor sends."""
    return secrets.token_hex(16)


class Shelf(Generic[Record]):
    """All records of one kind, in `root`. The files are the truth: nothing is kept in memory."""

    def __init__(self, root: Path, kind: type[Record]) -> None:
        self.root = root
        self._kind: type[Record] = kind
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot be a folder ({error.strerror})", where=root) from None
        sweep(root)
        for folder in root.iterdir():
            with suppress(NotThereError):  # somebody else's
                try:
                    self.get(folder.name)
                except UnreadableError as error:
                    _log.warning("%s", error)

    def place(self, id: str) -> Path:
        """The folder of a record, whether it is there or not."""
        if not _ID.fullmatch(id):
            raise NotThereError("there is nothing of this name")
        return self.root / id

    def all(self) -> list[Record]:
        """All records, the newest first."""
        found: list[Record] = []
        for folder in self.root.iterdir():
            with suppress(NotThereError):  # being uploaded, or just removed
                found.append(self.get(folder.name))
        return sorted(found, key=lambda record: (-record.made, record.id))

    def get(self, id: str) -> Record:
        """The record of this id."""
        try:
            return self._kind.model_validate_json((self.place(id) / _FILE).read_bytes())
        except FileNotFoundError:
            raise NotThereError("there is nothing of this name, it may have been removed") from None
        except ValidationError:
            raise UnreadableError("is no record that can be read", where=f"{self.root.name}/{id}/{_FILE}") from None

    def put(self, record: Record) -> Record:
        """Keep a record, new or changed."""
        write_whole(self.place(record.id) / _FILE, record.model_dump_json(indent=1, exclude_defaults=True) + "\n")
        return record

    def remove(self, id: str) -> None:
        """Remove a record and its files; it is gone at once, even where that takes long."""
        self.get(id)
        doomed = self.root / f"{_REMOVED}{new_id()}"
        self.place(id).rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def sweep(root: Path) -> None:
    """Remove what this app left unfinished in `root`: folders of its ids without a record. All else is somebody's."""
    for folder in root.iterdir() if root.is_dir() else ():
        removed = folder.name.startswith(_REMOVED)
        ours = _ID.fullmatch(folder.name.removeprefix(_REMOVED)) and folder.is_dir() and not folder.is_symlink()
        if ours and (removed or not (folder / _FILE).is_file()):
            shutil.rmtree(folder, ignore_errors=True)


def locked(folder: Path) -> IO[bytes]:
    """The folder is one server's alone: two would both begin the jobs that wait."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = (folder / ".lock").open("ab")
    except OSError as error:
        raise InputError(f"cannot be written to ({error.strerror})", where=folder) from None
    try:
        import fcntl
    except ImportError:  # Windows: two servers are not told apart
        return held
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        held.close()
        hint = "end it, or choose another --folder"
        raise InputError("another msg2 serve is using this folder", where=folder, hint=hint) from None
    return held

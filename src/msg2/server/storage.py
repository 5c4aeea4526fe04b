"""Records as plain files: one folder per record, named by its id, with `record.json` and whatever belongs to it.

What an upload left that never came to its end, or a removal, is deleted at the start. A record that cannot be read,
written by another version or edited by a person, is named in the log and left alone.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import secrets
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO, Generic, TypeVar

from pydantic import ValidationError

from msg2.errors import InputError
from msg2.files import write_whole
from msg2.server.schemas import DatasetRecord, GraphRecord, RunRecord

Record = TypeVar("Record", DatasetRecord, GraphRecord, RunRecord)

_log = logging.getLogger(__name__)
_ID = re.compile(r"[0-9a-f]{32}")
_RECORD_FILE, _LOCK_FILE = "record.json", ".lock"
_REMOVED_PREFIX = "removed-"
_PRIVATE = 0o700
"""The mode of folders: nobody else on the machine looks into them."""


class NotFoundError(InputError):
    """Nothing is kept under this id."""


class UnreadableRecordError(NotFoundError):
    """What is kept under this id is no record."""


def new_id() -> str:
    """Make an id of 128 random bits: ids are not counted, guessed, or made of what a visitor sends."""
    return secrets.token_hex(16)


class RecordStore(Generic[Record]):
    """All records of one kind, in `root`. The files are the truth: nothing is kept in memory."""

    def __init__(self, root: Path, kind: type[Record]) -> None:
        self.root = root
        self._kind: type[Record] = kind
        try:
            root.mkdir(_PRIVATE, parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot be a folder ({error.strerror})", where=root) from None
        delete_leftovers(root)
        for folder in root.iterdir():
            with suppress(NotFoundError):  # somebody else's
                try:
                    self.get(folder.name)
                except UnreadableRecordError as error:
                    _log.warning("%s", error)

    def folder(self, id: str) -> Path:
        """Return the folder of a record, whether it is there or not."""
        if not _ID.fullmatch(id):
            raise NotFoundError("there is nothing of this name")
        return self.root / id

    def records(self) -> list[Record]:
        """List all records, the newest first."""
        readable: list[Record] = []
        for folder in self.root.iterdir():
            with suppress(NotFoundError):  # being uploaded, or just removed
                readable.append(self.get(folder.name))
        return sorted(readable, key=lambda record: (-record.made, record.id))

    def get(self, id: str) -> Record:
        """Read the record of this id."""
        path = self.folder(id) / _RECORD_FILE
        if not os.path.lexists(path):
            raise NotFoundError("there is nothing of this name, it may have been removed")
        try:
            return self._kind.model_validate_json(read_plain_file(path))
        except FileNotFoundError:
            raise NotFoundError("there is nothing of this name, it may have been removed") from None
        except (OSError, ValidationError):
            where = f"{self.root.name}/{id}/{_RECORD_FILE}"
            raise UnreadableRecordError("is no record that can be read", where=where) from None

    def put(self, record: Record) -> Record:
        """Write a record, new or changed, and return it."""
        content = record.model_dump_json(indent=1, exclude_defaults=True) + "\n"
        write_whole(self.folder(record.id) / _RECORD_FILE, content)
        return record

    def remove(self, id: str) -> None:
        """Remove a record and its files; it is gone at once, even where that takes long."""
        self.get(id)
        doomed = self.root / f"{_REMOVED_PREFIX}{new_id()}"
        self.folder(id).rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def read_plain_file(path: Path) -> bytes:
    """Read a file that this app has written: no link to one elsewhere, no folder, no pipe that never ends."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise OSError(errno.EINVAL, "is no plain file")
    return path.read_bytes()


def delete_leftovers(root: Path) -> None:
    """Delete what this app left unfinished in `root`: folders of its ids without a record. All else is somebody's."""
    for folder in root.iterdir() if root.is_dir() else ():
        removed = folder.name.startswith(_REMOVED_PREFIX)
        ours = _ID.fullmatch(folder.name.removeprefix(_REMOVED_PREFIX)) and folder.is_dir() and not folder.is_symlink()
        if ours and (removed or not os.path.lexists(folder / _RECORD_FILE)):
            shutil.rmtree(folder, ignore_errors=True)


def lock_folder(folder: Path) -> IO[bytes]:
    """Lock a folder for this server until the file that is returned is closed: two would both begin waiting jobs."""
    try:
        folder.mkdir(_PRIVATE, parents=True, exist_ok=True)
        if (folder / _LOCK_FILE).exists():  # a folder of this app; what else somebody names here stays as open as it is
            folder.chmod(_PRIVATE)
        lock_file = (folder / _LOCK_FILE).open("ab")
    except OSError as error:
        raise InputError(f"cannot be written to ({error.strerror})", where=folder) from None
    try:
        import fcntl
    except ImportError:  # Windows: two servers are not told apart
        return lock_file
    try:
        fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock_file.close()
        hint = "end it, or choose another --folder"
        raise InputError("another msg2 serve is using this folder", where=folder, hint=hint) from None
    return lock_file

"""Packed files: gzip, zip archives, and what either may unpack to, so that small files do not fill the memory.

What is packed may unpack to `RATIO` times its size in bytes, and to a row per byte: real logs reach 60 times, and a row
takes several bytes. Small files may always hold `LEAST_BYTES` and `LEAST_ROWS`.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import re
import shutil
import stat
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO
from zipfile import BadZipFile, ZipFile, ZipInfo

from msg2.errors import InputError, require
from msg2.files import sync_folder, temporary_path
from msg2.text import short_repr

RATIO = 100
LEAST_BYTES = 64_000_000
LEAST_ROWS = 2_000_000
JSON_VALUES_PER_ROW = 4  # a value of a JSON document takes a quarter of the memory that a row of a table does
COLUMN_ROWS_PER_ROW = 4
"""Read in columns, a row takes a quarter of the memory; and Parquet packs rows of real labels to half a byte."""
VARIABLE = "MSG2_UNPACK"  # variable of the environment: packed files may hold so many times as much
MAX_BYTES = 1_000_000_000  # bytes of all files in an archive
MAX_FILES = 100_000  # files in an archive


class UnpackingBudget:
    """What one packed file may hold, by its size."""

    def __init__(self, path: Path, size: int) -> None:
        text = os.environ.get(VARIABLE, "1")
        factor = float(text) if text.replace(".", "", 1).isdecimal() else 0.0
        hint = "packed files may hold so many times as much"
        require(0 < factor <= 1_000_000, f"is {text!r}, not a number above 0", where=VARIABLE, hint=hint)
        self.path = path
        self.bytes, self.rows = int(factor * max(LEAST_BYTES, RATIO * size)), int(factor * max(LEAST_ROWS, size))

    def require(self, *, unpacked: int = 0, rows: int = 0) -> None:
        """Refuse more bytes or rows than the file may hold."""
        if unpacked > self.bytes or rows > self.rows:
            much = f"{self.bytes // 1_000_000:,} MB" if unpacked > self.bytes else f"{self.rows:,} rows or values"
            what = f"unpacks to more than {much}, which is suspicious for its size"
            hint = f"unpack it to see what is in it; if you trust it, set {VARIABLE}=10 to allow ten times as much"
            raise InputError(what, where=self.path, hint=hint)


class BoundedGzipFile(gzip.GzipFile):
    """A gzip file that stops where its budget ends."""

    def __init__(self, raw: IO[bytes], budget: UnpackingBudget) -> None:
        self.budget = budget
        super().__init__(fileobj=raw)

    def read(self, size: int | None = -1) -> bytes:
        """Read at most `size` bytes; what is to be held in memory as a whole is bounded as well."""
        most = self.budget.bytes + 1 - self.tell()
        content = super().read(most if size is None or size < 0 else min(size, max(most, 1)))
        self.budget.require(unpacked=self.tell())
        return content

    def read1(self, size: int = -1) -> bytes:
        """Read what is there, at most `size` bytes."""
        content = super().read1(size)
        self.budget.require(unpacked=self.tell())
        return content


# -- zip --------------------------------------------------------------------------------------------------------


_BROKEN = (
    BadZipFile, EOFError, zlib.error, RuntimeError, ValueError, FileExistsError, NotADirectoryError, IsADirectoryError,
)  # fmt: skip
"""What `zipfile` raises; the last ones where a name is there twice, as a file and as a folder."""
_HIDDEN = re.compile(r"(?:^|/)(?:\.|__MACOSX(?:/|\Z))")  # files and folders that systems hide


@contextmanager
def _open_zip(archive: Path | bytes, shown: Path) -> Iterator[ZipFile]:
    """Open an archive; those are refused that are cut off, changed, encrypted, or packed as `zipfile` cannot unpack."""
    try:
        with ZipFile(io.BytesIO(archive) if isinstance(archive, bytes) else archive) as packed:
            yield packed
    except InputError:
        raise
    except (*_BROKEN, OSError) as error:
        if not isinstance(error, _BROKEN) and error.errno != errno.EINVAL:  # a place before the file begins
            raise
        what = f"is a zip archive that cannot be read ({error})"
        raise InputError(what, where=shown, hint="pack or download it again, without a password") from None


def _list_members(packed: ZipFile, archive: Path, max_bytes: int, max_files: int) -> list[ZipInfo]:
    """The files in an archive, if they are not too many: `zipfile` unpacks no more bytes of them than they claim."""
    members = [member for member in packed.infolist() if not member.is_dir()]
    if len(members) > max_files or sum(member.file_size for member in members) > max_bytes:
        what = f"unpacks to more than {max_files:,} files or {max_bytes // 1_000_000:,} MB"
        raise InputError(what, where=archive, hint="unpack it and give the folder")
    return members


@dataclass(frozen=True)
class ZipEntry:
    """A file or folder in an archive."""

    archive: Path | bytes
    shown: Path  # the archive, for errors
    members: Mapping[str, ZipInfo]  # all files in the archive
    name: str = ""  # of this entry: its path in the archive; of the outermost folder, nothing

    @staticmethod
    def open_root(archive: Path | bytes, shown: Path) -> ZipEntry:
        """Open an archive; one that holds a single file or folder is that. Files that systems hide are left out."""
        with _open_zip(archive, shown) as packed:
            members = _list_members(packed, shown, MAX_BYTES, MAX_FILES)
        files = {member.filename: member for member in members if not _HIDDEN.search(member.filename)}
        require(files, "is an empty archive", where=shown)
        root = ZipEntry(archive, shown, files)
        root.unpacking_budget.require(unpacked=sum(member.file_size for member in files.values()))
        return root.entries[0] if len(root.entries) == 1 else root

    @cached_property
    def unpacking_budget(self) -> UnpackingBudget:
        """What all of the archive may hold, by its size."""
        size = len(self.archive) if isinstance(self.archive, bytes) else self.archive.stat().st_size
        return UnpackingBudget(self.shown, size)

    @cached_property
    def entries(self) -> list[ZipEntry]:
        """The files and folders directly in this folder, by name."""
        start = f"{self.name}/" if self.name else ""
        names = {name.removeprefix(start).partition("/")[0] for name in self.members if name.startswith(start)}
        return [replace(self, name=start + name) for name in sorted(names)]

    @property
    def is_folder(self) -> bool:
        """Whether this is a folder."""
        return self.name not in self.members

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The bytes of the file as a stream."""
        with _open_zip(self.archive, self.shown) as packed, packed.open(self.members[self.name]) as stream:
            yield stream

    def read_files(self, pattern: str) -> dict[str, bytes]:
        """The bytes of the files of the archive whose names match."""
        with _open_zip(self.archive, self.shown) as packed:
            return {name: packed.read(member) for name, member in self.members.items() if re.fullmatch(pattern, name)}


def extract_zip(archive: Path, folder: Path, *, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> None:
    """Extract an archive to a folder, which appears whole or not at all; nothing outside of it is written."""
    staging = temporary_path(folder.parent)
    content = staging / "content"
    try:
        content.mkdir(parents=True)
        with _open_zip(archive, archive) as packed:
            members = _list_members(packed, archive, max_bytes, max_files)
            for member in members:
                path = PurePosixPath(member.filename)
                if path.is_absolute() or ".." in path.parts or any(mark in member.filename for mark in "\\:"):
                    raise InputError(f"holds {short_repr(str(path))}, which leads out of its folder", where=archive)
                if stat.S_ISLNK(member.external_attr >> 16):
                    raise InputError(f"holds {short_repr(str(path))}, which is a link", where=archive)
            packed.extractall(content, members)
        for extracted in content.rglob("*"):
            sync_folder(extracted)  # or the file
        entries = list(content.iterdir())
        (entries[0] if len(entries) == 1 and entries[0].is_dir() else content).rename(folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)

"""The files and folders of a zip archive, read where they are: nothing is unpacked to the disk.

What an archive claims to hold is checked when it is opened, and no more than that is ever read of it.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO
from zipfile import BadZipFile, ZipFile, ZipInfo

from msg2.errors import InputError
from msg2.formats.downloads.resumable_download import MAX_BYTES
from msg2.formats.downloads.zip_archive import MAX_FILES
from msg2.formats.unpacking import UnpackingBudget

_BROKEN = (BadZipFile, EOFError, zlib.error, NotImplementedError, RuntimeError, ValueError)
"""What `zipfile` raises on archives that are cut off, changed, encrypted, or packed in a way that it does not know."""


@dataclass(frozen=True)
class ZipEntry:
    """A file or folder in an archive."""

    archive: Path | bytes
    shown: Path
    """The archive, for errors."""
    members: Mapping[str, ZipInfo]
    """All files in the archive."""
    name: str = ""
    """Of this entry: its path in the archive; of the outermost folder, nothing."""

    @staticmethod
    def open_root(archive: Path | bytes, shown: Path) -> ZipEntry:
        """Open an archive.

        Parameters
        ----------
        archive : Path or bytes
            The file, or its content.
        shown : Path
            What it is called in errors.

        Returns
        -------
        ZipEntry
            What it holds; a folder that holds all, or the only file.

        Raises
        ------
        InputError
            Where it is broken, empty, or holds more than is allowed.
        """
        with _broken_at(shown), ZipFile(io.BytesIO(archive) if isinstance(archive, bytes) else archive) as packed:
            files = {member.filename: member for member in packed.infolist() if not member.is_dir()}
        files = {name: member for name, member in files.items() if not _is_hidden(name)}
        if not files:
            raise InputError("is an empty archive", where=shown)
        total = sum(member.file_size for member in files.values())
        size = len(archive) if isinstance(archive, bytes) else archive.stat().st_size
        UnpackingBudget.for_size(shown, size).require(unpacked=total)
        if len(files) > MAX_FILES or total > MAX_BYTES:
            what = f"unpacks to more than {MAX_FILES:,} files or {MAX_BYTES // 10**9} GB"
            raise InputError(what, where=shown, hint="unpack it and give the folder")
        root = ZipEntry(archive, shown, files)
        return root.entries[0] if len(root.entries) == 1 else root

    @cached_property
    def entries(self) -> list[ZipEntry]:
        """The files and folders directly in this folder, by name."""
        start = f"{self.name}/" if self.name else ""
        names = {name.removeprefix(start).partition("/")[0] for name in self.members if name.startswith(start)}
        return [ZipEntry(self.archive, self.shown, self.members, start + name) for name in sorted(names)]

    @property
    def is_folder(self) -> bool:
        """Whether this is a folder."""
        return self.name not in self.members

    @property
    def packed_size(self) -> int:
        """Bytes that the file takes in the archive."""
        return self.members[self.name].compress_size

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The bytes of the file as a stream."""
        archive = io.BytesIO(self.archive) if isinstance(self.archive, bytes) else self.archive
        with _broken_at(self.shown), ZipFile(archive) as packed, packed.open(self.members[self.name]) as stream:
            yield stream


def _is_hidden(name: str) -> bool:
    """Whether a file is one that systems leave in archives for themselves."""
    return any(part.startswith(".") or part == "__MACOSX" for part in name.split("/"))


@contextmanager
def _broken_at(shown: Path) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except _BROKEN as error:
        what = f"is a zip archive that cannot be read ({error})"
        raise InputError(what, where=shown, hint="pack it again, without a password") from None

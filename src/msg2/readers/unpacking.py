"""Zip archives from elsewhere: nothing outside the folder is written, and nothing endless unpacked."""

from __future__ import annotations

import shutil
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import mkdtemp
from zipfile import BadZipFile, ZipFile, ZipInfo

from msg2.errors import InputError, shortened
from msg2.options import DownloadOptions

_CHUNK = 64 * 1024


def unpack(archive: Path, folder: Path, options: DownloadOptions) -> None:
    """Unpack `archive` to `folder`, which appears whole or not at all; an outermost folder that holds all is left out.

    Refused are paths that lead elsewhere, links, and more files or bytes than the options allow.
    """
    staging = Path(mkdtemp(prefix=".msg2-", dir=folder.parent))
    content = staging / "content"
    try:
        content.mkdir()
        with _complaints_about(archive), ZipFile(archive) as packed:
            members = [member for member in packed.infolist() if not member.is_dir()]
            if len(members) > options.most_files:
                raise InputError(f"holds more than {options.most_files:,} files", where=archive)
            left = options.most_bytes
            for member in members:
                target = content / _path(member, archive)
                target.parent.mkdir(parents=True, exist_ok=True)
                left -= _write(packed, member, target, left, archive)
        found = list(content.iterdir())
        (found[0] if len(found) == 1 and found[0].is_dir() else content).rename(folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _path(member: ZipInfo, archive: Path) -> PurePosixPath:
    path = PurePosixPath(member.filename)
    if path.is_absolute() or ".." in path.parts or any(character in member.filename for character in "\\:"):
        raise InputError(f"holds {shortened(member.filename)}, which leads out of its folder", where=archive)
    if stat.S_ISLNK(member.external_attr >> 16):
        raise InputError(f"holds {shortened(member.filename)}, which is a link", where=archive)
    return path


def _write(packed: ZipFile, member: ZipInfo, target: Path, left: int, archive: Path) -> int:
    """Write one file and return its size. What comes is counted: the sizes in an archive are mere claims."""
    size = 0
    with packed.open(member) as stream, target.open("xb") as file:
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
            if size > left:
                raise InputError("unpacks to more bytes than are allowed", where=archive)
            file.write(chunk)
    return size


@contextmanager
def _complaints_about(archive: Path) -> Iterator[None]:
    try:
        yield
    except (BadZipFile, EOFError, zlib.error, NotImplementedError, RuntimeError) as error:
        hint = "delete it and download it again"
        raise InputError(f"is a zip archive that cannot be unpacked ({error})", where=archive, hint=hint) from None
    except FileExistsError as error:
        name = Path(str(error.filename)).name
        raise InputError(f"holds {shortened(name)} twice", where=archive) from None

"""Zip archives from elsewhere: nothing outside the folder is written, and nothing endless unpacked."""

from __future__ import annotations

import shutil
import stat
import zlib
from pathlib import Path, PurePosixPath
from zipfile import BadZipFile, ZipFile, ZipInfo

from msg2.errors import InputError
from msg2.files import temporary_path
from msg2.formats.downloads.resumable_download import MAX_BYTES
from msg2.text import short_repr

MAX_FILES = 100_000
"""Files in an archive."""
_CHUNK = 64 * 1024


def extract_zip(archive: Path, folder: Path, *, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> None:
    """Extract an archive to a folder, which appears whole or not at all.

    An outermost folder that holds all is left out.

    Parameters
    ----------
    archive : Path
        The zip archive.
    folder : Path
        What it becomes; it is not there yet.
    max_bytes : int
        Most bytes that the files may have together.
    max_files : int
        Most files.

    Raises
    ------
    InputError
        Where the archive is broken, holds links or paths that lead elsewhere, or more than is allowed.
    """
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
                remaining -= _extract_member(packed, member, target, remaining, archive)
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


def _extract_member(packed: ZipFile, member: ZipInfo, target: Path, remaining: int, archive: Path) -> int:
    """Write one file and return its size. What comes is counted: the sizes in an archive are mere claims."""
    size = 0
    with packed.open(member) as stream, target.open("xb") as file:
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
            if size > remaining:
                raise InputError("unpacks to more bytes than are allowed", where=archive)
            file.write(chunk)
    return size

"""Writing files so that they appear whole or not at all, under names that are safe everywhere."""

import hashlib
import os
import re
import secrets
import shutil
import socket
import stat
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import TypeAlias

from msg2.errors import InputError, require

_RESERVED = re.compile(r"con|prn|aux|nul|com\d|lpt\d")
"""Names that Windows keeps for devices, whatever the suffix."""
_MACHINE = f"{zlib.crc32(socket.gethostname().encode()):08x}"
_TEMPORARY = re.compile(r"\.msg2-([0-9a-f]{8})-(\d+)-[0-9a-f]{8}")
"""Names of temporary files: the machine and the process that write them, and a random number."""
_ABANDONED_SECONDS = 24 * 3600
"""Nobody writes one file for so long: a temporary one of this age is left over, whoever made it."""


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file in one step: a reader sees the old file or the new one."""
    write_together({path: content})


FileContent: TypeAlias = str | bytes | Iterable[bytes]
"""What is written to a file: text, as UTF-8; bytes; or bytes piece by piece, where they are too many to be held."""


def write_together(contents: Mapping[Path, FileContent]) -> None:
    """Write several files, all or none; a link stays, a device or pipe is written to, mode and owner are kept."""
    with ExitStack() as undo:
        staged = {}
        for path, content in contents.items():
            data = content.encode("utf-8") if isinstance(content, str) else content
            pieces = [bytes(data)] if isinstance(data, bytes | bytearray | memoryview) else data
            with _os_errors_at(path):
                require(not path.is_dir(), "is a folder, a file is to be written there", where=path)
                if path.exists() and not path.is_file():
                    with path.open("wb") as file:
                        file.writelines(pieces)
                else:
                    target = Path(os.path.realpath(path))
                    staged[target] = _stage(target, pieces, undo)
        for target, temporary in staged.items():
            with _os_errors_at(target):
                temporary.replace(target)
        undo.pop_all()
    for folder in {target.parent for target in staged}:
        sync_folder(folder)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Make a folder, and keep other programs that lock it out of it until the end of the block."""
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    with ExitStack() as undo:
        for each in reversed(made):  # those that stay empty are gone again
            undo.callback(_ignore_missing, each.rmdir)
        with _os_errors_at(folder):
            folder.mkdir(parents=True, exist_ok=True)
            opened = os.open(folder, os.O_RDONLY) if sys.platform != "win32" else os.open(os.devnull, os.O_RDONLY)
        undo.callback(os.close, opened)
        lock(opened, folder, "another msg2 is writing into this folder", "wait for it, or choose another folder")
        yield


def lock(file: int, where: Path, what: str, hint: str) -> None:
    """Lock an open file or folder until it is closed, or this process ends; `what`: it is locked already."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(what, where=where, hint=hint) from None
    except (ImportError, OSError):  # Windows, or a file system without locks: two programs are not told apart
        pass


def append_line(path: Path, line: str) -> None:
    """Append a line to a file; a last line that was cut off when somebody wrote it is dropped first."""
    with _os_errors_at(path), path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)
        file.write(f"{line}\n".encode())


def _stage(path: Path, pieces: Iterable[bytes], undo: ExitStack) -> Path:
    """Write a temporary file beside `path`; `undo` removes it, and the folders made for it."""
    for folder in reversed([folder for folder in path.parents if not folder.exists()]):
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)
        undo.callback(_ignore_missing, folder.rmdir)
    replaced = None
    with suppress(FileNotFoundError):
        replaced = path.lstat()  # a name that the disk refuses is refused here, before any file is replaced
    temporary = temporary_path(path.parent)
    undo.callback(_ignore_missing, temporary.unlink)
    rights = 0o666 if replaced is None else 0o600  # what nobody else could read, nobody else reads meanwhile
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(temporary, flags, rights), "wb") as file:
        file.writelines(pieces)
        file.flush()
        if replaced is not None:
            _pass_on(replaced, temporary)
        os.fsync(file.fileno())
    return temporary


def _pass_on(old: os.stat_result, file: Path) -> None:
    """Give `file` the mode and the owner of the one that it replaces; a group that it cannot have gains no rights."""
    mode, now = stat.S_IMODE(old.st_mode), file.stat()
    if sys.platform != "win32" and (now.st_uid, now.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.chown(file, old.st_uid, old.st_gid)
        except OSError:
            mode &= ~stat.S_IRWXG
    with suppress(OSError):  # a file system without rights
        file.chmod(mode)


def temporary_path(folder: Path) -> Path:
    """A new name in `folder` for what is renamed once it is whole; what killed processes have left there is removed."""
    _sweep(folder)
    return folder / f".msg2-{_MACHINE}-{os.getpid()}-{secrets.token_hex(4)}"


@cache  # once per process: a store of thousands of files is written one by one
def _sweep(folder: Path) -> None:
    with suppress(OSError):
        for entry in folder.iterdir():
            owner = _TEMPORARY.fullmatch(entry.name)
            if owner is not None and _is_abandoned(entry, owner[1], int(owner[2])):
                _ignore_missing(partial(shutil.rmtree, entry) if entry.is_dir() else entry.unlink)


def _is_abandoned(entry: Path, machine: str, process: int) -> bool:
    if time.time() - entry.lstat().st_mtime > _ABANDONED_SECONDS:
        return True
    if machine != _MACHINE or sys.platform == "win32":
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:  # it is there, and belongs to somebody else
        pass
    return False


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk; some file systems have no such thing."""
    if sys.platform != "win32":
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _ignore_missing(remove: Callable[[], None]) -> None:
    """Clean up what can be: a folder may hold other things by now, a file may never have been made."""
    with suppress(OSError):
        remove()


@contextmanager
def _os_errors_at(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror or error})", where=path) from error


def file_sha256(path: Path) -> str:
    """Hash the content of a file."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=path) from None


def safe_names(names: Sequence[str]) -> list[str]:
    """Unique file names, without suffix, for names that may hold anything: letters and digits, at most 60 long."""
    counts, taken = Counter[str](), dict[str, None]()  # which keeps the order
    for name in names:
        plain = re.sub(r"[^a-z0-9]+", "-", name[:200].lower()).strip("-")[:50].rstrip("-") or "task"
        unique = base = f"task-{plain}" if _RESERVED.fullmatch(plain) else plain
        while unique in taken:
            counts[base] += 1
            unique = f"{base}-{1 + counts[base]}"
        taken[unique] = None
    return list(taken)

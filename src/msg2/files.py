"""Writing files so that they appear whole or not at all, under names that are safe everywhere."""

from __future__ import annotations

import os
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from msg2.errors import InputError

_RESERVED = re.compile(r"con|prn|aux|nul|com\d|lpt\d")
"""Names that Windows keeps for devices, whatever the suffix."""


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file in one step: a reader sees the old file or the new one.

    Parameters
    ----------
    path : Path
        The file.
    content : str or bytes
        Text is written as UTF-8.

    Raises
    ------
    InputError
        Where it cannot be written.
    """
    write_together({path: content})


def write_together(contents: Mapping[Path, str | bytes]) -> None:
    """Write several files, all or none: they are put in place once every one of them is on the disk.

    Missing folders are made; a link stays and its target is replaced; a device or pipe is written to as it is.
    """
    with ExitStack() as undo:
        staged = {}
        for path, content in contents.items():
            data = content.encode("utf-8") if isinstance(content, str) else content
            with _os_errors_at(path):
                if path.is_dir():
                    raise InputError("is a folder, a file is to be written there", where=path)
                if path.exists() and not path.is_file():
                    path.write_bytes(data)
                else:
                    target = Path(os.path.realpath(path))
                    staged[target] = _stage(target, data, undo)
        for target, temporary in staged.items():
            with _os_errors_at(target):
                temporary.replace(target)
        undo.pop_all()


def _stage(path: Path, data: bytes, undo: ExitStack) -> Path:
    """`data` in a temporary file beside `path`; `undo` removes it, and the folders that were made for it."""
    for folder in reversed([folder for folder in path.parents if not folder.exists()]):
        folder.mkdir(exist_ok=True)
        undo.callback(_ignore_missing, folder.rmdir)
    with suppress(FileNotFoundError):
        path.lstat()  # a name that the disk refuses is refused here, before any file is replaced
    temporary = path.with_name(f".msg2-{secrets.token_hex(8)}")
    undo.callback(_ignore_missing, temporary.unlink)
    temporary.write_bytes(data)
    return temporary


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


def safe_names(names: Sequence[str]) -> list[str]:
    """File names, without suffix, for names that may hold anything: plain letters and digits, unique, at most 60 long.

    >>> safe_names(["Make a Latte", "make a latte", "../", "CON"])
    ['make-a-latte', 'make-a-latte-2', 'task', 'task-con']
    """
    taken: set[str] = set()
    counts: Counter[str] = Counter()
    result = []
    for name in names:
        plain = re.sub(r"[^a-z0-9]+", "-", name[:200].lower()).strip("-")[:50].rstrip("-") or "task"
        unique = base = f"task-{plain}" if _RESERVED.fullmatch(plain) else plain
        while unique in taken:
            counts[base] += 1
            unique = f"{base}-{1 + counts[base]}"
        taken.add(unique)
        result.append(unique)
    return result

"""Writing files so that they appear whole or not at all, under names that are safe everywhere."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from msg2.errors import InputError


def write_whole(path: Path, content: str | bytes) -> None:
    """Write `content` (text as UTF-8) to `path` in one step: a reader sees the old file or the new one."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise InputError("is a folder, a file is to be written there", where=path)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".msg2-", suffix=path.suffix)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            Path(temporary).chmod(0o666 & ~_umask())
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror or error})", where=path) from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def safe_names(names: Sequence[str]) -> list[str]:
    """File names, without suffix, for names that may hold anything: plain letters and digits, unique, at most 60 long.

    >>> safe_names(["Make a Latte", "make a latte", "../"])
    ['make-a-latte', 'make-a-latte-2', 'task']
    """
    taken: set[str] = set()
    result = []
    for name in names:
        base = re.sub(r"[^a-z0-9]+", "-", name[:200].lower()).strip("-")[:50].rstrip("-") or "task"
        unique = next(
            name for name in (base, *(f"{base}-{count}" for count in range(2, len(names) + 2))) if name not in taken
        )
        taken.add(unique)
        result.append(unique)
    return result

"""Writing files so that they appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
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

"""Download one file over HTTP; a transfer that broke off is resumed.

What has come lies in a hidden file beside the target, and beside that the server's name for this version of the file
(its ETag, or the date of its last change). The rest is asked for under that condition, so that no file is ever made of
two versions.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from msg2.errors import InputError
from msg2.progress import Progress

TIMEOUT_SECONDS = 30.0
"""Seconds without an answer after which a connection is given up."""
ATTEMPTS = 4
"""Connections that are tried for a file; each goes on where the one before it broke off."""
PAUSE_SECONDS = 2.0
"""Seconds before the next one."""
MAX_BYTES = 1_000_000_000
"""Bytes of the largest file that is downloaded."""
_CHUNK = 64 * 1024
_PASSING = (408, 429, 500, 502, 503, 504)
"""Answers of a server that may be another one a little later."""


class PartialFile(NamedTuple):
    """What has come of a file, and the file with the name of its version."""

    content: Path
    version: Path

    @staticmethod
    def of(target: Path) -> PartialFile:
        """The partial file of `target`: hidden, beside it."""
        return PartialFile(target.with_name(f".{target.name}.part"), target.with_name(f".{target.name}.version"))

    def remove(self) -> None:
        """Delete what has come."""
        for path in self:
            path.unlink(missing_ok=True)


def download_file(url: str, target: Path, progress: Progress) -> PartialFile:
    """Download a whole file, in several attempts where the connection breaks off.

    Parameters
    ----------
    url : str
        Where the file is.
    target : Path
        Where the caller will put it: what has come lies beside it.
    progress : Progress
        Is told how many bytes have come, and of how many where the server says so.

    Returns
    -------
    PartialFile
        The whole file, not in its place yet.

    Raises
    ------
    InputError
        Where the file cannot be had.
    """
    partial = PartialFile.of(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    reason = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE_SECONDS)
        try:
            _resume(url, partial, lambda done, total: progress(done, total, f"bytes of {target.name}"))
            return partial
        except HTTPError as error:
            error.close()
            if error.code == 416:  # there is no such rest: the file is another one by now
                partial.remove()
            elif error.code not in _PASSING:
                raise InputError(f"the server answers {error.code} ({error.reason})", where=url) from None
            reason = f"the server answers {error.code}"
        except (OSError, HTTPException) as error:  # no such host, no answer, cut off
            reason = str(getattr(error, "reason", error)) or type(error).__name__
    come = partial.content.stat().st_size if partial.content.exists() else 0
    kept = f"; {come:,} bytes have come and are kept" if come else ""
    raise InputError(f"cannot be downloaded ({reason}){kept}", where=url)


def _resume(url: str, partial: PartialFile, report: Callable[[int, int | None], None]) -> None:
    """One connection; ends when all has come."""
    version = partial.version.read_text("ascii") if all(path.exists() for path in partial) else ""
    have = partial.content.stat().st_size if version else 0
    headers = {"User-Agent": "msg2", "Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": version}
    with urlopen(Request(url, headers=headers), timeout=TIMEOUT_SECONDS) as response:
        if url.startswith("https:") and not response.url.startswith("https:"):
            raise InputError("leads to a place that is not secure", where=url)
        if response.status == 206 and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            partial.remove()
            raise ConnectionError("the server sent another part than was asked for")
        if response.status != 206:
            have = 0
        length = response.headers.get("Content-Length")
        total = have + int(length) if length is not None and length.isdigit() else None
        partial.version.write_text(_version(response.headers), "ascii")
        with partial.content.open("ab" if have else "wb") as file:
            while chunk := response.read(_CHUNK):
                have += len(chunk)
                if max(have, total or 0) > MAX_BYTES:
                    file.close()
                    partial.remove()
                    raise InputError(f"is larger than {MAX_BYTES:,} bytes", where=url)
                file.write(chunk)
                report(have, total)
    if total is not None and have < total:
        raise ConnectionError(f"broke off after {have:,} of {total:,} bytes")


def _version(headers: Any) -> str:
    """What the condition of a later transfer can be; a weak ETag is none. Empty: begin anew."""
    tag = str(headers.get("ETag") or "")
    version = tag if tag.startswith('"') else str(headers.get("Last-Modified") or "")
    return version if version.isascii() else ""

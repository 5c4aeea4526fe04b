"""A file or folder that somebody points at: its first bytes, its lines, its JSON.

Everything that can be wrong with bytes (missing, unreadable, a pipe, cut off, not text, endless) is said here, once.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import stat
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any, NoReturn

from msg2.errors import InputError, shortened

HEAD_BYTES = 64 * 1024
"""What is looked at to recognise a format."""
MAX_LINE = 10_000_000
"""Characters of the longest line; longer ones are refused before they fill the memory."""
MAX_DOCUMENT = 256_000_000
"""Bytes of the largest JSON document, which unlike a table is held in memory as a whole."""


@dataclass(frozen=True)
class Source:
    """One existing file or folder; gzip is recognised by its magic bytes and opened transparently."""

    path: Path

    @staticmethod
    def at(path: str | Path) -> Source:
        """The source at `path`, which must be a file or a folder that is there."""
        source = Source(Path(path))
        try:
            mode = source.path.stat().st_mode
        except FileNotFoundError:
            raise InputError("is not there", where=path, hint="check the path") from None
        except (OSError, ValueError) as error:
            raise InputError(f"cannot be read ({_reason(error)})", where=path) from error
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise InputError("is neither a file nor a folder", where=path, hint="save the data in a file first")
        return source

    # -- folders ------------------------------------------------------------------------------------------------

    @cached_property
    def is_folder(self) -> bool:
        """Whether this is a folder."""
        return self.path.is_dir()

    @cached_property
    def files(self) -> tuple[Source, ...]:
        """The regular files directly in the folder, by name, hidden ones left out; none if this is a file."""
        return tuple(Source(path) for path in self._entries if path.is_file())

    @cached_property
    def folders(self) -> tuple[Source, ...]:
        """The folders directly in the folder, by name, hidden ones left out; none if this is a file."""
        return tuple(Source(path) for path in self._entries if path.is_dir())

    @cached_property
    def _entries(self) -> list[Path]:
        if not self.is_folder:
            return []
        try:
            return sorted(path for path in self.path.iterdir() if not path.name.startswith("."))
        except OSError as error:
            raise InputError(f"cannot be read ({_reason(error)})", where=self.path) from error

    # -- names --------------------------------------------------------------------------------------------------

    @cached_property
    def stem(self) -> str:
        """The name without its suffix, and without `.gz` before that; of a folder, the whole name. Valid text."""
        path = Path(os.fsencode(self.path.resolve()).decode("utf-8", "replace"))
        if self.is_folder:
            return path.name
        return Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem

    def row(self, number: int) -> str:
        """Where in the file: `number` is the line as an editor shows it, from 1."""
        return f"{self.path}, row {number}"

    # -- bytes --------------------------------------------------------------------------------------------------

    @contextmanager
    def binary(self) -> Iterator[IO[bytes]]:
        """The bytes of the file as a stream, unpacked if it is gzip."""
        try:
            with self.path.open("rb") as raw:
                packed = raw.read(2) == b"\x1f\x8b"
                raw.seek(0)
                if packed:
                    with gzip.GzipFile(fileobj=raw) as unpacked:
                        yield unpacked  # type: ignore[misc]
                else:
                    yield raw
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            hint = "copy or download the file again"
            raise InputError(f"is broken gzip ({_reason(error)})", where=self.path, hint=hint) from error
        except OSError as error:
            raise InputError(f"cannot be read ({_reason(error)})", where=self.path) from error

    @cached_property
    def head(self) -> bytes:
        """The first bytes, unpacked; none of a folder."""
        if self.is_folder:
            return b""
        with self.binary() as stream:
            return stream.read(HEAD_BYTES)

    # -- text ---------------------------------------------------------------------------------------------------

    def lines(self) -> Generator[str]:
        r"""The lines of UTF-8 text with their ends (`\n`, `\r\n` or `\r`; no other character ends a line)."""
        with self.binary() as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
            number = 0
            try:
                while line := text.readline(MAX_LINE + 1):
                    number += 1
                    if "\0" in line:
                        hint = "save it as UTF-8 text; UTF-16 and binary files are full of these"
                        raise InputError("has a NUL byte, which is no text", where=self.row(number), hint=hint)
                    if len(line) > MAX_LINE:
                        hint = "the line ends may be lost, or a quote is never closed"
                        what = f"the line is longer than {MAX_LINE:,} characters"
                        raise InputError(what, where=self.row(number), hint=hint)
                    yield line
            except UnicodeDecodeError:
                self._refuse_bytes()

    def _refuse_bytes(self) -> NoReturn:
        """Say which byte is the first that is no UTF-8. The decoder only knows it within its buffer, so look again."""
        row, offset, pending = 1, 0, b""
        with self.binary() as stream:
            while chunk := stream.read(HEAD_BYTES):
                block = pending + chunk
                try:
                    block.decode()
                    good = len(block)
                except UnicodeDecodeError as error:
                    good = error.start
                    if error.end < len(block) or len(block) - good >= 4:
                        break
                offset, row, pending = offset + good, row + block.count(b"\n", 0, good), block[good:]
            else:
                block, good = pending, 0  # the file ends in the middle of a character
        offset, row, byte = offset + good, row + block.count(b"\n", 0, good), block[good]
        kind = "UTF-16" if self.head[:2] in (b"\xff\xfe", b"\xfe\xff") else "Latin-1 or a binary file"
        hint = f"save it as UTF-8 text; it looks like {kind}"
        raise InputError(f"byte {offset} (0x{byte:02x}) is not UTF-8 text", where=self.row(row), hint=hint)

    # -- JSON ---------------------------------------------------------------------------------------------------

    @cached_property
    def is_json(self) -> bool:
        """Whether the first character is one that starts a JSON object or list."""
        return self._first_byte in (b"{", b"[")

    @cached_property
    def is_json_lines(self) -> bool:
        """Whether the first line is a JSON object of its own, and another follows or it is a row of a table."""
        if self._first_byte != b"{":
            return False
        try:
            with closing(self.lines()) as lines:
                first, *more = islice((line for line in lines if line.strip()), 2)
            value = json.loads(first, parse_int=float)
        except (ValueError, RecursionError):
            return False
        return bool(more) or "step" in value

    @cached_property
    def _first_byte(self) -> bytes:
        return self.head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]

    @cached_property
    def document(self) -> Any:
        """The JSON document that the file holds; None for a folder and for every other kind of file."""
        return parsed_json(self.whole_text(), self) if self.is_json and not self.is_json_lines else None

    def whole_text(self) -> str:
        """All of the text; for documents that have to be in memory as a whole."""
        with self.binary() as stream:
            content = stream.read(MAX_DOCUMENT + 1)
        if len(content) > MAX_DOCUMENT:
            raise InputError(f"is larger than {MAX_DOCUMENT // 1_000_000} MB", where=self.path, hint="split it")
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            self._refuse_bytes()


def parsed_json(text: str, source: Source, row: int | None = None) -> Any:
    """The value of JSON text, strictly: no duplicate keys, no NaN, no half characters. `row`: the line it stands on."""
    where: str | Path = source.path if row is None else source.row(row)
    try:
        value = _STRICT.decode(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except InputError as error:
        raise InputError(error.what, where=where) from None
    except json.JSONDecodeError as error:
        what = f"is not valid JSON: {error.msg} (column {error.colno})"
        raise InputError(what, where=source.row(row or error.lineno)) from None
    except RecursionError:
        raise InputError("is nested too deeply", where=where) from None
    except UnicodeEncodeError:
        raise InputError("has half of a surrogate pair, which is no character", where=where) from None
    except ValueError:
        raise InputError("has a number with too many digits", where=where) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"the key {shortened(twice)} is there twice in one object")
    return value


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise InputError(f"has the number {shortened(digits)}, which is too large")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise InputError(f"has {name}, which is no JSON number")


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refuse_constant)

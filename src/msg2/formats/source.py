"""A file or folder that somebody points at, on the disk, in a zip archive or from standard input: bytes, lines, JSON.

Everything that can be wrong with bytes (missing, unreadable, cut off, not text, endless) is checked here, once.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import stat
import sys
import zlib
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import count, islice
from pathlib import Path
from typing import IO, Any, Literal, NoReturn

from msg2.errors import InputError, require
from msg2.formats.archives import JSON_VALUES_PER_ROW, BoundedGzipFile, UnpackingBudget, ZipEntry
from msg2.formats.json_files import parse_json

HEAD_BYTES = 64 * 1024  # what is looked at to recognise a format
MANY_FILES, SHORT_HEAD_BYTES = 1000, 2 * 1024
"""Of the files of a folder that has more than so many, the heads are shorter: they all are kept in memory."""
ZIP = b"PK\x03\x04"  # what zip archives, and with them Excel workbooks, begin with
MAX_LINE = 10_000_000  # characters of the longest line; longer ones are refused before they fill the memory
MAX_DOCUMENT = 256_000_000  # bytes of the largest JSON document, which unlike a table is held in memory as a whole


@dataclass(frozen=True)
class Source:
    """One existing file or folder; gzip is recognised by its magic bytes and opened transparently."""

    path: Path  # where it is; of what is in an archive, the path of that and the path in it
    content: bytes | ZipEntry | None = field(default=None, repr=False, compare=False)
    """What it holds, where it does not lie on the disk."""
    head_bytes: int = field(default=HEAD_BYTES, compare=False, repr=False)
    chosen_files: tuple[Source, ...] | None = field(default=None, compare=False, repr=False)
    """Of a folder: the only files that are looked at."""
    around: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """The names of the folders in which it was found, the outermost first."""

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

    @staticmethod
    def of_data(path: str | Path) -> Source:
        """The data at `path`: as `at`, and `-` is standard input, and a zip archive the folder that it holds."""
        source = _read_stdin() if str(path) == "-" else Source.at(path)
        if source.is_folder or not source.head.startswith(ZIP) or source.kind == "workbook":
            return source
        root = source._open_zip()
        return Source(source.path if root.is_folder else source.path / root.name, root)

    # -- folders ------------------------------------------------------------------------------------------------

    @cached_property
    def is_folder(self) -> bool:
        """Whether this is a folder."""
        if isinstance(self.content, ZipEntry):
            return self.content.is_folder
        return self.content is None and self.path.is_dir()

    @property
    def is_small(self) -> bool:
        """Whether all of the file has been read by now, to recognise it."""
        return len(self.head) < self.head_bytes

    @cached_property
    def files(self) -> tuple[Source, ...]:
        """The regular files directly in the folder, by name, hidden ones left out; none if this is a file."""
        if self.chosen_files is not None:
            return self.chosen_files
        files = [entry for entry in self._entries if not entry.is_folder]
        if len(files) > MANY_FILES:
            files = [replace(file, head_bytes=SHORT_HEAD_BYTES) for file in files]
        return tuple(files)

    @cached_property
    def folders(self) -> tuple[Source, ...]:
        """The folders directly in the folder, by name, hidden ones left out; none if this is a file."""
        return tuple(entry for entry in self._entries if entry.is_folder)

    def sample(self) -> Source:
        """The same file or folder with at most `MANY_FILES` files of each suffix: enough to recognise it by."""
        if len(self.files) <= MANY_FILES:
            return self
        numbers: dict[str, Iterator[int]] = defaultdict(count)
        chosen = tuple(file for file in self.files if next(numbers[file.path.suffix]) < MANY_FILES)
        return replace(self, chosen_files=chosen)

    @property
    def files_or_self(self) -> tuple[Source, ...]:
        """The files directly in the folder; of a file, only itself."""
        return self.files if self.is_folder else (self,)

    @cached_property
    def _entries(self) -> list[Source]:
        if not self.is_folder:
            return []
        if isinstance(self.content, ZipEntry):
            entries = ((entry.name.rpartition("/")[2], entry) for entry in self.content.entries)
            return [Source(self.path / name, entry, around=(*self.around, self.stem)) for name, entry in entries]
        try:
            paths = sorted(path for path in self.path.iterdir() if not path.name.startswith("."))
        except OSError as error:
            raise InputError(f"cannot be read ({_reason(error)})", where=self.path) from error
        around = (*self.around, self.stem)
        return [Source(path, around=around) for path in paths if path.is_file() or path.is_dir()]

    def member(self, name: str) -> Source | None:
        """The file or folder of that name directly in the folder, if it is there."""
        return next((entry for entry in self._entries if entry.path.name == name), None)

    @cached_property
    def stem(self) -> str:
        """The name without its suffix, and without `.gz` before that; of a folder, the whole name. Valid text."""
        path = Path(os.fsencode(self.path.resolve()).decode("utf-8", "replace"))
        if self.is_folder:
            return path.stem if path.suffix.lower() == ".zip" and self.content is not None else path.name
        return Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem

    def row(self, number: int) -> str:
        """Where in the file: `number` is the line as an editor shows it, from 1."""
        return f"{self.path}, row {number}"

    # -- bytes --------------------------------------------------------------------------------------------------

    @contextmanager
    def open_binary(self) -> Iterator[IO[bytes]]:
        """The bytes of the file as a stream, unpacked if it is gzip, as far as its `UnpackingBudget` reaches."""
        try:
            if isinstance(self.content, ZipEntry):
                file: AbstractContextManager[IO[bytes]] = self.content.open()
            else:
                file = self.path.open("rb") if self.content is None else io.BytesIO(self.content)
            with file as raw:
                packed = raw.read(2) == b"\x1f\x8b"
                raw.seek(0)
                with BoundedGzipFile(raw, self.unpacking_budget) if packed else raw as stream:
                    yield stream  # type: ignore[misc]
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            hint = "copy or download the file again"
            raise InputError(f"is broken gzip ({_reason(error)})", where=self.path, hint=hint) from error
        except OSError as error:
            raise InputError(f"cannot be read ({_reason(error)})", where=self.path) from error

    @property
    def unpacking_budget(self) -> UnpackingBudget:
        """What the file may hold, by its size on the disk, or in its archive."""
        if isinstance(self.content, ZipEntry):
            return UnpackingBudget(self.path, self.content.members[self.content.name].compress_size)
        return UnpackingBudget(self.path, self.path.stat().st_size if self.content is None else len(self.content))

    @cached_property
    def head(self) -> bytes:
        """The first bytes, unpacked; none of a folder."""
        if self.is_folder:
            return b""
        with self.open_binary() as stream:
            return stream.read(self.head_bytes)

    # -- text ---------------------------------------------------------------------------------------------------

    def lines(self) -> Generator[str]:
        r"""The lines of UTF-8 text with their ends (`\n`, `\r\n` or `\r`; no other character ends a line)."""
        with self.open_binary() as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
            number, budget = 0, getattr(stream, "budget", None)
            try:
                while line := text.readline(MAX_LINE + 1):
                    number += 1
                    if budget is not None:
                        budget.require(rows=number)
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
        """Say which byte is the first that is no UTF-8: the decoder only knows it within its buffer, so look again."""
        row = offset = 0
        what = "is not UTF-8 text"
        with self.open_binary() as stream:
            while line := stream.readline(MAX_DOCUMENT):
                row += 1
                try:
                    line.decode()
                except UnicodeDecodeError as error:
                    what = f"byte {offset + error.start} (0x{line[error.start]:02x}) is not UTF-8 text"
                    break
                offset += len(line)
        kind = "UTF-16" if self.head[:2] in (b"\xff\xfe", b"\xfe\xff") else "Latin-1 or a binary file"
        raise InputError(what, where=self.row(row), hint=f"save it as UTF-8 text; it looks like {kind}")

    @cached_property
    def kind(self) -> Literal["text", "JSON", "JSON lines", "XML", "workbook", "parquet"]:
        """What the file is, by its first bytes; everything that is nothing else is taken for text."""
        begin = self.head.removeprefix(codecs.BOM_UTF8).lstrip()[:4]
        if begin == b"PAR1":
            return "parquet"
        if begin == ZIP and self.workbook is not None:
            return "workbook"
        if begin[:1] in (b"{", b"["):
            return "JSON lines" if begin[:1] == b"{" and self._has_json_rows() else "JSON"
        is_xml = self.head.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n")[:1] == b"<"  # which may be UTF-16
        return "XML" if is_xml else "text"

    # -- JSON ---------------------------------------------------------------------------------------------------

    def _has_json_rows(self) -> bool:
        """Whether the first line is a JSON object of its own, and another follows or it is a row of a table."""
        try:
            with closing(self.lines()) as lines:
                first, *more = islice((line for line in lines if line.strip()), 2)
            if not more:
                with suppress(InputError):  # one that is not strictly JSON is recognised as well, and refused later
                    return "step" in self.whole_document
            value = json.loads(first, parse_int=float)
        except (ValueError, RecursionError):
            return False
        return bool(more) or "step" in value

    @cached_property
    def document(self) -> Any:
        """The JSON document that the file holds, parsed once; None for a folder and for every other kind of file."""
        return self.whole_document if self.kind == "JSON" else None

    @cached_property
    def whole_document(self) -> Any:
        """The whole text as one JSON document."""
        return parse_json(self.read_text(), self)

    def read_text(self) -> str:
        """All of the text; for documents that have to be in memory as a whole."""
        try:
            return self.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError:
            self._refuse_bytes()

    def read_bytes(self) -> bytes:
        """All of the bytes, at most `MAX_DOCUMENT`."""
        with self.open_binary() as stream:
            content = stream.read(MAX_DOCUMENT + 1)
        if budget := getattr(stream, "budget", None):
            budget.require(rows=sum(map(content.count, (b",", b"[", b"{"))) // JSON_VALUES_PER_ROW)
        if len(content) > MAX_DOCUMENT:
            raise InputError(f"is larger than {MAX_DOCUMENT // 1_000_000} MB", where=self.path, hint="split it")
        return content

    @cached_property
    def sheets(self) -> list[tuple[str, list[tuple[int, list[str]]]]]:
        """The name of each sheet of the workbook that the file is, and its rows with their numbers; read once."""
        from msg2.formats.excel import read_sheets

        return list(read_sheets(self.workbook)) if self.workbook else []

    @cached_property
    def workbook(self) -> ZipEntry | None:
        """The archive that an Excel workbook is; None of every other file."""
        root = self._open_zip() if self.head.startswith(ZIP) else None
        return root if root is not None and "xl/workbook.xml" in root.members else None

    def _open_zip(self) -> ZipEntry:
        packed = self.read_bytes() if isinstance(self.content, ZipEntry) else self.content
        return ZipEntry.open_root(self.path if packed is None else packed, self.path)


@cache
def _read_stdin() -> Source:
    """What comes from standard input; it can be read once only, and is kept."""
    if sys.stdin is None:
        raise InputError("there is no standard input", where="-", hint="give a file")
    content = sys.stdin.buffer.read(MAX_DOCUMENT + 1)
    hint = "save it in a file first"
    require(len(content) <= MAX_DOCUMENT, f"is larger than {MAX_DOCUMENT // 1_000_000} MB", where="stdin", hint=hint)
    return Source(Path("stdin"), content)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__

"""A file or folder that somebody points at, on the disk, in a zip archive or from standard input: bytes, lines, JSON.

Everything that can be wrong with bytes (missing, unreadable, cut off, not text, endless) is checked here, once. What is
packed may unpack to `RATIO` times its size in bytes, and to a row per byte: real logs reach 60 times, and a row takes
several bytes. Small files may always hold `LEAST_BYTES` and `LEAST_ROWS`.
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
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias
from zipfile import BadZipFile, ZipFile, ZipInfo

from msg2.errors import InputError
from msg2.formats.downloads import MAX_BYTES, MAX_FILES
from msg2.formats.json_files import parse_json

if TYPE_CHECKING:
    from msg2.formats.excel import SheetRows

RATIO = 100
LEAST_BYTES = 64_000_000
LEAST_ROWS = 2_000_000
JSON_VALUES_PER_ROW = 4  # a value of a JSON document takes a quarter of the memory that a row of a table does
COLUMN_ROWS_PER_ROW = 4
"""Read in columns, a row takes a quarter of the memory; and Parquet packs rows of real labels to half a byte."""
VARIABLE = "MSG2_UNPACK"  # variable of the environment: packed files may hold so many times as much


@dataclass(frozen=True, slots=True)
class UnpackingBudget:
    """What one packed file may hold."""

    path: Path
    bytes: int
    rows: int

    @staticmethod
    def for_size(path: Path, size: int) -> UnpackingBudget:
        """The budget of a file."""
        factor = _factor()
        return UnpackingBudget(path, int(factor * max(LEAST_BYTES, RATIO * size)), int(factor * max(LEAST_ROWS, size)))

    def require(self, *, unpacked: int = 0, rows: int = 0) -> None:
        """Refuse more bytes or rows than the file may hold."""
        if unpacked > self.bytes or rows > self.rows:
            much = f"{self.bytes // 1_000_000:,} MB" if unpacked > self.bytes else f"{self.rows:,} rows or values"
            hint = f"unpack it to see what is in it; if you trust it, set {VARIABLE}=10 to allow ten times as much"
            raise InputError(
                f"unpacks to more than {much}, which is suspicious for its size", where=self.path, hint=hint
            )


class BoundedGzipFile(gzip.GzipFile):
    """A gzip file that stops where its budget ends."""

    def __init__(self, raw: IO[bytes], budget: UnpackingBudget) -> None:
        self.budget = budget
        super().__init__(fileobj=raw)

    def read(self, size: int | None = -1) -> bytes:
        """Read at most `size` bytes; what is to be held in memory as a whole is bounded as well."""
        most = self.budget.bytes + 1 - self.tell()
        content = super().read(most if size is None or size < 0 else min(size, max(most, 1)))
        self.budget.require(unpacked=self.tell())
        return content

    def read1(self, size: int = -1) -> bytes:
        """Read what is there, at most `size` bytes."""
        content = super().read1(size)
        self.budget.require(unpacked=self.tell())
        return content


def _factor() -> float:
    text = os.environ.get(VARIABLE, "1")
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 0 < factor <= 1_000_000:
        raise InputError(
            f"is {text!r}, not a number above 0", where=VARIABLE, hint="packed files may hold so many times as much"
        )
    return factor


_BROKEN = (BadZipFile, EOFError, zlib.error, NotImplementedError, RuntimeError, ValueError)
"""What `zipfile` raises on archives that are cut off, changed, encrypted, or packed in a way that it does not know."""


@dataclass(frozen=True)
class ZipEntry:
    """A file or folder in an archive."""

    archive: Path | bytes
    shown: Path  # the archive, for errors
    members: Mapping[str, ZipInfo]  # all files in the archive
    name: str = ""  # of this entry: its path in the archive; of the outermost folder, nothing

    @staticmethod
    def open_root(archive: Path | bytes, shown: Path) -> ZipEntry:
        """Open an archive."""
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


FileKind: TypeAlias = Literal["text", "JSON", "JSON lines", "XML", "workbook", "parquet"]
"""What a file is by its first bytes; everything that is nothing else is taken for text."""
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
        if source.is_folder or not source.head.startswith(ZIP) or source.is_spreadsheet:
            return source
        return source._open_archive()

    def _open_archive(self) -> Source:
        root = ZipEntry.open_root(self.content if isinstance(self.content, bytes) else self.path, self.path)
        return Source(self.path if root.is_folder else self.path / root.name, root)

    # -- folders ------------------------------------------------------------------------------------------------

    @cached_property
    def is_folder(self) -> bool:
        """Whether this is a folder."""
        if self.content is not None:
            return isinstance(self.content, ZipEntry) and self.content.is_folder
        return self.path.is_dir()

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
        counts: Counter[str] = Counter()
        chosen = []
        for file in self.files:
            counts[file.path.suffix] += 1
            if counts[file.path.suffix] <= MANY_FILES:
                chosen.append(file)
        return replace(self, chosen_files=tuple(chosen))

    @property
    def files_or_self(self) -> tuple[Source, ...]:
        """The files directly in the folder; of a file, only itself."""
        return self.files if self.is_folder else (self,)

    @cached_property
    def _entries(self) -> list[Source]:
        if not self.is_folder:
            return []
        if isinstance(self.content, ZipEntry):
            return [Source(self.path / entry.name.rpartition("/")[2], entry) for entry in self.content.entries]
        try:
            paths = sorted(path for path in self.path.iterdir() if not path.name.startswith("."))
        except OSError as error:
            raise InputError(f"cannot be read ({_reason(error)})", where=self.path) from error
        return [Source(path) for path in paths if path.is_file() or path.is_dir()]

    def member(self, name: str) -> Source | None:
        """The file or folder of that name directly in the folder, if it is there."""
        return next((entry for entry in self._entries if entry.path.name == name), None)

    # -- names --------------------------------------------------------------------------------------------------

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
            with self._open_raw() as raw:
                packed = raw.read(2) == b"\x1f\x8b"
                raw.seek(0)
                with BoundedGzipFile(raw, self.unpacking_budget) if packed else raw as stream:
                    yield stream  # type: ignore[misc]
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            hint = "copy or download the file again"
            raise InputError(f"is broken gzip ({_reason(error)})", where=self.path, hint=hint) from error
        except OSError as error:
            raise InputError(f"cannot be read ({_reason(error)})", where=self.path) from error

    def _open_raw(self) -> AbstractContextManager[IO[bytes]]:
        if isinstance(self.content, ZipEntry):
            return self.content.open()
        return self.path.open("rb") if self.content is None else io.BytesIO(self.content)

    @property
    def unpacking_budget(self) -> UnpackingBudget:
        """What the file may hold, by its size on the disk, or in its archive."""
        if isinstance(self.content, ZipEntry):
            return UnpackingBudget.for_size(self.path, self.content.packed_size)
        size = self.path.stat().st_size if self.content is None else len(self.content)
        return UnpackingBudget.for_size(self.path, size)

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
            number = 0
            budget: UnpackingBudget | None = getattr(stream, "budget", None)
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
        """Say which byte is the first that is no UTF-8. The decoder only knows it within its buffer, so look again."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        row, offset, block, bad = 1, 0, b"?", 0
        with self.open_binary() as stream:
            try:
                while block:
                    block = stream.read(HEAD_BYTES)
                    good = decoder.decode(block, final=not block).encode()
                    row, offset = row + good.count(b"\n"), offset + len(good)
            except UnicodeDecodeError as error:
                block, bad = error.object, error.start
        row, offset, byte = row + block.count(b"\n", 0, bad), offset + bad, block[bad]
        kind = "UTF-16" if self.head[:2] in (b"\xff\xfe", b"\xfe\xff") else "Latin-1 or a binary file"
        hint = f"save it as UTF-8 text; it looks like {kind}"
        raise InputError(f"byte {offset} (0x{byte:02x}) is not UTF-8 text", where=self.row(row), hint=hint)

    @cached_property
    def kind(self) -> FileKind:
        """What the file is, by its first bytes."""
        begin = self.head.removeprefix(codecs.BOM_UTF8).lstrip()[:4]
        if begin == b"PAR1":
            return "parquet"
        if begin == ZIP and self.is_spreadsheet:
            return "workbook"
        if begin[:1] in (b"{", b"["):
            return "JSON lines" if begin[:1] == b"{" and self._has_json_rows() else "JSON"
        is_xml = self.head.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n")[:1] == b"<"  # which may be UTF-16
        return "XML" if is_xml else "text"

    # -- JSON ---------------------------------------------------------------------------------------------------

    @property
    def is_json(self) -> bool:
        """Whether the first character is one that starts a JSON object or list."""
        return self.head.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"{", b"[")

    def _has_json_rows(self) -> bool:
        """Whether the first line is a JSON object of its own, and another follows or it is a row of a table."""
        try:
            with closing(self.lines()) as lines:
                first, *more = islice((line for line in lines if line.strip()), 2)
            if not more:
                with suppress(InputError):  # one that is not strictly JSON is recognised as well, and refused later
                    return "step" in self._whole_document
            value = json.loads(first, parse_int=float)
        except (ValueError, RecursionError):
            return False
        return bool(more) or "step" in value

    @cached_property
    def document(self) -> Any:
        """The JSON document that the file holds, parsed once; None for a folder and for every other kind of file."""
        return self._whole_document if self.kind == "JSON" else None

    @cached_property
    def _whole_document(self) -> Any:
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
            budget: UnpackingBudget | None = getattr(stream, "budget", None)
        if budget is not None:
            budget.require(rows=sum(map(content.count, (b",", b"[", b"{"))) // JSON_VALUES_PER_ROW)
        if len(content) > MAX_DOCUMENT:
            raise InputError(f"is larger than {MAX_DOCUMENT // 1_000_000} MB", where=self.path, hint="split it")
        return content

    # -- spreadsheets -------------------------------------------------------------------------------------------

    @cached_property
    def is_spreadsheet(self) -> bool:
        """Whether this is an Excel workbook (`.xlsx`)."""
        return self.workbook is not None

    @cached_property
    def sheets(self) -> list[tuple[str, SheetRows]]:
        """The sheets of the workbook that the file is, read once."""
        from msg2.formats.excel import read_sheets

        return list(read_sheets(self))

    @cached_property
    def workbook(self) -> Source | None:
        """The folder `xl` of the archive that an Excel workbook is; None of every other file."""
        if not self.head.startswith(ZIP):
            return None
        packed = self.read_bytes() if isinstance(self.content, ZipEntry) else self.content
        root = ZipEntry.open_root(self.path if packed is None else packed, self.path)
        folder = Source(self.path, root).member("xl")
        return folder if folder is not None and folder.member("workbook.xml") is not None else None


@cache
def _read_stdin() -> Source:
    """What comes from standard input; it can be read once only, and is kept."""
    if sys.stdin is None:
        raise InputError("there is no standard input", where="-", hint="give a file")
    content = sys.stdin.buffer.read(MAX_DOCUMENT + 1)
    if len(content) > MAX_DOCUMENT:
        raise InputError(
            f"is larger than {MAX_DOCUMENT // 1_000_000} MB", where="stdin", hint="save it in a file first"
        )
    return Source(Path("stdin"), content)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__

"""Any table -> its columns: delimited text, Excel, JSON Lines, Parquet, and whatever has `__arrow_c_stream__`.

Arrow reads Parquet, data frames and large text files; Python's `csv` reads small text files (which saves the import of
pyarrow) and those that Arrow refuses, to say which row is wrong.
"""

from __future__ import annotations

import csv
from array import array
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from typing import IO, TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, errors_at
from msg2.formats.columns import require_columns
from msg2.formats.json_files import parse_json
from msg2.formats.source import COLUMN_ROWS_PER_ROW, Source, UnpackingBudget
from msg2.text import short_repr

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.parquet import ParquetFile

SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
_NO_SEPARATORS = {" ": "spaces", ":": "colons"}
ABSENT: Final = object()  # the cell of a JSON object that lacks the key
_BOM = b"\xef\xbb\xbf"
_FEW_LINES = 3  # text with fewer lines is not given to Arrow: there is nothing to gain, or a line without an end
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}

HeaderTest: TypeAlias = Callable[[Sequence[str]], bool]  # could these cells be a header? That decides the separator


@dataclass(frozen=True, slots=True, eq=False)
class CodedColumn:
    """A column as its distinct values, and the index of each row's value among them."""

    values: Sequence[object]
    code: NDArray[np.int32]

    def cells(self) -> Iterator[object]:
        """The value of each row."""
        return (self.values[code] for code in self.code.tolist())


@dataclass(frozen=True, slots=True, eq=False)
class NumberColumn:
    """A column of integers or floats; `missing` says where there is none, None where every row has one."""

    values: NDArray[np.number]
    missing: NDArray[np.bool_] | None = None

    def cells(self) -> Iterator[object]:
        """The value of each row, None where there is none."""
        cells = self.values.astype(object)
        if self.missing is not None:
            cells[self.missing] = None
        return iter(cells.tolist())


@dataclass(frozen=True, slots=True, eq=False)
class TimeColumn:
    """A column of points in time, in microseconds since 1970."""

    values: NDArray[np.int64]

    def cells(self) -> Iterator[object]:
        """The value of each row."""
        return iter(self.values.astype("datetime64[us]"))


Column: TypeAlias = CodedColumn | NumberColumn | TimeColumn


def code_values(values: Iterable[object]) -> CodedColumn:
    """A column of the values of its rows; 1, 1.0 and True are three values."""
    seen: dict[object, int] = {}
    distinct: list[object] = []
    code = array("i")
    for value in values:
        key = (type(value), str(value) if isinstance(value, dict | list) else value)
        code.append(seen.setdefault(key, len(seen)))
        if len(seen) > len(distinct):
            distinct.append(value)
    return CodedColumn(distinct, np.array(code, np.int32))


class Wanted(NamedTuple):
    """The names of the columns to read; those that should be numbers or points in time are named again."""

    names: Sequence[str]
    numbers: Sequence[str] = ()
    times: Sequence[str] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """An open table: its header, and functions that read the rest."""

    source: Source
    header: tuple[str, ...]
    read: Callable[[Wanted], Mapping[str, Column]]  # reads some columns
    lines: Callable[[], Iterable[int]]  # where each row stands in the file, which is asked for where a row is wrong
    where: str  # where the header stands, for errors
    separator: str = ""  # of the cells of a text, spaces after it included; empty where cells have types of their own
    sheet: str = ""  # which sheet of several it is, in words
    text_rows: Callable[[], Iterable[tuple[int, Sequence[str]]]] = tuple  # below the header, of a table of text

    @property
    def assumptions(self) -> list[str]:
        """What was assumed of its layout, in words."""
        if self.separator in ("", ",", "\t"):
            return [self.sheet] * bool(self.sheet)
        spaces = " and spaces" * (len(self.separator) > 1)
        return [f"the columns are separated by {SEPARATORS[self.separator[0]]}{spaces}"]


def open_table(source: Source, fits: HeaderTest) -> Table:
    """Open a table with a header; of a workbook, the first sheet that fits is taken."""
    match source.kind:
        case "parquet":
            return _open_parquet(source)
        case "JSON lines":
            return _open_json_lines(source)
        case "workbook":
            return _open_sheet(source, fits)
    return _open_text(source, fits)


def read_header(source: Source, fits: HeaderTest) -> tuple[str, ...]:
    """The header of a table, to recognise it by; of JSON Lines, the keys of the first line."""
    if source.kind != "JSON lines":
        return open_table(source, fits).header
    with closing(source.lines()) as lines:
        first = next((parse_json(line, source) for line in lines if line.strip()), None)
    return tuple(first) if isinstance(first, dict) else ()


# -- delimited text ---------------------------------------------------------------------------------------------


def _open_text(source: Source, fits: HeaderTest) -> Table:
    with closing(source.lines()) as lines:
        number, first = next(((n, line) for n, line in enumerate(lines, start=1) if line.strip()), (0, ""))
    if not first:
        hint = "the first line names the columns: video,step or video,step,start,end"
        raise InputError("is empty", where=source.path, hint=hint)
    where = source.row(number)
    separator = _choose_separator(first, fits, where)
    rows = partial(read_rows, source, separator, 0, number)
    with closing(rows()) as cells:
        header = tuple(next(cells)[1])

    def read(wanted: Wanted) -> Mapping[str, Column]:
        columns = None
        if not source.is_small and number == 1 and len(separator) == 1:
            columns = _read_csv_by_arrow(source, header, separator, wanted)
        return columns or _code_rows(islice(rows(), 1, None), header, wanted)

    def text_rows() -> Iterator[tuple[int, list[str]]]:
        return islice(rows(), 1, None)

    return Table(source, header, read, lambda: (line for line, _ in text_rows()), where, separator, "", text_rows)


def _code_rows(rows: Iterable[tuple[int, Sequence[str]]], header: Sequence[str], wanted: Wanted) -> dict[str, Column]:
    """The wanted columns of rows of text."""
    columns: dict[str, tuple[int, dict[str, int], array[int]]]
    columns = {name: (header.index(name), {}, array("i")) for name in wanted.names}
    for _, cells in rows:
        for place, seen, code in columns.values():
            code.append(seen.setdefault(cells[place], len(seen)))
    return {name: CodedColumn(list(seen), np.array(code, np.int32)) for name, (_, seen, code) in columns.items()}


def read_rows(source: Source, separator: str, width: int | None, first: int = 1) -> Generator[tuple[int, list[str]]]:
    """The rows of delimited text from a line on, each with its line, blank ones left out.

    All have as many cells as `width` says; 0: as the first row, None: any number.
    """
    line = first
    with closing(source.lines()) as lines:
        spaced = separator.endswith(" ")
        table = csv.reader(islice(lines, first - 1, None), delimiter=separator[0], skipinitialspace=spaced, strict=True)
        try:
            for cells in table:
                width = len(cells) if width == 0 else width
                if cells and width is not None and len(cells) != width:
                    what = f"there are {width} columns, but the row has {len(cells)}"
                    raise InputError(what, where=source.row(line), hint="put fields that hold the separator in quotes")
                if cells:
                    yield line, cells
                line = table.line_num + first  # a row of quoted newlines has several lines; its first one names it
        except csv.Error as error:
            hint = f"is a quote not closed? fields have at most {csv.field_size_limit():,} characters"
            raise InputError(f"the row cannot be read ({error})", where=source.row(line), hint=hint) from None


def _choose_separator(line: str, fits: HeaderTest, where: str) -> str:
    """The first separator whose cells fit, with a space where one follows it everywhere; else that of most cells."""
    if len(line) > csv.field_size_limit():
        raise InputError("the first line is too long to name columns", where=where, hint="is it a table of steps?")
    for mark in SEPARATORS:
        spaced = line.count(f"{mark} ") == line.count(mark)
        separator = f"{mark} " if spaced else mark
        if fits(_split(line, separator)):
            return separator
    for mark, words in _NO_SEPARATORS.items():
        if fits(_split(line, mark)):
            raise InputError(f"the columns are separated by {words}", where=where, hint="use commas or tabs")
    return max(SEPARATORS, key=lambda mark: len(_split(line, mark)))


def _split(line: str, separator: str) -> list[str]:
    return next(csv.reader([line.strip("\r\n")], delimiter=separator[0], skipinitialspace=separator.endswith(" ")), [])


def read_records(source: Source, needed: Sequence[str]) -> Generator[tuple[int, dict[str, str]]]:
    """Read the rows below the header of delimited text, by column."""
    table = open_table(source, lambda cells: needed[0] in cells)
    with errors_at(table.where):
        require_columns(needed, table.header, table.header)
    for line, cells in table.text_rows():
        yield line, dict(zip(table.header, cells, strict=True))


def first_cells(source: Source, delimiter: str = ",") -> list[str]:
    """The cells of the first line, to recognise a layout by."""
    line = source.head.removeprefix(_BOM).lstrip().split(b"\n", 1)[0]
    with suppress(UnicodeDecodeError, csv.Error):
        return next(csv.reader([line.decode().rstrip("\r")], delimiter=delimiter, strict=True), [])
    return []


# -- large text, by Arrow ---------------------------------------------------------------------------------------


def _read_csv_by_arrow(
    source: Source, header: tuple[str, ...], separator: str, wanted: Wanted
) -> Mapping[str, Column] | None:
    """The columns of a large text; None where Arrow would read it in another way than `csv`, or not at all."""
    import pyarrow
    from pyarrow import csv as arrow_csv

    if source.head.count(b"\n") < _FEW_LINES or len(set(header)) < len(header):
        return None
    with source.open_binary() as stream:
        content = stream.read()
        budget: UnpackingBudget | None = getattr(stream, "budget", None)
    if budget is not None:
        budget.require(rows=content.count(b"\n"))
    if b"\0" in content:
        return None
    begin = content.find(b"\n")
    is_quoted = content.find(b'"', begin) >= 0
    if is_quoted and not _quotes_enclose_cells(content[begin + 1 :], separator):
        return None
    names, numbers, times = wanted
    read = arrow_csv.ReadOptions(column_names=list(header), skip_rows=1)
    text = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    parse = arrow_csv.ParseOptions(
        delimiter=separator, quote_char='"' if is_quoted else False, newlines_in_values=is_quoted
    )
    for types in (dict.fromkeys(numbers, pyarrow.float64()), dict.fromkeys((*numbers, *times), text)):
        convert = arrow_csv.ConvertOptions(
            column_types={name: text for name in names if name not in (*numbers, *times)} | types,
            include_columns=list(names), null_values=[], strings_can_be_null=False,
        )  # fmt: skip
        with suppress(pyarrow.ArrowException, UnicodeError):
            table = arrow_csv.read_csv(pyarrow.BufferReader(content), read, parse, convert)
            columns = {name: arrow_column(table.column(name)) for name in names}
            if all(isinstance(columns[name], TimeColumn) or name in types for name in times):
                return columns
    return None


def _quotes_enclose_cells(content: bytes, separator: str) -> bool:
    """Whether all quotes enclose whole cells; Arrow would read others in its own way."""
    characters = np.frombuffer(content + b"\n", np.uint8)
    places = np.flatnonzero(characters == ord('"'))
    if len(places) % 2:
        return False
    before, after = characters[places[::2] - 1], characters[places[1::2] + 1]
    breaks = tuple(f"{separator}\r\n".encode())
    return bool(np.isin(before[int(places[0] == 0) :], breaks).all() and np.isin(after, breaks).all())


def arrow_column(column: pyarrow.ChunkedArray) -> Column:
    """A column of an Arrow table."""
    from pyarrow import types

    kind = column.type
    if types.is_decimal(kind):
        column, kind = (floats := column.cast("float64")), floats.type
    if types.is_string_view(kind):
        column, kind = (strings := column.cast("string")), strings.type
    if types.is_integer(kind) or types.is_floating(kind):
        missing = np.array(column.is_null().to_pylist(), np.bool_) if column.null_count else None
        return NumberColumn(_numbers(column.chunks, np.dtype(kind.to_pandas_dtype())), missing)
    if types.is_timestamp(kind) and not column.null_count:
        values = _numbers(column.chunks, np.dtype(np.int64)).astype(np.int64, copy=False)
        return TimeColumn(values // 1000 if kind.unit == "ns" else values * _MICROSECONDS[kind.unit])
    if types.is_string(kind) or types.is_large_string(kind):
        column = column.dictionary_encode()
    elif not types.is_dictionary(kind):
        return code_values(column.to_pylist())
    column = column.unify_dictionaries()
    values = column.chunk(0).dictionary.to_pylist() if column.num_chunks else []
    code = _numbers([chunk.indices for chunk in column.chunks], np.dtype(column.type.index_type.to_pandas_dtype()))
    if column.null_count:
        code = np.where(np.array(column.is_null().to_pylist(), np.bool_), len(values), code)
        values.append(None)
    return _compact(values, code.astype(np.int32, copy=False))


def _numbers(chunks: Sequence[pyarrow.Array], dtype: np.dtype[np.generic]) -> NDArray[np.number]:
    """The numbers in Arrow's arrays; `to_numpy` would import pandas, which takes a while."""
    arrays: list[NDArray[np.number]] = [
        np.frombuffer(chunk.buffers()[1], dtype, len(chunk), chunk.offset * dtype.itemsize)
        for chunk in chunks
        if len(chunk)
    ]
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype)


def _compact(values: list[object], code: NDArray[np.int32]) -> CodedColumn:
    """A column of values, each of which occurs: a dictionary of Arrow may hold others, and some twice."""
    used = np.bincount(code, minlength=len(values)) > 0
    if used.all() and len(set(values)) == len(values):
        return CodedColumn(values, code)
    seen: dict[object, int] = {}
    place = [seen.setdefault(value, len(seen)) if is_used else -1 for value, is_used in zip(values, used, strict=True)]
    return CodedColumn(list(seen), np.array(place, np.int32)[code])


# -- Excel, JSON Lines, Parquet, Arrow --------------------------------------------------------------------------


def _open_sheet(source: Source, fits: HeaderTest) -> Table:
    sheets = [(name, rows) for name, rows in source.sheets if rows]
    if not sheets:
        raise InputError("is empty", where=source.path, hint="the first row names the columns")
    name, ((line, header), *below) = next((sheet for sheet in sheets if fits(sheet[1][0][1])), sheets[0])
    header = header[: max(n for n, cell in enumerate(header, start=1) if cell)]
    note = f"of {len(sheets)} sheets, {short_repr(name)} is read" if len(sheets) > 1 else ""
    width = len(header)
    for number, cells in below:
        if any(cells[width:]):
            raise InputError(f"there are {width} columns, but the row has {len(cells)}", where=source.row(number))
    rows = [(number, [*cells, *[""] * width][:width]) for number, cells in below]

    def read(wanted: Wanted) -> Mapping[str, Column]:
        return _code_rows(rows, header, wanted)

    return Table(source, tuple(header), read, lambda: (n for n, _ in rows), source.row(line), "\t", note, lambda: rows)


def _open_json_lines(source: Source) -> Table:
    lines = array("q")
    values: dict[str, list[object]] = {}
    with closing(source.lines()) as texts:
        for number, line in enumerate(texts, start=1):
            if line.isspace():
                continue
            record = parse_json(line, source, number)
            if not isinstance(record, dict):
                raise InputError("the line is not a JSON object", where=source.row(number))
            for key in record.keys() - values.keys():
                values[key] = [ABSENT] * len(lines)
            for key, column in values.items():
                column.append(record.get(key, ABSENT))
            lines.append(number)
    header = tuple(sorted(values))  # as the keys come in any order

    def read(wanted: Wanted) -> Mapping[str, Column]:
        return {name: code_values(values[name]) for name in wanted.names}

    return Table(source, header, read, lambda: lines, source.row(1))


def _open_parquet(source: Source) -> Table:
    with source.open_binary() as stream, _arrow_errors(source):
        header = _check_parquet(source, stream).schema_arrow.names

    def read(wanted: Wanted) -> Mapping[str, Column]:
        with source.open_binary() as stream, _arrow_errors(source):
            table = _check_parquet(source, stream).read(columns=list(wanted.names))
            table.validate(full=True)  # a broken file may name texts that it does not have
            return {name: arrow_column(table.column(name)) for name in wanted.names}

    return Table(source, tuple(header), read, lambda: count(1), str(source.path))


def _check_parquet(source: Source, stream: IO[bytes]) -> ParquetFile:
    """Open a Parquet file, as far as its `UnpackingBudget` reaches."""
    from pyarrow import parquet

    file = parquet.ParquetFile(stream)
    texts = [column.name for column in file.schema if column.physical_type == "BYTE_ARRAY"]
    # Not the sizes of the columns: to ask for a broken column ends the process (pyarrow 26).
    groups = (file.metadata.row_group(group) for group in range(file.metadata.num_row_groups))
    unpacked = sum(group.total_byte_size for group in groups)
    source.unpacking_budget.require(rows=file.metadata.num_rows // COLUMN_ROWS_PER_ROW, unpacked=unpacked)
    # A text that is there often is held once.
    return parquet.ParquetFile(stream, metadata=file.metadata, read_dictionary=texts)


@contextmanager
def _arrow_errors(source: Source) -> Iterator[None]:
    """What pyarrow makes of broken files: its own errors, and those of values that Python cannot hold."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OverflowError, ValueError, OSError) as error:
        if isinstance(error, InputError):
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"is broken Parquet ({reason})", where=source.path) from None


def open_arrow(data: object, place: Source) -> Table:
    """The table of an object with `__arrow_c_stream__`; `place` is what errors name."""
    import pyarrow

    table = pyarrow.table(data)

    def read(wanted: Wanted) -> Mapping[str, Column]:
        return {name: arrow_column(table.column(name)) for name in wanted.names}

    return Table(place, tuple(table.column_names), read, lambda: count(1), str(place.path))

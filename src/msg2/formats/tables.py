"""Any table -> its columns: delimited text, Excel, JSON Lines, Parquet, and whatever has `__arrow_c_stream__`.

Arrow reads Parquet, data frames and large text files; Python's `csv` reads small text files (which saves the import of
pyarrow) and those that Arrow refuses.
"""

from __future__ import annotations

import csv
from array import array
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from typing import IO, TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, require
from msg2.formats.archives import COLUMN_ROWS_PER_ROW
from msg2.formats.json_files import parse_json
from msg2.formats.reading import MOST_BAD_ROWS, ReadNotes
from msg2.formats.source import Source
from msg2.text import short_repr

if TYPE_CHECKING:
    import pyarrow

SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
_NO_SEPARATORS = {" ": "spaces", ":": "colons"}
_BOM = b"\xef\xbb\xbf"
_BYTES_AT_ONCE = 1 << 16  # larger pieces are fresh memory each time, which takes longer than the search
_MOST_ROWS_ABOVE = 10  # such as a title, above the header in a sheet
_FEW_LINES = 3  # text with fewer lines is not given to Arrow: there is nothing to gain, or a line without an end

HeaderTest: TypeAlias = Callable[[Sequence[str]], bool]  # could these cells be a header? That decides the separator
Wanted: TypeAlias = Mapping[str, Literal["text", "number", "time"]]  # the columns to read, and what each should hold
ValueT_co = TypeVar("ValueT_co", covariant=True)
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True, eq=False)
class CodedColumn(Generic[ValueT_co]):
    """A column as its distinct values, None for an empty cell, and the index of each row's value among them."""

    values: Sequence[ValueT_co]
    code: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.code)

    def __getitem__(self, rows: slice | NDArray[np.bool_]) -> CodedColumn[ValueT_co]:
        """Some rows, with the values that occur in them."""
        code = self.code[rows]
        used = np.zeros(len(self.values), np.bool_)
        used[code] = True
        if used.all():
            return CodedColumn(self.values, code)
        rank = np.cumsum(used, dtype=np.int32) - np.int32(1)
        return CodedColumn([self.values[index] for index in np.flatnonzero(used).tolist()], rank[code])

    def cells(self) -> Iterator[ValueT_co]:
        """The value of each row."""
        return (self.values[code] for code in self.code.tolist())


Column: TypeAlias = "CodedColumn[object] | np.ma.MaskedArray[tuple[int, ...], np.dtype[Any]]"
"""An array has numbers, or points in time (`datetime64[us]`); empty cells are masked."""
Columns: TypeAlias = Mapping[str, Column]


class ColumnBuilder:
    """A coded column of the values of its rows, to which more can be added; 1, 1.0 and True are three values."""

    def __init__(self, values: Iterable[object] = ()) -> None:
        self._values: list[object] = []
        self._indices: dict[object, int] = {}
        self._code = array("i")
        for value in values:
            self.add(value)

    def add(self, value: object) -> None:
        """Add a cell."""
        key = value
        if not isinstance(value, str):
            key = (type(value), str(value) if isinstance(value, dict | list) else value)
        if (index := self._indices.get(key)) is None:
            index = self._indices[key] = len(self._values)
            self._values.append(value)
        self._code.append(index)

    def column(self) -> CodedColumn[object]:
        """The column so far."""
        return CodedColumn(self._values, np.array(self._code, np.int32))


def code_column(column: Column) -> CodedColumn[object]:
    """A column as its distinct values and their indices."""
    return column if isinstance(column, CodedColumn) else ColumnBuilder(column.tolist()).column()


# -- tables -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """An open table: its header, and functions that read the rest."""

    source: Source
    header: tuple[str, ...]
    read: Callable[[Wanted], Columns]
    where: str  # where the header stands, for errors
    lines: Callable[[], Iterable[int]] = lambda: count(1)  # where each row stands in the file
    separator: str = ""  # of the cells of a text, spaces after it included; empty where cells have types of their own
    assumptions: Sequence[str] = ()  # what was assumed of its layout, in words
    text_rows: Callable[[], Iterable[tuple[int, Sequence[str]]]] = tuple  # below the header, of a table of text

    def convert(self, columns: Columns, convert: Callable[[Columns], ResultT], notes: ReadNotes) -> ResultT:
        """Convert columns of this table without the rows that are wrong by themselves, if they are few.

        `convert` may blame the last row, since the first bad row is looked for.
        """
        try:
            return convert(columns)
        except InputError as error:
            fault, good = error, 0
        bad = len(next(iter(columns.values())))
        faults = self._find_faults(columns, convert, 0 if notes.options.strict else MOST_BAD_ROWS * bad)
        if faults:
            right = np.ones(bad, np.bool_)
            right[[*faults]] = False
            with suppress(InputError):  # what is still wrong is a matter of several rows
                converted = convert({role: column[right] for role, column in columns.items()})
                lines = islice(self.lines(), max(faults) + 1)
                places = {row: self.source.row(line) for row, line in enumerate(lines) if row in faults}
                where = self.source.path
                notes.set_aside([error.at(places.get(row, where)) for row, error in sorted(faults.items())], bad)
                return converted
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                convert({role: column[:middle] for role, column in columns.items()})
                good = middle
            except InputError as error:
                fault, bad = error, middle
        line = next(islice(self.lines(), max(bad - 1, 0), None), None)
        raise fault.at(self.source.path if line is None else self.source.row(line)) from None

    def _find_faults(
        self, columns: Columns, convert: Callable[[Columns], object], most: float
    ) -> dict[int, InputError]:
        """The rows that are wrong by themselves, with what is wrong; none where they are more than `most`."""
        faults: dict[int, InputError] = {}
        parts = [(0, columns)]
        while parts and len(faults) <= most:
            low, part = parts.pop()
            try:
                convert(part)
            except InputError as error:
                if (size := len(next(iter(part.values())))) == 1:
                    faults[low] = error
                for rows in (slice(0, size // 2), slice(size // 2, size)) if size > 1 else ():
                    parts.append((low + rows.start, {role: column[rows] for role, column in part.items()}))
        return {} if parts or len(faults) > most else faults


def open_table(source: Source, fits: HeaderTest) -> Table:
    """Open a table with a header; of a workbook, the first sheet that fits is taken."""
    openers = {"parquet": _open_parquet, "JSON lines": _open_json_lines, "workbook": _open_sheet}
    return openers.get(source.kind, _open_text)(source, fits)


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
    hint = "the first line names the columns: video,step or video,step,start,end"
    require(first, "is empty", where=source.path, hint=hint)
    where = source.row(number)
    separator = _choose_separator(first, fits, where)
    with closing(read_rows(source, separator, 0, number)) as cells:
        header = tuple(next(cells)[1])
    rows = partial(read_rows, source, separator, len(header), number, header=number)

    def read(wanted: Wanted) -> Columns:
        columns = None
        if not source.is_small and number == 1 and len(separator) == 1:
            columns = _read_csv_by_arrow(source, header, separator, wanted)
        return columns or _code_rows(rows(), header, wanted)

    assumptions = []
    if separator not in (",", "\t"):
        spaces = " and spaces" * (len(separator) > 1)
        assumptions = [f"the columns are separated by {SEPARATORS[separator[0]]}{spaces}"]
    return Table(source, header, read, where, lambda: (line for line, _ in rows()), separator, assumptions, rows)


def _code_rows(rows: Iterable[tuple[int, Sequence[str]]], header: Sequence[str], wanted: Wanted) -> dict[str, Column]:
    """The wanted columns of rows of text."""
    columns = {name: ColumnBuilder() for name in wanted}
    adders = [(header.index(name), builder.add) for name, builder in columns.items()]
    for _, cells in rows:
        for index, add in adders:
            add(cells[index])
    return {name: builder.column() for name, builder in columns.items()}


def read_rows(
    source: Source, separator: str, width: int | None, first: int = 1, *, header: int = 0
) -> Generator[tuple[int, list[str]]]:
    """Read the rows of delimited text, each with its line; `width` cells each (0: as the first row, None: any)."""
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
                if cells and line != header:
                    yield line, cells
                line = table.line_num + first  # a row of quoted newlines has several lines; its first one names it
        except csv.Error as error:
            hint = f"is a quote not closed? fields have at most {csv.field_size_limit():,} characters"
            raise InputError(f"the row cannot be read ({error})", where=source.row(line), hint=hint) from None


def _choose_separator(line: str, fits: HeaderTest, where: str) -> str:
    """The first separator whose cells fit, with a space where one follows it everywhere; else that of most cells."""
    if len(line) > csv.field_size_limit():
        raise InputError("the first line is too long to name columns", where=where, hint="is it a table of steps?")
    widths: dict[str, int] = {}
    for mark, words in (SEPARATORS | _NO_SEPARATORS).items():
        is_spaced = line.count(f"{mark} ") == line.count(mark)
        cells = next(csv.reader([line.strip("\r\n")], delimiter=mark, skipinitialspace=is_spaced), [])
        if fits(cells):
            if mark in _NO_SEPARATORS:
                raise InputError(f"the columns are separated by {words}", where=where, hint="use commas or tabs")
            return f"{mark} " if is_spaced else mark
        widths[mark] = len(cells)
    return max(SEPARATORS, key=widths.__getitem__)


def read_records(source: Source, known: str) -> Generator[tuple[int, dict[str, str]]]:
    """Read the rows below the header of delimited text, by column; `known` is one of its columns."""
    table = open_table(source, lambda cells: known in cells)
    for line, cells in table.text_rows():
        yield line, dict(zip(table.header, cells, strict=True))


def first_cells(source: Source, delimiter: str = ",") -> list[str]:
    """The cells of the first line, to recognise a layout by."""
    line = source.head.removeprefix(_BOM).lstrip().split(b"\n", 1)[0]
    with suppress(UnicodeDecodeError, csv.Error):
        return next(csv.reader([line.decode().rstrip("\r")], delimiter=delimiter, strict=True), [])
    return []


def _read_csv_by_arrow(source: Source, header: tuple[str, ...], separator: str, wanted: Wanted) -> Columns | None:
    """The columns of a large text; None where Arrow would read it in another way than `csv`, or not at all."""
    import pyarrow
    from pyarrow import csv as arrow_csv

    if source.head.count(b"\n") < _FEW_LINES or len(set(header)) < len(header):
        return None
    with source.open_binary() as stream:
        if (is_quoted := _are_cells_quoted(stream, separator)) is None:
            return None
    # One thread: several spend more time on merging their dictionaries than they save.
    read = arrow_csv.ReadOptions(column_names=list(header), skip_rows=1, use_threads=False)
    parse = arrow_csv.ParseOptions(
        delimiter=separator, quote_char='"' if is_quoted else False, newlines_in_values=is_quoted
    )
    text = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    types = {name: pyarrow.float64() if kind == "number" else text for name, kind in wanted.items() if kind != "time"}
    for column_types in (types, dict.fromkeys(wanted, text)):  # Arrow recognises times, or they are read as text
        convert = arrow_csv.ConvertOptions(
            column_types=column_types, include_columns=list(wanted), null_values=[], strings_can_be_null=False
        )
        with suppress(pyarrow.ArrowException, UnicodeError), source.open_binary() as stream:
            table = arrow_csv.read_csv(stream, read, parse, convert)
            columns = {name: arrow_column(table.column(name)) for name in wanted}
            inferred = [columns[name] for name in wanted if name not in column_types]
            if not any(isinstance(column, CodedColumn) or column.dtype.kind != "M" for column in inferred):
                return columns
    return None


def _are_cells_quoted(stream: IO[bytes], separator: str) -> bool | None:
    """Whether cells of a text are in quotes; None where Arrow would read some character in its own way."""
    is_break = np.zeros(256, np.bool_)
    is_break[list(f"{separator}\r\n".encode())] = True
    quote_count, row_count, budget = 0, 0, getattr(stream, "budget", None)
    stream.readline()  # the header
    while part := stream.read(_BYTES_AT_ONCE) + stream.readline():
        if budget is not None:
            row_count += part.count(b"\n")
            budget.require(rows=row_count)
        if b"\0" in part:
            return None
        if b'"' not in part:
            continue
        characters = np.frombuffer(b"\n" + part + b"\n", np.uint8)
        quotes = np.flatnonzero(characters == ord('"'))
        opening, closing = quotes[quote_count % 2 :: 2], quotes[1 - quote_count % 2 :: 2]
        if not is_break[characters[opening - 1]].all() or not is_break[characters[closing + 1]].all():
            return None  # a quote within a cell
        quote_count += len(quotes)
    return None if quote_count % 2 else quote_count > 0


def arrow_column(column: pyarrow.ChunkedArray) -> Column:
    """A column of an Arrow table."""
    import pyarrow
    from pyarrow import types

    if types.is_decimal(column.type) or types.is_string_view(column.type):
        column = column.cast("float64" if types.is_decimal(column.type) else "string")
    kind = column.type
    missing = np.array(column.is_null().to_pylist(), np.bool_) if column.null_count else np.ma.nomask
    if types.is_integer(kind) or types.is_floating(kind):
        return np.ma.array(_numbers(column.combine_chunks(), np.dtype(kind.to_pandas_dtype())), mask=missing)
    if types.is_timestamp(kind):
        column = column.cast(pyarrow.timestamp("us", kind.tz), safe=False)
        return np.ma.array(_numbers(column.combine_chunks(), np.dtype("datetime64[us]")), mask=missing)
    if types.is_string(kind) or types.is_large_string(kind):
        column = column.dictionary_encode()
    elif not types.is_dictionary(kind):
        return ColumnBuilder(column.to_pylist()).column()
    coded = column.unify_dictionaries().combine_chunks()
    code = _numbers(coded.indices, np.dtype(coded.type.index_type.to_pandas_dtype()))
    distinct = coded.dictionary.dictionary_encode(null_encoding="encode")
    values = distinct.dictionary.to_pylist()
    if len(values) < len(distinct):  # some were there twice
        code = _numbers(distinct.indices, np.dtype(np.int32))[code]
    if column.null_count:
        code = np.where(missing, len(values), code)
        values.append(None)
    return CodedColumn(values, code.astype(np.int32, copy=False))[:]  # some may never be used


def _numbers(array: pyarrow.Array, dtype: np.dtype[np.generic]) -> NDArray[np.number]:
    """The numbers in an array of Arrow's; `to_numpy` would import pandas, which takes a while."""
    buffer = array.buffers()[1] if len(array) else b""
    return np.frombuffer(buffer, dtype, len(array), array.offset * dtype.itemsize if len(array) else 0)


# -- Excel, JSON Lines, Parquet ---------------------------------------------------------------------------------


def _open_sheet(source: Source, fits: HeaderTest) -> Table:
    sheets = [(name, rows) for name, rows in source.sheets if rows]
    require(sheets, "is empty", where=source.path, hint="the first row names the columns")
    begins = [(name, rows[above:]) for name, rows in sheets for above in range(min(len(rows), _MOST_ROWS_ABOVE))]
    tables = [each for each in begins if sum(map(bool, each[1][0][1])) > 1] or begins  # a title is in one cell
    name, ((line, header), *below) = next((each for each in tables if fits(each[1][0][1])), tables[0])
    header = header[: max(n for n, cell in enumerate(header, start=1) if cell)]
    width = len(header)
    for number, cells in below:
        if any(cells[width:]):
            raise InputError(f"there are {width} columns, but the row has {len(cells)}", where=source.row(number))
    rows = [(number, [*cells, *[""] * width][:width]) for number, cells in below]
    read = partial(_code_rows, rows, header)
    assumptions = [f"of {len(sheets)} sheets, {short_repr(name)} is read"] if len(sheets) > 1 else []
    if line != dict(sheets)[name][0][0]:
        assumptions.append(f"what stands above row {line} is no part of the table")
    where, lines = source.row(line), [number for number, _ in rows]
    return Table(source, tuple(header), read, where, lambda: lines, "\t", assumptions, lambda: rows)


def _open_json_lines(source: Source, fits: HeaderTest) -> Table:
    lines = array("q")
    columns: dict[str, ColumnBuilder] = {}
    with closing(source.lines()) as texts:
        for number, line in enumerate(texts, start=1):
            if line.isspace():
                continue
            record = parse_json(line, source, number)
            if not isinstance(record, dict):
                raise InputError("the line is not a JSON object", where=source.row(number))
            columns |= {key: ColumnBuilder([None] * len(lines)) for key in record.keys() - columns.keys()}
            for key, builder in columns.items():
                builder.add(record.get(key))
            lines.append(number)

    def read(wanted: Wanted) -> Columns:
        return {name: columns[name].column() for name in wanted}

    return Table(source, tuple(sorted(columns)), read, source.row(1), lambda: lines)  # keys come in any order


def _open_parquet(source: Source, fits: HeaderTest) -> Table:
    header, _ = _read_parquet(source, {})
    return Table(source, tuple(header), lambda wanted: _read_parquet(source, wanted)[1], str(source.path))


def _read_parquet(source: Source, wanted: Wanted) -> tuple[list[str], dict[str, Column]]:
    """The names of all columns of a Parquet file, and the wanted columns, as far as its `UnpackingBudget` reaches."""
    import pyarrow
    from pyarrow import parquet

    with source.open_binary() as stream:
        try:
            file = parquet.ParquetFile(stream)
            plain = [column for column in file.schema if column.path == column.name]  # what is nested is not read
            texts = [column.name for column in plain if column.physical_type == "BYTE_ARRAY"]
            width = sum(column.length for column in plain if column.name in wanted and column.length > 0)
            # Not the sizes of the columns: to ask for a broken column ends the process (pyarrow 26).
            groups = (file.metadata.row_group(group) for group in range(file.metadata.num_row_groups))
            unpacked = sum(group.total_byte_size for group in groups) + width * file.metadata.num_rows
            source.unpacking_budget.require(rows=file.metadata.num_rows // COLUMN_ROWS_PER_ROW, unpacked=unpacked)
            # A text that is there often is held once.
            file = parquet.ParquetFile(stream, metadata=file.metadata, read_dictionary=texts)
            table = file.read(columns=list(wanted))
            table.validate(full=True)  # a broken file may name texts that it does not have
            return file.schema_arrow.names, {name: arrow_column(table.column(name)) for name in wanted}
        except (pyarrow.ArrowException, OverflowError, ValueError, OSError) as error:
            if isinstance(error, InputError):
                raise
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise InputError(f"is broken Parquet ({reason})", where=source.path) from None

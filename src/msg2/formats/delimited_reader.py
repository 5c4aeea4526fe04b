"""Delimited text: rows of cells, separated by commas, tabs, semicolons or bars, quoted as spreadsheets do it."""

from __future__ import annotations

import csv
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

from msg2.errors import InputError
from msg2.formats.source import Source
from msg2.formats.spreadsheet import SheetRows, read_sheets
from msg2.text import short_repr

SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
_NO_SEPARATORS = {" ": "spaces", ":": "colons"}

COLUMNS_HINT = 'say which is which: --columns "video=…,step=…", of an event log "case=…,activity=…,time=…"'

Fits: TypeAlias = Callable[[Sequence[str]], bool]
"""Whether some cells could be the header of a table: the separator is the one that makes them so."""


@dataclass(frozen=True, slots=True)
class CellTable:
    """A table of text: its header, on a line of the file, and the rows below it, each with its line."""

    header: tuple[str, ...]
    line: int
    separator: str
    """What separates the cells, spaces after it included."""
    rows: Iterator[tuple[int, list[str]]]
    sheet: str = ""
    """Which sheet of several it is, in words."""

    @property
    def assumptions(self) -> list[str]:
        """What was assumed of its layout, in words."""
        if self.separator in (",", "\t"):
            return [self.sheet] * bool(self.sheet)
        return [
            f"the columns are separated by {SEPARATORS[self.separator[0]]}{' and spaces' * (len(self.separator) > 1)}"
        ]


@contextmanager
def open_table(source: Source, fits: Fits) -> Iterator[CellTable]:
    """Open a table with a header; blank lines may come first. Of a workbook, the first sheet that fits is taken."""
    if source.is_spreadsheet:
        yield _open_sheet(source, fits)
        return
    with closing(source.lines()) as lines:
        number, first = next(((n, line) for n, line in enumerate(lines, start=1) if line.strip()), (0, ""))
        if not first:
            hint = "the first line names the columns: video,step or video,step,start,end"
            raise InputError("is empty", where=source.path, hint=hint)
        separator = _choose_separator(first, fits, source.row(number))
        blank = ["\n"] * (number - 1)  # so that lines are still counted as an editor counts them
        dialect: dict[str, Any] = {"delimiter": separator[0], "skipinitialspace": separator.endswith(" ")}
        table = csv.reader(chain(blank, [first], lines), strict=True, **dialect)
        header = next(cells for cells in read_cells(source, table) if cells)
        yield CellTable(tuple(header), table.line_num, separator, number_rows(source, table, len(header)))


def _open_sheet(source: Source, fits: Fits) -> CellTable:
    sheets = [(name, rows) for name, rows in read_sheets(source) if rows]
    if not sheets:
        raise InputError("is empty", where=source.path, hint="the first row names the columns")
    name, rows = next((sheet for sheet in sheets if fits(sheet[1][0][1])), sheets[0])
    line, header = rows[0]
    note = f"of {len(sheets)} sheets, {short_repr(name)} is read" if len(sheets) > 1 else ""
    return CellTable(tuple(header), line, "\t", _sheet_rows(source, rows[1:], len(header)), note)


def _sheet_rows(source: Source, rows: SheetRows, width: int) -> Iterator[tuple[int, list[str]]]:
    for line, cells in rows:
        if any(cells[width:]):
            raise InputError(f"there are {width} columns, but the row has {len(cells)}", where=source.row(line))
        yield line, (cells + [""] * width)[:width]


def read_cells(source: Source, table: Any) -> Iterator[list[str]]:
    """The rows of a `csv.reader`; its errors become InputErrors that name the row."""
    line = table.line_num
    try:
        for cells in table:
            line = table.line_num
            yield cells
    except csv.Error as error:
        hint = f"is a quote not closed? fields have at most {csv.field_size_limit():,} characters"
        raise InputError(f"the row cannot be read ({error})", where=source.row(line + 1), hint=hint) from None


def number_rows(source: Source, table: Any, width: int) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table, each with the line on which it begins; blank lines are skipped."""
    line = table.line_num + 1
    for cells in read_cells(source, table):
        if cells and len(cells) != width:
            what = f"there are {width} columns, but the row has {len(cells)}"
            raise InputError(what, where=source.row(line), hint="put fields that hold the separator in quotes")
        if cells:
            yield line, cells
        line = table.line_num + 1  # a row of quoted newlines has several lines; its first one names it


def read_records(source: Source, needed: Sequence[str]) -> Generator[tuple[int, dict[str, str]]]:
    """Read the rows below the header, by column."""
    with open_table(source, lambda cells: needed[0] in cells) as table:
        for name in needed:
            if name not in table.header:
                raise missing_column_error(name, table.header, source.row(table.line))
        for line, cells in table.rows:
            yield line, dict(zip(table.header, cells, strict=True))


def read_headerless_rows(source: Source, delimiter: str, width: int) -> Generator[tuple[int, list[str]]]:
    """Read the rows of a table without a header."""
    with closing(source.lines()) as lines:
        yield from number_rows(source, csv.reader(lines, delimiter=delimiter, strict=True), width)


def first_cells(source: Source, delimiter: str = ",") -> list[str]:
    """The cells of the first line, to recognise a layout by."""
    line = source.head.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0]
    with suppress(UnicodeDecodeError, csv.Error):
        return next(csv.reader([line.decode().rstrip("\r")], delimiter=delimiter, strict=True), [])
    return []


def missing_column_error(name: str, header: Sequence[str], where: str) -> InputError:
    """The error for a column that is not there."""
    columns = ", ".join(short_repr(column, 30) for column in header[:10])
    hint = f"the columns are {columns}; {COLUMNS_HINT}"
    return InputError(f"the column {name!r} is missing", where=where, hint=hint)


def _choose_separator(line: str, fits: Fits, where: str) -> str:
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

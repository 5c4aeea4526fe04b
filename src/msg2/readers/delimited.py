"""Delimited text: rows of cells, separated by commas or tabs, quoted as spreadsheets do it."""

from __future__ import annotations

import csv
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain
from typing import Any

from msg2.errors import InputError, shortened
from msg2.readers.sources import Source

_SEPARATORS = {";": "semicolons", "|": "bars", " ": "spaces", ":": "colons"}


@contextmanager
def opened(source: Source, key: str = "step") -> Iterator[tuple[list[str], Any]]:
    """The column names and the `csv.reader` of the rows below them; blank lines may come first.

    `key` is a column that the table should have: the separator is the one that makes it a column.
    """
    with closing(source.lines()) as lines:
        number, first = next(((n, line) for n, line in enumerate(lines, start=1) if line.strip()), (0, ""))
        if not first:
            hint = "the first line names the columns: video,step or video,step,start,end"
            raise InputError("is empty", where=source.path, hint=hint)
        delimiter = _delimiter(first, key, source.row(number))
        blank = ["\n"] * (number - 1)  # so that lines are still counted as an editor counts them
        table = csv.reader(chain(blank, [first], lines), delimiter=delimiter, strict=True)
        yield next(cells for cells in readable(source, table) if cells), table


def readable(source: Source, table: Any) -> Iterator[list[str]]:
    """The rows of a `csv.reader`, its complaints said in our way."""
    line = table.line_num
    try:
        for cells in table:
            line = table.line_num
            yield cells
    except csv.Error as error:
        hint = f"is a quote not closed? fields have at most {csv.field_size_limit():,} characters"
        raise InputError(f"the row cannot be read ({error})", where=source.row(line + 1), hint=hint) from None


def lines_of_cells(source: Source, table: Any, width: int) -> Iterator[tuple[int, list[str]]]:
    """The line on which each row begins, and its `width` cells; blank lines are passed over."""
    line = table.line_num + 1
    for cells in readable(source, table):
        if cells and len(cells) != width:
            what = f"there are {width} columns, but the row has {len(cells)}"
            raise InputError(what, where=source.row(line), hint="put fields that hold the separator in quotes")
        if cells:
            yield line, cells
        line = table.line_num + 1  # a row of quoted newlines has several lines; its first one names it


def records(source: Source, needed: Sequence[str]) -> Generator[tuple[int, dict[str, str]]]:
    """The rows below the header, by column, with the line on which each begins; the columns `needed` are there."""
    with opened(source, needed[0]) as (header, table):
        for name in needed:
            if name not in header:
                hint = "the columns are " + ", ".join(shortened(column, 30) for column in header[:10])
                raise InputError(f"the column {name!r} is missing", where=source.row(table.line_num), hint=hint)
        for line, cells in lines_of_cells(source, table, len(header)):
            yield line, dict(zip(header, cells, strict=True))


def bare_rows(source: Source, delimiter: str, width: int) -> Generator[tuple[int, list[str]]]:
    """The rows of a table without a header."""
    with closing(source.lines()) as lines:
        yield from lines_of_cells(source, csv.reader(lines, delimiter=delimiter, strict=True), width)


def first_cells(source: Source, delimiter: str = ",") -> list[str]:
    """The cells of the first line, to recognise a layout by; none where that is no line of text."""
    line = source.head.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0]
    with suppress(UnicodeDecodeError, csv.Error):
        return next(csv.reader([line.decode().rstrip("\r")], delimiter=delimiter, strict=True), [])
    return []


def plain(column: str) -> str:
    """A column name as it was probably meant."""
    return column.strip(' "').lower()


def _delimiter(line: str, key: str, where: str) -> str:
    """Comma or tab, whichever makes `key`, however it is written, a column; else whichever makes more columns."""
    if len(line) > csv.field_size_limit():
        raise InputError("the first line is too long to name columns", where=where, hint="is it a table of steps?")
    cells = {mark: next(csv.reader([line], delimiter=mark)) for mark in (",", "\t", *_SEPARATORS)}
    for mark in (",", "\t"):
        if key in map(plain, cells[mark]):
            return mark
    for mark, words in _SEPARATORS.items():
        if key in map(plain, cells[mark]):
            raise InputError(f"the columns are separated by {words}", where=where, hint="use commas or tabs")
    return "\t" if len(cells["\t"]) > len(cells[","]) else ","

"""Delimited text: rows of cells, separated by commas or tabs, quoted as spreadsheets do it."""

from __future__ import annotations

import csv
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain
from typing import Any

from msg2.errors import InputError
from msg2.formats.source import Source
from msg2.text import short_repr

_SEPARATORS = {";": "semicolons", "|": "bars", " ": "spaces", ":": "colons"}


@contextmanager
def open_table(source: Source, key: str = "step") -> Iterator[tuple[list[str], Any]]:
    """Open a table with a header; blank lines may come first.

    Parameters
    ----------
    source : Source
        The file.
    key : str
        A column that the table should have: the separator is the one that makes it a column.

    Yields
    ------
    tuple of (list of str, csv.reader)
        The column names, and the rows below them.

    Raises
    ------
    InputError
        Where the file is empty, or its columns are separated by something else than commas or tabs.
    """
    with closing(source.lines()) as lines:
        number, first = next(((n, line) for n, line in enumerate(lines, start=1) if line.strip()), (0, ""))
        if not first:
            hint = "the first line names the columns: video,step or video,step,start,end"
            raise InputError("is empty", where=source.path, hint=hint)
        delimiter = _delimiter(first, key, source.row(number))
        blank = ["\n"] * (number - 1)  # so that lines are still counted as an editor counts them
        table = csv.reader(chain(blank, [first], lines), delimiter=delimiter, strict=True)
        yield next(cells for cells in read_cells(source, table) if cells), table


def read_cells(source: Source, table: Any) -> Iterator[list[str]]:
    """The rows of a `csv.reader`; its errors become InputErrors that name the row.

    Parameters
    ----------
    source : Source
        The file, for errors.
    table : csv.reader
        Its rows.

    Yields
    ------
    list of str
        The cells of a row.
    """
    line = table.line_num
    try:
        for cells in table:
            line = table.line_num
            yield cells
    except csv.Error as error:
        hint = f"is a quote not closed? fields have at most {csv.field_size_limit():,} characters"
        raise InputError(f"the row cannot be read ({error})", where=source.row(line + 1), hint=hint) from None


def number_rows(source: Source, table: Any, width: int) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table, each with the line on which it begins; blank lines are skipped.

    Parameters
    ----------
    source : Source
        The file, for errors.
    table : csv.reader
        Its rows.
    width : int
        How many cells a row must have.

    Yields
    ------
    tuple of (int, list of str)
        Line, from 1, and cells.

    Raises
    ------
    InputError
        Where a row has more or fewer cells, or cannot be read.
    """
    line = table.line_num + 1
    for cells in read_cells(source, table):
        if cells and len(cells) != width:
            what = f"there are {width} columns, but the row has {len(cells)}"
            raise InputError(what, where=source.row(line), hint="put fields that hold the separator in quotes")
        if cells:
            yield line, cells
        line = table.line_num + 1  # a row of quoted newlines has several lines; its first one names it


def read_records(source: Source, needed: Sequence[str]) -> Generator[tuple[int, dict[str, str]]]:
    """Read the rows below the header, by column.

    Parameters
    ----------
    source : Source
        The file.
    needed : sequence of str
        Columns that must be there.

    Yields
    ------
    tuple of (int, dict)
        The line on which the row begins, and column -> cell.

    Raises
    ------
    InputError
        Where a column is missing or a row cannot be read.
    """
    with open_table(source, needed[0]) as (header, table):
        for name in needed:
            if name not in header:
                raise missing_column_error(name, header, source.row(table.line_num))
        for line, cells in number_rows(source, table, len(header)):
            yield line, dict(zip(header, cells, strict=True))


def read_headerless_rows(source: Source, delimiter: str, width: int) -> Generator[tuple[int, list[str]]]:
    """Read the rows of a table without a header.

    Parameters
    ----------
    source : Source
        The file.
    delimiter : str
        What separates the cells.
    width : int
        How many cells a row must have.

    Yields
    ------
    tuple of (int, list of str)
        The line on which the row begins, and its cells.
    """
    with closing(source.lines()) as lines:
        yield from number_rows(source, csv.reader(lines, delimiter=delimiter, strict=True), width)


def first_cells(source: Source, delimiter: str = ",") -> list[str]:
    """The cells of the first line, to recognise a layout by.

    Parameters
    ----------
    source : Source
        The file.
    delimiter : str
        What separates the cells.

    Returns
    -------
    list of str
        None where the first line is no text.
    """
    line = source.head.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0]
    with suppress(UnicodeDecodeError, csv.Error):
        return next(csv.reader([line.decode().rstrip("\r")], delimiter=delimiter, strict=True), [])
    return []


def _normalize_column(column: str) -> str:
    """A column name as it was probably meant."""
    return column.strip(' "').lower()


def missing_column_error(name: str, header: Sequence[str], where: str) -> InputError:
    """The error for a column that is not there, or that only looks as if it were.

    Parameters
    ----------
    name : str
        The column.
    header : sequence of str
        The columns that there are.
    where : str
        File and row of the header.

    Returns
    -------
    InputError
        It is not raised yet.
    """
    meant = next((column for column in header if _normalize_column(column) == name), "")
    if meant != meant.strip(" "):
        what = f"the column name {short_repr(meant)} {'begins' if meant.startswith(' ') else 'ends'} with a space"
        return InputError(what, where=where, hint=f"write {name!r}")
    hint = "the columns are " + ", ".join(short_repr(column, 30) for column in header[:10])
    if meant.lower() == name:
        hint = f"there is {meant!r}, write it in lower case: {name!r}"
    return InputError(f"the column {name!r} is missing", where=where, hint=hint)


def _delimiter(line: str, key: str, where: str) -> str:
    """Comma or tab, whichever makes `key`, however it is written, a column; else whichever makes more columns."""
    if len(line) > csv.field_size_limit():
        raise InputError("the first line is too long to name columns", where=where, hint="is it a table of steps?")
    cells = {mark: next(csv.reader([line], delimiter=mark)) for mark in (",", "\t", *_SEPARATORS)}
    for mark in (",", "\t"):
        if key in map(_normalize_column, cells[mark]):
            return mark
    for mark, words in _SEPARATORS.items():
        if key in map(_normalize_column, cells[mark]):
            raise InputError(f"the columns are separated by {words}", where=where, hint="use commas or tabs")
    return "\t" if len(cells["\t"]) > len(cells[","]) else ","

"""Tables of steps and event logs read in columns, by pyarrow: the fast way for plain CSV, TSV and Parquet files.

It reads what leaves nothing open (names, and times in seconds or ISO 8601, all as they should be) and gives the same
tasks as reading row by row, to the byte. Of everything else it says that it is not plain, and `table_rows` or
`event_csv` reads it, with its notes and its errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from csv import Error as CsvError
from csv import reader
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msg2.formats.column_roles import ColumnMapping
from msg2.formats.reading import ReadResult
from msg2.formats.source import Source, UnpackingBudget
from msg2.formats.table_rows import is_in_milliseconds, open_parquet
from msg2.task import LabelColumns, Task
from msg2.text import name_fault

_NAMES, _TIMES = ("task", "video", "step"), ("start", "end")
_BOM = b"\xef\xbb\xbf"
_FEW_LINES = 3
_LOG_ROLES = {"case": "video", "activity": "step", "time": "time"}
"""What the columns of a log are in a table of steps."""
_MICROSECOND = {"s": 1_000_000, "ms": 1_000, "us": 1}


class NotPlainError(Exception):
    """The file has to be read row by row."""


@dataclass(frozen=True, slots=True, eq=False)
class CodedNames:
    """A column of names: the distinct ones, sorted, and which of them each row has."""

    names: tuple[str, ...]
    code: NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class TableColumns:
    """The rows of a table in the order of the file; `start` and `end` are None where it has no times."""

    task: CodedNames
    video: CodedNames
    step: CodedNames
    start: NDArray[np.float64] | None
    end: NDArray[np.float64] | None


def read_plain_tables(files: Sequence[tuple[Source, ColumnMapping, str]]) -> ReadResult:
    """Read tables that have a column for the video."""
    parts = [(file, _read_columns(file, mapping.columns, task)) for file, mapping, task in files]
    unsorted = {file.path.name: _count_unsorted(columns) for file, columns in parts}
    tasks: dict[str, list[TableColumns]] = {}
    for _, columns in parts:
        for name, own in _split_tasks(columns):
            tasks.setdefault(name, []).append(own)
    return ReadResult([_make_task(name, own) for name, own in tasks.items()], unsorted)


def read_plain_logs(files: Sequence[tuple[Source, ColumnMapping, str]]) -> ReadResult:
    """Read event logs whose events are instants."""
    parts = [(file, task, _read_log(file, mapping.columns, task)) for file, mapping, task in files]
    unsorted = {file.path.name: _count_unsorted(columns) for file, _, columns in parts}
    tasks: dict[str, list[TableColumns]] = {}
    for _, task, columns in parts:
        tasks.setdefault(task, []).append(columns)
    return ReadResult([_make_log_task(name, own) for name, own in tasks.items()], unsorted)


def _read_log(file: Source, columns: Mapping[str, str], task: str) -> TableColumns:
    if not columns.keys() <= _LOG_ROLES.keys() or file.head.startswith(b"PAR1"):
        raise NotPlainError
    table, names = _read_arrow(file, {_LOG_ROLES[role]: name for role, name in columns.items()})
    time = _microseconds(table.column(columns["time"])) if "time" in columns else None
    every = CodedNames((task,), np.zeros(table.num_rows, np.int32))
    return TableColumns(every, names["video"], names["step"], time, time)


def _make_log_task(name: str, parts: Sequence[TableColumns]) -> Task:
    """The task of a log; with times, a case may go on from file to file."""
    task = _make_task(name, parts, apart=parts[0].start is None)
    if parts[0].start is None:
        return Task.from_columns(name, task.steps, task.columns, "skipped")
    found = task.columns
    first = np.searchsorted(found.video, np.arange(len(found.videos)))
    seconds = (found.start - found.start[first][found.video]) / 1e6
    columns = LabelColumns(found.videos, found.video, found.step, seconds, seconds)
    return Task.from_columns(name, task.steps, columns, "skipped")


def _microseconds(column: Any) -> NDArray[np.float64]:
    """Points in time since 1970; up to the year 2255 they are exact."""
    import pyarrow

    if column.null_count or not pyarrow.types.is_timestamp(column.type):
        raise NotPlainError
    values = _values(column.chunks, pyarrow.int64())
    if column.type.unit == "ns":
        if (values % 1000).any():
            raise NotPlainError
        values = values // 1000
    else:
        values = values * _MICROSECOND[column.type.unit]
    if np.abs(values).max(initial=0) >= 1 << 53:
        raise NotPlainError
    return values.astype(np.float64)


def _read_columns(file: Source, columns: Mapping[str, str], task: str) -> TableColumns:
    """The columns of one file; `columns` says what each role is called, `task` what no column does."""
    if not {"video", "step"} <= columns.keys() <= {*_NAMES, *_TIMES} or ("start" in columns) != ("end" in columns):
        raise NotPlainError
    if any(is_in_milliseconds(columns[role]) for role in _TIMES if role in columns):
        raise NotPlainError
    table, names = _read_arrow(file, columns)
    times = {role: _numbers(table.column(columns[role])) for role in _TIMES if role in columns}
    if times:
        start, end = times["start"], times["end"]
        if not (np.isfinite(end).all() and (start >= 0).all() and (end >= start).all()):
            raise NotPlainError
    names.setdefault("task", CodedNames((task,), np.zeros(table.num_rows, np.int32)))
    return TableColumns(names["task"], names["video"], names["step"], times.get("start"), times.get("end"))


def _read_arrow(file: Source, columns: Mapping[str, str]) -> tuple[Any, dict[str, CodedNames]]:
    """The columns of a file as pyarrow's table, and those of names; `columns` says what each role is called."""
    try:
        import pyarrow
    except ImportError:
        raise NotPlainError from None
    try:
        read = _read_parquet if file.head.startswith(b"PAR1") else _read_csv
        table, names = read(file, columns)
    except (pyarrow.ArrowException, CsvError, OverflowError, UnicodeError):
        raise NotPlainError from None  # who reads row by row says what is wrong, and where
    if not table.num_rows or any(name_fault(name) for coded in names.values() for name in coded.names):
        raise NotPlainError
    return table, names


def _read_parquet(file: Source, columns: Mapping[str, str]) -> tuple[Any, dict[str, CodedNames]]:
    with file.open_binary() as stream:
        table = open_parquet(file, stream, in_columns=True).read(columns=list(columns.values()))
    table.validate(full=True)  # a broken file may name texts that it does not have
    return table, _code_names(table, columns)


def _read_csv(file: Source, columns: Mapping[str, str]) -> tuple[Any, dict[str, CodedNames]]:
    import pyarrow
    from pyarrow import csv

    first, *others = file.head.removeprefix(_BOM).split(b"\n", _FEW_LINES)
    if len(others) < _FEW_LINES:
        raise NotPlainError  # there is nothing to gain, or a line without an end
    separator = "\t" if b"\t" in first and b"," not in first else ","
    header = next(reader([first.decode()], delimiter=separator), [])
    if len(set(header)) < len(header) or not set(columns.values()) <= set(header):
        raise NotPlainError  # separated by something else
    text = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    kinds = {
        column: text if role in _NAMES else pyarrow.float64() for role, column in columns.items() if role != "time"
    }
    convert = csv.ConvertOptions(
        column_types=kinds, include_columns=list(columns.values()), null_values=[], strings_can_be_null=False
    )
    with file.open_binary() as stream:
        content = stream.read()
        budget: UnpackingBudget | None = getattr(stream, "budget", None)
    if budget is not None:
        budget.require(rows=content.count(b"\n"))
    if b"\0" in content:
        raise NotPlainError
    read = partial(
        csv.read_csv,
        convert_options=convert,
        read_options=csv.ReadOptions(column_names=header, skip_rows=1),
    )
    quoted = content.find(b'"', content.find(b"\n")) >= 0
    if not quoted or set(header) == set(columns.values()):
        with suppress(NotPlainError, pyarrow.ArrowException):  # as if quotes were letters: many lines at a time
            plain = csv.ParseOptions(delimiter=separator, quote_char=False)
            table = read(pyarrow.BufferReader(content), parse_options=plain)
            return table, _code_names(table, columns, quoted=True)
    _check_quotes(content, separator)
    rows = csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    table = read(pyarrow.BufferReader(content), parse_options=rows)
    return table, _code_names(table, columns)


def _check_quotes(content: bytes, separator: str) -> None:
    """Refuse quotes that do not enclose whole cells; pyarrow would read them in its own way."""
    header = content.find(b"\n") + 1
    characters = np.frombuffer(content + b"\n", np.uint8, offset=header)
    places = np.flatnonzero(characters == ord('"'))
    if not len(places):
        return
    if len(places) % 2:
        raise NotPlainError
    before, after = characters[places[::2] - 1], characters[places[1::2] + 1]
    if places[0] == 0:
        before = before[1:]
    breaks = tuple(f"{separator}\r\n".encode())
    if not np.isin(before, breaks).all() or not np.isin(after, breaks).all():
        raise NotPlainError


def _numbers(column: Any) -> NDArray[np.float64]:
    import pyarrow

    kind = column.type
    if column.null_count or not (pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind)):
        raise NotPlainError
    return _values(column.chunks, kind).astype(np.float64)


def _values(chunks: Sequence[Any], kind: Any) -> NDArray[Any]:
    """The numbers in pyarrow's arrays, none of them missing; `to_numpy` would import pandas, which takes a while."""
    dtype = np.dtype(kind.to_pandas_dtype())
    arrays = [
        np.frombuffer(chunk.buffers()[1], dtype, len(chunk), chunk.offset * dtype.itemsize)
        for chunk in chunks
        if len(chunk)
    ]
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype)


def _code_names(table: Any, columns: Mapping[str, str], quoted: bool = False) -> dict[str, CodedNames]:
    return {role: _code(table.column(columns[role]), quoted) for role in _NAMES if role in columns}


def _code(column: Any, quoted: bool) -> CodedNames:
    """Names sorted as Python sorts them; pyarrow's codes are those of each chunk.

    `quoted`: quotes were read as letters. They are taken off where they enclose a name; others are not plain.
    """
    import pyarrow

    if column.null_count:
        raise NotPlainError
    if not pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if not pyarrow.types.is_string(column.type.value_type) and not pyarrow.types.is_large_string(
        column.type.value_type
    ):
        raise NotPlainError
    whole = column.unify_dictionaries()
    found = whole.chunk(0).dictionary.to_pylist() if whole.num_chunks else []
    if quoted:
        found = [name[1:-1] if len(name) > 1 and name[0] == name[-1] == '"' else name for name in found]
        if any('"' in name for name in found) or len(set(found)) < len(found):
            raise NotPlainError
    code = _values([chunk.indices for chunk in whole.chunks], whole.type.index_type).astype(np.int32, copy=False)
    return _sort_names(found, code)


def _sort_names(found: Sequence[str], code: NDArray[np.int32]) -> CodedNames:
    order = sorted(range(len(found)), key=found.__getitem__)
    rank = np.empty(len(found), np.int32)
    rank[order] = np.arange(len(found), dtype=np.int32)
    return CodedNames(tuple(found[place] for place in order), rank[code])


def _count_unsorted(columns: TableColumns) -> int:
    """How many rows start before the row above them of the same video of the same task."""
    if columns.start is None:
        return 0
    key = columns.task.code.astype(np.int64) * len(columns.video.names) + columns.video.code
    order = slice(None) if (key[1:] >= key[:-1]).all() else np.argsort(key, kind="stable")
    key, start = key[order], columns.start[order]
    return int(((start[1:] < start[:-1]) & (key[1:] == key[:-1])).sum())


def _split_tasks(columns: TableColumns) -> Iterable[tuple[str, TableColumns]]:
    if len(columns.task.names) == 1:
        yield columns.task.names[0], columns
        return
    for number, name in enumerate(columns.task.names):
        rows = columns.task.code == number
        start = None if columns.start is None else columns.start[rows]
        end = None if columns.end is None else columns.end[rows]
        yield name, TableColumns(columns.task, _used(columns.video, rows), _used(columns.step, rows), start, end)


def _used(names: CodedNames, rows: NDArray[np.bool_]) -> CodedNames:
    """The names that some rows have."""
    used, code = np.unique(names.code[rows], return_inverse=True)
    return CodedNames(tuple(names.names[place] for place in used.tolist()), code.astype(np.int32))


def _make_task(name: str, parts: Sequence[TableColumns], apart: bool = True) -> Task:
    """The task of the labels of several files; `apart`: a video that is in two of them is refused, row by row."""
    video, step = (_join([getattr(part, field) for part in parts]) for field in ("video", "step"))
    repeated = len(video.names) < sum(len(part.video.names) for part in parts)
    if (apart and repeated) or len({part.start is None for part in parts}) > 1:
        raise NotPlainError
    starts, ends = [part.start for part in parts], [part.end for part in parts]
    if starts[0] is None:
        order = _stable_order(video.code)
        row, which = video.code[order], step.code[order]
        place = (np.arange(len(row)) - np.searchsorted(row, row)).astype(np.float64)
        return Task.from_columns(name, step.names, LabelColumns(video.names, row, which, place, place + 1, False))
    start, end = (np.concatenate([one for one in each if one is not None]) for each in (starts, ends))
    order = _time_order(video.code, start, end, step.code)
    row, which = video.code[order], step.code[order]
    return Task.from_columns(name, step.names, LabelColumns(video.names, row, which, start[order], end[order]))


def _join(parts: Sequence[CodedNames]) -> CodedNames:
    """The names of several parts as one column."""
    if len(parts) == 1:
        return parts[0]
    place: dict[str, int] = {}
    codes = []
    for part in parts:
        own = np.array([place.setdefault(name, len(place)) for name in part.names], np.int32)
        codes.append(own[part.code])
    return _sort_names(list(place), np.concatenate(codes))


def _stable_order(key: NDArray[np.int32]) -> NDArray[np.intp] | slice:
    return slice(None) if (key[1:] >= key[:-1]).all() else np.argsort(key, kind="stable")


def _time_order(
    video: NDArray[np.int32], start: NDArray[np.float64], end: NDArray[np.float64], step: NDArray[np.int32]
) -> NDArray[np.intp] | slice:
    """Rows by video, start, end and step; most files are in this order."""
    tied = np.ones(len(video) - 1, np.bool_)
    for column in (video, start, end, step):
        if (tied & (column[1:] < column[:-1])).any():
            return np.lexsort((step, end, start, video))
        tied &= column[1:] == column[:-1]
    return slice(None)

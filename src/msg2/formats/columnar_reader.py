"""Tables of steps read in columns, by pyarrow: the fast way for plain CSV and Parquet files.

It reads what leaves nothing open (names, and times in seconds, all as they should be) and gives the same tasks as
`table_rows`, to the byte. Of everything else it says that it is not plain, and `table_rows` reads it, with its notes
and its errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from csv import reader
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError
from msg2.formats.column_roles import ColumnMapping
from msg2.formats.reading import ReadResult
from msg2.formats.source import Source
from msg2.formats.table_rows import is_in_milliseconds, open_parquet
from msg2.formats.unpacking import UnpackingBudget
from msg2.label_columns import LabelColumns
from msg2.task import Segment, Task, Video

_NAMES, _TIMES = ("task", "video", "step"), ("start", "end")
_BOM = b"\xef\xbb\xbf"
_FEW_LINES = 3
_BREAKS = tuple(b",\r\n")


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


def read_plain_tables(files: Sequence[tuple[Source, ColumnMapping]]) -> ReadResult:
    """Read tables that have a column for the video.

    Parameters
    ----------
    files : sequence of (Source, ColumnMapping)
        CSV or Parquet files, each with what its columns are.

    Returns
    -------
    ReadResult
        The same as row by row.

    Raises
    ------
    NotPlainError
        Where one of them is not plain, or pyarrow is not installed.
    """
    parts = [(file, _read_columns(file, mapping.columns)) for file, mapping in files]
    unsorted = {file.path.name: _count_unsorted(columns) for file, columns in parts}
    tasks: dict[str, list[TableColumns]] = {}
    for _, columns in parts:
        for name, own in _split_tasks(columns):
            tasks.setdefault(name, []).append(own)
    return ReadResult([_make_task(name, own) for name, own in tasks.items()], unsorted)


def _read_columns(file: Source, columns: Mapping[str, str]) -> TableColumns:
    """The columns of one file; `columns` says what each role is called."""
    if not {"video", "step"} <= columns.keys() <= {*_NAMES, *_TIMES} or ("start" in columns) != ("end" in columns):
        raise NotPlainError
    if any(is_in_milliseconds(columns[role]) for role in _TIMES if role in columns):
        raise NotPlainError
    try:
        import pyarrow
    except ImportError:
        raise NotPlainError from None
    try:
        table = _read_parquet(file, columns) if file.head.startswith(b"PAR1") else _read_csv(file, columns)
    except (pyarrow.ArrowException, OverflowError, UnicodeError):
        raise NotPlainError from None  # `table_rows` says what is wrong, and where
    if not table.num_rows:
        raise NotPlainError
    times = {role: _numbers(table.column(columns[role])) for role in _TIMES if role in columns}
    if times:
        start, end = times["start"], times["end"]
        if not (np.isfinite(end).all() and (start >= 0).all() and (end >= start).all()):
            raise NotPlainError
    coded = {role: _code(table.column(columns[role])) for role in _NAMES if role in columns}
    coded.setdefault("task", CodedNames((file.stem,), np.zeros(table.num_rows, np.int32)))
    try:
        for name in {*coded["task"].names, *coded["step"].names}:
            Segment(name)
        for name in coded["video"].names:
            Video(name, ())
    except InputError:
        raise NotPlainError from None
    return TableColumns(coded["task"], coded["video"], coded["step"], times.get("start"), times.get("end"))


def _read_parquet(file: Source, columns: Mapping[str, str]) -> Any:
    with file.open_binary() as stream:
        return open_parquet(file, stream, in_columns=True).read(columns=list(columns.values()))


def _read_csv(file: Source, columns: Mapping[str, str]) -> Any:
    import pyarrow
    from pyarrow import csv

    first, *others = file.head.removeprefix(_BOM).split(b"\n", _FEW_LINES)
    if len(others) < _FEW_LINES:
        raise NotPlainError  # there is nothing to gain, or a line without an end
    header = next(reader([first.decode()]), [])
    if len(set(header)) < len(header) or not set(columns.values()) <= set(header):
        raise NotPlainError  # separated by something else
    text = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    kinds = {column: text if role in _NAMES else pyarrow.float64() for role, column in columns.items()}
    convert = csv.ConvertOptions(
        column_types=kinds, include_columns=list(kinds), null_values=[], strings_can_be_null=False
    )
    with file.open_binary() as stream:
        content = stream.read()
        budget: UnpackingBudget | None = getattr(stream, "budget", None)
    if budget is not None:
        budget.require(rows=content.count(b"\n"))
    if b"\0" in content:
        raise NotPlainError
    _check_quotes(content)
    rows = csv.ParseOptions(newlines_in_values=True)
    return csv.read_csv(pyarrow.BufferReader(content), convert_options=convert, parse_options=rows)


def _check_quotes(content: bytes) -> None:
    """Refuse quotes that do not enclose whole cells; pyarrow would read them in its own way."""
    header = content.find(b"\n") + 1
    if content.find(b'"', header) < 0:
        return
    characters = np.frombuffer(content + b"\n", np.uint8, offset=header)
    places = np.flatnonzero(characters == ord('"'))
    if len(places) % 2:
        raise NotPlainError
    before, after = characters[places[::2] - 1], characters[places[1::2] + 1]
    if places[0] == 0:
        before = before[1:]
    if not np.isin(before, _BREAKS).all() or not np.isin(after, _BREAKS).all():
        raise NotPlainError


def _numbers(column: Any) -> NDArray[np.float64]:
    import pyarrow

    kind = column.type
    if column.null_count or not (pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind)):
        raise NotPlainError
    return np.asarray(column.to_numpy(), np.float64)


def _code(column: Any) -> CodedNames:
    """Names sorted as Python sorts them; pyarrow's codes are those of each chunk."""
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
    code = np.concatenate([np.asarray(chunk.indices, np.int32) for chunk in whole.chunks] or [np.zeros(0, np.int32)])
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


def _make_task(name: str, parts: Sequence[TableColumns]) -> Task:
    """The task of the labels of several files; a video that is in two of them is refused, row by row."""
    video, step = (_join([getattr(part, field) for part in parts]) for field in ("video", "step"))
    if (
        len(video.names) < sum(len(part.video.names) for part in parts)
        or len({part.start is None for part in parts}) > 1
    ):
        raise NotPlainError
    starts, ends = [part.start for part in parts], [part.end for part in parts]
    if starts[0] is None:
        order = _stable_order(video.code)
        row, which = video.code[order].astype(np.intp), step.code[order].astype(np.intp)
        place = (np.arange(len(row)) - np.searchsorted(row, row)).astype(np.float64)
        return Task.from_columns(name, step.names, LabelColumns(video.names, row, which, place, place + 1, False))
    start, end = (np.concatenate([one for one in each if one is not None]) for each in (starts, ends))
    order = _time_order(video.code, start, end, step.code)
    row, which = video.code[order].astype(np.intp), step.code[order].astype(np.intp)
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

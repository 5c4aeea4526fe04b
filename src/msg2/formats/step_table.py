"""The table of steps, our own format: CSV, TSV, JSON Lines or Parquet, read and written; Excel and data frames, read.

A folder holds full tables, with a column `video`, or one table per video: then the file's stem is the video and the
folder's name the task. A table without a column `task` is the task that its file is named after; files that are called
part-0, part-1, … are parts of one table, named after the folder. Times are on every row of a file or on none.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, errors_at
from msg2.formats.columns import ColumnMapping, is_step_header, match_step_columns, normalize_name, parse_columns
from msg2.formats.label_arrays import LabelArrays, Names, make_tasks
from msg2.formats.reading import INSTANTS, Reader, ReadNotes, ReadOptions, ReadResult, Writer, task_of_file
from msg2.formats.source import Source
from msg2.formats.tables import ABSENT, CodedColumn, Column, NumberColumn, Table, Wanted, open_table, read_header
from msg2.formats.times import NumberParser
from msg2.formats.xml_parser import root_name
from msg2.task import Segment, Task
from msg2.text import join_names, name_fault, short_repr

DESCRIPTION = "a table of steps (CSV, TSV, Excel, JSON Lines, Parquet) or a folder of them"

_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".xlsx")
_NAME_COLUMNS = ("task", "video", "step")
_NUMBER_COLUMNS = ("start", "end", "confidence")
ROWS_AT_ONCE = 10_000  # rows that are written at a time
_log = logging.getLogger(__name__)

# -- reading --------------------------------------------------------------------------------------------------


def can_read(source: Source) -> bool:
    """Whether there is a table: any file that nobody else knows is read as one, so that errors can name the row."""
    if source.is_folder:
        return any(_is_table(file) for file in source.files)
    return source.kind != "JSON" and not (source.kind == "XML" and root_name(source))


def read(source: Source, options: ReadOptions) -> ReadResult:
    """Read the tasks of one table, or of all tables in a folder."""
    given = parse_columns(options.columns)
    tables = open_tables(source, given)
    one_per_video = source.is_folder and are_one_per_video(tables, given)
    notes, parts = ReadNotes(), []
    for table in tables:
        file = table.source
        required = ("step",) if one_per_video else ("video", "step")
        mapping = match_step_columns(table.header, given, table.where, required)
        task, video = (source.stem, file.stem) if one_per_video else (task_of_file(file, source), None)
        labels = read_labels(table, mapping, task, video, notes)
        if len(labels.step.code) or one_per_video:
            parts.append((file, labels))
    if not any(len(labels.step.code) for _, labels in parts):
        raise InputError("has no rows below its header", where=source.path, hint="add one row per labelled step")
    unsorted = {file.path.name: labels.count_unsorted() for file, labels in parts}
    return ReadResult(make_tasks(parts), unsorted, tuple(notes.assumptions), tuple(sorted(notes.unused)))


def open_tables(source: Source, given: Mapping[str, str]) -> list[Table]:
    """The file, or the files of the folder, that are tables; a warning names the other ones."""
    files = [file for file in source.files if _is_table(file)] if source.is_folder else [source]
    others = {file.path.name for file in source.files} - {file.path.name for file in files} if source.is_folder else ()
    if others:
        _log.warning("%s: files that are no tables of steps, not read: %s", source.path, join_names(sorted(others)))
    return [open_table(file, lambda cells: is_step_header(cells, given)) for file in files]


def _is_table(file: Source) -> bool:
    """Whether a file in a folder is meant to be a table: by its suffix, or else by a column for the step."""
    if file.path.name.lower().removesuffix(".gz").endswith(_SUFFIXES):
        return True
    try:
        return can_read(file) and is_step_header(read_header(file, lambda cells: is_step_header(cells, {})), {})
    except InputError:
        return False  # a picture, a readme, …: it does not claim to be a table


def are_one_per_video(tables: Sequence[Table], given: Mapping[str, str]) -> bool:
    """Whether the tables of a folder are one per video; a folder that mixes both kinds is refused."""
    is_full = ["video" in match_step_columns(table.header, given, table.where, ()).columns for table in tables]
    if any(is_full) and not all(is_full):
        other = tables[is_full.index(False)].source.path.name
        what = f"has the column 'video', {short_repr(other)} in the same folder has not"
        where = tables[is_full.index(True)].source.path
        raise InputError(what, where=where, hint="give every table this column, or one table per video")
    return not any(is_full)


# -- columns -> labels ----------------------------------------------------------------------------------------


def read_labels(table: Table, mapping: ColumnMapping, task: str, video: str | None, notes: ReadNotes) -> LabelArrays:
    """The labels of one table; `task` and `video` are the names where it has no such column."""
    numbers = [mapping.columns[role] for role in _NUMBER_COLUMNS if role in mapping.columns]
    read = table.read(Wanted(list(mapping.columns.values()), numbers))
    columns = {role: read[column] for role, column in mapping.columns.items()}
    suffixes = ("ms", "msec", "milliseconds")
    milliseconds = {role for role, column in mapping.columns.items() if normalize_name(column).endswith(suffixes)}
    parser = NumberParser(table.separator, milliseconds)
    try:
        labels, open_ended = _to_labels(columns, parser, task, video)
    except InputError:
        _raise_for_row(table, mapping, columns, milliseconds)
    if table.source.kind == "parquet" and not {"confidence", "source"}.isdisjoint(columns):
        table.source.unpacking_budget.require(rows=len(labels.step.code))  # such labels take more memory
    assumptions = [*table.assumptions, *mapping.assumptions, *parser.assumptions, *[INSTANTS] * open_ended]
    notes.add(assumptions, mapping.unused)
    return labels


def _to_labels(
    columns: Mapping[str, Column], parser: NumberParser, task: str, video: str | None
) -> tuple[LabelArrays, bool]:
    """The labels, and whether some have a start and no end; an error says that some row is wrong, and not which."""
    step = Names.of(columns["step"])
    rows = len(step.code)
    tasks = Names.of(columns["task"]) if "task" in columns else Names((task,), np.zeros(rows, np.int32))
    is_named = video is None or "video" in columns
    videos = Names.of(columns["video"]) if is_named else Names((video or "",), np.zeros(rows, np.int32))
    start, end, confidence = (
        _to_numbers(role, columns[role], parser) if role in columns else None for role in _NUMBER_COLUMNS
    )
    if confidence is not None and ((confidence < 0) | (confidence > 1)).any():
        raise InputError("a confidence is not in 0 … 1")
    confidence = None if confidence is None or np.isnan(confidence).all() else confidence
    source = _to_sources(columns["source"]) if "source" in columns else None
    labels = LabelArrays(tasks, videos, step, None, None, confidence, source)
    if start is None or np.isnan(start).all():
        if end is not None and not np.isnan(end).all():
            raise InputError("there is an end without a start")
        return labels, False
    open_ended = np.ones(rows, np.bool_) if end is None else np.isnan(end)
    end = start if end is None else np.where(open_ended, start, end) if open_ended.any() else end
    if not ((start >= 0).all() and (end >= start).all()):
        raise InputError("a time is wrong, or missing")
    return replace(labels, start=start, end=end), bool(open_ended.any())


def _to_sources(column: Column) -> CodedColumn | None:
    """The sources of labels; None where no label has one."""
    if not isinstance(column, CodedColumn):
        raise InputError("the source is not text")
    values = [None if value in ("", ABSENT) else value for value in column.values]
    if not all(isinstance(value, str | None) for value in values):
        raise InputError("the source is not text")
    return CodedColumn(values, column.code) if any(values) else None


def _to_numbers(role: str, column: Column, parser: NumberParser) -> NDArray[np.float64]:
    """The numbers of a column, times in seconds; NaN where there is none."""
    if isinstance(column, NumberColumn):
        numbers = column.values.astype(np.float64)
        if role != "confidence" and numbers.any():
            parser.require_notation(role, "", parser.unit(role))
            numbers = numbers / 1000 if role in parser.milliseconds else numbers
        present = np.ones(len(numbers), np.bool_) if column.missing is None else ~column.missing
        code: NDArray[np.int32] | slice = slice(None)
    elif isinstance(column, CodedColumn):
        parsed = [parser.parse(role, None if cell is ABSENT else cell) for cell in column.values]
        present = np.array([value is not None for value in parsed], np.bool_)
        numbers = np.array(parsed, np.float64)
        code = column.code
    else:
        raise InputError(f"the {role} is not a number")
    if not np.isfinite(numbers[present]).all():
        raise InputError(f"the {role} is not finite")
    return numbers[code] if present.all() else np.where(present, numbers, np.nan)[code]


def _raise_for_row(
    table: Table, mapping: ColumnMapping, columns: Mapping[str, Column], milliseconds: set[str]
) -> NoReturn:
    """Look at every row again, to say which one is wrong."""
    parser = NumberParser(table.separator, milliseconds)
    is_timed: bool | None = None
    for line, *cells in zip(table.lines(), *(column.cells() for column in columns.values()), strict=False):
        with errors_at(table.source.row(line)):
            segment = _check_row(dict(zip(columns, cells, strict=True)), mapping, parser)
            if is_timed not in (None, segment.is_timed):
                here, above = ("no times", "some") if is_timed else ("times", "none")
                hint = "give start and end on every row, or on none"
                raise InputError(f"the row has {here}, the rows above have {above}", hint=hint)
            is_timed = segment.is_timed
    raise InputError("cannot be read as a table of steps", where=table.source.path)


def _check_row(row: dict[str, object], mapping: ColumnMapping, parser: NumberParser) -> Segment:
    for role in _NAME_COLUMNS:
        if row.get(role) is ABSENT:
            raise InputError(f"the key {mapping.columns[role]!r} is missing")
    row = {role: None if cell is ABSENT else cell for role, cell in row.items()}
    texts: dict[str, str] = {}
    for role in (*_NAME_COLUMNS, "source"):
        cell = row.get(role)
        if not isinstance(cell, str | None):
            what = f"the {role} {short_repr(str(cell))} is not text"
            raise InputError(what, hint="names are verbatim text: put it in quotes")
        texts[role] = cell or ""
    start, end, confidence = (parser.parse(role, row.get(role)) for role in _NUMBER_COLUMNS)
    segment = Segment(texts["step"], start, start if end is None else end, confidence, texts["source"] or None)
    for role in ("video", "task"):
        if role in row and (fault := name_fault(texts[role])):
            raise InputError(f"the {role} has {fault}" if texts[role] else f"the {role} is empty")
    return segment


# -- writing --------------------------------------------------------------------------------------------------


def to_csv(tasks: Iterable[Task], separator: str = ",") -> str:
    """The labels of tasks as CSV: columns task, video, step and, where there are times, start and end in seconds."""
    return "".join(_csv_lines(tasks, separator))


def _csv_lines(tasks: Iterable[Task], separator: str) -> Iterator[str]:
    columns, rows = table_cells(tasks)
    cells = (separator.join(_format_cell(cell, separator) for cell in row) for row in rows)
    return (line + "\n" for line in chain([separator.join(columns)], cells))


def _json_lines(tasks: Iterable[Task]) -> Iterator[str]:
    """`tasks` as JSON Lines: an object per label, with the columns of `to_csv`; what is not known is left out."""
    columns, rows = table_cells(tasks)
    objects = ({name: cell for name, cell in zip(columns, row, strict=True) if cell is not None} for row in rows)
    return (json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n" for value in objects)


def to_parquet(tasks: Iterable[Task]) -> bytes:
    """`tasks` as a Parquet file with the columns of `to_csv`."""
    import pyarrow
    from pyarrow import parquet

    columns, rows = table_cells(tasks)
    kinds = [pyarrow.float64() if name in _NUMBER_COLUMNS else pyarrow.string() for name in columns]
    schema = pyarrow.schema(list(zip(columns, kinds, strict=True)))
    content = io.BytesIO()
    with parquet.ParquetWriter(content, schema) as writer:
        for batch in _batches(rows):
            cells = [pyarrow.array(column, kind) for column, kind in zip(zip(*batch, strict=True), kinds, strict=True)]
            writer.write_table(pyarrow.table(cells, schema=schema))
    return content.getvalue()


def table_cells(tasks: Iterable[Task]) -> tuple[list[str], Iterator[list[str | float | None]]]:
    """The columns of the table of `tasks`, and a row per label; numbers are floats, what is not known is None."""
    tasks = list(tasks)
    timed: set[bool] = set()
    known: set[str] = set()
    for task in tasks:
        if task.is_columnar:  # no confidences, no sources
            timed |= {task.columns.is_timed} if task.labels else set()
            continue
        for segment in (segment for video in task for segment in video.segments):
            timed.add(segment.is_timed)
            known |= {name for name in ("confidence", "source") if getattr(segment, name) is not None}
    if len(timed) > 1:
        raise InputError("some of the tasks have times and some have not", hint="write them into tables of their own")
    names = ["start", "end"] if timed != {False} else []
    names += sorted(known)
    rows = (
        [task.name, video.id, segment.step, *(_to_cell(getattr(segment, name)) for name in names)]
        for task in tasks
        for video in task
        for segment in video.segments
    )
    return ["task", "video", "step", *names], rows


def _to_cell(value: str | float | None) -> str | float | None:
    return value if value is None or isinstance(value, str) else float(value)


def _format_cell(value: str | float | None, separator: str) -> str:
    """One field of delimited text; a text is quoted where a reader could mistake it (RFC 4180)."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return repr(value)
    plain = value and value == value.strip() and not any(character in value for character in (separator, *'"\r\n'))
    return value if plain else '"' + value.replace('"', '""') + '"'


_Piece = TypeVar("_Piece")


def _batches(pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
    """The pieces, `ROWS_AT_ONCE` at a time."""
    left = iter(pieces)
    while some := list(islice(left, ROWS_AT_ONCE)):
        yield some


def _encode(lines: Iterator[str]) -> Iterator[bytes]:
    return ("".join(batch).encode("utf-8") for batch in _batches(lines))


WRITERS: Mapping[str, Writer] = {
    ".csv": lambda tasks, path, options: {path: _encode(_csv_lines(tasks, ","))},
    ".tsv": lambda tasks, path, options: {path: _encode(_csv_lines(tasks, "\t"))},
    ".jsonl": lambda tasks, path, options: {path: _encode(_json_lines(tasks))},
    ".parquet": lambda tasks, path, options: {path: to_parquet(tasks)},
}  # suffix -> what writes it
READER = Reader(DESCRIPTION, can_read, read, ("text", "JSON lines", "workbook", "parquet", "XML"))

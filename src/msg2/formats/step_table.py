"""The table of steps, our own format: CSV, TSV, JSON Lines or Parquet, read and written; Excel, read.

A folder holds either full tables (with a column `video`), or one table per video (without it): then the file's stem is
the video and the folder's name the task. A table without a column `task` is the task that its file is named after;
files that are called part-0, part-1, … are parts of one table, named after the folder.
What is written reads back as the same tasks.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from msg2.errors import InputError, optional_dependency
from msg2.formats.column_roles import parse_columns
from msg2.formats.columnar_reader import NotPlainError, read_plain_tables
from msg2.formats.reading import ReadNotes, ReadOptions, ReadResult, SegmentsByVideo, task_of_file
from msg2.formats.source import Source
from msg2.formats.table_rows import NUMBER_COLUMNS, find_columns, read_rows
from msg2.formats.writing import FileContents, WriteOptions, Writer
from msg2.formats.xml_parser import root_name
from msg2.task import Task
from msg2.text import join_names, short_repr

DESCRIPTION = "a table of steps (CSV, TSV, Excel, JSON Lines, Parquet) or a folder of them"

_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".xlsx")
ROWS_AT_ONCE = 10_000
"""Rows that are written at a time."""
_log = logging.getLogger(__name__)

# -- reading --------------------------------------------------------------------------------------------------


def can_read(source: Source) -> bool:
    """Whether there is a table: any file that nobody else knows is read as one, so that errors can name the row."""
    if source.is_folder:
        return any(_is_table(file) for file in source.files)
    return source.is_json_lines or not (source.is_json or root_name(source))


def read(source: Source, options: ReadOptions) -> ReadResult:
    """Read the tasks of one table, or of all tables in a folder.

    Parameters
    ----------
    source : Source
        A file or folder that `can_read` accepts.
    options : ReadOptions
        `columns` is looked at.

    Returns
    -------
    ReadResult
        The tasks, every label kept.

    Raises
    ------
    InputError
        Where something is wrong with the data.
    """
    files = find_tables(source)
    given = parse_columns(options.columns)
    one_per_video = source.is_folder and are_one_per_video(files, given)
    notes = ReadNotes()
    try:
        result = _read_in_columns(files, source, given, notes) if not one_per_video else None
    except NotPlainError:
        result = None
    if result is None:
        names = (
            (file, (source.stem, file.stem) if one_per_video else (task_of_file(file, source), None)) for file in files
        )
        result = ReadResult.from_files(
            (file, _read_labels(file, task, video, given, notes)) for file, (task, video) in names
        )
    if not any(task.labels for task in result.tasks):
        raise InputError("has no rows below its header", where=source.path, hint="add one row per labelled step")
    return replace(result, assumptions=tuple(notes.assumptions), unused=tuple(sorted(notes.unused)))


def find_tables(source: Source) -> list[Source]:
    """The file, or the files of the folder, that are tables; a warning names the other ones."""
    if not source.is_folder:
        return [source]
    files = [file for file in source.files if _is_table(file)]
    others = {file.path.name for file in source.files} - {file.path.name for file in files}
    if others:
        _log.warning("%s: files that are no tables of steps, not read: %s", source.path, join_names(sorted(others)))
    return files


def _read_in_columns(files: Sequence[Source], source: Source, given: Mapping[str, str], notes: ReadNotes) -> ReadResult:
    """The result of full tables that leave nothing open."""
    if all(file.is_small for file in files):
        raise NotPlainError  # pyarrow takes longer to be imported
    mapped = [(file, find_columns(file, given), task_of_file(file, source)) for file in files]
    result = read_plain_tables(mapped)
    for _, mapping, _ in mapped:
        notes.add(mapping)
    return result


def _read_labels(
    file: Source, task: str, video: str | None, given: Mapping[str, str], notes: ReadNotes
) -> SegmentsByVideo:
    """The segments of one file; `task` and `video` are the names where it has no such column."""
    labels: SegmentsByVideo = {}
    open_ended = 0
    for row in read_rows(file, ("video", "step") if video is None else ("step",), given, notes):
        key = (row.task or task, row.video or video or "")
        labels.setdefault(key, []).append(row.segment)
        open_ended += row.open_ended
    notes.assume_instants(open_ended)
    return labels if labels or video is None else {(task, video): []}


def _is_table(file: Source) -> bool:
    """Whether a file in a folder is meant to be a table: by its suffix, or else by a column for the step."""
    if file.path.name.lower().removesuffix(".gz").endswith(_SUFFIXES):
        return True
    try:
        return can_read(file) and "step" in find_columns(file, {}).columns
    except InputError:
        return False  # a picture, a readme, …: it does not claim to be a table


def are_one_per_video(files: Sequence[Source], given: Mapping[str, str]) -> bool:
    """Whether the tables of a folder are one per video; a folder that mixes both kinds is refused."""
    full = [file for file in files if "video" in find_columns(file, given).columns]
    if full and len(full) < len(files):
        other = next(file for file in files if file not in full)
        what = f"has the column 'video', {short_repr(other.path.name)} in the same folder has not"
        raise InputError(what, where=full[0].path, hint="give every table this column, or one table per video")
    return not full


# -- writing --------------------------------------------------------------------------------------------------


def to_csv(tasks: Iterable[Task], separator: str = ",") -> str:
    """The labels of tasks as CSV: columns task, video, step and, where there are times, start and end in seconds.

    Numbers are written exactly; `confidence` and `source` are columns where a label has them. What has no label (a
    video without any, a step that is never seen) has no row.
    """
    return "".join(_csv_lines(tasks, separator))


def _csv_lines(tasks: Iterable[Task], separator: str) -> Iterator[str]:
    columns, rows = table_cells(tasks)
    cells = (separator.join(_format_cell(cell, separator) for cell in row) for row in rows)
    return (line + "\n" for line in chain([separator.join(columns)], cells))


def to_json_lines(tasks: Iterable[Task]) -> str:
    """`tasks` as JSON Lines: an object per label, with the columns of `to_csv`; what is not known is left out.

    >>> from msg2.task import Segment, Video
    >>> print(to_json_lines([Task("toast", ["fry"], [Video("v1", [Segment("fry")])])]), end="")
    {"task": "toast", "video": "v1", "step": "fry"}
    """
    return "".join(_json_lines(tasks))


def _json_lines(tasks: Iterable[Task]) -> Iterator[str]:
    columns, rows = table_cells(tasks)
    objects = ({name: cell for name, cell in zip(columns, row, strict=True) if cell is not None} for row in rows)
    return (json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n" for value in objects)


def to_parquet(tasks: Iterable[Task]) -> bytes:
    """`tasks` as a Parquet file with the columns of `to_csv`."""
    with optional_dependency("writing Parquet", "parquet"):
        import pyarrow
        from pyarrow import parquet
    columns, rows = table_cells(tasks)
    kinds = [pyarrow.float64() if name in NUMBER_COLUMNS else pyarrow.string() for name in columns]
    schema = pyarrow.schema(list(zip(columns, kinds, strict=True)))
    content = io.BytesIO()
    with parquet.ParquetWriter(content, schema) as writer:
        for some in _batches(rows):
            cells = [pyarrow.array(column, kind) for column, kind in zip(zip(*some, strict=True), kinds, strict=True)]
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
    names += [name for name in ("confidence", "source") if name in known]
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


def _write_lines(lines: Callable[[Iterable[Task]], Iterable[str]]) -> Writer:
    def write(tasks: Sequence[Task], path: Path, options: WriteOptions) -> FileContents:
        every = lines(tasks)  # what cannot be written is refused here
        return {path: ("".join(some).encode("utf-8") for some in _batches(every))}

    return write


WRITERS: Mapping[str, Writer] = {
    ".csv": _write_lines(lambda tasks: _csv_lines(tasks, ",")),
    ".tsv": _write_lines(lambda tasks: _csv_lines(tasks, "\t")),
    ".jsonl": _write_lines(_json_lines),
    ".parquet": lambda tasks, path, options: {path: to_parquet(tasks)},
}
"""Suffix -> what writes it."""

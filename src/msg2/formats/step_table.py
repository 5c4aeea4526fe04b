"""The table of steps, our own format: CSV, TSV, JSON Lines or Parquet, read and written; Excel and data frames, read.

A folder holds full tables, with a column `video`, or one table per video: then the file's stem is the video and the
folder's name the task. A table without a column `task` is the task that its file is named after; files that are called
part-0, part-1, … are parts of one table, named after the folder. Times are on every row of a file or on none.
"""

from __future__ import annotations

import io
import json
import logging
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError
from msg2.formats import reading
from msg2.formats.columns import STEPS, ColumnMapping, TableKind, normalize_name
from msg2.formats.reading import INSTANTS, Reader, ReadNotes, ReadOptions, ReadResult, Ties, Writer
from msg2.formats.source import Source
from msg2.formats.tables import CodedColumn, Column, Columns, Table, Wanted, code_column, open_table, read_header
from msg2.formats.times import parse_numbers
from msg2.formats.xml_parser import root_name
from msg2.task import Absent, LabelColumns, Segment, Task
from msg2.text import join_names, name_fault, short_repr

_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".xlsx")
_NUMBER_COLUMNS = ("start", "end", "confidence")
_MILLISECONDS = ("ms", "msec", "milliseconds")  # how names of columns in these end
ROWS_AT_ONCE = 10_000  # rows that are written at a time
_log = logging.getLogger(__name__)
Names: TypeAlias = CodedColumn[str]  # a column of names; an empty one stands for an empty cell
Times: TypeAlias = NDArray[np.float64] | NDArray[np.int64]

# -- reading --------------------------------------------------------------------------------------------------


def can_read(source: Source) -> bool:
    """Whether there is a table: any file that nobody else knows is read as one, so that errors can name the row."""
    if source.is_folder:
        return any(_is_table(file) for file in source.files)
    return source.kind != "JSON" and not (source.kind == "XML" and root_name(source))


def read(source: Source, options: ReadOptions) -> ReadResult:
    """Read the tasks of one table, or of all tables in a folder."""
    kind = STEPS.for_user(options.columns)
    tables = open_tables(source, kind)
    one_per_video = source.is_folder and are_one_per_video(tables, kind)
    notes, parts = ReadNotes(options), []
    for table in tables:
        file = table.source
        mapping = kind.match(table.header, table.where, ("step",) if one_per_video else ("video", "step"))
        task, video = (source.stem, file.stem) if one_per_video else (reading.task_of_file(file, source), None)
        labels = read_labels(table, mapping, task, video, notes)
        if len(labels.step) or one_per_video:
            parts.append((file, labels))
    if not any(len(labels.step) for _, labels in parts):
        raise InputError("has no rows below its header", where=source.path, hint="add one row per labelled step")
    return ReadResult(
        make_tasks(parts, options.ties), {file.path.name: labels.count_unsorted() for file, labels in parts}, notes
    )


def open_tables(source: Source, kind: TableKind) -> list[Table]:
    """The file, or the files of the folder, that are tables; a warning names the other ones."""
    if not source.is_folder:
        return [open_table(source, kind.fits)]
    files = [file for file in source.files if _is_table(file)]
    if others := {file.path.name for file in source.files} - {file.path.name for file in files}:
        _log.warning("%s: files that are no tables of steps, not read: %s", source.path, join_names(sorted(others)))
    return [open_table(file, kind.fits) for file in files]


def _is_table(file: Source) -> bool:
    """Whether a file in a folder is meant to be a table: by its suffix, or else by a column for the step."""
    if file.path.name.lower().removesuffix(".gz").endswith(_SUFFIXES):
        return True
    try:
        return can_read(file) and STEPS.fits(read_header(file, STEPS.fits))
    except InputError:
        return False  # a picture, a readme, …: it does not claim to be a table


def are_one_per_video(tables: Sequence[Table], kind: TableKind) -> bool:
    """Whether the tables of a folder are one per video; a folder that mixes both kinds is refused."""
    is_full = ["video" in kind.match(table.header, table.where, ()).columns for table in tables]
    if any(is_full) and not all(is_full):
        other = tables[is_full.index(False)].source.path.name
        what = f"has the column 'video', {short_repr(other)} in the same folder has not"
        where = tables[is_full.index(True)].source.path
        raise InputError(what, where=where, hint="give every table this column, or one table per video")
    return not any(is_full)


# -- columns -> labels ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class LabelArrays:
    """The labels of a file in its order, a row each; `start` and `end` are None where it has no times."""

    task: Names
    video: Names
    step: Names
    start: Times | None = None
    end: Times | None = None
    confidence: NDArray[np.float64] | None = None  # NaN where there is none
    source: Names | None = None

    def count_unsorted(self) -> int:
        """How many rows start before the row above them of the same video, task and source."""
        if self.start is None:
            return 0
        keys = [column.code for column in (self.task, self.video, self.source) if column is not None]
        order = _order(*keys[:2])
        same = np.all([key[order][1:] == key[order][:-1] for key in keys], axis=0)
        return int((same & (self.start[order][1:] < self.start[order][:-1])).sum())

    def add_to(self, collector: reading.LabelCollector, file: Source) -> None:
        """Add the segments to those of the videos; a table without any is a video of its own."""
        nothing = [None] * len(self.step)
        start, end, confidence = (
            nothing if values is None else [None if math.isnan(value) else value for value in values.tolist()]
            for values in (self.start, self.end, self.confidence)
        )
        sources = nothing if self.source is None else (source or None for source in self.source.cells())
        segments = map(Segment, self.step.cells(), start, end, confidence, sources)
        for task, video, segment in zip(self.task.cells(), self.video.cells(), segments, strict=True):
            collector.video(file, video, task).append(segment)
        if not len(self.step):
            collector.video(file, self.video.values[0], self.task.values[0])


def read_labels(table: Table, mapping: ColumnMapping, task: str, video: str | None, notes: ReadNotes) -> LabelArrays:
    """The labels of one table; `task` and `video` are the names where it has no such column."""
    roles = mapping.columns
    wanted: Wanted = {column: "number" if role in _NUMBER_COLUMNS else "text" for role, column in roles.items()}
    read = table.read({**dict.fromkeys(set(notes.options.keep).intersection(table.header), "text"), **wanted})
    columns = {role: read[column] for role, column in roles.items()}
    milliseconds = {role for role, column in roles.items() if normalize_name(column).endswith(_MILLISECONDS)}
    names = {"task": task, "video": video or ""}
    if notes.options.keep and "video" in columns:
        note_attributes(notes, read, columns["video"], columns.get("task", task))
    start = columns.get("start")
    if isinstance(start, CodedColumn):
        timed = any(value is not None and str(value).strip() for value in start.values)
    else:
        timed = start is not None and bool(start.count())
    labels, assumptions = table.convert(
        columns, lambda rows: _to_labels(rows, names, table.separator, milliseconds, timed), notes
    )
    if table.source.kind == "parquet" and not {"confidence", "source"}.isdisjoint(columns):
        table.source.unpacking_budget.require(rows=len(labels.step))  # such labels take more memory
    notes.add([*table.assumptions, *mapping.assumptions, *assumptions], mapping.unused)
    return labels


def note_attributes(notes: ReadNotes, columns: Columns, video: Column, task: Column | str) -> None:
    """Note the first value that each video has in the columns to keep."""
    videos, tasks = code_column(video), None if isinstance(task, str) else code_column(task)
    run = videos.code + (0 if tasks is None else tasks.code * np.int64(len(videos.values)))
    for name in set(notes.options.keep).intersection(columns):
        column = code_column(columns[name])
        rows = np.flatnonzero(np.array([value not in (None, "") for value in column.values], np.bool_)[column.code])
        values = notes.attributes.setdefault(name, {})
        for row in rows[np.unique(run[rows], return_index=True)[1]].tolist():
            own = task if isinstance(task, str) else str(code_column(task).values[code_column(task).code[row]])
            values.setdefault((own, str(videos.values[videos.code[row]])), str(column.values[column.code[row]]))


def read_names(role: str, column: Column) -> Names:
    """The names in a column, where only a source may be empty; errors are about the last row (see `Table.convert`)."""
    coded = code_column(column)
    texts = [name for name in coded.values if isinstance(name, str)]
    plain = all(texts) and all(map(str.isprintable, texts)) and not any(map(str.isspace, texts))
    if plain and len(texts) == len(coded.values):  # as nearly all tables have them
        return CodedColumn(texts, coded.code)
    names: list[str] = []
    for name in coded.values:
        if not isinstance(name, str | None):
            what = f"the {role} {short_repr(str(name))} is not text"
            raise InputError(what, hint="names are verbatim text: put it in quotes")
        if role != "source" and (fault := name_fault(name or "")):
            raise InputError(f"the {role} has {fault}" if name else f"the {role} is empty")
        names.append(name or "")
    return CodedColumn(names, coded.code)


def _to_labels(
    columns: Columns, names: Mapping[str, str], separator: str, milliseconds: Collection[str], timed: bool
) -> tuple[LabelArrays, list[str]]:
    """The labels and what was assumed of them; what is wrong is said of the last row (see `Table.convert`)."""
    step = read_names("step", columns["step"])
    rows = len(step.code)
    task, video = (
        read_names(role, columns[role]) if role in columns else CodedColumn([name], np.zeros(rows, np.int32))
        for role, name in names.items()
    )
    source = read_names("source", columns["source"]) if "source" in columns else None
    numeric = {role: columns[role] for role in _NUMBER_COLUMNS if role in columns}
    numbers, assumptions = parse_numbers(numeric, separator, milliseconds)
    start, end, confidence = (numbers.get(role, np.broadcast_to(np.nan, rows)) for role in _NUMBER_COLUMNS)
    is_timed, is_open = ~np.isnan(start), np.isnan(end)
    end = np.where(is_open, start, end) if is_open.any() else end
    wrong = (start < 0) | (end < start) | (~is_open & ~is_timed)
    if "confidence" in numbers:
        wrong |= (confidence < 0) | (confidence > 1)
    if wrong.any() or (timed and not is_timed.all()):
        last = [None if np.isnan(values[-1]) else float(values[-1]) for values in (start, end, confidence)]
        Segment(step.values[step.code[-1]], last[0], last[1], last[2])  # which says what is wrong with it
        others = "the rows above" if is_timed.any() else "other rows"
        hint = "give start and end on every row, or on none"
        raise InputError(f"the row has no times, {others} have some", hint=hint)
    sureness = None if "confidence" not in numbers or np.isnan(confidence).all() else confidence
    labels = LabelArrays(task, video, step, None, None, sureness, source if source and any(source.values) else None)
    labels = replace(labels, start=start, end=end) if is_timed.any() else labels
    return labels, [*assumptions, *[INSTANTS] * bool((is_timed & is_open).any())]


# -- labels -> tasks ------------------------------------------------------------------------------------------


def make_tasks(parts: Sequence[tuple[Source, LabelArrays]], ties: Ties = "unknown") -> list[Task]:
    """The tasks of the labels of some files; a video that is in two of them is refused."""
    labels_of_files = [labels for _, labels in parts]
    is_plain = all(labels.confidence is None and labels.source is None for labels in labels_of_files)
    is_plain &= len({labels.start is None for labels in labels_of_files if len(labels.step)}) <= 1
    if is_plain and len(parts) == 1:
        return join_tasks(labels_of_files, ties=ties)
    collector = reading.LabelCollector("", ties)
    for file, labels in parts:
        if not is_plain:
            labels.add_to(collector, file)
        else:
            pairs = labels.task.code.astype(np.int64) * len(labels.video.values) + labels.video.code
            for pair in np.unique(pairs).tolist() or [0]:
                task_code, video_code = divmod(pair, len(labels.video.values))
                collector.video(file, labels.video.values[video_code], labels.task.values[task_code])
    return join_tasks(labels_of_files, ties=ties) if is_plain else collector.tasks()


def join_tasks(
    parts: Sequence[LabelArrays], absent: Absent = "unknown", since_start: bool = False, ties: Ties = "unknown"
) -> list[Task]:
    """Make tasks of labels, all with times or none; `since_start`: microseconds become seconds since the first one."""
    joined: list[Names] = []
    for columns in zip(*((part.task, part.video, part.step) for part in parts), strict=True):
        names = sorted({name for column in columns for name in column.values})
        rank = {name: index for index, name in enumerate(names)}
        codes = [
            column.code
            if column.values == names
            else np.array([rank[name] for name in column.values], np.int32)[column.code]
            for column in columns
        ]
        joined.append(CodedColumn(names, np.concatenate(codes) if len(codes) > 1 else codes[0]))
    task, video, step = joined
    starts = [part.start for part in parts if part.start is not None and len(part.step)]
    ends = [part.end for part in parts if part.end is not None and len(part.step)]
    is_timed = bool(starts)
    start, end = (
        times[0] if len(times) == 1 else np.concatenate([*times, np.zeros(0 if times else len(step.code))])
        for times in (starts, ends)
    )
    by_time = (start, end) if ties == "file" else (start, end, step.code)
    order = _order(task.code, video.code, *(by_time if is_timed else ()))
    task, video, step = (CodedColumn(names.values, names.code[order]) for names in (task, video, step))
    start, end = start[order], end[order]
    borders = np.searchsorted(task.code, np.arange(len(task.values) + 1, dtype=np.int32)).tolist()
    tasks = []
    for name, (low, high) in zip(task.values, pairwise(borders), strict=True):
        rows = slice(low, high)
        videos, steps = (video, step) if len(task.values) == 1 else (video[rows], step[rows])
        first, last = (times[rows].astype(np.float64, copy=False) for times in (start, end))
        began = None
        if since_start or not is_timed:
            first_rows = np.searchsorted(videos.code, videos.code)  # of the video of each row
            if is_timed:  # subtracted as whole numbers, which are exact
                origin = start[rows][first_rows]
                first, last = ((times[rows] - origin).astype(np.float64) / 1e6 for times in (start, end))
                began = np.full(len(videos.values), LabelColumns.NO_DATE, np.int64)
                began[videos.code] = origin
            else:
                first = (np.arange(high - low) - first_rows).astype(np.float64)
                last = first + 1.0
        if is_timed and ties == "file":
            tied = (np.diff(videos.code) == 0) & (np.diff(first) == 0) & (first == last)[1:] & (first == last)[:-1]
            begins = np.flatnonzero(np.append(True, ~tied)[: len(first)])
            place = np.arange(len(first)) - np.repeat(begins, np.diff(np.append(begins, len(first))))
            first, last = (times + place * np.spacing(first) for times in (first, last))
        own = LabelColumns(tuple(videos.values), videos.code, steps.code, first, last, is_timed, began)
        tasks.append(Task.from_columns(name, steps.values, own, absent))
    return tasks


def _order(*keys: NDArray[np.generic]) -> NDArray[np.intp] | slice:
    """The rows by some columns, the first of which counts most; most files are in this order."""
    tied = np.ones(max(len(keys[0]) - 1, 0), np.bool_)
    for column in keys:
        if (tied & (column[1:] < column[:-1])).any():  # type: ignore[operator]
            return np.lexsort(keys[::-1])
        tied &= column[1:] == column[:-1]
    return slice(None)


# -- writing --------------------------------------------------------------------------------------------------


def to_csv(tasks: Iterable[Task], separator: str = ",") -> str:
    """The labels of tasks as CSV: columns task, video, step and, where there are times, start and end in seconds."""
    return "".join(_csv_lines(tasks, separator))


def _csv_lines(tasks: Iterable[Task], separator: str) -> Iterator[str]:
    columns, rows = table_cells(tasks)
    cells = (separator.join(_format_cell(cell, separator) for cell in row) for row in rows)
    return (line + "\n" for line in chain([separator.join(columns)], cells))


def _format_cell(value: str | float | None, separator: str) -> str:
    """One field of delimited text; a text is quoted where a reader could mistake it (RFC 4180)."""
    if not isinstance(value, str):
        return "" if value is None else repr(value)
    plain = value and value == value.strip() and not any(character in value for character in (separator, *'"\r\n'))
    return value if plain else '"' + value.replace('"', '""') + '"'


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
    kinds = {name: pyarrow.float64() if name in _NUMBER_COLUMNS else pyarrow.string() for name in columns}
    content = io.BytesIO()
    with parquet.ParquetWriter(content, pyarrow.schema(kinds.items())) as writer:
        for batch in _batches(rows):
            cells = zip(*batch, strict=True)
            writer.write_table(pyarrow.table(list(map(pyarrow.array, cells, kinds.values())), writer.schema))
    return content.getvalue()


def table_cells(tasks: Iterable[Task]) -> tuple[list[str], Iterator[list[str | float | None]]]:
    """The columns of the table of `tasks`, and a row per label; numbers are floats, what is not known is None."""
    tasks = list(tasks)
    segments = [segment for task in tasks if not task.is_columnar for video in task for segment in video.segments]
    timed = {segment.is_timed for segment in segments}
    timed |= {task.columns.is_timed for task in tasks if task.is_columnar and task.labels}
    if len(timed) > 1:
        raise InputError("some of the tasks have times and some have not", hint="write them into tables of their own")
    names = ["start", "end"] if timed != {False} else []
    names += [name for name in ("confidence", "source") if any(getattr(s, name) is not None for s in segments)]
    rows = (
        [task.name, video.id, segment.step, *(_to_cell(getattr(segment, name)) for name in names)]
        for task in tasks
        for video in task
        for segment in video.segments
    )
    return ["task", "video", "step", *names], rows


def _to_cell(value: str | float | None) -> str | float | None:
    return value if value is None or isinstance(value, str) else float(value)


_Piece = TypeVar("_Piece")


def _batches(pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
    """The pieces, `ROWS_AT_ONCE` at a time."""
    left = iter(pieces)
    while some := list(islice(left, ROWS_AT_ONCE)):
        yield some


def encode_lines(lines: Iterator[str]) -> Iterator[bytes]:
    """Lines of text as pieces of a file."""
    return ("".join(batch).encode("utf-8") for batch in _batches(lines))


WRITERS: Mapping[str, Writer] = {
    ".csv": lambda tasks, path, options: {path: encode_lines(_csv_lines(tasks, ","))},
    ".tsv": lambda tasks, path, options: {path: encode_lines(_csv_lines(tasks, "\t"))},
    ".jsonl": lambda tasks, path, options: {path: encode_lines(_json_lines(tasks))},
    ".parquet": lambda tasks, path, options: {path: to_parquet(tasks)},
}  # suffix -> what writes it
READER = Reader("a table of steps (CSV, TSV, Excel, JSON Lines, Parquet) or a folder of them", can_read, read)

"""The rows of a table of steps, from delimited text, Excel, JSON Lines or Parquet, one at a time.

`task`, `video` and `step` are verbatim text, never parsed. Times are seconds, on every row of a file or on none.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from sys import intern
from typing import IO, Any, NamedTuple, cast

from msg2.errors import InputError, errors_at, optional_dependency
from msg2.formats.column_roles import STEP_NAMES, ColumnMapping, match_columns, normalize_name
from msg2.formats.delimited_reader import missing_column_error, open_table
from msg2.formats.json_files import parse_json
from msg2.formats.reading import ReadNotes
from msg2.formats.source import COLUMN_ROWS_PER_ROW, Source
from msg2.formats.time_text import NumberParser
from msg2.task import Segment
from msg2.text import name_fault, short_repr

NAME_COLUMNS = ("task", "video", "step")
NUMBER_COLUMNS = ("start", "end", "confidence")
COLUMNS = tuple(STEP_NAMES)
_TEXT, _NUMBER = {str, type(None)}, {float, int, type(None)}  # exact types: a bool is no number here


class TableRow(NamedTuple):
    """One label; `line` is where it stands in the file, from 1 with the header."""

    line: int
    task: str | None
    video: str | None
    segment: Segment
    open_ended: bool
    """Whether the row has a start and no end: the label is an instant then."""


def find_columns(source: Source, given: Mapping[str, str]) -> ColumnMapping:
    """Which column of a table is which, by its header, the keys of its first line, or its schema."""
    if is_parquet(source):
        with source.open_binary() as stream:
            return match_step_columns(
                open_parquet(source, stream, in_columns=True).schema_arrow.names, given, str(source.path)
            )
    if source.is_json_lines:
        return match_step_columns(tuple(next(_json_objects(source))[1]), given, source.row(1))
    with open_table(source, lambda cells: is_header(cells, given)) as table:
        return match_step_columns(table.header, given, source.row(table.line))


def is_header(cells: Sequence[str], given: Mapping[str, str]) -> bool:
    """Whether some cells could be the header of a table of steps."""
    wanted = (normalize_name(given["step"]),) if "step" in given else STEP_NAMES["step"]
    return any(normalize_name(cell) in wanted for cell in cells)


def match_step_columns(header: Sequence[str], given: Mapping[str, str], where: str) -> ColumnMapping:
    """Which column of a table of steps is which, whether that is enough or not."""
    with errors_at(where):
        return match_columns(header, STEP_NAMES, given)


def read_rows(
    source: Source, required: Sequence[str], given: Mapping[str, str], notes: ReadNotes
) -> Generator[TableRow]:
    """Read the rows of a table, in the order of the file."""
    read = _parquet_rows if is_parquet(source) else _json_rows if source.is_json_lines else _delimited_rows
    return require_uniform_times(source, read(source, required, given, notes))


def require_uniform_times(source: Source, rows: Generator[TableRow]) -> Generator[TableRow]:
    """The rows as they are, as long as all have times or none has."""
    timed: bool | None = None
    with closing(rows):
        for row in rows:
            if timed not in (None, row.segment.is_timed):
                here, above = ("no times", "some") if timed else ("times", "none")
                what = f"the row has {here}, the rows above have {above}"
                hint = "give start and end on every row, or on none"
                raise InputError(what, where=source.row(row.line), hint=hint)
            timed = row.segment.is_timed
            yield row


# -- delimited text ---------------------------------------------------------------------------------------------


def _delimited_rows(
    source: Source, required: Sequence[str], given: Mapping[str, str], notes: ReadNotes
) -> Generator[TableRow]:
    with open_table(source, lambda cells: is_header(cells, given)) as table:
        where = source.row(table.line)
        mapping = check_columns(match_step_columns(table.header, given, where), table.header, required, where)
        places = {role: table.header.index(column) for role, column in mapping.columns.items()}
        milliseconds = {role for role in ("start", "end") if is_in_milliseconds(mapping.columns.get(role, ""))}
        parser = NumberParser(table.separator)
        for line, cells in table.rows:
            value: dict[str, Any] = {role: cells[place] for role, place in places.items()}
            with errors_at(source.row(line)):
                for name in ("start", "end"):
                    if name in value:
                        value[name] = parser.parse_seconds(name, value[name], name in milliseconds)
                if "confidence" in value:
                    value["confidence"] = parser.parse_number("confidence", value["confidence"])
            yield _make_row(source, line, value)
    notes.assume(*table.assumptions)
    notes.add(mapping, parser.assumptions)


def is_in_milliseconds(column: str) -> bool:
    """Whether a column of times says that they are milliseconds."""
    return normalize_name(column).endswith(("ms", "msec", "milliseconds"))


# -- JSON Lines -------------------------------------------------------------------------------------------------


def _json_objects(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    with closing(source.lines()) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.isspace():
                value = parse_json(line, source, number)
                if not isinstance(value, dict):
                    raise InputError("the line is not a JSON object", where=source.row(number))
                yield number, value


def _json_rows(
    source: Source, required: Sequence[str], given: Mapping[str, str], notes: ReadNotes
) -> Generator[TableRow]:
    columns: Mapping[str, str] = {}
    for number, value in _json_objects(source):
        if not columns:
            mapping = match_step_columns(tuple(value), given, source.row(number))
            notes.add(mapping)
            columns = {role: role for role in required} | dict(mapping.columns)
            needed = [*required, *({"task", "video"} & set(mapping.columns) - set(required))]
        for name in needed:
            if columns[name] not in value:
                raise InputError(f"the key {columns[name]!r} is missing", where=source.row(number))
        notes.unused.update(value.keys() - {*columns.values(), *COLUMNS})
        used = (role for role in COLUMNS if given.get(role) != "")
        own = {role: value[column] for role in used if (column := columns.get(role, role)) in value}
        yield parse_typed_row(source, number, own)


# -- Parquet ----------------------------------------------------------------------------------------------------


def is_parquet(source: Source) -> bool:
    """Whether this is a Parquet file."""
    return source.head.startswith(b"PAR1")


def open_parquet(source: Source, stream: IO[bytes], *, in_columns: bool = False) -> Any:
    """Open a Parquet file, as far as its `UnpackingBudget` reaches."""
    with optional_dependency("reading Parquet", "parquet"):
        from pyarrow import parquet
    with _arrow_errors(source):
        file = parquet.ParquetFile(stream)
        texts = [column.name for column in file.schema if column.physical_type == "BYTE_ARRAY"]
        # Not the sizes of the columns: to ask for a broken column ends the process (pyarrow 26).
        groups = (file.metadata.row_group(group) for group in range(file.metadata.num_row_groups))
        source.unpacking_budget.require(
            rows=file.metadata.num_rows // (COLUMN_ROWS_PER_ROW if in_columns else 1),
            unpacked=sum(group.total_byte_size for group in groups),
        )
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
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"is broken Parquet ({said})", where=source.path) from None


def _parquet_rows(
    source: Source, required: Sequence[str], given: Mapping[str, str], notes: ReadNotes
) -> Generator[TableRow]:
    with source.open_binary() as stream:
        table = open_parquet(source, stream)
        header = table.schema_arrow.names
        mapping = check_columns(match_step_columns(header, given, str(source.path)), header, required, str(source.path))
        notes.add(mapping)
        roles = {column: role for role, column in mapping.columns.items()}
        for number, row in enumerate(_parquet_values(source, table, list(roles)), start=1):
            yield parse_typed_row(source, number, {roles[column]: value for column, value in row.items()})


def _parquet_values(source: Source, table: Any, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    batches = table.iter_batches(columns=columns)
    while True:
        with _arrow_errors(source):
            batch = next(batches, None)
            if batch is None:
                return
            batch.validate(full=True)  # a broken file may name texts that it does not have
            values = [_values(batch.column(name)) for name in columns]
        yield from (dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))


def _values(column: Any) -> list[Any]:
    if not hasattr(column, "dictionary"):
        return cast(list[Any], column.to_pylist())
    texts = column.dictionary.to_pylist()
    return [None if place is None else texts[place] for place in column.indices.to_pylist()]


# -- shared -----------------------------------------------------------------------------------------------------


def check_columns(mapping: ColumnMapping, header: Sequence[str], required: Sequence[str], where: str) -> ColumnMapping:
    """Refuse columns that are missing, or make no sense alone."""
    for name in required:
        if name not in mapping.columns:
            raise missing_column_error(name, header, where)
    if "end" in mapping.columns and "start" not in mapping.columns:
        what = "there is a column 'end', but no column 'start'"
        raise InputError(what, where=where, hint="give both, in seconds, or only the start, or neither")
    return mapping


def parse_typed_row(source: Source, number: int, value: dict[str, Any]) -> TableRow:
    """A row of a format that has types of its own: text must be text, numbers numbers."""
    task, video, step, start, end, confidence, origin = map(value.get, COLUMNS)
    if not {type(task), type(video), type(step), type(origin)} <= _TEXT:
        name = next(name for name in (*NAME_COLUMNS, "source") if type(value.get(name)) not in _TEXT)
        what = f"the {name} {short_repr(str(value[name]))} is not text"
        raise InputError(what, where=source.row(number), hint="names are verbatim text: put it in quotes")
    if not {type(start), type(end), type(confidence)} <= _NUMBER:
        name = next(name for name in NUMBER_COLUMNS if type(value.get(name)) not in _NUMBER)
        raise InputError(f"the {name} {short_repr(str(value[name]))} is not a number", where=source.row(number))
    return _make_row(source, number, value)


def _make_row(source: Source, number: int, value: dict[str, Any]) -> TableRow:
    task, video, step, start, end, confidence, origin = map(value.get, COLUMNS)
    open_ended = start is not None and end is None
    end = start if open_ended else end
    try:
        segment = Segment(intern(step or ""), _to_float(start), _to_float(end), _to_float(confidence), origin or None)
    except InputError as error:
        raise error.at(source.row(number)) from None
    for name, text in (("video", video), ("task", task)):
        if name in value and (fault := name_fault(text or "")):
            what = f"the {name} has {fault}" if text else f"the {name} is empty"
            raise InputError(what, where=source.row(number))
    # A table repeats a few names very often: equal ones are kept as one object.
    return TableRow(number, task and intern(task), video and intern(video), segment, open_ended)


def _to_float(value: int | float | None) -> float | None:
    try:
        return None if value is None else float(value)
    except OverflowError:
        return float("inf")  # Segment says what is wrong with it

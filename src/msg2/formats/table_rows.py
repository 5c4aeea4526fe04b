"""The rows of a table of steps, from delimited text, JSON Lines or Parquet, one at a time.

`task`, `video` and `step` are verbatim text, never parsed. Times are seconds, on every row of a file or on none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from sys import intern
from typing import Any, NamedTuple, cast

from msg2.errors import InputError
from msg2.extras import optional_dependency
from msg2.formats.delimited_reader import missing_column_error, number_rows, open_table
from msg2.formats.json_parser import parse_json
from msg2.formats.source import Source
from msg2.formats.unpacking import UnpackingBudget
from msg2.task import Segment
from msg2.text import name_fault, short_repr

NAME_COLUMNS = ("task", "video", "step")
NUMBER_COLUMNS = ("start", "end", "confidence")
COLUMNS = (*NAME_COLUMNS, *NUMBER_COLUMNS, "source")
_TEXT, _NUMBER = {str, type(None)}, {float, int, type(None)}  # exact types: a bool is no number here


class TableRow(NamedTuple):
    """One label; `line` is where it stands in the file, from 1 with the header."""

    line: int
    task: str | None
    video: str | None
    segment: Segment


def column_names(source: Source) -> tuple[str, ...]:
    """The columns of the table: its header, the keys of its first line, or its schema."""
    if _is_parquet(source):
        with source.open_binary() as stream:
            return tuple(_parquet_file(source, stream).schema_arrow.names)
    if source.is_json_lines:
        return tuple(next(_json_objects(source))[1])
    with open_table(source) as (header, _):
        return tuple(header)


def read_rows(source: Source, ignored: set[str], required: Sequence[str]) -> Generator[TableRow]:
    """Read the rows of a table, in the order of the file.

    Parameters
    ----------
    source : Source
        The table: delimited text, JSON Lines or Parquet.
    ignored : set of str
        Columns that are not used are added to it.
    required : sequence of str
        Columns that must be there.

    Returns
    -------
    generator of TableRow
        The rows; all have times, or none has.

    Raises
    ------
    InputError
        Where a column is missing or a row is wrong.
    """
    read = _parquet_rows if _is_parquet(source) else _json_rows if source.is_json_lines else _delimited_rows
    return require_uniform_times(source, read(source, ignored, required))


def require_uniform_times(source: Source, rows: Generator[TableRow]) -> Generator[TableRow]:
    """The rows as they are, as long as all have times or none has.

    Parameters
    ----------
    source : Source
        Where they are from, for errors.
    rows : generator of TableRow
        It is closed at the end.

    Yields
    ------
    TableRow
        Each of the rows.

    Raises
    ------
    InputError
        At the first row that has times where the others have none, or the reverse.
    """
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


def _delimited_rows(source: Source, ignored: set[str], required: Sequence[str]) -> Generator[TableRow]:
    with open_table(source) as (header, table):
        ignored.update(check_columns(header, required, source.row(table.line_num)))
        numbers = [name for name in NUMBER_COLUMNS if name in header]
        for line, cells in number_rows(source, table, len(header)):
            value: dict[str, Any] = dict(zip(header, cells, strict=True))
            for name in numbers:
                value[name] = _parse_number(source, line, name, value[name])
            yield _make_row(source, line, value)


def _parse_number(source: Source, line: int, column: str, text: str) -> float | None:
    if not text:
        return None
    try:
        if "_" not in text:  # float() takes 1_000, a table does not
            return float(text)
    except ValueError:
        pass
    hint = "give seconds with a decimal point, such as 90.5" if column != "confidence" else "give a number in 0 … 1"
    raise InputError(f"the {column} {short_repr(text)} is not a number", where=source.row(line), hint=hint)


# -- JSON Lines -------------------------------------------------------------------------------------------------


def _json_objects(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    with closing(source.lines()) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.isspace():
                value = parse_json(line, source, number)
                if not isinstance(value, dict):
                    raise InputError("the line is not a JSON object", where=source.row(number))
                yield number, value


def _json_rows(source: Source, ignored: set[str], required: Sequence[str]) -> Generator[TableRow]:
    needed: list[str] = []
    for number, value in _json_objects(source):
        needed = needed or [*required, *({"task", "video"} & set(value) - set(required))]
        for name in needed:
            if name not in value:
                raise InputError(f"the key {name!r} is missing", where=source.row(number))
        ignored.update(value.keys() - COLUMNS)
        yield parse_typed_row(source, number, value)


# -- Parquet ----------------------------------------------------------------------------------------------------


def _is_parquet(source: Source) -> bool:
    return source.head.startswith(b"PAR1")


def _parquet_file(source: Source, stream: Any) -> Any:
    with optional_dependency("reading Parquet", "parquet"):
        from pyarrow import parquet
    with _arrow_errors(source):
        file = parquet.ParquetFile(stream)
        texts = [column.name for column in file.schema if column.physical_type == "BYTE_ARRAY"]
        groups = [file.metadata.row_group(group) for group in range(file.metadata.num_row_groups)]
        budget = UnpackingBudget.for_file(source.path)
        budget.require(
            rows=file.metadata.num_rows,
            unpacked=sum(
                group.column(place).total_uncompressed_size for group in groups for place in range(group.num_columns)
            ),
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


def _parquet_rows(source: Source, ignored: set[str], required: Sequence[str]) -> Generator[TableRow]:
    with source.open_binary() as stream:
        table = _parquet_file(source, stream)
        header = table.schema_arrow.names
        ignored.update(check_columns(header, required, str(source.path)))
        wanted = [name for name in header if name in COLUMNS]
        for number, row in enumerate(_parquet_values(source, table, wanted), start=1):
            yield parse_typed_row(source, number, row)


def _parquet_values(source: Source, table: Any, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    batches = table.iter_batches(columns=columns)
    while True:
        with _arrow_errors(source):
            batch = next(batches, None)
            if batch is None:
                return
            values = [_values(batch.column(name)) for name in columns]
        yield from (dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))


def _values(column: Any) -> list[Any]:
    if not hasattr(column, "dictionary"):
        return cast(list[Any], column.to_pylist())
    texts = column.dictionary.to_pylist()
    return [None if place is None else texts[place] for place in column.indices.to_pylist()]


# -- shared -----------------------------------------------------------------------------------------------------


def check_columns(header: Sequence[str], required: Sequence[str], where: str) -> set[str]:
    """Refuse columns that are there twice, are missing, or make no sense alone.

    Parameters
    ----------
    header : sequence of str
        The columns.
    required : sequence of str
        Those that must be there.
    where : str
        File and row of the header, for errors.

    Returns
    -------
    set of str
        The columns that are not used.

    Raises
    ------
    InputError
        With what is wrong.
    """
    for name, count in Counter(header).items():
        if count > 1:
            raise InputError(f"the column {short_repr(name)} is there twice", where=where, hint="rename or remove one")
    for name in required:
        if name not in header:
            raise missing_column_error(name, header, where)
    for one, other in (("start", "end"), ("end", "start")):
        if one in header and other not in header:
            what = f"there is a column {one!r}, but no column {other!r}"
            raise InputError(what, where=where, hint="give both, in seconds, or neither")
    return set(header).difference(COLUMNS)


def parse_typed_row(source: Source, number: int, value: dict[str, Any]) -> TableRow:
    """A row of a format that has types of its own: text must be text, numbers numbers.

    Parameters
    ----------
    source : Source
        Where it is from, for errors.
    number : int
        The row, from 1.
    value : dict
        Column -> value; columns that are not known are not looked at.

    Returns
    -------
    TableRow
        The label.

    Raises
    ------
    InputError
        Where a value is of another type, or makes no segment.
    """
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
    try:
        segment = Segment(intern(step or ""), _to_float(start), _to_float(end), _to_float(confidence), origin or None)
    except InputError as error:
        raise error.at(source.row(number)) from None
    for name, text in (("video", video), ("task", task)):
        if name in value and (fault := name_fault(text or "")):
            what = f"the {name} has {fault}" if text else f"the {name} is empty"
            raise InputError(what, where=source.row(number))
    # A table repeats a few names very often: equal ones are kept as one object.
    return TableRow(number, task and intern(task), video and intern(video), segment)


def _to_float(value: int | float | None) -> float | None:
    try:
        return None if value is None else float(value)
    except OverflowError:
        return float("inf")  # Segment says what is wrong with it

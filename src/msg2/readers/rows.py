"""The rows of a table of steps, from delimited text, JSON Lines or Parquet, one at a time.

`task`, `video` and `step` are verbatim text, never parsed. Times are seconds, on every row of a file or on none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from operator import itemgetter
from typing import Any, NamedTuple

from msg2.errors import InputError, MissingExtraError, shortened
from msg2.readers.delimited import lines_of_cells, opened, plain
from msg2.readers.sources import Source, parsed_json
from msg2.task import Segment

NAMES = ("task", "video", "step")
NUMBERS = ("start", "end", "confidence")
KNOWN = (*NAMES, *NUMBERS, "source")
_TEXT, _NUMBER = {str, type(None)}, {float, int, type(None)}  # exact types: a bool is no number here


class Row(NamedTuple):
    """One label; `line` is where it stands in the file, from 1 with the header."""

    line: int
    task: str | None
    video: str | None
    segment: Segment


def columns(source: Source) -> tuple[str, ...]:
    """The columns of the table: its header, the keys of its first line, or its schema."""
    if _is_parquet(source):
        with source.binary() as stream:
            return tuple(_parquet_file(source, stream).schema_arrow.names)
    if source.is_json_lines:
        return tuple(next(_json_objects(source))[1])
    with opened(source) as (header, _):
        return tuple(header)


def rows(source: Source, ignored: set[str], required: Sequence[str]) -> Generator[Row]:
    """The rows in the order of the file; columns that mean nothing to us are added to `ignored`."""
    if _is_parquet(source):
        found = _parquet_rows(source, ignored, required)
    elif source.is_json_lines:
        found = _json_rows(source, ignored, required)
    else:
        found = _delimited_rows(source, ignored, required)
    return alike(source, found)


def alike(source: Source, found: Generator[Row]) -> Generator[Row]:
    """The rows as they are; refused at the first one that has times where the others have none, or the reverse."""
    timed: bool | None = None
    with closing(found):
        for row in found:
            if timed is None:
                timed = row.segment.timed
            elif timed is not row.segment.timed:
                here, above = ("no times", "some") if timed else ("times", "none")
                what = f"the row has {here}, the rows above have {above}"
                hint = "give start and end on every row, or on none"
                raise InputError(what, where=source.row(row.line), hint=hint)
            yield row


# -- delimited text ---------------------------------------------------------------------------------------------


def _delimited_rows(source: Source, ignored: set[str], required: Sequence[str]) -> Generator[Row]:
    with opened(source) as (header, table):
        check_columns(header, required, source.row(table.line_num))
        ignored.update(set(header).difference(KNOWN))
        task, video, step, start, end, confidence, origin = (_cell(header, name) for name in KNOWN)
        names = same_strings()
        for line, cells in lines_of_cells(source, table, len(header)):
            try:
                segment = Segment(
                    names(step(cells)),
                    _number(start(cells), "start"),
                    _number(end(cells), "end"),
                    _number(confidence(cells), "confidence"),
                    origin(cells) or None,
                )
            except InputError as error:
                raise InputError(error.what, where=source.row(line), hint=error.hint) from None
            yield _named(source, Row(line, names(task(cells)), names(video(cells)), segment))


def _cell(header: list[str], name: str) -> Callable[[list[str]], Any]:
    """Picks the column `name` from a row; None where there is no such column."""
    return itemgetter(header.index(name)) if name in header else lambda cells: None


def _number(text: str | None, column: str) -> float | None:
    if not text:
        return None
    try:
        if "_" not in text:  # float() takes 1_000, a table does not
            return float(text)
    except ValueError:
        pass
    hint = "give seconds with a decimal point, such as 90.5" if column != "confidence" else "give a number in 0 … 1"
    raise InputError(f"the {column} {shortened(text)} is not a number", hint=hint)


# -- JSON Lines -------------------------------------------------------------------------------------------------


def _json_objects(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    with closing(source.lines()) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.isspace():
                value = parsed_json(line, source, number)
                if not isinstance(value, dict):
                    raise InputError("the line is not a JSON object", where=source.row(number))
                yield number, value


def _json_rows(source: Source, ignored: set[str], required: Sequence[str]) -> Generator[Row]:
    needed: list[str] | None = None
    names = same_strings()
    for number, value in _json_objects(source):
        if needed is None:
            needed = [*required, *({"task", "video"} & set(value) - set(required))]
        for name in needed:
            if name not in value:
                raise InputError(f"the key {name!r} is missing", where=source.row(number))
        ignored.update(value.keys() - KNOWN)
        yield typed_row(source, number, value, names)


# -- Parquet ----------------------------------------------------------------------------------------------------


def _is_parquet(source: Source) -> bool:
    return source.head.startswith(b"PAR1")


def _parquet_file(source: Source, stream: Any) -> Any:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("reading Parquet", "parquet") from None
    try:
        return parquet.ParquetFile(stream)
    except pyarrow.ArrowException as error:
        raise InputError(f"is broken Parquet ({str(error).splitlines()[0]})", where=source.path) from None


def _parquet_rows(source: Source, ignored: set[str], required: Sequence[str]) -> Generator[Row]:
    names = same_strings()
    with source.binary() as stream:
        table = _parquet_file(source, stream)
        header = table.schema_arrow.names
        check_columns(header, required, str(source.path))
        ignored.update(set(header).difference(KNOWN))
        wanted = [name for name in header if name in KNOWN]
        number = 0
        for batch in table.iter_batches(columns=wanted):
            for values in zip(*(batch.column(name).to_pylist() for name in wanted), strict=True):
                number += 1
                yield typed_row(source, number, dict(zip(wanted, values, strict=True)), names)


# -- shared -----------------------------------------------------------------------------------------------------


def check_columns(header: Sequence[str], required: Sequence[str], where: str) -> None:
    """Refuse columns that are there twice, lack, or make no sense alone."""
    for name, count in Counter(header).items():
        if count > 1:
            raise InputError(f"the column {shortened(name)} is there twice", where=where, hint="rename or remove one")
    for name in required:
        if name not in header:
            raise _missing_column(name, header, where)
    for one, other in (("start", "end"), ("end", "start")):
        if one in header and other not in header:
            what = f"there is a column {one!r}, but no column {other!r}"
            raise InputError(what, where=where, hint="give both, in seconds, or neither")


def _missing_column(name: str, header: Sequence[str], where: str) -> InputError:
    """The error for a column that is not there, or that only looks as if it were."""
    meant = next((column for column in header if plain(column) == name), "")
    if meant != meant.strip(" "):
        place = "begins" if meant.startswith(" ") else "ends"
        return InputError(
            f"the column name {shortened(meant)} {place} with a space", where=where, hint=f"write {name!r}"
        )
    hint = "the columns are " + ", ".join(shortened(column, 30) for column in header[:10])
    if meant.lower() == name:
        hint = f"there is {meant!r}, write it in lower case: {name!r}"
    return InputError(f"the column {name!r} is missing", where=where, hint=hint)


def typed_row(source: Source, number: int, value: dict[str, Any], names: Callable[[Any], Any]) -> Row:
    """The row of a format that has types of its own: text must be text, numbers numbers."""
    task, video, step, start, end, confidence, origin = map(value.get, KNOWN)
    if not {type(task), type(video), type(step), type(origin)} <= _TEXT:
        name = next(name for name in (*NAMES, "source") if type(value.get(name)) not in _TEXT)
        what = f"the {name} {shortened(str(value[name]))} is not text"
        raise InputError(what, where=source.row(number), hint="names are verbatim text: put it in quotes")
    if not {type(start), type(end), type(confidence)} <= _NUMBER:
        name = next(name for name in NUMBERS if type(value.get(name)) not in _NUMBER)
        raise InputError(f"the {name} {shortened(str(value[name]))} is not a number", where=source.row(number))
    try:
        segment = Segment(names(step or ""), _float(start), _float(end), _float(confidence), origin or None)
    except InputError as error:
        raise InputError(error.what, where=source.row(number), hint=error.hint) from None
    task, video = (task or "" if "task" in value else None), (video or "" if "video" in value else None)
    return _named(source, Row(number, names(task), names(video), segment))


def _float(value: int | float | None) -> float | None:
    try:
        return None if value is None else float(value)
    except OverflowError:
        return float("inf")  # Segment says what is wrong with it


def _named(source: Source, row: Row) -> Row:
    if row.video == "" or row.task == "":
        raise InputError(f"the {'video' if row.video == '' else 'task'} is empty", where=source.row(row.line))
    return row


def same_strings() -> Callable[[Any], Any]:
    """Gives equal strings back as one object: a table repeats a few names very often."""
    kept: dict[Any, Any] = {}
    return lambda name: kept.setdefault(name, name)

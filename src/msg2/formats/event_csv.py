"""Event logs as tables: a case, an activity and a time per row, as process miners and their tools name the columns.

A case is a video. A start and an end in the same row, or rows whose transition is start and complete, make segments of
instants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from msg2.errors import InputError, errors_at
from msg2.formats.column_roles import EVENT_NAMES, ColumnMapping, match_columns, normalize_name, parse_columns
from msg2.formats.columnar_reader import NotPlainError, read_plain_logs
from msg2.formats.delimited_reader import missing_column_error, open_table
from msg2.formats.events import (
    INSTANCE,
    PHASE,
    STEP,
    TIME,
    Event,
    EventParser,
    count_unsorted_events,
    events_to_segments,
    find_day_first,
)
from msg2.formats.reading import ReadNotes, ReadOptions, ReadResult, build_tasks, task_of_file
from msg2.formats.source import Source
from msg2.text import short_repr

DESCRIPTION = "event logs as tables (case, activity, timestamp)"

_XES = {
    "case": "case:concept:name", "activity": STEP, "time": TIME, "start": "start_timestamp", "transition": PHASE,
    "instance": INSTANCE,
}  # fmt: skip
"""What pm4py calls its columns: names of the standard, which need no note."""
_TIMES = ("end", "time", "start")
"""What may say when an event happened, the best first."""


def can_read(source: Source) -> bool:
    """Whether the file, or a file in the folder, has columns for the case and the activity."""
    return bool(find_logs(source, {}))


def read(source: Source, options: ReadOptions) -> ReadResult:
    """Read one task per file, named after it.

    Parameters
    ----------
    source : Source
        A file or folder that `can_read` accepts, or whose columns the options name.
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
    given = parse_columns(options.columns)
    files = find_logs(source, given) or source.files_or_self
    try:
        return _read_in_columns(files, source, given)
    except NotPlainError:
        pass
    events: dict[tuple[str, str], list[Event]] = {}
    has_times: dict[str, bool] = {}
    unsorted, notes = {}, ReadNotes()
    for file in files:
        cases, timed = _read_cases(file, given, notes)
        unsorted[file.path.name] = sum(map(count_unsorted_events, cases.values()))
        task = task_of_file(file, source)
        if has_times.setdefault(task, timed) != timed:
            what = f"{'has' if timed else 'has no'} times, the parts before it have {'none' if timed else 'some'}"
            raise InputError(what, where=file.path, hint="write all parts with the same columns")
        for case, own in cases.items():  # which may go on from part to part
            if not timed and (task, case) in events:
                what = f"the case {short_repr(case)} is in another file as well, and its events have no times"
                raise InputError(what, where=file.path, hint="put all events of a case in one file")
            events.setdefault((task, case), []).extend(own)
    labels = {key: events_to_segments(own, has_times[key[0]]) for key, own in events.items()}
    unused = tuple(sorted(notes.unused))
    return ReadResult(build_tasks(labels, absent="skipped"), unsorted, tuple(notes.assumptions), unused)


def _read_in_columns(files: Sequence[Source], source: Source, given: Mapping[str, str]) -> ReadResult:
    """The result of logs of instants that leave nothing open."""
    if all(file.is_small for file in files):
        raise NotPlainError  # pyarrow takes longer to be imported
    notes, mapped = ReadNotes(), []
    for file in files:
        with open_table(file, lambda cells: is_log_header(cells, given)) as table:
            mapping = find_event_columns(table.header, given, file.row(table.line))
        notes.add(mapping, table.assumptions)
        mapped.append((file, mapping, task_of_file(file, source)))
    result = read_plain_logs(mapped)
    return replace(result, assumptions=tuple(notes.assumptions), unused=tuple(sorted(notes.unused)))


def find_logs(source: Source, given: Mapping[str, str]) -> list[Source]:
    """The file, or the files of the folder, that are logs."""
    return [file for file in source.files_or_self if _has_header(file, given)]


def _has_header(file: Source, given: Mapping[str, str]) -> bool:
    try:
        with open_table(file, lambda cells: is_log_header(cells, given)) as table:
            return is_log_header(table.header, given) and not {"video", "step"} <= set(table.header)
    except InputError:
        return False


def is_log_header(cells: Sequence[str], given: Mapping[str, str]) -> bool:
    """Whether some cells could be the header of an event log."""
    names = {normalize_name(cell) for cell in cells}
    wanted = ([normalize_name(given[role])] if role in given else EVENT_NAMES[role] for role in ("case", "activity"))
    return all(names.intersection(one) for one in wanted)


def find_event_columns(header: Sequence[str], given: Mapping[str, str], where: str) -> ColumnMapping:
    """Which column of a log is which."""
    standard = {role: name for role, name in _XES.items() if name in header}
    with errors_at(where):
        mapping = match_columns(header, EVENT_NAMES, {**standard, **given})
    for name in ("case", "activity"):
        if name not in mapping.columns:
            raise missing_column_error(name, header, where)
    return mapping


def _read_cases(file: Source, given: Mapping[str, str], notes: ReadNotes) -> tuple[dict[str, list[Event]], bool]:
    """Case -> its events in the order of the file; and whether they have times."""
    cases: dict[str, list[Event]] = {}
    open_ended = 0
    with open_table(file, lambda cells: is_log_header(cells, given)) as table:
        mapping = find_event_columns(table.header, given, file.row(table.line))
        timed = [table.header.index(mapping.columns[role]) for role in _TIMES if role in mapping.columns]
        parser = EventParser(find_day_first(cells[place] for _, cells in table.rows for place in timed))
    with open_table(file, lambda cells: is_log_header(cells, given)) as table:
        mapping = find_event_columns(table.header, given, file.row(table.line))
        places = {role: table.header.index(column) for role, column in mapping.columns.items()}
        for line, cells in table.rows:
            row = {role: cells[place] for role, place in places.items()}
            with errors_at(file.row(line)):
                if not row["case"]:
                    raise InputError("the case is empty")
                parser.add(cases.setdefault(row["case"], []), _to_attributes(row), _began(row))
            open_ended += "end" in row and not row["end"]
    if not cases:
        raise InputError("has no rows below its header", where=file.path, hint="add one row per event")
    notes.assume(*table.assumptions)
    notes.add(mapping)
    if parser.day_first is not None:
        notes.assume(f"the {'day' if parser.day_first else 'month'} comes first in dates such as 5/6/2024")
    if "start" in mapping.columns and not {"time", "end"} & mapping.columns.keys():
        notes.assume("an event ends when it starts: no column says when it ends")
    notes.assume_instants(open_ended)
    parser.warn_of_unused(file, "columns")
    return cases, bool(parser.timed)


def _to_attributes(row: Mapping[str, str]) -> dict[str, str]:
    """A row by the names of the XES standard; its time is that of completion, where there is one."""
    attributes = {STEP: row["activity"]}
    attributes |= {name: row[role] for role, name in (("transition", PHASE), ("instance", INSTANCE)) if role in row}
    times = [row[role] for role in _TIMES if role in row]
    return attributes | ({TIME: next(filter(None, times), "")} if times else {})


def _began(row: Mapping[str, str]) -> str:
    """When an event started, where its row says that beside when it was completed."""
    return row.get("start") or (row.get("time", "") if row.get("end") else "")

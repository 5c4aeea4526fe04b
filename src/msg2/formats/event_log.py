"""Event logs as tables: a case, an activity and a time per row. Other formats of logs are made such tables first.

A log is a task, a case or trace is a video, an event is a step. What starts and completes becomes one segment: a start
and an end in the same row, or events whose transition is start and complete. The rest are instants.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, require
from msg2.formats import tables
from msg2.formats.columns import EVENTS, ColumnMapping, TableKind
from msg2.formats.reading import INSTANTS, Reader, ReadNotes, ReadOptions, ReadResult, task_of_file
from msg2.formats.source import Source
from msg2.formats.step_table import LabelArrays, Times, join_tasks, note_attributes, read_names
from msg2.formats.tables import CodedColumn, Column, Columns, Table, Wanted, code_column
from msg2.formats.times import TimestampParser, find_day_first
from msg2.task import Task
from msg2.text import join_counts, short_repr

_NO_TIME = np.datetime64("NaT", "us")
_TIMES = ("end", "time", "start")  # the columns that may say when an event happened, the best first
_START, _COMPLETE, _OTHER = 0, 1, 2
_PHASES = {"start": _START, "complete": _COMPLETE}
_BEFORE_OR_INSTEAD = {
    "schedule", "assign", "reassign", "suspend", "resume", "withdraw", "manualskip", "autoskip", "ate_abort",
    "pi_abort",
}  # fmt: skip
"""Transitions of the standard life cycle at which a step is neither begun nor done."""
_log = logging.getLogger(__name__)


# -- tables -----------------------------------------------------------------------------------------------------


def find_logs(source: Source, kind: TableKind = EVENTS) -> list[Source]:
    """The file, or the files of the folder, that are logs."""
    logs = []
    for file in source.files_or_self:
        with suppress(InputError):
            header = tables.read_header(file, kind.fits)
            if kind.fits(header) and not {"video", "step"} <= set(header):
                logs.append(file)
    return logs


def _read_tables(source: Source, options: ReadOptions) -> ReadResult:
    """Read one task per file, named after it; with times, cases may go on from part to part."""
    kind = EVENTS.for_user(options.columns)
    parts: dict[str, list[LabelArrays]] = {}
    unsorted, notes = {}, ReadNotes(options)
    for file in find_logs(source, kind) or source.files_or_self:
        table = tables.open_table(file, kind.fits)
        task = task_of_file(file, source)
        labels, unsorted[file.path.name] = _read_log(table, kind.match(table.header, table.where), task, notes)
        require(len(labels.video.values), "has no rows below its header", where=file.path, hint="add one row per event")
        others, is_timed = parts.setdefault(task, []), labels.start is not None
        if others and (others[0].start is not None) != is_timed:
            here, before = ("times", "none") if is_timed else ("no times", "some")
            hint = "write all parts with the same columns"
            raise InputError(f"has {here}, the parts before it have {before}", where=file.path, hint=hint)
        shared = set(labels.video.values).intersection(name for part in others for name in part.video.values)
        if shared and not is_timed:
            what = f"the case {short_repr(min(shared))} is in another file as well, and its events have no times"
            raise InputError(what, where=file.path, hint="put all events of a case in one file")
        others.append(labels)
    tasks = [task for own in parts.values() for task in join_tasks(own, "skipped", True, options.ties)]
    return ReadResult(tasks, unsorted, notes)


def read_table(table: Table, mapping: ColumnMapping, task: str, notes: ReadNotes) -> tuple[list[Task], int]:
    """The task that a single table of events is, and how many events are not in time order."""
    labels, unsorted = _read_log(table, mapping, task, notes)
    require(len(labels.video.values), "has no rows", where=table.source.path, hint="add one row per event")
    return join_tasks([labels], "skipped", True, notes.options.ties), unsorted


EVENT_TABLES = Reader("event logs as tables (case, activity, timestamp)", find_logs, _read_tables)


# -- columns -> labels ------------------------------------------------------------------------------------------


def _read_log(table: Table, mapping: ColumnMapping, task: str, notes: ReadNotes) -> tuple[LabelArrays, int]:
    """The labels of one table, times in microseconds since 1970, and how many events are not in time order."""
    wanted: Wanted = {column: "time" if role in _TIMES else "text" for role, column in mapping.columns.items()}
    read = table.read({**dict.fromkeys(set(notes.options.keep).intersection(table.header), "text"), **wanted})
    columns = {role: read[column] for role, column in mapping.columns.items()}
    times = [column for role in _TIMES if isinstance(column := columns.get(role), CodedColumn)]
    day_first = find_day_first(str(text) for column in times for text in column.values)
    note_attributes(notes, read, columns["case"], task)
    labels, unsorted, skipped = table.convert(columns, lambda columns: _to_labels(columns, task, day_first), notes)
    assumptions = [*table.assumptions, *mapping.assumptions]
    if day_first is not None:
        assumptions.append(f"the {'day' if day_first else 'month'} comes first in dates such as 5/6/2024")
    if "start" in columns and not {"time", "end"} & columns.keys():
        assumptions.append("an event ends when it starts: no column says when it ends")
    if isinstance(end := columns.get("end"), CodedColumn) and "" in end.values:
        assumptions.append(INSTANTS)
    notes.add(assumptions, mapping.unused)
    if skipped:
        _log.warning("%s: events that do no step, not read: %s", table.source.path, join_counts(skipped))
    return labels, unsorted


def _to_labels(columns: Columns, task: str, day_first: bool | None) -> tuple[LabelArrays, int, Counter[str]]:
    """The labels, how many are not in time order, and the events left out; errors are about the last row."""
    case, transitions = read_names("case", columns["case"]), columns.get("transition")
    phase: NDArray[np.int8] = np.full(len(case.code), _OTHER, np.int8)
    skipped: Counter[str] = Counter()
    if isinstance(transitions, CodedColumn):
        words = [str(word).casefold() for word in transitions.values]
        done = np.array([word not in _BEFORE_OR_INSTEAD for word in words], np.bool_)[transitions.code]
        phase = np.array([_PHASES.get(word, _OTHER) for word in words], np.int8)[transitions.code][done]
        if skipped := Counter(map(str, transitions[~done].cells())):
            case = CodedColumn(case.values, case.code[done])
            columns = {role: column[done] for role, column in columns.items()}
    step = read_names("activity", columns["activity"])
    labels = LabelArrays(CodedColumn([task], np.zeros(len(step.code), np.int32)), case, step)
    began = np.zeros(len(labels.step), np.bool_)
    if columns.keys() & set(_TIMES):
        start, end, began = _moments(columns, day_first)
        labels = replace(labels, start=start, end=end)
    unsorted = replace(labels, start=labels.end).count_unsorted()
    if (phase[~began] == _START).any():
        labels = _pair_events(labels, np.where(began, _OTHER, phase), columns.get("instance"))
    return labels, unsorted, skipped


def _moments(columns: Columns, day_first: bool | None) -> tuple[Times, Times, NDArray[np.bool_]]:
    """When events started and happened, in microseconds since 1970, and which of them say when they started."""
    parser = TimestampParser(day_first)
    moments = {role: _parse_times(columns[role], parser) for role in _TIMES if role in columns}
    nothing = np.full(len(next(iter(moments.values()))), _NO_TIME)
    end, time, start = (moments.get(role, nothing) for role in _TIMES)
    happened = np.where(np.isnat(end), np.where(np.isnat(time), start, time), end)
    began = np.where(np.isnat(start), np.where(np.isnat(end), _NO_TIME, time), start)
    require(not np.isnat(happened).any(), "the event has no time", hint="give every event a time, or none")
    has_begun = ~np.isnat(began)
    began = np.where(has_begun, began, happened)
    require(not (began > happened).any(), "the event starts after its end")
    return began.astype(np.int64), happened.astype(np.int64), has_begun


def _parse_times(column: Column, parser: TimestampParser) -> NDArray[np.datetime64]:
    if not isinstance(column, CodedColumn) and column.dtype.kind == "M":
        return column.filled(_NO_TIME)
    coded = code_column(column)
    texts = ["" if text is None else str(text) for text in coded.values]
    times = [np.datetime64(parser.parse(text), "us") if text else _NO_TIME for text in texts]
    return np.array(times, "datetime64[us]")[coded.code]


def _pair_events(labels: LabelArrays, phase: NDArray[np.int8], instances: Column | None) -> LabelArrays:
    """Join each completion with the first open start of the same step and instance; the others stay instants."""
    times = np.arange(len(labels.step)) if labels.end is None else labels.end
    start = times.copy() if labels.start is None else labels.start.copy()
    which = labels.video.code * np.int64(len(labels.step.values)) + labels.step.code
    if instances is not None:
        coded = code_column(instances)
        which = which * len(coded.values) + coded.code
    keep = np.ones(len(labels.step), np.bool_)
    order = np.lexsort((phase, times, which))
    open_starts: deque[int] = deque()
    before = -1
    for row, same, part in zip(order.data, which[order].data, phase[order].data, strict=True):
        if same != before:
            open_starts.clear()
        before = same
        if part == _START:
            open_starts.append(row)
        elif part == _COMPLETE and open_starts:
            opened = open_starts.popleft()
            start[row], keep[opened] = times[opened], False
    task, video, step = (CodedColumn(c.values, c.code[keep]) for c in (labels.task, labels.video, labels.step))
    return LabelArrays(task, video, step, *(() if labels.start is None else (start[keep], times[keep])))

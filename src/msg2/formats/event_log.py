"""Event logs, as tables (a case, an activity and a time per row) or in XES (IEEE 1849).

A log is a task, a case or trace is a video, an event is a step. What starts and completes becomes one segment: a start
and an end in the same row, or events whose transition is start and complete. The rest are instants.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from sys import intern
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, errors_at
from msg2.formats import tables
from msg2.formats.columns import XES_NAMES, ColumnMapping, is_log_header, match_event_columns, parse_columns
from msg2.formats.label_arrays import LabelArrays, Names, join_tasks
from msg2.formats.reading import INSTANTS, Reader, ReadNotes, ReadOptions, ReadResult, task_of_file
from msg2.formats.source import Source
from msg2.formats.tables import CodedColumn, Column, NumberColumn, Table, TimeColumn, Wanted
from msg2.formats.times import find_day_first, parse_timestamp
from msg2.formats.xml_parser import parse_xml, root_name
from msg2.task import Segment, Step, Task, Video
from msg2.text import join_counts, join_names, name_fault, short_repr

STEP, TIME, PHASE, INSTANCE = (XES_NAMES[role] for role in ("activity", "time", "transition", "instance"))
_TIMES = ("end", "time", "start")  # the columns that may say when an event happened, the best first
START, COMPLETE, _OTHER = 0, 1, 2
_PHASES = {"start": START, "complete": COMPLETE}
_BEFORE_OR_INSTEAD = {
    "schedule", "assign", "reassign", "suspend", "resume", "withdraw", "manualskip", "autoskip", "ate_abort",
    "pi_abort",
}  # fmt: skip
"""Transitions of the standard life cycle at which a step is neither begun nor done."""
_MAX_NAMES = 1000  # names of attributes that are remembered, to say which of them are not used
_log = logging.getLogger(__name__)


# -- events -> segments -----------------------------------------------------------------------------------------


class Event(NamedTuple):
    """Something that happened in a case; the order is that of pairing: by time, and what starts first."""

    time: int  # microseconds since 1970; where the log has no times, its place in the case
    phase: int
    step: Step
    instance: str
    began: int | None = None  # when it started, where the log says it in the same row


def pair_events(events: Sequence[Event]) -> list[tuple[int, int, Step]]:
    """Start, end and step of the segments of one case.

    The first complete ends the first start of the same step (and instance) that is still open; a start without a
    complete, a complete without a start, and events of other phases are instants.
    """
    spans: list[tuple[int, int, Step]] = []
    waiting: dict[tuple[Step, str], deque[int]] = {}
    for event in sorted(events, key=itemgetter(0, 1, 2, 3)):
        if event.began is not None:
            spans.append((event.began, event.time, event.step))
        elif event.phase == START:
            waiting.setdefault((event.step, event.instance), deque()).append(event.time)
        elif event.phase == COMPLETE and waiting.get((event.step, event.instance)):
            spans.append((waiting[event.step, event.instance].popleft(), event.time, event.step))
        else:
            spans.append((event.time, event.time, event.step))
    return spans + [(time, time, step) for (step, _), times in waiting.items() for time in times]


class EventParser:
    """Parses the events of one log, all with times or all without, and notes what of them is not used."""

    def __init__(self, day_first: bool | None = None) -> None:
        self.day_first = day_first  # of dates such as 5/6/2024; see `find_day_first`
        self.timed: bool | None = None  # whether the events have times; None before the first one
        self._kind_of_times: str | None = None  # in words, see `parse_timestamp`
        self._names: set[str] = set()
        self._skipped: Counter[str] = Counter()

    def add(self, events: list[Event], attributes: Mapping[str, str]) -> None:
        """Add an event to those of its case; events at which no step is done are left out."""
        if not self._names.issuperset(attributes) and len(self._names) < _MAX_NAMES:
            self._names.update(attributes)
        transition, timed = attributes.get(PHASE, ""), TIME in attributes
        if transition.casefold() in _BEFORE_OR_INSTEAD:
            self._skipped[transition] += 1
            return
        if self.timed not in (None, timed):
            here, above = ("no time", "some") if self.timed else ("a time", "none")
            raise InputError(f"the event has {here}, those above have {above}", hint="give every event a time, or none")
        self.timed = timed
        time = self.parse_time(attributes[TIME]) if timed else len(events)
        step = intern(attributes[STEP])
        if fault := name_fault(step):
            raise InputError(f"an event has {fault}")
        phase = _PHASES.get(transition.casefold(), _OTHER)
        events.append(Event(time, phase, step, attributes.get(INSTANCE, "")))

    def parse_time(self, text: str) -> int:
        """Microseconds since 1970; all times of a log are written in the same way."""
        kind, time = parse_timestamp(text, self.day_first)
        if self._kind_of_times not in (None, kind):
            what = f"the time {short_repr(text)} is one of {kind}, those above are {self._kind_of_times}"
            raise InputError(what, hint="write all times of a file in the same way")
        self._kind_of_times = kind
        return time

    def warn_of_unused(self, file: Source) -> None:
        """Log what of the events was not used."""
        if unused := sorted(self._names.difference((STEP, TIME, PHASE, INSTANCE))):
            _log.warning("%s: attributes that are not used: %s", file.path, join_names(unused))
        if self._skipped:
            _log.warning("%s: events that do no step, not read: %s", file.path, join_counts(self._skipped))


# -- tables -----------------------------------------------------------------------------------------------------


def find_logs(source: Source, given: Mapping[str, str]) -> list[Source]:
    """The file, or the files of the folder, that are logs."""
    logs = []
    for file in source.files_or_self:
        with suppress(InputError):
            header = tables.read_header(file, lambda cells: is_log_header(cells, given))
            if is_log_header(header, given) and not {"video", "step"} <= set(header):
                logs.append(file)
    return logs


def _read_tables(source: Source, options: ReadOptions) -> ReadResult:
    """Read one task per file, named after it; with times, cases may go on from part to part."""
    given = parse_columns(options.columns)
    parts: dict[str, list[LabelArrays]] = {}
    unsorted, notes = {}, ReadNotes()
    for file in find_logs(source, given) or source.files_or_self:
        table = tables.open_table(file, lambda cells: is_log_header(cells, given))
        task = task_of_file(file, source)
        mapping = match_event_columns(table.header, given, table.where)
        labels, unsorted[file.path.name] = read_log(table, mapping, task, notes)
        _require_fit(file, labels, parts.setdefault(task, []))
        parts[task].append(labels)
    tasks = [task for own in parts.values() for task in join_tasks(own, "skipped", since_start=True)]
    return ReadResult(tasks, unsorted, tuple(notes.assumptions), tuple(sorted(notes.unused)))


def _require_fit(file: Source, labels: LabelArrays, others: Sequence[LabelArrays]) -> None:
    """Refuse a part with times after parts without, and a case that goes on from one part without times to another."""
    is_timed = labels.start is not None
    if others and (others[0].start is not None) != is_timed:
        what = "has times, the parts before it have none" if is_timed else "has no times, the parts before it have some"
        raise InputError(what, where=file.path, hint="write all parts with the same columns")
    shared = set(labels.video.names).intersection(name for part in others for name in part.video.names)
    if shared and not is_timed:
        what = f"the case {short_repr(min(shared))} is in another file as well, and its events have no times"
        raise InputError(what, where=file.path, hint="put all events of a case in one file")


def read_log(table: Table, mapping: ColumnMapping, task: str, notes: ReadNotes) -> tuple[LabelArrays, int]:
    """The labels of one table, times in microseconds since 1970, and how many events are not in time order."""
    times = [mapping.columns[role] for role in _TIMES if role in mapping.columns]
    read = table.read(Wanted(list(mapping.columns.values()), times=times))
    columns = {role: read[column] for role, column in mapping.columns.items()}
    texts = [str(text) for role in _TIMES if isinstance(c := columns.get(role), CodedColumn) for text in c.values]
    day_first = find_day_first(texts)
    try:
        labels, unsorted, skipped = _to_labels(columns, task, day_first)
    except InputError:
        _raise_for_row(table, columns, day_first)
    if not len(labels.video.names):
        raise InputError("has no rows below its header", where=table.source.path, hint="add one row per event")
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


def _to_labels(
    columns: Mapping[str, Column], task: str, day_first: bool | None
) -> tuple[LabelArrays, int, Counter[str]]:
    """The labels, how many are not in time order, and the events left out; an error says that some row is wrong."""
    cases, transitions = Names.of(columns["case"]), columns.get("transition")
    rows = np.ones(len(cases.code), np.bool_)
    phase: NDArray[np.int8] = np.full(len(rows), _OTHER, np.int8)
    skipped: Counter[str] = Counter()
    if isinstance(transitions, CodedColumn):
        words = [str(word).casefold() for word in transitions.values]
        rows = np.array([word not in _BEFORE_OR_INSTEAD for word in words], np.bool_)[transitions.code]
        phase = np.array([_PHASES.get(word, _OTHER) for word in words], np.int8)[transitions.code][rows]
        skipped = Counter(str(transitions.values[code]) for code in transitions.code[~rows].tolist())
    case = Names(cases.names, cases.code[rows])
    step = Names.of(_select(columns["activity"], rows))
    labels = LabelArrays(Names((task,), np.zeros(len(case.code), np.int32)), case, step)
    began = np.zeros(len(case.code), np.bool_)
    if columns.keys() & set(_TIMES):
        start, end, began = _moments({r: _select(columns[r], rows) for r in _TIMES if r in columns}, day_first)
        labels = replace(labels, start=start, end=end)
    unsorted = replace(labels, start=labels.end).count_unsorted()
    if (phase[~began] == START).any():
        labels = _pair_rows(labels, phase, began, _select(columns["instance"], rows) if "instance" in columns else None)
    return labels, unsorted, skipped


def _select(column: Column, rows: NDArray[np.bool_]) -> Column:
    """Some rows of a column."""
    if rows.all():
        return column
    if isinstance(column, TimeColumn):
        return TimeColumn(column.values[rows])
    if isinstance(column, NumberColumn):
        return NumberColumn(column.values[rows], None if column.missing is None else column.missing[rows])
    used, code = np.unique(column.code[rows], return_inverse=True)
    return CodedColumn([column.values[place] for place in used.tolist()], code.astype(np.int32))


def _moments(
    columns: Mapping[str, Column], day_first: bool | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """When events started and happened, in microseconds since 1970, and which of them say when they started."""
    moments, present = {}, {}
    kinds: set[str] = set()
    for role, column in columns.items():
        if isinstance(column, TimeColumn):
            moments[role], present[role] = column.values, np.ones(len(column.values), np.bool_)
            continue
        coded = column if isinstance(column, CodedColumn) else tables.code_values(column.cells())
        parsed = [parse_timestamp(str(text), day_first) if text else None for text in coded.values]
        kinds |= {kind for kind, _ in filter(None, parsed)}
        moments[role] = np.array([0 if moment is None else moment[1] for moment in parsed], np.int64)[coded.code]
        present[role] = np.array([moment is not None for moment in parsed], np.bool_)[coded.code]
    if len(kinds) > 1:
        raise InputError("times are written in several ways")
    nothing = np.zeros(len(next(iter(present.values()))), np.bool_)
    end, happened = np.zeros(len(nothing), np.int64), nothing
    for role in _TIMES:
        if role in columns:
            end = np.where(present[role] & ~happened, moments[role], end)
            happened = happened | present[role]
    start, began = end, nothing
    if {"time", "end"} <= columns.keys():
        began = present["time"] & present["end"]
        start = np.where(began, moments["time"], start)
    if "start" in columns:
        began = began | present["start"]
        start = np.where(present["start"], moments["start"], start)
    if not happened.all() or (start > end).any():
        raise InputError("an event has no time, or starts after it")
    return start, end, began


def _pair_rows(
    labels: LabelArrays, phase: NDArray[np.int8], began: NDArray[np.bool_], instances: Column | None
) -> LabelArrays:
    """The labels of events of which some are starts and some completions of the same step."""
    cases: dict[int, list[Event]] = {}
    rows = len(phase)
    instance = [""] * rows if instances is None else [str(cell) for cell in instances.cells()]
    start, end = (np.arange(rows) if times is None else times for times in (labels.start, labels.end))
    arrays = (labels.video.code, labels.step.code, start, end, phase, began)
    for case, name, first, last, own, has_begun, which in zip(*map(np.ndarray.tolist, arrays), instance, strict=True):
        event = Event(last, own, labels.step.names[name], which, first if has_begun else None)
        cases.setdefault(case, []).append(event)
    code = {name: number for number, name in enumerate(labels.step.names)}
    spans = {case: sorted(pair_events(events), key=itemgetter(1)) for case, events in cases.items()}
    paired = [(case, code[step], start, end) for case, own in spans.items() for start, end, step in own]
    case_code, step_code, start, end = np.array(paired, np.int64).T
    task = Names(labels.task.names, np.zeros(len(paired), np.int32))
    video = Names(labels.video.names, case_code.astype(np.int32))
    step = Names(labels.step.names, step_code.astype(np.int32))
    return LabelArrays(task, video, step, *(() if labels.start is None else (start, end)))


def _raise_for_row(table: Table, columns: Mapping[str, Column], day_first: bool | None) -> NoReturn:
    """Look at every row again, to say which one is wrong."""
    parser = EventParser(day_first)
    cases: dict[str, list[Event]] = {}
    for line, *cells in zip(table.lines(), *(column.cells() for column in columns.values()), strict=False):
        row = dict(zip(columns, cells, strict=True))
        with errors_at(table.source.row(line)):
            for role in ("case", "activity"):
                if not isinstance(row[role], str | None):
                    raise InputError(f"the {role} {short_repr(str(row[role]))} is not text")
            texts = {role: cell if isinstance(cell, str) else str(cell or "") for role, cell in row.items()}
            if fault := name_fault(texts["case"]):
                raise InputError(f"the case has {fault}" if texts["case"] else "the case is empty")
            attributes = {XES_NAMES[role]: texts[role] for role in ("activity", "transition") if role in texts}
            times = [texts[role] for role in _TIMES if role in texts]
            events = cases.setdefault(texts["case"], [])
            count = len(events)
            parser.add(events, attributes | ({TIME: next(filter(None, times), "")} if times else {}))
            if len(events) > count:
                moments = {role: parser.parse_time(texts[role]) for role in _TIMES if texts.get(role)}
                began = moments.get("start", moments.get("time") if "end" in moments else None)
                if began is not None and began > events[-1].time:
                    raise InputError(f"the event starts after its {TIME!r}")
    raise InputError("cannot be read as an event log", where=table.source.path)


EVENT_TABLES = Reader(
    "event logs as tables (case, activity, timestamp)", lambda source: bool(find_logs(source, {})), _read_tables,
    ("text", "workbook", "parquet", "JSON lines"),
)  # fmt: skip


# -- XES --------------------------------------------------------------------------------------------------------


def _read_xes(source: Source, options: ReadOptions) -> ReadResult:
    """Read one task per log, named by it, else by its file; memory grows with the labels and not with the file."""
    tasks, unsorted = [], {}
    for file in _xes_logs(source):
        log = _XesLog()
        parse_xml(file, log.start_element, log.end_element)
        if not log.videos:
            raise InputError("the log has no traces", where=file.path)
        log.parser.warn_of_unused(file)
        with errors_at(file.path, hint="give every trace a name of its own"):
            tasks.append(Task(log.name or file.stem, log.steps, log.videos, "skipped"))
        unsorted[file.path.name] = log.unsorted
    for name, count in Counter(task.name for task in tasks).items():
        if count > 1:
            raise InputError(f"two logs are called {short_repr(name)}", where=source.path, hint="read them one by one")
    return ReadResult(tasks, unsorted)


def _xes_logs(source: Source) -> list[Source]:
    return [file for file in source.files_or_self if root_name(file) == "log"]


class _XesLog:
    """What has been read of a log so far; the handlers of `parse_xml` fill it."""

    def __init__(self) -> None:
        self.name = ""
        self.steps: set[str] = set()
        self.videos: list[Video] = []
        self.unsorted = 0
        self.parser = EventParser()
        self._depth = 0
        self._trace: str | None = None  # name of the trace that is being read, empty until it is known
        self._event: dict[str, str] | None = None
        self._events: list[Event] = []

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element: depth 2 has attributes of the log, 3 of a trace, 4 of an event."""
        self._depth += 1
        if self._depth == 4 and self._event is not None:
            self._event[attributes.get("key", "")] = attributes.get("value", "")
        elif self._depth == 3 and self._trace is not None:
            if name == "event":
                self._event = {}
            elif attributes.get("key") == STEP:
                self._trace = attributes.get("value", "")
        elif self._depth == 2:
            if name == "trace":
                self._trace = ""
            elif attributes.get("key") == STEP:
                self.name = attributes.get("value", "")

    def end_element(self, name: str) -> None:
        """Handle the end of an element: an event or a trace may be complete."""
        self._depth -= 1
        if self._depth == 2 and self._event is not None:
            if STEP not in self._event:
                raise InputError(f"the event has no attribute {STEP!r}", hint="it names what happened")
            self.parser.add(self._events, self._event)
            self._event = None
        elif self._depth == 1 and self._trace is not None:
            spans = pair_events(self._events)
            if self.parser.timed:
                origin = min((start for start, _, _ in spans), default=0)
                moments = ((step, (start - origin) / 1e6, (end - origin) / 1e6) for start, end, step in sorted(spans))
                segments = [Segment(*moment) for moment in moments]
            else:
                segments = [Segment(step) for _, _, step in sorted(spans, key=itemgetter(1))]
            self.unsorted += sum(below.time < above.time for above, below in pairwise(self._events))
            self.steps.update(segment.step for segment in segments)
            self.videos.append(Video(self._trace or str(len(self.videos) + 1), segments))
            self._trace, self._events = None, []


XES = Reader("event logs in XES", lambda source: bool(_xes_logs(source)), _read_xes, ("XML",))

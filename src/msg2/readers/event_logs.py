"""Event logs as tables: `case:concept:name`, `concept:name` and `time:timestamp`, as process miners name their columns.

A case is a video. `start_timestamp`, or rows with `lifecycle:transition` start and complete, make segments of instants.
"""

from __future__ import annotations

import logging
from collections import Counter

from msg2.errors import InputError
from msg2.options import ReadOptions
from msg2.readers.cases import INSTANCE, PHASE, STEP, TIME, Event, event, performs, segments_of, unsorted_events
from msg2.readers.delimited import first_cells, records
from msg2.readers.found import Found, Labels, tasks_of
from msg2.readers.moments import Clock
from msg2.readers.sources import Source
from msg2.readers.wording import counted, listed

READS = "event logs as tables (case:concept:name, concept:name, time:timestamp)"
TAKES = ()

_CASE, _BEGAN = "case:concept:name", "start_timestamp"
_KNOWN = {_CASE, STEP, TIME, PHASE, INSTANCE, _BEGAN}
_log = logging.getLogger(__name__)


def recognises(source: Source) -> bool:
    """Whether the file, or a file in the folder, has these columns."""
    return bool(_logs(source))


def read(source: Source, options: ReadOptions) -> Found:
    """One task per file, named after it."""
    labels: Labels = {}
    unsorted = {}
    for file in _logs(source):
        cases, timed = _cases(file)
        unsorted[file.path.name] = sum(map(unsorted_events, cases.values()))
        for case, events in cases.items():
            labels[file.stem, case] = segments_of(events, timed)
    return Found.of(tasks_of(labels), unsorted)


def _logs(source: Source) -> list[Source]:
    files = source.files if source.is_folder else (source,)
    return [file for file in files if any({_CASE, STEP} <= set(first_cells(file, mark)) for mark in ",\t;")]


def _cases(file: Source) -> tuple[dict[str, list[Event]], bool]:
    """Case -> its events in the order of the file; and whether they have times."""
    cases: dict[str, list[Event]] = {}
    clock, passed = Clock(), Counter[str]()
    columns: set[str] = set()
    names: dict[str, str] = {}
    for line, row in records(file, (_CASE, STEP)):
        columns = columns or set(row)
        case, step, transition = row[_CASE], row[STEP], row.get(PHASE, "")
        if not case:
            raise InputError("the case is empty", where=file.row(line))
        events = cases.setdefault(case, [])
        if not performs(transition):
            passed[transition] += 1
            continue
        try:
            time = clock.microseconds(row[TIME]) if TIME in row else len(events)
            began = clock.microseconds(row[_BEGAN]) if TIME in row and row.get(_BEGAN) else None
            if began is not None and began > time:
                raise InputError(f"the event starts after its {TIME!r}")
            events.append(event(time, names.setdefault(step, step), transition, row.get(INSTANCE, ""), began))
        except InputError as error:
            raise InputError(error.what, where=file.row(line), hint=error.hint) from None
    if not cases:
        raise InputError("has no rows below its header", where=file.path, hint="add one row per event")
    if columns - _KNOWN:
        _log.warning("%s: columns that are not used: %s", file.path, listed(columns - _KNOWN))
    if passed:
        _log.warning("%s: events that do no step, not read: %s", file.path, counted(passed))
    return cases, TIME in columns

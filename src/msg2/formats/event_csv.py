"""Event logs as tables: `case:concept:name`, `concept:name` and `time:timestamp`, as process miners name their columns.

A case is a video. `start_timestamp`, or rows with `lifecycle:transition` start and complete, make segments of instants.
"""

from __future__ import annotations

from msg2.errors import InputError
from msg2.formats.delimited_reader import first_cells, read_records
from msg2.formats.events import STEP, Event, EventParser, count_unsorted_events, events_to_segments
from msg2.formats.reading import ReadOptions, ReadResult, SegmentsByVideo, build_tasks
from msg2.formats.source import Source

DESCRIPTION = "event logs as tables (case:concept:name, concept:name, time:timestamp)"

_CASE, _BEGAN = "case:concept:name", "start_timestamp"


def can_read(source: Source) -> bool:
    """Whether the file, or a file in the folder, has these columns."""
    return bool(_logs(source))


def read(source: Source, options: ReadOptions) -> ReadResult:
    """Read one task per file, named after it.

    Parameters
    ----------
    source : Source
        A file or folder that `can_read` accepts.
    options : ReadOptions
        Not looked at.

    Returns
    -------
    ReadResult
        The tasks, every label kept.

    Raises
    ------
    InputError
        Where something is wrong with the data.
    """
    labels: SegmentsByVideo = {}
    unsorted = {}
    for file in _logs(source):
        cases, timed = _read_cases(file)
        unsorted[file.path.name] = sum(map(count_unsorted_events, cases.values()))
        labels |= {(file.stem, case): events_to_segments(events, timed) for case, events in cases.items()}
    return ReadResult(build_tasks(labels, absent="skipped"), unsorted)


def _logs(source: Source) -> list[Source]:
    return [file for file in source.files_or_self if any({_CASE, STEP} <= set(first_cells(file, m)) for m in ",\t;")]


def _read_cases(file: Source) -> tuple[dict[str, list[Event]], bool]:
    """Case -> its events in the order of the file; and whether they have times."""
    cases: dict[str, list[Event]] = {}
    parser = EventParser()
    for line, row in read_records(file, (_CASE, STEP)):
        try:
            if not row[_CASE]:
                raise InputError("the case is empty")
            parser.add(cases.setdefault(row[_CASE], []), row, row.get(_BEGAN, ""))
        except InputError as error:
            raise error.at(file.row(line)) from None
    if not cases:
        raise InputError("has no rows below its header", where=file.path, hint="add one row per event")
    parser.warn_of_unused(file, "columns", (_CASE, _BEGAN))
    return cases, bool(parser.timed)

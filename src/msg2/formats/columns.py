"""Which column of a table is which: as the user says, else by its exact name, else by a name that means nothing else.

Names are compared without case, spaces and punctuation. A table is one of steps, or an event log.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from msg2.errors import InputError, errors_at
from msg2.text import join_names, short_repr

RoleNames: TypeAlias = Mapping[str, Sequence[str]]  # what a column is -> names that mean it, see `normalize_name`

STEP_NAMES: RoleNames = {
    "task": ("task", "taskname"),
    "video": ("video", "videoid", "videoname", "videofile", "recording", "recordingid"),
    "step": ("step", "stepname", "steplabel"),
    "start": (
        "start", "starttime", "startseconds", "startsec", "starts", "begin", "begintime", "time", "timecode",
        "timestamp", "startms", "startmsec", "startmilliseconds", "beginms", "begintimems", "starttimems",
    ),
    "end": (
        "end", "endtime", "endseconds", "endsec", "ends", "stop", "stoptime", "endms", "endmsec", "endmilliseconds",
        "endtimems", "stopms",
    ),
    "confidence": ("confidence",),
    "source": ("source", "annotator", "annotatorid", "coder", "rater"),
}  # fmt: skip
"""The columns of a table of steps."""
EVENT_NAMES: RoleNames = {
    "case": ("caseconceptname", "case", "caseid", "casekey", "caseno", "casenumber", "traceid", "processinstanceid"),
    "activity": ("conceptname", "activity", "activityname", "activityen", "event", "eventname"),
    "time": ("timetimestamp", "time", "timestamp", "eventtime", "eventtimestamp", "datetime"),
    "start": ("start", "starttimestamp", "starttime", "startdate", "startdatetime", "begintime"),
    "end": (
        "end", "endtimestamp", "completetimestamp", "endtime", "completetime", "completiontime", "enddate",
        "completiontimestamp", "enddatetime",
    ),
    "transition": ("lifecycletransition", "lifecycle", "transition"),
    "instance": ("conceptinstance",),
}  # fmt: skip
"""The columns of an event log; Disco, Celonis and pm4py name them so."""
XES_NAMES = {
    "case": "case:concept:name", "activity": "concept:name", "time": "time:timestamp", "start": "start_timestamp",
    "transition": "lifecycle:transition", "instance": "concept:instance",
}  # fmt: skip
"""The columns of an event log as the XES standard and pm4py name them, which needs no note."""
COLUMNS_HINT = 'say which is which: --columns "video=…,step=…", of an event log "case=…,activity=…,time=…"'


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """What every column that is used is."""

    columns: Mapping[str, str]  # what it is -> the column, as the file names it
    unused: tuple[str, ...]
    assumptions: tuple[str, ...] = ()  # what was guessed, in words; that `Step` is the step goes without saying


def normalize_name(column: str) -> str:
    """A column's name without case, spaces and punctuation."""
    return re.sub(r"[\W_]+", "", column).casefold()


def match_columns(header: Sequence[str], names: RoleNames, given: Mapping[str, str]) -> ColumnMapping:
    """Find out which column is which."""
    found: dict[str, str] = {}
    guesses = []
    for role in names:
        wanted = given.get(role, role)
        if not wanted:
            continue
        fitting = [column for column in header if column == wanted]
        if not fitting:
            known = [normalize_name(wanted)] if role in given else names[role]
            fitting = [column for column in header if normalize_name(column) in known and column not in given.values()]
            if role not in given and fitting and normalize_name(fitting[0]) != role:
                guesses.append(f"{short_repr(fitting[0])} is the {role}")
        if role in given and not fitting:
            what = f"there is no column {short_repr(wanted)}"
            raise InputError(what, hint=f"the columns are {join_names(header, limit=30)}")
        if len(fitting) > 1:
            if len(set(fitting)) == 1:
                raise InputError(f"the column {short_repr(fitting[0])} is there twice", hint="rename or remove one")
            what = f"the columns {join_names(fitting, limit=30)} could each be the {role}"
            raise InputError(what, hint=f'say which it is: --columns "{role}={fitting[0]}"')
        if fitting:
            found[role] = fitting[0]
    for column, times in Counter(found.values()).items():
        if times > 1:
            raise InputError(f"the column {short_repr(column)} is given twice", hint="name a column once in --columns")
    unused = tuple(dict.fromkeys(column for column in header if column and column not in found.values()))
    return ColumnMapping(found, unused, (f"the column {', '.join(guesses)}",) if guesses else ())


def is_step_header(cells: Sequence[str], given: Mapping[str, str]) -> bool:
    """Whether some cells could be the header of a table of steps."""
    wanted = (normalize_name(given["step"]),) if "step" in given else STEP_NAMES["step"]
    return any(normalize_name(cell) in wanted for cell in cells)


def is_log_header(cells: Sequence[str], given: Mapping[str, str]) -> bool:
    """Whether some cells could be the header of an event log."""
    names = {normalize_name(cell) for cell in cells}
    wanted = ([normalize_name(given[role])] if role in given else EVENT_NAMES[role] for role in ("case", "activity"))
    return all(names.intersection(known) for known in wanted)


def match_step_columns(
    header: Sequence[str], given: Mapping[str, str], where: str, required: Sequence[str] = ("video", "step")
) -> ColumnMapping:
    """Which column of a table of steps is which; refuse a table without those that are required."""
    with errors_at(where):
        mapping = match_columns(header, STEP_NAMES, given)
        require_columns(required, mapping.columns, header)
        if required and "end" in mapping.columns and "start" not in mapping.columns:
            what = "there is a column 'end', but no column 'start'"
            raise InputError(what, hint="give both, in seconds, or only the start, or neither")
    return mapping


def match_event_columns(header: Sequence[str], given: Mapping[str, str], where: str) -> ColumnMapping:
    """Which column of an event log is which."""
    standard = {role: name for role, name in XES_NAMES.items() if name in header}
    with errors_at(where):
        mapping = match_columns(header, EVENT_NAMES, {**standard, **given})
        require_columns(("case", "activity"), mapping.columns, header)
    return mapping


def require_columns(required: Sequence[str], found: Container[str], header: Sequence[str]) -> None:
    """Refuse a table without a column that has to be there."""
    for name in required:
        if name not in found:
            columns = ", ".join(short_repr(column, 30) for column in header[:10])
            raise InputError(f"the column {name!r} is missing", hint=f"the columns are {columns}; {COLUMNS_HINT}")


def format_columns(columns: str | Mapping[str, str] | None) -> str | None:
    """Write what the user says about columns as the command line takes it; Python may say it as a mapping."""
    if isinstance(columns, Mapping):
        return ",".join(f"{role}={column}" for role, column in columns.items())
    return columns


def parse_columns(text: str | None) -> dict[str, str]:
    """Parse what the user says about columns: ``case=Order,activity=Task``."""
    if text is None:
        return {}
    pairs = [part.partition("=") for part in re.split(r",(?=\s*\w+\s*=)", text)]
    given = {role.strip().casefold(): column.strip() for role, _, column in pairs}
    for role in given:
        if role not in {*STEP_NAMES, *EVENT_NAMES} or "=" not in text:
            hint = "write video=…,step=…,start=…,end=… for a table of steps, case=…,activity=…,time=…,end=… for a log"
            raise InputError(f"columns is {short_repr(text)}, {short_repr(role)} is no column that is used", hint=hint)
    if len(given) < len(pairs):
        raise InputError(f"columns is {short_repr(text)}, something is there twice")
    if not any(given.keys() <= set(names) for names in (STEP_NAMES, EVENT_NAMES)):
        hint = "video and step are columns of a table of steps, case and activity of an event log: give one kind"
        raise InputError(f"columns is {short_repr(text)}, which mixes two kinds of tables", hint=hint)
    return given


def is_event_log(given: Mapping[str, str]) -> bool:
    """Whether the columns that the user named are those of an event log."""
    return bool(given.keys() - STEP_NAMES.keys())

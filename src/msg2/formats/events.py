"""Events of a log -> segments: what starts and completes becomes one segment, the rest are instants.

Points in time are as logs write them: ISO 8601 with or without a time zone, or numbers since 1970. Only differences
within one video matter, so every point is a whole number of microseconds since 1970.
"""

from __future__ import annotations

import logging
import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from operator import itemgetter
from sys import intern
from typing import NamedTuple

from msg2.errors import InputError
from msg2.formats.source import Source
from msg2.task import Segment, Step
from msg2.text import join_counts, join_names, name_fault, short_repr

STEP, TIME, PHASE, INSTANCE = "concept:name", "time:timestamp", "lifecycle:transition", "concept:instance"
"""The names that the XES standard gives to what is read of an event."""
_START, _COMPLETE, _OTHER = 0, 1, 2
_PHASES = {"start": _START, "complete": _COMPLETE}
_BEFORE_OR_INSTEAD = {
    "schedule", "assign", "reassign", "suspend", "resume", "withdraw", "manualskip", "autoskip", "ate_abort",
    "pi_abort",
}  # fmt: skip
"""Transitions of the standard life cycle at which a step is neither begun nor done."""
_MAX_NAMES = 1000
"""Names of attributes that are remembered, to say which of them are not used."""
_log = logging.getLogger(__name__)

_NUMBER = re.compile(r"-?\d{1,25}(?:\.\d{1,25})?")
_DATE = re.compile(
    r"(?P<a>\d{1,4})(?P<mark>[./-])(?P<b>\d{1,2})(?P=mark)(?P<c>\d{1,4})"
    r"(?:[ T]+(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"\s*(?P<half>[AaPp][Mm])?)?"
)
"""A date as people and spreadsheets write it: 2024/05/13, 13.05.2024, 13/05/2024 or 5/13/2024, maybe with a time."""
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_UNITS = (
    (10**11, 10**6, "seconds since 1970"),
    (10**14, 10**3, "milliseconds since 1970"),
    (10**17, 1, "microseconds since 1970"),
)
"""A number below the first is that many of the second, in microseconds: seconds reach the year 5138 before they are
taken for milliseconds, and milliseconds begin in 1973."""


class Event(NamedTuple):
    """Something that happened in a case; the order is that of pairing: by time, and what starts first."""

    time: int
    """Microseconds since 1970; where the log has no times, its place in the case."""
    phase: int
    step: Step
    instance: str
    began: int | None = None
    """When it started, where the log says it in the same row."""


def make_event(time: int, step: Step, transition: str = "", instance: str = "", began: int | None = None) -> Event:
    """An event of a case."""
    if fault := name_fault(step):
        raise InputError(f"an event has {fault}")
    return Event(time, _PHASES.get(transition.casefold(), _OTHER), step, instance, began)


def events_to_segments(events: Sequence[Event], timed: bool) -> list[Segment]:
    """Pair the events of one case into segments.

    The first complete ends the first start of the same step (and instance) that is still open; a start without a
    complete, a complete without a start, and events of other phases are instants.
    """
    spans: list[tuple[int, int, Step]] = []
    waiting: dict[tuple[Step, str], deque[int]] = {}
    for event in sorted(events, key=itemgetter(0, 1, 2, 3)):
        if event.began is not None:
            spans.append((event.began, event.time, event.step))
        elif event.phase == _START:
            waiting.setdefault((event.step, event.instance), deque()).append(event.time)
        elif event.phase == _COMPLETE and waiting.get((event.step, event.instance)):
            spans.append((waiting[event.step, event.instance].popleft(), event.time, event.step))
        else:
            spans.append((event.time, event.time, event.step))
    spans += [(time, time, step) for (step, _), times in waiting.items() for time in times]
    if not timed:
        return [Segment(step) for _, _, step in sorted(spans, key=lambda span: span[1])]
    origin = min((start for start, _, _ in spans), default=0)
    return [_segment(step, start - origin, end - origin) for start, end, step in sorted(spans)]


def _segment(step: Step, start: int, end: int) -> Segment:
    began = start / 1e6
    return Segment(step, began, began if end == start else end / 1e6)  # one number for an instant: there are many


def count_unsorted_events(events: Sequence[Event]) -> int:
    """How many events of a case stand below a later event."""
    return sum(below.time < above.time for above, below in pairwise(events))


class EventParser:
    """Parses the events of one log, all with times or all without, and notes what of them is not used."""

    def __init__(self, day_first: bool | None = None) -> None:
        self.day_first = day_first
        """Of dates such as 5/6/2024; see `find_day_first`."""
        self.timed: bool | None = None
        """Whether the events have times; None before the first one."""
        self._kind_of_times: str | None = None
        """In words, see `parse_timestamp`."""
        self._names: set[str] = set()
        self._skipped: Counter[str] = Counter()

    def add(self, events: list[Event], attributes: Mapping[str, str], began: str = "") -> None:
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
        time = self._parse_time(attributes[TIME]) if timed else len(events)
        start = self._parse_time(began) if timed and began else None
        if start is not None and start > time:
            raise InputError(f"the event starts after its {TIME!r}")
        events.append(make_event(time, intern(attributes[STEP]), transition, attributes.get(INSTANCE, ""), start))

    def _parse_time(self, text: str) -> int:
        kind, time = parse_timestamp(text, self.day_first)
        if self._kind_of_times not in (None, kind):
            what = f"the time {short_repr(text)} is one of {kind}, those above are {self._kind_of_times}"
            raise InputError(what, hint="write all times of a file in the same way")
        self._kind_of_times = kind
        return time

    def warn_of_unused(self, file: Source, kind: str, others: Sequence[str] = ()) -> None:
        """Log what of the events was not used."""
        if unused := sorted(self._names.difference((STEP, TIME, PHASE, INSTANCE), others)):
            _log.warning("%s: %s that are not used: %s", file.path, kind, join_names(unused))
        if self._skipped:
            _log.warning("%s: events that do no step, not read: %s", file.path, join_counts(self._skipped))


def parse_timestamp(text: str, day_first: bool | None = None) -> tuple[str, int]:
    """Parse a point in time."""
    text = text.strip()
    if text[4:5] != "-" and _NUMBER.fullmatch(text):
        number = Decimal(text)
        for limit, unit, kind in _UNITS:
            if abs(number) < limit:
                return kind, int(number * unit)
        return "nanoseconds since 1970", int(number / 1000)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        found = _parse_date(text, day_first)
        if found is None:
            hint = "write times as 2024-05-01T12:00:00+02:00, or as seconds since 1970"
            raise InputError(f"the time {short_repr(text)} is not a point in time", hint=hint) from None
        time = found
    if time.tzinfo is None:
        return "times without a time zone", (time.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
    return "times with a time zone", (time - _EPOCH) // _MICROSECOND


def _parse_date(text: str, day_first: bool | None) -> datetime | None:
    """The point in time of a date as a spreadsheet writes it; None where the text is something else."""
    found = _DATE.fullmatch(text)
    if found is None or (len(found["a"]) == 4) == (len(found["c"]) == 4):
        return None
    if len(found["a"]) == 4:
        year, month, day = found["a"], found["b"], found["c"]
    else:
        if day_first is None and (day_first := _day_first(found)) is None:
            what = f"the time {short_repr(text)} may have the day first or the month"
            raise InputError(what, hint="no row of the file tells; write times as 2024-05-01 12:00:00")
        day, month, year = (found["a"] if day_first else found["b"]), found["b" if day_first else "a"], found["c"]
    hour = int(found["hour"] or 0)
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (found["half"].lower() == "pm")
    fraction = int((found["fraction"] or "0")[:6].ljust(6, "0"))
    try:
        return datetime(
            int(year), int(month), int(day), hour, int(found["minute"] or 0), int(found["second"] or 0), fraction
        )
    except ValueError:
        return None


def _day_first(date: re.Match[str]) -> bool | None:
    """Whether the day comes first in a date with the year last, where that can be told."""
    if date["mark"] == "." or int(date["a"]) > 12:
        return True
    return False if int(date["b"]) > 12 else None


def find_day_first(texts: Iterable[str]) -> bool | None:
    """Whether the day comes first in dates such as 5/6/2024, by the first one that tells; None where none does.

    >>> find_day_first(["1/2/2024", "1/13/2024 9:00 PM"]), find_day_first(["2024-01-02"])
    (False, None)
    """
    dates = (date for text in texts if (date := _DATE.fullmatch(text.strip())) and len(date["a"]) < 4)
    return next((told for date in dates if (told := _day_first(date)) is not None), None)

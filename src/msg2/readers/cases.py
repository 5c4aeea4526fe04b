"""The events of one case of a log -> segments: what starts and completes becomes one segment, the rest are instants."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from msg2.errors import InputError
from msg2.task import Segment, Step

STEP, TIME, PHASE, INSTANCE = "concept:name", "time:timestamp", "lifecycle:transition", "concept:instance"
"""The names that the XES standard gives to what is read of an event."""
_START, _COMPLETE, _OTHER = 0, 1, 2
_PHASES = {"start": _START, "complete": _COMPLETE}
_BEFORE_OR_INSTEAD = {
    "schedule", "assign", "reassign", "suspend", "resume", "withdraw", "manualskip", "autoskip", "ate_abort",
    "pi_abort",
}  # fmt: skip
"""Transitions of the standard life cycle at which a step is neither begun nor done."""


class Event(NamedTuple):
    """Something that happened in a case; the order is that of pairing: by time, and what starts first."""

    time: int
    """Microseconds since 1970; where the log has no times, its place in the case."""
    phase: int
    step: Step
    instance: str
    began: int | None = None
    """When it started, where the log says it in the same row."""


def performs(transition: str) -> bool:
    """Whether an event of this transition (maybe none) is part of doing the step.

    >>> performs("COMPLETE"), performs("schedule"), performs("")
    (True, False, True)
    """
    return transition.casefold() not in _BEFORE_OR_INSTEAD


def event(time: int, step: Step, transition: str = "", instance: str = "", began: int | None = None) -> Event:
    """An event; `transition` is `start`, `complete`, or anything else for an instant."""
    if not step:
        raise InputError("an event has an empty name")
    return Event(time, _PHASES.get(transition.casefold(), _OTHER), step, instance, began)


def segments_of(events: Sequence[Event], timed: bool) -> list[Segment]:
    """The segments of one case, in seconds since its first event; untimed ones in the order in which they were done.

    The first complete ends the first start of the same step (and instance) that is still open; a start without a
    complete, a complete without a start, and events of other phases are instants.

    >>> day = [event(0, "fry", "start"), event(2_000_000, "flip"), event(5_000_000, "fry", "complete")]
    >>> [(s.step, s.start, s.end) for s in segments_of(day, timed=True)]
    [('fry', 0.0, 5.0), ('flip', 2.0, 2.0)]
    """
    spans: list[tuple[int, int, Step]] = []
    waiting: dict[tuple[Step, str], deque[int]] = {}
    for one in sorted(events, key=itemgetter(0, 1, 2, 3)):
        if one.began is not None:
            spans.append((one.began, one.time, one.step))
        elif one.phase == _START:
            waiting.setdefault((one.step, one.instance), deque()).append(one.time)
        elif one.phase == _COMPLETE and waiting.get((one.step, one.instance)):
            spans.append((waiting[one.step, one.instance].popleft(), one.time, one.step))
        else:
            spans.append((one.time, one.time, one.step))
    spans += [(time, time, step) for (step, _), times in waiting.items() for time in times]
    if not timed:
        return [Segment(step) for _, _, step in sorted(spans, key=lambda span: span[1])]
    origin = min((start for start, _, _ in spans), default=0)
    return [_segment(step, start - origin, end - origin) for start, end, step in sorted(spans)]


def _segment(step: Step, start: int, end: int) -> Segment:
    began = start / 1e6
    return Segment(step, began, began if end == start else end / 1e6)  # one number for an instant: there are many


def unsorted_events(events: Sequence[Event]) -> int:
    """How many events of a case stand below a later one."""
    return sum(below.time < above.time for above, below in pairwise(events))

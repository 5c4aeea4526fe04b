"""The events of one run in the order of time, and how the run stood after each of the last ones.

Events that come late, are corrected or taken back are put where they belong, and what followed is worked out again. A
log on disk has every call as a line; then only the last events stay in memory, and only those can be corrected.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from msg2.assist.belief import Belief
from msg2.assist.events import StepReport
from msg2.errors import InputError, require
from msg2.files import append_line, write_whole
from msg2.task import Step
from msg2.text import short_repr

FORMAT = "msg2.run/2"
"""Of a saved run."""
EventKind: TypeAlias = Literal["did", "saw", "began", "accept", "pause", "resume"]
KEPT_EVENTS = 1_000
"""Events, at least, that stay in memory where a log is on disk; and reports that are kept in any case."""
_SNAPSHOTS = 32
"""Standings that are kept: to correct one of the last so many events takes no longer than to tell as many."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One event of a run, and what became of it."""

    kind: EventKind
    seen: Mapping[Step, float]
    """How well it fits each step; what is missing to 1, nothing was done. Empty for a moment without a step."""
    at: float | None
    """Seconds."""
    id: str | None = None
    """Under which it can be corrected or taken back; an event whose id is known already changes nothing."""
    actor: str | None = None
    """Who did it."""
    report: StepReport | None = None
    """None for what is not assessed, and for events long ago."""

    def to_json(self) -> dict[str, object]:
        """What was told, without the report."""
        named = {key: value for key, value in (("id", self.id), ("actor", self.actor)) if value is not None}
        return {"kind": self.kind, "seen": dict(self.seen), "at": self.at, **named}


@dataclass(frozen=True, slots=True)
class RaisedAlarm:
    """An alarm: what it is about, which event raised it, when, and the probability from which on it stands."""

    cause: object
    number: int
    at: float | None
    least: float


@dataclass(frozen=True, slots=True)
class Standing:
    """How a run stands after an event."""

    belief: Belief = field(default_factory=Belief)
    running: Mapping[int, int] = field(default_factory=dict)
    """The steps that have begun and not ended, and how many had ended when each began."""
    raised: tuple[RaisedAlarm, ...] = ()
    accepted: frozenset[object] = frozenset()
    """What somebody accepted although it seemed a mistake."""
    began: float | None = None
    latest: float | None = None
    """The first and the last time that was told."""
    paused: float = 0.0
    """Seconds of all pauses that are over."""
    paused_since: float | None = None

    def clock(self, at: float) -> float:
        """The time on a clock that stops during pauses."""
        return (at if self.paused_since is None else min(at, self.paused_since)) - self.paused

    def at(self, event: Observation) -> Standing:
        """Let the clock go on until an event."""
        if event.at is None:
            return self
        begun, latest = event.at if self.began is None else self.began, event.at
        if event.kind == "pause" and self.paused_since is None:
            return replace(self, began=begun, latest=latest, paused_since=event.at)
        if event.kind == "resume" and self.paused_since is not None:
            paused = self.paused + event.at - self.paused_since
            return replace(self, began=begun, latest=latest, paused=paused, paused_since=None)
        return replace(self, began=begun, latest=latest)


Advance: TypeAlias = Callable[[Standing, Observation, int], tuple[Standing, StepReport | None]]
"""From how a run stands, the next event and its number to how it stands then, and the report on the event."""


class EventLog:
    """The events of a run. `advance` takes one in; events may come `window` seconds late; `file` is the log on disk."""

    def __init__(self, advance: Advance, window: float, file: Path | None = None) -> None:
        self._advance, self._window, self._file = advance, window, file
        self._events: list[Observation] = []
        self._forgotten = 0
        """Events that are on disk only."""
        self._before, self._halfway = Standing(), Standing()
        """The standing before the first event in memory, and after `KEPT_EVENTS` of them."""
        self._standings = [self._before]
        """After the last events, the newest last."""
        self._ids: dict[str, int] = {}
        """The number of each event in memory that has an id."""

    @property
    def standing(self) -> Standing:
        """How the run stands now."""
        return self._standings[-1]

    @property
    def events(self) -> tuple[Observation, ...]:
        """The events in memory."""
        return tuple(self._events)

    def __len__(self) -> int:
        return self._forgotten + len(self._events)

    @property
    def is_complete(self) -> bool:
        """Whether all events are in memory."""
        return not self._forgotten

    def move_file(self, path: Path) -> None:
        """Let the log on disk take the place of another file."""
        if self._file is not None:
            self._file = self._file.replace(path)

    def tell(self, event: Observation) -> StepReport | None:
        """Take in an event; its report is that of the event that a late one finds mistaken."""
        if event.id is not None and event.id in self._ids:
            return self._events[self._ids[event.id] - self._forgotten].report
        place = self._place_in_time(event.at)
        raised = {alarm.cause for alarm in self.standing.raised}
        self._events.insert(place, event)
        self._write(event.to_json())
        self._work_out(place, shift=1)
        # A late event may raise an alarm about one that came after it, or find its own alarm raised already.
        new = [alarm.number - self._forgotten for alarm in self.standing.raised if alarm.cause not in raised]
        report = self._events[min(new, default=place)].report
        if self._file is not None and len(self._events) == 2 * KEPT_EVENTS:
            self._forget()
        return None if report is None else replace(report, mistake=bool(new))

    def undo(self, id: str | None) -> None:
        """Take back an event, or the last one."""
        place = self._find(id)
        self._ids.pop(self._events.pop(place).id or "", None)
        self._write({"kind": "undo", "id": id})
        self._work_out(place, shift=-1)

    def correct(self, id: str, kind: EventKind, seen: Mapping[Step, float]) -> StepReport | None:
        """Replace what an event told."""
        place = self._find(id)
        old = self._events[place]
        kind = "began" if kind == "did" and old.kind == "began" else kind
        self._events[place] = replace(old, kind=kind, seen=seen, report=None)
        self._write({"kind": "correct", "id": id, "seen": dict(seen), "as": kind})
        self._work_out(place, shift=0)
        return self._events[place].report

    def _place_in_time(self, at: float | None) -> int:
        """Where an event belongs among those in memory: events without a time stay where they came."""
        recent = range(max(0, len(self._events) - _SNAPSHOTS), len(self._events))
        times = [(moment, place) for place in recent if (moment := self._events[place].at) is not None]
        if at is None or not times or at >= times[-1][0]:
            return len(self._events)
        latest = times[-1][0]
        what = f"at is {at:g}, {latest - at:g} seconds before the last event at {latest:g}"
        require(at >= latest - self._window, what, hint=f"events may come {self._window:g} seconds late: see `window`")
        return times[bisect_right([moment for moment, _ in times], at)][1]

    def _find(self, id: str | None) -> int:
        require(bool(self._events), "there is nothing to undo")
        if id is None:
            return len(self._events) - 1
        hint = f"the last {KEPT_EVENTS:,} events can be corrected, others are on disk only" if self._forgotten else None
        require(id in self._ids, f"there is no event with the id {short_repr(id)}", hint=hint)
        return self._ids[id] - self._forgotten

    def _work_out(self, place: int, shift: int) -> None:
        """Work out the standings from a place on, at which `shift` events are new."""
        first = len(self._events) - shift - len(self._standings) + 1  # the events before the oldest standing
        if place >= first:
            del self._standings[place - first + 1 :]
        else:
            self._standings, place = [self._before], 0
        for later in range(place, len(self._events)):
            event, number = self._events[later], self._forgotten + later
            standing, report = self._advance(self.standing.at(event), event, number)
            self._standings = [*self._standings[-_SNAPSHOTS:], standing]
            self._events[later] = replace(event, report=report)
            if event.id is not None:
                self._ids[event.id] = number
            if later + 1 == KEPT_EVENTS:
                self._halfway = standing
            if later >= KEPT_EVENTS:
                self._events[later - KEPT_EVENTS] = replace(self._events[later - KEPT_EVENTS], report=None)

    def _forget(self) -> None:
        """Leave the older half of the events to the disk."""
        self._before, self._halfway = self._halfway, self.standing
        self._forgotten += KEPT_EVENTS
        del self._events[:KEPT_EVENTS]
        self._ids = {id: number for id, number in self._ids.items() if number >= self._forgotten}

    def _write(self, line: Mapping[str, object]) -> None:
        """Write a line of the log; it is on its way to the disk when this returns."""
        if self._file is not None:
            append_line(self._file, json.dumps(line, ensure_ascii=False))


# -- on disk ----------------------------------------------------------------------------------------------------------


def begin_log(path: Path, header: Mapping[str, object]) -> Path:
    """Begin a log on disk: a line of JSON that says which graph the run has; one for each call follows."""
    require(not path.exists(), "is there already", where=path, hint="load the run, or give its log another name")
    write_whole(path, json.dumps({"format": FORMAT, **header}, ensure_ascii=False) + "\n")
    return path


def read_run(path: Path) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]:
    """Read a saved run or a log: what it says of its graph, and the calls; the last line may have been cut off."""
    try:
        text = path.read_text("utf-8")
        try:
            header, *calls = [json.loads(text)]
        except ValueError:
            header, *calls = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot be read as a saved run ({type(error).__name__})", where=path) from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(f"is no saved run: its format is not {FORMAT}", where=path)
    events = header.get("events", calls)
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        raise InputError("is damaged: its events cannot be read", where=path)
    return header, events

"""XES event logs (IEEE 1849): a log is a task, a trace a video, an event a step. Read event by event.

What is kept per event is its segment, so memory grows with the labels and not with the file.
"""

from __future__ import annotations

import logging
from collections import Counter

from msg2.errors import InputError, shortened
from msg2.options import ReadOptions
from msg2.readers.cases import INSTANCE, PHASE, STEP, TIME, Event, event, performs, segments_of, unsorted_events
from msg2.readers.found import Found
from msg2.readers.markup import root_name, walk
from msg2.readers.moments import Clock
from msg2.readers.sources import Source
from msg2.readers.wording import counted, listed
from msg2.task import Task, Video

READS = "event logs in XES"
TAKES = ()

_KNOWN = {STEP, TIME, PHASE, INSTANCE}
_log = logging.getLogger(__name__)


def recognises(source: Source) -> bool:
    """Whether the file, or a file in the folder, is an XES log."""
    return bool(_logs(source))


def read(source: Source, options: ReadOptions) -> Found:
    """One task per log, named by it, else by its file."""
    tasks, unsorted = [], {}
    for file in _logs(source):
        log = _Log()
        walk(file, log.opened, log.closed)
        log.complain(file)
        try:
            tasks.append(Task(log.name or file.stem, log.steps, log.videos))
        except InputError as error:
            raise InputError(error.what, where=file.path, hint="give every trace a name of its own") from None
        unsorted[file.path.name] = log.unsorted
    names = Counter(task.name for task in tasks)
    twice = next((name for name, count in names.items() if count > 1), None)
    if twice is not None:
        raise InputError(f"two logs are called {shortened(twice)}", where=source.path, hint="read them one by one")
    return Found.of(tasks, unsorted)


def _logs(source: Source) -> list[Source]:
    return [file for file in (source.files if source.is_folder else (source,)) if root_name(file) == "log"]


class _Log:
    """What has been read of a log so far; `opened` and `closed` are told of its elements."""

    def __init__(self) -> None:
        self.name = ""
        self.steps: set[str] = set()
        self.videos: list[Video] = []
        self.unsorted = 0
        self._depth = 0
        self._trace: str | None = None
        """Name of the trace that is being read, empty until it is known."""
        self._event: dict[str, str] | None = None
        self._events: list[Event] = []
        self._clock = Clock()
        self._timed: bool | None = None
        self._keys: set[str] = set()
        self._passed: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        """Name -> itself: equal names are kept as one object."""

    def opened(self, name: str, attributes: dict[str, str]) -> None:
        """Attributes of the log are at depth 2, of a trace at 3, of an event at 4; deeper ones describe attributes."""
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

    def closed(self, name: str) -> None:
        """An event or a trace may be complete."""
        self._depth -= 1
        if self._depth == 2 and self._event is not None:
            self._keep_event(self._event)
            self._event = None
        elif self._depth == 1 and self._trace is not None:
            self._keep_trace(self._trace)
            self._trace = None

    def _keep_event(self, found: dict[str, str]) -> None:
        if not self._keys.issuperset(found) and len(self._keys) < 1000:
            self._keys.update(found)
        if STEP not in found:
            raise InputError(f"the event has no attribute {STEP!r}", hint="it names what happened")
        transition = found.get(PHASE, "")
        if not performs(transition):
            self._passed[transition] += 1
            return
        timed = TIME in found
        if self._timed is None:
            self._timed = timed
        elif self._timed is not timed:
            here, above = ("no time", "some") if self._timed else ("a time", "none")
            raise InputError(f"the event has {here}, those above have {above}", hint="give every event a time, or none")
        time = self._clock.microseconds(found[TIME]) if timed else len(self._events)
        step = self._names.setdefault(found[STEP], found[STEP])
        self._events.append(event(time, step, transition, found.get(INSTANCE, "")))

    def _keep_trace(self, name: str) -> None:
        segments = segments_of(self._events, bool(self._timed))
        self.unsorted += unsorted_events(self._events)
        self.steps.update(one.step for one in segments)
        self.videos.append(Video(name or str(len(self.videos) + 1), segments))
        self._events = []

    def complain(self, file: Source) -> None:
        """Refuse a log without traces; say once what of it was not used."""
        if not self.videos:
            raise InputError("the log has no traces", where=file.path)
        if self._keys - _KNOWN:
            _log.warning("%s: attributes that are not used: %s", file.path, listed(self._keys - _KNOWN))
        if self._passed:
            _log.warning("%s: events that do no step, not read: %s", file.path, counted(self._passed))

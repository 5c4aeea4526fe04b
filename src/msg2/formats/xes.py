"""XES event logs (IEEE 1849): a log is a task, a trace a video, an event a step. Read event by event.

What is kept per event is its segment, so memory grows with the labels and not with the file.
"""

from __future__ import annotations

from collections import Counter

from msg2.errors import InputError, errors_at
from msg2.formats.events import STEP, Event, EventParser, count_unsorted_events, events_to_segments
from msg2.formats.reading import ReadOptions, ReadResult
from msg2.formats.source import Source
from msg2.formats.xml_parser import parse_xml, root_name
from msg2.task import Task, Video
from msg2.text import short_repr

DESCRIPTION = "event logs in XES"


def can_read(source: Source) -> bool:
    """Whether the file, or a file in the folder, is an XES log."""
    return bool(_logs(source))


def read(source: Source, options: ReadOptions) -> ReadResult:
    """Read one task per log, named by it, else by its file.

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
    tasks, unsorted = [], {}
    for file in _logs(source):
        log = _XesLog()
        parse_xml(file, log.start_element, log.end_element)
        if not log.videos:
            raise InputError("the log has no traces", where=file.path)
        log.parser.warn_of_unused(file, "attributes")
        with errors_at(file.path, hint="give every trace a name of its own"):
            tasks.append(Task(log.name or file.stem, log.steps, log.videos, "skipped"))
        unsorted[file.path.name] = log.unsorted
    for name, count in Counter(task.name for task in tasks).items():
        if count > 1:
            raise InputError(f"two logs are called {short_repr(name)}", where=source.path, hint="read them one by one")
    return ReadResult(tasks, unsorted)


def _logs(source: Source) -> list[Source]:
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
        self._trace: str | None = None
        """Name of the trace that is being read, empty until it is known."""
        self._event: dict[str, str] | None = None
        self._events: list[Event] = []

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element.

        Attributes of the log are at depth 2, of a trace at 3, of an event at 4; deeper ones describe attributes.
        """
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
            segments = events_to_segments(self._events, bool(self.parser.timed))
            self.unsorted += count_unsorted_events(self._events)
            self.steps.update(segment.step for segment in segments)
            self.videos.append(Video(self._trace or str(len(self.videos) + 1), segments))
            self._trace, self._events = None, []

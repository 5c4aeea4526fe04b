"""Event logs in XES (IEEE 1849), read and written: a log is a task, a trace a run, an event a step.

There are very many events. Those that hold plain attributes only, as nearly all do, are taken from the text, in a third
of the time that a parser takes; the parser reads what is left, with the line breaks of those events in their places.
"""

import codecs
import logging
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

import numpy as np

from msg2.errors import InputError, require
from msg2.formats.columns import EVENTS, ColumnMapping
from msg2.formats.event_log import read_table
from msg2.formats.reading import Reader, ReadNotes, ReadOptions, ReadResult, WriteOptions, files_where
from msg2.formats.source import Source
from msg2.formats.step_table import encode_lines
from msg2.formats.tables import CodedColumn, Column, Table
from msg2.formats.times import TimestampParser
from msg2.formats.xml_parser import MAX_DEPTH, feed_parser, read_chunks, root_name
from msg2.task import Task
from msg2.text import escape_control_characters, join_names, name_fault, short_repr

_CODED = ("activity", "transition", "instance")
_STEP, _TRANSITION, _INSTANCE = map(EVENTS.standard.__getitem__, _CODED)
_TIMES = ("time", "start")
_NO_TIME = int(np.datetime64("NaT", "us").astype(int))
_PLAIN_EVENT = re.compile(r'(\s*<\w+ key="[^"]*" value="\s*/>)*\s*')
"""The text of an event without its values."""
_ASIDES = (("<!--", "-->"), ("<![", "]]>"), ("<?", "?>"))
_LONGEST_EVENT = 1_000_000
_MOST_KEYS = 1000  # names of attributes that are remembered, to say which of them are not used
_log = logging.getLogger(__name__)


def _read(source: Source, options: ReadOptions) -> ReadResult:
    """Read one task per log, named by it, else by its file; memory grows with the events and not with the file."""
    tasks: dict[str, Task] = {}
    unsorted, notes = {}, ReadNotes(options)
    for file in _xes_logs(source):
        log = _XesLog(file, options.keep)
        require(log.traces, "the log has no traces", where=file.path)
        ((name, times),) = Counter(log.traces).most_common(1)
        hint = "give every trace a name of its own"
        require(times <= 1, f"the trace {short_repr(name)} is there twice", where=file.path, hint=hint)
        task = file.stem if name_fault(log.name) else log.name
        if task in tasks:
            raise InputError(f"two logs are called {short_repr(task)}", where=source.path, hint="read them one by one")
        if unused := sorted(log.attributes.difference(EVENTS.standard.values(), options.keep)):
            _log.warning("%s: attributes that are not used: %s", file.path, join_names(unused))
        notes.set_aside(log.faults, len(log.lines) + len(log.faults))
        (tasks[task],), unsorted[file.path.name] = read_table(*log.open_table(), task, notes)
    return ReadResult([*tasks.values()], unsorted, notes)


_xes_logs = files_where(lambda file: root_name(file) == "log")
READER = Reader("event logs in XES", _xes_logs, _read)


class _XesLog:
    """A log as it is read: its name, its traces, and its events column by column."""

    def __init__(self, file: Source, keep: Sequence[str]) -> None:
        self.name = ""
        self.traces: list[str] = []
        self.attributes: set[str] = set()  # the names of those of events
        self.faults: list[InputError] = []
        self.lines = array("q")
        self._file, self._keep = file, keep
        self._keys = [*map(EVENTS.standard.__getitem__, _CODED), *keep, *map(EVENTS.standard.__getitem__, _TIMES)]
        self._indices: list[dict[str | None, int]] = [{} for _ in (*_CODED, *keep)]
        self._codes, self._moments = [array("i") for _ in self._indices], [array("q") for _ in _TIMES]
        self._trace_of_event, self._times = array("i"), TimestampParser()
        self._depth, self._in_trace = 0, False
        self._event: dict[str, str] = {}
        self._of_trace: dict[str, str] = {}  # what is to be kept
        self._places: dict[str, Sequence[int]] = {}  # by the text of an event without its values: where these are
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler, self._parser.EndElementHandler = self._start_element, self._end_element
        feed_parser(self._parser, file, self._take_plain_events)

    def open_table(self) -> tuple[Table, ColumnMapping]:
        """The events as a table with a row each, and which column is which."""
        columns: dict[str, Column] = {
            name: CodedColumn([*index], np.frombuffer(code, np.int32))
            for name, index, code in zip((*_CODED, *self._keep), self._indices, self._codes, strict=True)
        }
        columns["case"] = CodedColumn(self.traces, np.frombuffer(self._trace_of_event, np.int32))
        for role, moments in zip(_TIMES, self._moments, strict=True):
            values = np.frombuffer(moments, "datetime64[us]")
            if not np.isnat(values).all():
                columns[role] = np.ma.array(values, mask=np.isnat(values))
        table = Table(self._file, tuple(columns), lambda _: columns, str(self._file.path), lambda: self.lines)
        return table, ColumnMapping({role: role for role in columns.keys() - set(self._keep)}, ())

    def _start_element(self, name: str, attributes: dict[str, str]) -> None:
        """Depth 2 has attributes of the log, 3 of a trace, 4 of an event."""
        self._depth += 1
        key, value = attributes.get("key", ""), attributes.get("value", "")
        if self._depth == 4:
            self._event[key] = value
        elif self._depth == 3 and name == "event":
            self._event = {}
        elif self._depth == 3 and self._in_trace and key == _STEP:
            self.traces[-1] = value or self.traces[-1]
        elif self._depth == 3 and self._in_trace and key in self._keep:
            self._of_trace[key] = value
        elif self._depth == 2:
            self._in_trace, self._of_trace = name == "trace", {}
            if self._in_trace:
                self.traces.append(str(len(self.traces) + 1))
            elif key == _STEP:
                self.name = value
        elif self._depth > MAX_DEPTH:
            raise InputError(f"is nested more than {MAX_DEPTH} levels deep")

    def _end_element(self, name: str) -> None:
        self._depth -= 1
        if self._depth == 2 and name == "event" and self._in_trace:
            if len(self.attributes) < _MOST_KEYS:
                self.attributes.update(self._event)
            self._add_event([*map(self._event.get, self._keys)], self._parser.CurrentLineNumber)

    def _add_event(self, values: list[str | None], line: int, is_parsed: bool = True) -> bool:
        """Add an event, its values in the order of the keys; one from the text with odd characters is left alone."""
        if self._of_trace:
            values = [self._of_trace.get(key) if v is None else v for key, v in zip(self._keys, values, strict=True)]
        codes = [index.get(text) for index, text in zip(self._indices, values, strict=False)]
        if None in codes and not is_parsed and not "".join(filter(None, values)).isprintable():
            return False
        try:
            require(values[0] is not None, f"the event has no attribute {_STEP!r}", hint="it names what happened")
            moments = [_NO_TIME if text is None else self._times.parse(text) for text in values[-2:]]
        except InputError as error:
            self.faults.append(error.at(self._file.row(line)))
            return True
        for column, moment in zip(self._moments, moments, strict=True):
            column.append(moment)
        for column, code, index, text in zip(self._codes, codes, self._indices, values, strict=False):
            column.append(index.setdefault(text, len(index)) if code is None else code)
        self._trace_of_event.append(len(self.traces) - 1)
        self.lines.append(line)
        return True

    def _take_plain_events(self, stream: IO[bytes]) -> Iterator[bytes]:
        """Add the plain events, and yield everything else."""
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")  # wrong bytes stay what they are
        encoding = re.match(rb"""(?:\xef\xbb\xbf)?<\?xml[^>]*encoding=["']([\w-]+)""", self._file.head)
        is_plain = b"\0" not in self._file.head[:4] and (encoding is None or encoding[1].lower() == b"utf-8")
        rest, line, breaks = "", 1, ""
        for chunk in read_chunks(stream):
            is_plain &= len(rest) <= _LONGEST_EVENT
            *pieces, rest = (rest + decoder.decode(chunk)).split("</event>") if is_plain else [rest]
            for piece in pieces:
                head, begin, body = piece.partition("<event>")
                line += piece.count("\n")
                if "<" in head:
                    is_plain &= all(head.count(opening) == head.count(closing) for opening, closing in _ASIDES)
                    yield _encode(breaks + head)
                    head = breaks = ""
                if is_plain and begin and self._depth == 2 and self._in_trace and self._add_plain_event(body, line):
                    breaks += head + "\n" * body.count("\n")
                else:
                    yield _encode(f"{breaks}{head}{begin}{body}</event>")
                    breaks = ""
            if not is_plain:
                yield _encode(breaks + rest) + decoder.getstate()[0] + (b"" if pieces else chunk)
                rest = breaks = ""
                decoder.reset()
        yield _encode(breaks + rest) + decoder.getstate()[0]

    def _add_plain_event(self, body: str, line: int) -> bool:
        """Add an event from its text; whether that could be done."""
        cells = body.split('"')
        values: list[str | None] = [*cells[3::4], None]
        del cells[3::4]
        shape = '"'.join(cells)
        if (places := self._places.get(shape)) is None:
            keys = cells[1::3] if _PLAIN_EVENT.fullmatch(shape) else []
            place = {key: number for number, key in enumerate(keys)}
            places = self._places[shape] = [place.get(key, -1) for key in self._keys] if keys else ()
            self.attributes.update(keys)
        return bool(places) and "&" not in body and self._add_event([values[n] for n in places], line, is_parsed=False)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


# -- writing --------------------------------------------------------------------------------------------------------

_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<log xes.version="1.0" xes.features="" xmlns="http://www.xes-standard.org/">
  <extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>
  <extension name="Lifecycle" prefix="lifecycle" uri="http://www.xes-standard.org/lifecycle.xesext"/>
  <extension name="Time" prefix="time" uri="http://www.xes-standard.org/time.xesext"/>
"""


def _lines(task: Task) -> Iterator[str]:
    """A log; what takes time is a start and a complete with an instance of its own, what does not a complete."""
    yield _HEAD
    yield f"  {_attribute(_STEP, task.name)}\n"
    columns = task.columns
    began = np.zeros(len(task), np.int64) if columns.began is None else columns.began
    for video, origin in zip(task, began.tolist(), strict=True):
        yield f"  <trace>\n    {_attribute(_STEP, video.id)}\n"
        events = []
        for number, segment in enumerate(video.segments):
            if segment.start is None or segment.end is None:
                events.append((number, 1, segment.step, "complete", "", ""))
                continue
            start, end = (origin + round(time * 1e6) for time in (segment.start, segment.end))
            instance = str(number + 1) if end > start else ""
            if instance:
                events.append((start, 1, segment.step, "start", _date(start), instance))
            events.append((end, 0 if instance else 1, segment.step, "complete", _date(end), instance))
        for *_, step, transition, date, instance in sorted(events, key=lambda event: event[:2]):
            parts = [_attribute(_STEP, step), _attribute(_TRANSITION, transition)]
            parts += [_attribute(_INSTANCE, instance)] * bool(instance)
            parts += [_attribute(EVENTS.standard["time"], date, "date")] * bool(date)
            yield f"    <event>{''.join(parts)}</event>\n"
        yield "  </trace>\n"
    yield "</log>\n"


def _date(microseconds: int) -> str:
    return f"{np.datetime64(microseconds, 'us')}+00:00"


def _attribute(key: str, value: str, kind: str = "string") -> str:
    plain = value.replace("\r", " ")
    require(escape_control_characters(plain) == plain, f"XES cannot hold the control characters in {short_repr(value)}")
    return f'<{kind} key="{key}" value={quoteattr(value, {chr(34): "&quot;"})}/>'


def _write(tasks: Sequence[Task], path: Path, options: WriteOptions) -> dict[Path, Iterable[bytes]]:
    hint = "choose one of them with --task"
    require(len(tasks) == 1, f"holds one log, the data has {len(tasks)} tasks", where=path, hint=hint)
    return {path: encode_lines(_lines(tasks[0]))}


WRITERS = {".xes": _write}

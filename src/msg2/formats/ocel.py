"""OCEL 2.0: logs of events that are about several objects, in JSON, XML and SQLite; read as the runs of one type.

The log is flattened: every object of the chosen type is a run, and its events are those that are related to it.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element

from msg2.errors import InputError, require
from msg2.formats.columns import EVENTS
from msg2.formats.event_log import read_table
from msg2.formats.reading import Reader, ReadNotes, ReadOptions, ReadResult, files_where
from msg2.formats.source import Source
from msg2.formats.tables import ColumnBuilder, Table
from msg2.formats.xml_parser import parse_children, require_attribute, root_name
from msg2.text import join_counts, short_repr

_SQLITE = b"SQLite format 3\0"


@dataclass(slots=True)
class _ObjectLog:
    """The objects, and the events with the objects that they are about."""

    types: dict[str, str] = field(default_factory=dict)  # object -> its type
    events: list[tuple[str, str, list[str]]] = field(default_factory=list)  # activity, time, objects


def _is_ocel(file: Source) -> bool:
    if file.head.startswith(_SQLITE):
        return True
    if file.kind == "XML":
        return root_name(file) == "log" and (b"<object-types" in file.head or b"<objects" in file.head)
    return isinstance(file.document, dict) and {"events", "objects", "objectTypes"} <= file.document.keys()


def _read_json(document: Mapping[str, Any]) -> _ObjectLog:
    log = _ObjectLog()
    try:
        log.types = {str(each["id"]): str(each["type"]) for each in document["objects"]}
        for event in document["events"]:
            about = [str(each["objectId"]) for each in event.get("relationships", ())]
            log.events.append((str(event["type"]), str(event["time"]), about))
    except (KeyError, TypeError, AttributeError) as error:
        what = f"an object or event is not as OCEL 2.0 has it ({type(error).__name__}: {error})"
        raise InputError(what, hint="objects have id and type; events type, time and relationships") from None
    return log


def _read_xml(file: Source) -> _ObjectLog:
    log = _ObjectLog()

    def add(part: Element) -> None:
        for each in part if part.tag == "objects" else ():
            log.types[require_attribute(each, "id")] = require_attribute(each, "type")
        for each in part if part.tag == "events" else ():
            about = [require_attribute(related, "object-id") for related in each.iterfind("objects/*")]
            log.events.append((require_attribute(each, "type"), require_attribute(each, "time"), about))

    parse_children(file, add)
    return log


def _read_sqlite(file: Source) -> _ObjectLog:
    import sqlite3  # which takes a while

    log = _ObjectLog()
    try:
        with closing(sqlite3.connect(":memory:")) as base:
            base.deserialize(file.read_bytes())
            log.types = dict(base.execute("SELECT ocel_id, ocel_type FROM object"))
            about: dict[str, list[str]] = {}
            for event, item in base.execute("SELECT ocel_event_id, ocel_object_id FROM event_object"):
                about.setdefault(event, []).append(item)
            for name, table in base.execute("SELECT ocel_type, ocel_type_map FROM event_map_type").fetchall():
                quoted = f"event_{table}".replace('"', '""')
                for event, time in base.execute(f'SELECT ocel_id, ocel_time FROM "{quoted}" ORDER BY rowid'):
                    log.events.append((str(name), str(time), about.get(event, [])))
    except (sqlite3.Error, ValueError, TypeError) as error:
        hint = "OCEL 2.0 has the tables object, event, event_object and event_map_type"
        raise InputError(f"is no OCEL 2.0 in SQLite ({error})", where=file.path, hint=hint) from None
    return log


def _choose_type(log: _ObjectLog, wanted: str | None) -> str:
    """The type of object whose runs are read: as the user says, or the only one."""
    known = Counter(log.types.values())
    if wanted is not None and wanted in known:
        return wanted
    if wanted is None and len(known) == 1:
        return next(iter(known))
    what = "holds objects of several types" if wanted is None else f"holds no object of type {short_repr(wanted)}"
    raise InputError(what, hint=f"say whose runs are read: --object TYPE; there are {join_counts(known)}")


def _flatten(file: Source, log: _ObjectLog, chosen: str) -> Table:
    """A row for each event and each object of a type that it is about."""
    builders = {role: ColumnBuilder() for role in ("case", "activity", "time")}
    for activity, time, about in log.events:
        for item in dict.fromkeys(about):  # once, in however many ways the event is related to it
            if log.types.get(item) == chosen:
                for builder, cell in zip(builders.values(), (item, activity, time), strict=True):
                    builder.add(cell)
    columns = {role: builder.column() for role, builder in builders.items()}
    require(len(columns["case"]), f"no event is about an object of type {short_repr(chosen)}", where=file.path)
    return Table(file, tuple(columns), lambda _: columns, str(file.path))


def _read(source: Source, options: ReadOptions) -> ReadResult:
    """Read one task per file, named after the file and the type of object."""
    tasks, notes = [], ReadNotes(options)
    for file in _ocel_files(source):
        if file.head.startswith(_SQLITE):
            log = _read_sqlite(file)
        else:
            log = _read_xml(file) if file.kind == "XML" else _read_json(file.document)
        chosen = _choose_type(log, options.object)
        table = _flatten(file, log, chosen)
        tasks += read_table(table, EVENTS.match(table.header, table.where), f"{file.stem} {chosen}", notes)[0]
    return ReadResult(tasks, {}, notes)


_ocel_files = files_where(_is_ocel)
READER = Reader("object-centric event logs (OCEL 2.0: JSON, XML, SQLite)", _ocel_files, _read)

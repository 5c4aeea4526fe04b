"""OCEL 2.0 in JSON, XML and SQLite: the same small log in all three, flattened by hand."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from msg2.errors import InputError
from msg2.formats import read, read_all, summarize

OBJECTS = {"o1": "order", "i1": "item", "i2": "item"}
EVENTS = [
    ("e1", "place order", "2022-01-09T15:00:00Z", ["o1", "i1", "i2"]),
    ("e2", "pick", "2022-01-09T15:00:30Z", ["i2"]),
    ("e3", "pick", "2022-01-10T15:00:00Z", ["i1", "i1"]),
]
EXPECTED = {
    "item": {"i1": [("place order", 0), ("pick", 86_400)], "i2": [("place order", 0), ("pick", 30)]},
    "order": {"o1": [("place order", 0)]},
}


def as_json(path: Path) -> Path:
    events = [
        {"id": id, "type": type, "time": time, "relationships": [{"objectId": o, "qualifier": ""} for o in about]}
        for id, type, time, about in EVENTS
    ]
    objects = [{"id": id, "type": type} for id, type in OBJECTS.items()]
    types = [{"name": name, "attributes": []} for name in ("order", "item")]
    document = {"objectTypes": types, "eventTypes": [], "objects": objects, "events": events}
    (path / "log.json").write_text(json.dumps(document))
    return path / "log.json"


def as_xml(path: Path) -> Path:
    objects = "".join(f'<object id="{id}" type="{type}"><attributes/></object>' for id, type in OBJECTS.items())
    events = ""
    for id, type, time, about in EVENTS:
        related = "".join(f'<relationship object-id="{o}" qualifier="x"/>' for o in about)
        events += f'<event id="{id}" type="{type}" time="{time}"><attributes/><objects>{related}</objects></event>'
    text = f"<log><object-types/><event-types/><objects>{objects}</objects><events>{events}</events></log>"
    (path / "log.xml").write_text(text)
    return path / "log.xml"


def as_sqlite(path: Path) -> Path:
    with sqlite3.connect(path / "log.sqlite") as base:
        base.execute("CREATE TABLE object (ocel_id TEXT, ocel_type TEXT)")
        base.executemany("INSERT INTO object VALUES (?, ?)", OBJECTS.items())
        base.execute("CREATE TABLE event (ocel_id TEXT, ocel_type TEXT)")
        base.execute("CREATE TABLE event_map_type (ocel_type TEXT, ocel_type_map TEXT)")
        base.execute("CREATE TABLE event_object (ocel_event_id TEXT, ocel_object_id TEXT, ocel_qualifier TEXT)")
        for name in ("place order", "pick"):
            table = name.replace(" ", "")
            base.execute("INSERT INTO event_map_type VALUES (?, ?)", (name, table))
            base.execute(f"CREATE TABLE event_{table} (ocel_id TEXT, ocel_time TEXT)")
        for id, type, time, about in EVENTS:
            base.execute("INSERT INTO event VALUES (?, ?)", (id, type))
            base.execute(f"INSERT INTO event_{type.replace(' ', '')} VALUES (?, ?)", (id, time))
            base.executemany("INSERT INTO event_object VALUES (?, ?, '')", [(id, o) for o in about])
    base.close()
    return path / "log.sqlite"


@pytest.mark.parametrize("write", [as_json, as_xml, as_sqlite])
def test_runs_are_the_objects_of_a_type(tmp_path: Path, write) -> None:
    path = write(tmp_path)
    for type, expected in EXPECTED.items():
        (task,) = read_all(path, object=type)
        assert (task.name, task.absent) == (f"log {type}", "skipped")
        assert {v.id: [(s.step, s.start) for s in v.segments] for v in task} == expected
    assert summarize(path, object="item").tasks[0].dates == ("2022-01-09T15:00:00.000000", "2022-01-10T15:00:00.000000")
    with pytest.raises(
        InputError, match=r"several types\n  say whose runs.*--object TYPE; there are 'item' \(2\), 'order'"
    ):
        read(path)
    with pytest.raises(InputError, match="holds no object of type 'truck'"):
        read(path, object="truck")


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.json", b'{"objectTypes": [], "objects": [{"id": "o"}], "events": []}', "not as OCEL 2.0 has it"),
        ("b.xml", b"<log><object-types/><objects><object id='o'/></objects></log>", "no attribute 'type'"),
        ("c.sqlite", b"SQLite format 3\0" + b"\0" * 2000, "is no OCEL 2.0 in SQLite"),
        ("d.json", b'{"objectTypes": [], "objects": [{"id": "o", "type": "t"}], "events": []}', "no event is about"),
        ("e.csv", b"video,step\nv,a\n", "takes no object, it was recognised as a table of steps"),
    ],
)
def test_what_is_no_such_log(tmp_path: Path, name: str, content: bytes, complaint: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=complaint):
        read(tmp_path / name, object="t")

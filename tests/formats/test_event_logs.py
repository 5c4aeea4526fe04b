"""Event logs, XES and CSV: against a naive reading of the same events, and on hand-made logs."""

from __future__ import annotations

import gzip
import random
import tracemalloc
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import pandas
import pyarrow
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from benchmarks.xes import write_log
from msg2.errors import InputError
from msg2.formats import read, read_all, summarize, to_tasks, write, xml_parser
from msg2.formats.times import TimestampParser
from msg2.sequences import Sequences
from msg2.task import Segment, Task, Video

HEAD = """<?xml version="1.0" encoding="UTF-8" ?>
<log xes.version="1.0" xes.features="nested-attributes" xmlns="http://www.xes-standard.org/">
  <extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>
  <global scope="trace"><string key="concept:name" value="__INVALID__"/></global>
  <global scope="event"><string key="concept:name" value="__INVALID__"/></global>
  <classifier name="Event Name" keys="concept:name"/>
"""


def xes_event(step: str, time: str | None = None, transition: str = "", more: str = "") -> str:
    when = "" if time is None else f"<date key='time:timestamp' value='{time}'/>"
    phase = transition and f"<string key='lifecycle:transition' value='{transition}'/>"
    return f"<event><string key='concept:name' value={quoteattr(step)}/>{when}{phase}{more}</event>\n"


def xes(*traces: tuple[str, list[str]], name: str | None = "orders") -> str:
    title = "" if name is None else f"<string key='concept:name' value='{name}'/>"
    body = "".join(f"<trace><string key='concept:name' value='{c}'/>\n{''.join(e)}</trace>\n" for c, e in traces)
    return f"{HEAD}{title}{body}</log>"


def spans(path: Path, **options: str) -> dict[str, list[tuple[str, float | None, float | None]]]:
    (task,) = read_all(path, **options)
    return {video.id: [(s.step, s.start, s.end) for s in video.segments] for video in task}


def test_a_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "log.xes"
    nested = "<string key='org:resource' value='Ann'><string key='concept:name' value='wrong'/></string>"
    path.write_text(
        xes(
            ("c1", [xes_event("b <&> é", "2010-12-30T12:00:05.500+01:00"), xes_event("a", "2010-12-30T11:00:00Z")]),
            ("c2", [xes_event("a", "2011-01-01T00:00:00.000+00:00", "complete", nested)]),
            ("c3", []),
        )
    )
    expected = {"c1": [("a", 0.0, 0.0), ("b <&> é", 5.5, 5.5)], "c2": [("a", 0.0, 0.0)], "c3": []}
    assert spans(path) == expected
    assert read(path).name == "orders"
    assert read(path).steps == ("a", "b <&> é")
    caplog.clear()
    assert summarize(path).unsorted == {"log.xes": 1}
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: attributes that are not used: 'org:resource'"
    ]
    packed = tmp_path / "packed.xes.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert spans(packed) == expected
    path.unlink()
    assert spans(tmp_path) == expected


def test_a_log_in_another_encoding_and_without_names(tmp_path: Path) -> None:
    path = tmp_path / "nameless.xes"
    text = xes(("x", [xes_event("é")]), name=None).replace("<string key='concept:name' value='x'/>", "")
    path.write_bytes(text.replace("UTF-8", "ISO-8859-1").encode("latin-1"))
    assert read(path).name == "nameless"
    assert spans(path) == {"1": [("é", None, None)]}
    path.write_bytes(text.replace("UTF-8", "UTF-16").encode("utf-16"))
    assert spans(path) == {"1": [("é", None, None)]}


LIFECYCLE = [
    ("schedule", "paint", 0), ("start", "paint", 10), ("start", "wash", 12), ("complete", "paint", 20),
    ("complete", "dry", 25), ("START", "paint", 30), ("COMPLETE", "paint", 34), ("unknown", "look", 40),
]  # fmt: skip


def test_start_and_complete_become_segments(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "log.xes"
    start = datetime(2024, 5, 1, tzinfo=UTC)
    rows = [(phase, step, (start + timedelta(seconds=at)).isoformat()) for phase, step, at in LIFECYCLE]
    path.write_text(xes(("c", [xes_event(step, time, phase) for phase, step, time in rows])))
    expected = {
        "c": [("paint", 0, 10), ("wash", 2, 2), ("dry", 15, 15), ("paint", 20, 24), ("look", 30, 30)]
    }  # a step that is only scheduled has not begun: the case starts with the first paint
    assert spans(path, repeats="keep") == expected
    assert f"{path}: events that do no step, not read: 'schedule' (1)" in caplog.text
    table = tmp_path / "log.csv"
    random.Random(3).shuffle(rows)
    lines = [f"c,{step},{time},{phase}" for phase, step, time in rows]
    header = "case:concept:name,concept:name,time:timestamp,lifecycle:transition"
    table.write_text("\n".join([header, *lines]) + "\n")
    assert spans(table, repeats="keep") == expected


def test_instances_tell_apart_what_runs_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = ["c,a,2024-05-01T00:00:00,start,1", "c,a,2024-05-01T00:00:01,start,2", "c,a,2024-05-01T00:00:02,complete,2"]
    header = "case,activity,time,lifecycle:transition,concept:instance"
    path.write_text("\n".join([header, *rows]))
    assert spans(path, repeats="keep") == {"c": [("a", 0, 0), ("a", 1, 2)]}
    path.write_text("\n".join([header.replace("concept:instance", "x"), *rows]))
    assert spans(path, repeats="keep") == {"c": [("a", 0, 2), ("a", 1, 1)]}


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_a_table(tmp_path: Path, delimiter: str, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "orders.csv"
    rows = [
        ["case:concept:name", "concept:name", "time:timestamp", "case:amount"],
        ["007", "ship", "2010-12-30 11:02:10.250", "7"],
        ["007", "pack", "2010-12-30T11:02", "7"],
        ["NA", "pack", "2011-12-30", "7"],
    ]
    path.write_text("\n".join(delimiter.join(row) for row in rows))
    assert spans(path) == {"007": [("pack", 0, 0), ("ship", 10.25, 10.25)], "NA": [("pack", 0, 0)]}
    assert read(path).name == "orders"
    assert "columns that are not used: 'case:amount'" in caplog.text


@pytest.mark.parametrize("scale", [1, 10**3, 10**6, 10**9])
def test_numbers_since_1970(tmp_path: Path, scale: int) -> None:
    path = tmp_path / "log.csv"
    moments = [1_293_703_320, 1_293_703_325]
    rows = [f"c,{step},{moment * scale}" for step, moment in zip("ab", moments, strict=True)]
    path.write_text("\n".join(["case:concept:name,concept:name,time:timestamp", *rows]))
    assert spans(path) == {"c": [("a", 0, 0), ("b", 5, 5)]}


def test_a_table_of_intervals_and_one_without_times(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "case:concept:name,concept:name,start_timestamp,time:timestamp\n"
        "c,b,2024-01-01T00:00:05,2024-01-01T00:00:09\nc,a,2024-01-01T00:00:01,2024-01-01T00:00:05\n"
    )
    assert spans(path) == {"c": [("a", 0, 4), ("b", 4, 8)]}
    path.write_text("case:concept:name,concept:name\nc,b\nd,x\nc,a\n")
    assert spans(path) == {"c": [("b", None, None), ("a", None, None)], "d": [("x", None, None)]}


def test_what_a_log_does_not_have_was_not_done(tmp_path: Path) -> None:
    """A step table of the same labels says nothing of the kind."""
    (tmp_path / "log.xes").write_text(xes(("c", [xes_event("a", "2010-12-30T11:00:00Z")])))
    (tmp_path / "log.csv").write_text("case:concept:name,concept:name,time:timestamp\nc,a,2010-12-30\n")
    (tmp_path / "untimed.csv").write_text("case:concept:name,concept:name\nc,b\nc,a\nc,a\n")
    (tmp_path / "steps.csv").write_text("video,step\nc,a\n")
    for options in ({}, {"repeats": "keep"}, {"overlap": "start"}):
        absent = [
            read(tmp_path / name, **options).absent for name in ("log.xes", "log.csv", "untimed.csv", "steps.csv")
        ]
        assert absent == ["skipped", "skipped", "skipped", "unknown"]
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in ("one", "two"):
        (logs / f"{name}.xes").write_text(xes(("c", [xes_event("a")]), name=name))
    assert [task.absent for task in read_all(logs)] == ["skipped", "skipped"]


zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
logs = st.dictionaries(
    st.sampled_from(["c1", "c2", "ü"]),
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 10**12), zones), min_size=1, max_size=6),
    min_size=1,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(logs, st.randoms())
def test_both_formats_say_the_same_in_any_order(tmp_path: Path, log: dict, order: random.Random) -> None:
    """Instants in any zone: what a naive reading finds is what both readers find, however the rows are shuffled."""
    base = datetime(1999, 12, 31, tzinfo=UTC)
    rows = [
        (case, step, (base + timedelta(microseconds=at)).astimezone(zone).isoformat())
        for case, events in log.items()
        for step, at, zone in events
    ]
    first = {case: min(at for _, at, _ in events) for case, events in log.items()}
    naive = {case: sorted((step, (at - first[case]) / 1e6) for step, at, _ in events) for case, events in log.items()}
    order.shuffle(rows)
    (tmp_path / "log.csv").write_text(
        "\n".join(["case:concept:name,concept:name,time:timestamp", *(",".join(row) for row in rows)]), encoding="utf-8"
    )
    traces = [(case, [xes_event(step, time) for c, step, time in rows if c == case]) for case in log]
    (tmp_path / "log.xes").write_text(xes(*traces), encoding="utf-8")
    found = [spans(tmp_path / name, repeats="keep") for name in ("log.csv", "log.xes")]
    assert found[0] == found[1]
    assert {
        case: sorted((step, start) for step, start, _ in case_spans) for case, case_spans in found[0].items()
    } == naive


A, B = xes_event("a", "2010-12-30T11:00:00Z"), xes_event("b", "2010-12-30T12:00:00")
BAD_XES = {
    "cut": (xes(("c", [A]))[:-9], "is not valid XML: "),
    "mismatched": (xes(("c", [A])).replace("</trace>", "</tracer>"), "row 9: is not valid XML: mismatched tag"),
    "mixed zones": (xes(("c", [A, B])), "row 9: the time '2010-12-30T12:00:00' is one of times without a time zone"),
    "some times": (xes(("c", [A, xes_event("b")])), "row 9: the event has no time\n"),
    "no time": (xes(("c", [A.replace("2010", "x")])), "row 8: the time 'x-12-30T11:00:00Z' is not a point in time"),
    "NaN": (xes(("c", [xes_event("a", "nan")])), "the time 'nan' is not a point in time"),
    "huge": (xes(("c", [xes_event("a", "9" * 5000)])), "is not a point in time"),
    "nameless": (xes(("c", ["<event></event>"])), "row 8: the event has no attribute 'concept:name'"),
    "empty": (xes(("c", [xes_event("")])), "row 8: the activity is empty"),
    "twice": (xes(("c", [A]), ("c", [A])), "log.xes: the trace 'c' is there twice\n  give every trace"),
    "no traces": (xes(), "log.xes: the log has no traces"),
    "deep": (xes(("c", [A.replace("</event>", "<a>" * 200)])), "row 8: is nested more than 100 levels deep"),
    "bomb": ('<!DOCTYPE log [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>' + xes(("c", ["&b;"])).split("?>")[1],
             "row 1: defines the entity 'a', which may be anything\n  msg2 reads no XML with entities"),
    "external": ('<!DOCTYPE log [<!ENTITY x SYSTEM "file:///etc/passwd">]>\n<log><trace>&x;</trace></log>',
                 "row 1: defines the entity 'x'"),
    "parameter": ('<!DOCTYPE log [<!ENTITY % x SYSTEM "http://localhost/x">%x;]>\n<log><trace/></log>',
                  "row 1: defines the entity 'x'"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD_XES)
def test_a_log_that_is_refused(tmp_path: Path, kind: str) -> None:
    content, expected = BAD_XES[kind]
    path = tmp_path / "log.xes"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        read_all(path)
    assert expected in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 3


BAD_TABLES = {
    "day or month": (
        "Case ID,Activity,Time\nc,a,1/2/2024\nc,b,5/6/2024\n",
        "row 2: the time '1/2/2024' may have the d",
    ),
    "both": ("Case ID,Activity,Time\nc,a,13/2/2024\nc,b,2/13/2024\n", "row 3: the time '2/13/2024' is not a point in"),
    "two cases": ("Case ID,Case,Activity\nc,d,a\n", "row 1: the columns 'Case ID', 'Case' could each be the case"),
    "clock": ("case:concept:name,concept:name,time:timestamp\nc,a,11:02\n", "row 2: the time '11:02' is not a point"),
    "no time": ("case:concept:name,concept:name,time:timestamp\nc,a,\n", "row 2: the event has no time"),
    "no case": ("case:concept:name,concept:name\n,a\n", "row 2: the case is empty"),
    "no step": ("case:concept:name,concept:name\nc,\n", "row 2: the activity is empty"),
    "few": ("case:concept:name,concept:name\nc\n", "row 2: there are 2 columns, but the row has 1"),
    "no rows": ("case:concept:name,concept:name\n", "has no rows below its header"),
    "reversed": (
        "case:concept:name,concept:name,start_timestamp,time:timestamp\nc,a,2020-01-02,2020-01-01\n",
        "row 2: the event starts after its end",
    ),
}


@pytest.mark.parametrize("kind", BAD_TABLES)
def test_a_table_that_is_refused(tmp_path: Path, kind: str) -> None:
    content, expected = BAD_TABLES[kind]
    path = tmp_path / "log.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=expected):
        read_all(path)


def test_two_logs_of_one_name(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.xes").write_text(xes(("c", [A])))
    with pytest.raises(InputError, match="two logs are called 'orders'"):
        read_all(tmp_path)


def test_memory_grows_with_the_labels_and_not_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "log.xes"
    events = write_log(path, megabytes=4)
    tracemalloc.start()
    try:
        (task,) = read_all(path, repeats="keep")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(len(video.segments) for video in task) == events / 2
    assert all(s.end > s.start for video in task for s in video.segments)
    assert peak < 0.5 * path.stat().st_size


# -- tables as other tools and people write them ------------------------------------------------------------------


DISCO = """Case ID,Activity,Resource,Start Timestamp,Complete Timestamp,Variant,Variant index
o1,Pack,Ann,2011/01/01 09:00:00.000,2011/01/01 09:05:00.000,Variant 1,1
o1,Ship,Ben,2011/01/01 11:30:00.500,2011/01/01 11:31:00.500,Variant 1,1
o2,Pack,Ann,2011/01/03 10:00:00.000,,Variant 1,1
"""
CELONIS = """_CASE_KEY;ACTIVITY_EN;EVENTTIME;_SORTING
o1;Pack;5/6/2024 9:00 AM;1
o1;Ship;5/13/2024 12:30 PM;2
"""
GERMAN = """Auftrag;Vorgang;Beginn;Ende
o1;Pack;13.05.2024 09:00;13.05.2024 09:05
o1;Ship;14.05.2024 10:00;14.05.2024 10:30:30
"""


def test_headers_of_other_tools_are_recognised(tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text(DISCO)
    assert spans(path) == {"o1": [("Pack", 0, 300), ("Ship", 9000.5, 9060.5)], "o2": [("Pack", 0, 0)]}
    assert read(path).absent == "skipped"
    assumed = summarize(path).assumptions
    assert assumed[0].startswith("the column 'Case ID' is the case, 'Start Timestamp' is the start, ")
    assert "a start and no end is an instant" in assumed[1]
    assert summarize(path).tasks[0].findings == ("1 run with only one label, which says nothing about order",)
    path.write_text(CELONIS)
    week = (datetime(2024, 5, 13, 12, 30) - datetime(2024, 5, 6, 9)).total_seconds()
    assert spans(path) == {"o1": [("Pack", 0, 0), ("Ship", week, week)]}
    assert "the month comes first in dates such as 5/6/2024" in summarize(path).assumptions
    path.write_text("case:concept:name,concept:name,time:timestamp\nc,a,2024-05-01\n")
    assert summarize(path).assumptions == ()


@pytest.mark.parametrize(
    "columns",
    [
        "case=Auftrag,activity=Vorgang,time=Beginn,end=Ende",
        "case = auftrag, activity=VORGANG, start=Beginn, end=Ende",
        {"case": "Auftrag", "activity": "Vorgang", "start": "Beginn", "end": "Ende"},
    ],
)
def test_columns_that_the_user_names(tmp_path: Path, columns: str | dict[str, str]) -> None:
    path = tmp_path / "orders.csv"
    path.write_text(GERMAN)
    second = (datetime(2024, 5, 14, 10) - datetime(2024, 5, 13, 9)).total_seconds()
    (task,) = read_all(path, columns=columns)
    assert [(s.step, s.start, s.end) for s in task.videos[0].segments] == [
        ("Pack", 0, 300), ("Ship", second, second + 1830),
    ]  # fmt: skip
    assert task.absent == "skipped"
    assert summarize(path, columns=columns).tasks[0].segments == 2
    with pytest.raises(InputError, match=r"row 1: the column 'video' is missing\n.*case=…,activity=…,time=…"):
        read_all(path)


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ("case=Auftrag,activity=Tun", "row 1: there is no column 'Tun'\n  the columns are 'Auftrag', 'Vorgang'"),
        ("case=Auftrag,activity=Auftrag", "row 1: the column 'Auftrag' is given twice"),
        ("case=Auftrag", "row 1: the column 'activity' is missing"),
        ("case=Auftrag,step=Vorgang", "mixes two kinds of tables"),
        ("fall=Auftrag", "'fall' is no column that is used\n  write video=…"),
        ("case=Auftrag,case=Vorgang", "something is there twice"),
        ("Auftrag", "'auftrag' is no column that is used"),
    ],
)
def test_columns_that_make_no_sense(tmp_path: Path, columns: str, complaint: str) -> None:
    path = tmp_path / "orders.csv"
    path.write_text(GERMAN)
    with pytest.raises(InputError, match=complaint):
        read_all(path, columns=columns)


moments = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)).map(lambda moment: moment.replace(microsecond=0))


@given(moments)
def test_dates_of_spreadsheets_are_those_of_python(moment: datetime) -> None:
    for form, day_first in (
        ("%Y/%m/%d %H:%M:%S", None), ("%d.%m.%Y %H:%M:%S", None), ("%d/%m/%Y %H:%M:%S", True),
        ("%m/%d/%Y %I:%M:%S %p", False), ("%Y/%m/%d %I:%M:%S%p", None),
    ):  # fmt: skip
        micros = TimestampParser(day_first).parse(moment.strftime(form))
        assert micros == moment.replace(tzinfo=UTC).timestamp() * 10**6


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("case,activity,time\nc,a,1\nc,b,9999999999999999999999999\n", "row 3: the time '9{25}' is too far from 1970"),
        ("case,activity,start,time,end\nc,a,2024-01-01,soon,2024-01-02\n", "row 2: the time 'soon' is not a point"),
    ],
)
def test_times_that_cannot_be_kept_name_their_row(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(InputError, match=complaint):
        read_all(tmp_path / "log.csv")


# -- ties, bad rows, dates ------------------------------------------------------------------------------------------


def test_ties_are_in_no_order_or_in_that_of_the_file(tmp_path: Path) -> None:
    rows = [("z", "2024-05-01"), ("a", "2024-05-01"), ("m", "2024-05-01"), ("b", "2024-05-02"), ("a", "2024-05-02")]
    (tmp_path / "log.csv").write_text("case,activity,time\n" + "".join(f"c,{step},{day}\n" for step, day in rows))
    (tmp_path / "log.xes").write_text(xes(("c", [xes_event(step, f"{day}T00:00:00Z") for step, day in rows])))
    (tmp_path / "steps.csv").write_text(
        "video,step,start,end\n" + "".join(f"c,{step},{day[-1]},{day[-1]}\n" for step, day in rows)
    )
    text = (tmp_path / "steps.csv").read_text().replace("\n", ",anna\n").replace("end,anna", "end,source")
    (tmp_path / "coded.csv").write_text(text)
    segments = [Segment(step, int(day[-1]), int(day[-1])) for step, day in rows]
    for name in ("log.csv", "log.xes", "steps.csv", "coded.csv", None):
        data = [segments] if name is None else tmp_path / name
        (unknown,), (ordered,) = (to_tasks(data, repeats="keep", **more) for more in ({}, {"ties": "file"}))
        assert [s.step for s in ordered.videos[0].segments] == [step for step, _ in rows]
        assert [round(s.start, 6) for s in ordered.videos[0].segments] == [s.start for s in unknown.videos[0].segments]
        before = Sequences.from_task(ordered).variants
        assert before.before.sum() == 4 * 3 / 2
        assert before.together.sum() == 0
        counted = Sequences.from_task(unknown).variants
        assert (counted.before.sum(), counted.together.sum()) == (3, 6)


def test_bad_rows_are_set_aside_if_they_are_few(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "log.csv"
    rows = [f"c{n},{step},2024-05-0{day}" for n in range(20) for day, step in enumerate("abc", start=1)]
    good = "\n".join(["case,activity,time", *rows])
    path.write_text(good)
    whole = read(path, repeats="keep")
    for bad, what in (
        ("c3,b,", "the event has no time"),
        ("c3,b,soon", "the time 'soon' is not a point in time"),
        ("c3,,2024-05-01", "the activity is empty"),
        ("c3,b,2024-05-01T00:00Z", "the time '2024-05-01T00:00Z' is one of times with a time zone"),
    ):
        path.write_text("\n".join(["case,activity,time", *rows[:30], bad, *rows[30:]]))
        caplog.clear()
        if "Z" not in bad:  # of two ways to write times, neither is wrong by itself
            assert read(path, repeats="keep") == whole
            assert f"bad rows that are set aside (--strict refuses them), 1 in all: row 32: {what}" in caplog.text
            assert summarize(path).findings == (f"1 bad row set aside: {path}, row 32: {what}",)
        with pytest.raises(InputError, match=f"row 32: {what}"):
            read(path, strict=True)
    path.write_text("\n".join(["case,activity,time", *rows[:30], *["c3,b,"] * 4, *rows[30:]]))
    with pytest.raises(InputError, match="row 32: the event has no time"):
        read(path)  # four of 64 are too many
    steps = tmp_path / "steps.csv"
    lines = [f"v{n},{step},{day},{day}.5" for n in range(20) for day, step in enumerate("abc")]
    for bad in ("v3,b,,", "v3,b,9,7", "v3,b,x,7", ",b,1,2"):
        steps.write_text("\n".join(["video,step,start,end", bad, *lines]))
        assert read(steps, repeats="keep").labels == 60
        if bad[-1] != "7" and bad[0] == "v":
            assert to_tasks(pandas.read_csv(steps), repeats="keep")[0].labels == 60
    events = [xes_event("a", "2024-05-01T00:00:00Z"), "<event></event>", xes_event("b", "soon"), xes_event("b")]
    log = tmp_path / "log.xes"
    log.write_text(xes(*((f"c{n}", events[:1]) for n in range(80)), ("bad", events)))
    assert read(log, repeats="keep").labels == 81
    with pytest.raises(InputError, match="the event has no attribute"):
        read(log, strict=True)


def test_dates_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "case,activity,time\nc,a,2024-05-01T12:00+02:00\nc,b,2024-05-03T12:00+02:00\nd,a,2024-06-01T00:00Z\n"
    )
    (task,) = read_all(path)
    for kept in (task, task.order_by_start(), task.with_first_labels(), task.select([0, 1])):
        assert kept.columns.began.astype("datetime64[us]").astype(str).tolist() == [
            "2024-05-01T10:00:00.000000", "2024-06-01T00:00:00.000000",
        ]  # fmt: skip
    assert summarize(path).tasks[0].dates == ("2024-05-01T10:00:00.000000", "2024-06-01T00:00:00.000000")


def test_data_frames_may_be_logs() -> None:
    times = pandas.to_datetime(["2024-05-01 12:00", "2024-05-01 12:05", "2024-05-01 12:30"]).tz_localize("Europe/Paris")
    frame = pandas.DataFrame({"case:concept:name": "c", "concept:name": ["a", "b", "b"], "time:timestamp": times})
    frame["lifecycle:transition"] = ["complete", "start", "complete"]
    for data in (frame, pyarrow.Table.from_pandas(frame)):
        (task,) = to_tasks(data)
        assert [(s.step, s.start, s.end) for s in task.videos[0].segments] == [("a", 0, 0), ("b", 300, 1800)]
        assert task.columns.began.tolist() == [int(times[0].timestamp()) * 10**6]
        assert task.absent == "skipped"
    renamed = frame.rename(columns={"concept:name": "What", "case:concept:name": "Order"})
    assert to_tasks(renamed, columns="case=Order,activity=What")[0].steps == ("a", "b")


# -- XES: text and parser, start_timestamp, writing -----------------------------------------------------------------

odd_names = st.text(st.sampled_from("ab&<>\"'é \t\n\u3000𝄞"), min_size=1).filter(lambda name: not name.isspace())


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(odd_names, min_size=1, max_size=6),
    st.integers(1, 40),
    st.sampled_from(["", "<!-- é <event> -->", "<?x?>"]),
)
def test_plain_events_from_the_text_are_what_the_parser_reads(
    tmp_path: Path, names: list[str], chunk: int, aside: str
) -> None:
    """Cut anywhere, with comments in between, the text gives the same as XML does without the short cut."""
    path = tmp_path / "log.xes"
    events = [xes_event(name, f"2024-05-0{n + 1}T00:00:00Z", more=aside) for n, name in enumerate(names)]
    text = xes(("c1", events[:3]), ("c2", events))
    root = ElementTree.fromstring(text)
    expected = [
        [
            node.get("value")
            for node in trace.iter()
            if node.tag.endswith("}string") and node.get("key") == "concept:name"
        ][1:]
        for trace in root.iter("{http://www.xes-standard.org/}trace")
    ]
    path.write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(xml_parser, "CHUNK", chunk)
        found = read(path, repeats="keep")
    assert [[s.step for s in video.segments] for video in found] == expected


def test_events_with_a_start_are_intervals(tmp_path: Path) -> None:
    path = tmp_path / "log.xes"
    begun = "<date key='start_timestamp' value='2024-05-01T00:00:05Z'/>"
    path.write_text(
        xes(("c", [xes_event("a", "2024-05-01T00:00:00Z"), xes_event("b", "2024-05-01T00:00:09Z", more=begun)]))
    )
    assert spans(path) == {"c": [("a", 0, 0), ("b", 5, 9)]}


spans_of_runs = st.lists(st.tuples(odd_names, st.integers(0, 10**13), st.integers(0, 10**9)), max_size=5)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(odd_names, spans_of_runs, min_size=1, max_size=3), st.booleans())
def test_what_is_written_as_xes_reads_back(tmp_path: Path, runs: dict, timed: bool) -> None:
    assume(any(runs.values()))
    videos = []
    for name, rows in runs.items():
        first = min((start for _, start, _ in rows), default=0)
        seconds = [(step, (start - first) / 1e6, (start - first + length) / 1e6) for step, start, length in rows]
        videos.append(Video(name, [Segment(step, *(times if timed else ())) for step, *times in seconds]))
    task = Task("orders", {step for rows in runs.values() for step, *_ in rows}, videos, "skipped")
    path = tmp_path / "log.xes"
    write(task, path)
    assert read_all(path, repeats="keep") == [task]


def test_what_xes_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="XES cannot hold the control characters in"):
        write(Task("t", ["a\x01"], [Video("v", [Segment("a\x01")])]), tmp_path / "log.xes")
    tasks = [Task(name, ["a"], [Video("v", [Segment("a")])]) for name in "tu"]
    with pytest.raises(InputError, match="holds one log, the data has 2 tasks"):
        write(tasks, tmp_path / "log.xes")

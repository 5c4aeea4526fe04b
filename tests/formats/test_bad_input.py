"""Bad input, each kind with its file and row, in at most three lines."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import tracemalloc
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.formats import read_all, read_graph, source, summarize

TABLES = {
    "empty": ("", "t.csv: is empty"),
    "blank": ("\n \n", "t.csv: is empty"),
    "only a mark": ("\ufeff", "t.csv: is empty"),
    "header only": ("video,step\n", "t.csv: has no rows below its header"),
    "long header": ("x" * 200_000, "row 1: the first line is too long to name columns"),
    "spaces": ("video step\nv a\n", "row 1: the columns are separated by spaces\n  use commas or tabs"),
    "no step": ("video,label\nv,a\n", r"row 1: the column 'step' is missing\n.*--columns \"video=…,step=…\""),
    "two steps": ("video,Step,STEP\nv,a,b\n", r"row 1: the columns 'Step', 'STEP' could each be the step\n.*step=Step"),
    "no video": ("step,start,end\na,0,1\n", "row 1: the column 'video' is missing"),
    "no start": ("video,step,end\nv,a,0\n", "row 1: there is a column 'end', but no column 'start'"),
    "twice": ("video,step,step\nv,a,a\n", "row 1: the column 'step' is there twice"),
    "NaN": ("video,step,start,end\nv,a,0,1\nv,b,nan,1\n", "row 3: the start nan is not a finite number"),
    "infinite": ("video,step,start,end\nv,a,0,inf\n", "row 2: the end inf is not a finite number"),
    "negative": ("video,step,start,end\nv,a,-1,1\n", "row 2: step 'a' starts at -1, before the video does"),
    "reversed": ("video,step,start,end\nv,a,5,1\n", "row 2: step 'a' ends at 1, before its start at 5"),
    "no clock": ("video,step,start,end\nv,a,0:10,0:70\n", "row 2: the end '0:70' is not a number"),
    "frames": (
        "video,step,start,end\nv,a,0:00:10:05,0:00:11:00\n",
        "row 2: the start '0:00:10:05' is not a number\n.*fram",
    ),
    "clock and seconds": ("video,step,start\nv,a,0:10\nv,b,20\n", "row 3: times are written in seconds and with"),
    "date": ("video,step,start\nv,a,2024-05-01\n", "row 2: the start '2024-05-01' is not a number\n.*event log"),
    "underscore": ("video,step,start,end\nv,a,1_0,1_1\n", "row 2: the start '1_0' is not a number"),
    "thousands": (
        'video,step,start,end\nv,a,"1,500",2\n',
        "row 2: the start '1,500' has a decimal comma or is in thous",
    ),
    "both marks": ("video;step;start;end\nv;a;1,5;2.5\n", "row 2: numbers are written with decimal"),
    "half": ("video,step,start,end\nv,a,,1\n", "row 2: step 'a' has a start or an end, but not both"),
    "some": ("video,step,start,end\nv,a,0,1\nw,b,,\n", "row 3: the row has no times, the rows above have some"),
    "others": ("video,step,start,end\nv,a,,\nw,b,0,1\n", "row 2: the row has no times, other rows have some"),
    "confidence": ("video,step,confidence\nv,a,2\n", "row 2: step 'a' has the confidence 2.0, not in 0 … 1"),
    "many": ("video,step\nv,a\nv,a,b\n", "row 3: there are 2 columns, but the row has 3"),
    "few": ("video,step\n\nv\n", "row 3: there are 2 columns, but the row has 1"),
    "empty step": ("video,step\nv,a\nv,\n", "row 3: the step is empty"),
    "blank above": (" \n\nvideo,step\nv,a\n,a\n", "row 5: the video is empty"),
    "empty video": ("video,step\nv,a\n,a\n", "row 3: the video is empty"),
    "empty task": ("task,video,step\nt,v,a\n,v,a\n", "row 3: the task is empty"),
    "after a newline": ('video,step\nv,"a\nb"\nv,"c\n"\n,x\n', "row 6: the video is empty"),
    "open quote": ('video,step\nv,a\nv,"a\nv,b\n', "row 3: the row cannot be read"),
    "bad quote": ('video,step\nv,"a"b\n', "row 2: the row cannot be read"),
    "NUL": ("video,step\nv,a\nv,a\0b\n", "row 3: has a NUL byte"),
    "UTF-16": ("video,step\nv,a\n".encode("utf-16"), r"row 1: byte 0 \(0xff\) is not UTF-8 text.*\n.*UTF-16"),
    "Latin-1": (b"video,step\nv,a\nv,caf\xe9 au\n", r"row 3: byte 20 \(0xe9\) is not UTF-8 text"),
    "cut character": (b"video,step\nv,caf\xc3", r"row 2: byte 16 \(0xc3\) is not UTF-8 text"),
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(99), r"row 1: byte 0 \(0x89\) is not UTF-8 text"),
    "cut gzip": (gzip.compress(b"video,step\n" + os.urandom(500).hex().encode())[:-200], "is broken gzip"),
    "bad gzip": (gzip.compress(b"video,step\nv,a\n")[:10] + b"\xff" * 20, "is broken gzip"),
    "list": ("[1, 2]", "is JSON, but in no layout that msg2 reads\n  msg2 reads: the CrossTask release folder; .*COIN"),
    "object": ('{\n"a": 1}', "is JSON, but in no layout that msg2 reads"),
    "graph": ('{"format": "msg2.graph/2"}', "is a graph, not data"),
    "graph of the old format": ('{"format": "msg2.graph/1"}', "is a graph, not data"),
    "broken JSON": ('{"video": "v",\n"step": }\n', r"row 2: is not valid JSON: .* \(column 9\)"),
    "key twice": ('{"database": 1,\n "database": 2}', "t.csv: the key 'database' is there twice in one object"),
    "deep": ("[" * 100_000, "is nested too deeply"),
    "line: broken": ('{"video":"v","step":"a"}\n{"video":"v",\n', "row 2: is not valid JSON"),
    "line: no object": ('{"video":"v","step":"a"}\n7\n', "row 2: the line is not a JSON object"),
    "line: key gone": ('{"video":"v","step":"a"}\n{"video":"v"}\n', "row 2: the step is empty"),
    "line: task gone": ('{"task":"t","video":"v","step":"a"}\n{"video":"v","step":"a"}\n', "row 2: the task is empty"),
    "line: key twice": ('{"video":"v","step":"a","step":"b"}\n', "row 1: the key 'step' is there twice"),
    "line: number": ('{"video":7,"step":"a"}\n', "row 1: the video '7' is not text"),
    "line: null": ('{"video":null,"step":"a"}\n', "row 1: the video is empty"),
    "line: no step": ('{"video":"v","step":null}\n', "row 1: the step is empty"),
    "line: text time": ('{"video":"v","step":"a","start":"0","end":1}\n', "row 1: the start '0' is not a number"),
    "line: true": ('{"video":"v","step":"a","start":true,"end":1}\n', "row 1: the start 'True' is not a number"),
    "line: NaN": ('{"video":"v","step":"a","start":NaN,"end":1}\n', "row 1: has NaN, which is no JSON number"),
    "line: huge": (
        '{"video":"v","step":"a","start":0,"end":1%s}\n' % ("0" * 400),
        "row 1: the end inf is not",
    ),
    "line: digits": ('{"video":"v","step":"a","start":0,"end":1%s}\n' % ("0" * 5000), "row 1: .*too many digits"),
    "line: surrogate": (r'{"video":"v","step":"\ud800"}', "row 1: has half of a surrogate pair"),
}


def complaint(path: Path, reading=read_all) -> str:
    with pytest.raises(InputError) as caught:
        reading(path)
    text = str(caught.value)
    assert len(text.splitlines()) <= 3
    assert path.name in text
    return text


@pytest.mark.parametrize("kind", TABLES)
def test_a_table(tmp_path: Path, kind: str) -> None:
    content, expected = TABLES[kind]
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert re.search(expected, complaint(path)), complaint(path)
    assert re.search(expected, complaint(path, summarize))


def test_bytes_far_into_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    good = ("video,step\n" + "v,ключ\n" * 50_000).encode()
    path.write_bytes(good + b"v,\xff\n")
    assert f"row 50002: byte {len(good) + 2} (0xff)" in complaint(path)


def test_an_endless_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_LINE", 1000)
    path = tmp_path / "t.csv"
    path.write_text("video,step\nv," + "x" * 5000)
    assert "row 2: the line is longer than 1,000 characters" in complaint(path)
    path.write_bytes(gzip.compress(b"video,step\nv," + b"x" * 5_000_000))
    assert "row 2: the line is longer" in complaint(path)
    monkeypatch.setattr(source, "MAX_DOCUMENT", 3_000_000)
    path.write_text('{"a": "' + "x" * 5_000_000 + '"}')
    assert "is larger than 3 MB" in complaint(path)


def test_an_endless_line_is_not_read_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("video,step\nv," + "x" * 100_000_000)
    tracemalloc.start()
    try:
        assert "row 2: the line is longer than 10,000,000 characters" in complaint(path)
        assert tracemalloc.get_traced_memory()[1] < 60_000_000
    finally:
        tracemalloc.stop()
    with path.open("wb") as stream:
        stream.truncate(1_000_000_000)  # sparse: a gigabyte without a line end
    assert "row 1: has a NUL byte" in complaint(path)


@pytest.mark.parametrize("column", ["video", "step", "start", "end"])
def test_dates_and_durations_that_python_cannot_hold(tmp_path: Path, column: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    path = tmp_path / "t.parquet"
    for kind, value in (
        ("timestamp[us]", 2**62), ("duration[s]", 2**62), ("duration[ns]", 2**62), ("date64[ms]", 2**50),
        ("date32[day]", 2**30), ("time64[us]", 86_399_999_999),
    ):  # fmt: skip
        wrong = pyarrow.array([value], pyarrow.type_for_alias(kind))
        write_table(
            pyarrow.table({"video": ["v"], "step": ["a"], "start": [0.0], "end": [1.0]} | {column: wrong}), path
        )
        complaint(path)
        complaint(path, summarize)


def test_counts_without_end_in_a_graph(tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    head = (
        '{"format": "msg2.graph/2", "task": "t", "steps": ["a", "b"], "preconditions": {"b": "a"}, "evidence": {"b": '
    )
    for value in (str(10**300), "1e300", "-1", "true", '"x"', "null", "[]"):
        path.write_text(head + f'{{"videos": {value}, "holds": {value}, "confidence": {value}}}}}}}')
        graph = read_graph(path)
        assert len(graph.explain("b").splitlines()) < 10
        assert read_graph(path).dumps() == graph.dumps()
        assert [edge.support for edge in graph.edges()]
    path.write_text(head + f'{{"videos": 1, "holds": {"9" * 5000}}}}}}}')
    assert "too many digits" in complaint(path, read_graph)


def test_fields_of_a_crosstask_release_that_never_end(tmp_path: Path) -> None:
    (tmp_path / "annotations").mkdir()
    files = {"tasks_primary.txt": "1\nToast\nurl\n2\nfry,flip\n\n", "videos.csv": "1,v,url\n"}
    files["annotations/1_v.csv"] = "1,0,1\n2,2,3\n"
    for broken in ("videos.csv", "annotations/1_v.csv"):
        for name, content in files.items():
            (tmp_path / name).write_text(content if name != broken else "1,0," + "1" * 131_073 + "\n")
        with pytest.raises(InputError, match=rf"{broken}, row 1: the row cannot be read .*\n.*131,072 characters"):
            read_all(tmp_path)


def test_a_field_that_never_ends(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('video,step\nv,"' + "x\n" * 100_000)
    assert re.search(r"row 2: the row cannot be read \(field larger.*\n.*quote not closed", complaint(path))


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for reading in (read_all, summarize, read_graph):
        assert "is not there" in complaint(tmp_path / "nowhere", reading)
        os.mkfifo(tmp_path / f"pipe{reading.__name__}")
        assert "neither a file nor a folder" in complaint(tmp_path / f"pipe{reading.__name__}", reading)
    assert "neither a file nor a folder" in complaint(Path("/dev/zero"))
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "cannot be read" in complaint(loop)
    with pytest.raises(InputError, match="cannot be read"):
        read_all("a\0b")
    with pytest.raises(InputError, match="cannot be read"):
        read_all("x" * 10_000)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_and_a_folder_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("video,step\nv,a\n")
    path.chmod(0)
    assert "cannot be read (Permission denied)" in complaint(path)
    folder = tmp_path / "folder"
    folder.mkdir(mode=0)
    assert "cannot be read (Permission denied)" in complaint(folder)


def test_a_refused_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text("video,step\nv,a\n")

    def refuse(*args: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert "cannot be read (Permission denied)" in complaint(path)
    monkeypatch.setattr(Path, "iterdir", refuse)
    assert "cannot be read (Permission denied)" in complaint(tmp_path)


def test_folders(tmp_path: Path) -> None:
    assert "holds nothing that msg2 reads\n  msg2 reads: " in complaint(tmp_path)
    (tmp_path / "README.md").write_text("# hello\n")
    (tmp_path / "inner").mkdir()
    assert "holds nothing that msg2 reads" in complaint(tmp_path)
    (tmp_path / "t.csv").write_text("")
    assert "t.csv: is empty" in complaint(tmp_path)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    assert "t.csv, row 1: the column 'step' is missing" in complaint(tmp_path)
    (tmp_path / "x.json").write_text(json.dumps({"a": 1})[:-1])
    assert "x.json, row 1: is not valid JSON" in complaint(tmp_path)


SEEDS = [
    b"video,step,start,end\nv1,flip,5,6.5\nv1,fry,0,5\n",
    b'{"video":"v","step":"a","start":0,"end":1}\n{"video":"v","step":"b","start":1,"end":2}\n',
    b'{"1_1": {"activity_name": "T", "steps": [{"step_id": 1, "start_time": 0, "end_time": 1, "description": "a"}]}}',
    b'{"database": {"v": {"class": "T", "annotation": [{"label": "a", "segment": [0, 1]}]}}}',
    b'{"format": "msg2.graph/1", "task": "t", "steps": ["a", "b"], "preconditions": {"b": {"all": ["a"]}}}',
    b'{"steps": {"0": "START", "1": "a", "2": "b"}, "edges": [[0, 1], [1, 2]]}',
    gzip.compress(b"video,step\nv,a\n", mtime=0),
    b"case:concept:name,concept:name,time:timestamp\nc,a,2020-01-01\n",
    b'<log><trace><event><string key="concept:name" value="a"/><date key="time:timestamp" value="1"/></event></trace>'
    b"</log>",
    b'<ANNOTATION_DOCUMENT><TIME_ORDER><TIME_SLOT TIME_SLOT_ID="t" TIME_VALUE="5"/></TIME_ORDER><TIER TIER_ID="x">'
    b'<ALIGNABLE_ANNOTATION ANNOTATION_ID="a" TIME_SLOT_REF1="t" TIME_SLOT_REF2="t">'
    b"<ANNOTATION_VALUE>s</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></TIER></ANNOTATION_DOCUMENT>",
    b'<annotations><meta></meta><track id="0" label="a"><box frame="1" outside="0"/></track></annotations>',
    b'[{"id": 1, "data": {"video": "v"}, "annotations": [{"result": [{"type": "labels", "value": {"start": 0, '
    b'"end": 1, "channel": 0, "labels": ["a"]}}]}]}]',
    b'{"annotations": {"u": {"take_name": "t", "scenario": "s", "segments": [{"start_time": 0, "end_time": 1, '
    b'"step_name": "a"}]}}}',
    b"0,1,take bowl\n1,2,stir\n",
    b"0,30,attach,wheel,chassis,correct,\n",
    b'[[0, 1, "take bowl"], [1, 2, "stir"]]',
]
PIECES = [b"", b'"', b"{", b"\n", b"\xff", b"0", b"null", b"[]", b","]
edits = st.lists(st.tuples(st.integers(0, 120), st.integers(0, 3), st.sampled_from(PIECES)), max_size=3)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.one_of(st.binary(max_size=60), st.sampled_from(SEEDS)), edits)
def test_damaged_files_are_read_or_refused_in_words(tmp_path: Path, content: bytes, edits: list) -> None:
    for at, removed, added in edits:
        content = content[:at] + added + content[at + removed :]
    path = tmp_path / "any.thing"
    path.write_bytes(content)
    for reading in (read_all, read_graph, summarize, partial(read_all, fps=30)):
        with contextlib.suppress(InputError):
            reading(path)

"""Tables as people have them: read as the table of steps that they stand for, with a note of what was assumed."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from msg2.errors import InputError
from msg2.formats import read, read_all, summarize
from msg2.task import Segment, Task, Video

TOAST = Task(
    "toast",
    ["flip", "fry"],
    [Video("v1", [Segment("fry", 0, 5), Segment("flip", 65, 66.5)]), Video("v2", [Segment("fry", 1, 2)])],
)
PLAIN = "video,step,start,end\nv1,flip,65,66.5\nv1,fry,0,5\nv2,fry,1,2\n"
CLOCK = "video,step,start,end\nv1,flip,1:05,1:06.5\nv1,fry,0:00,0:05\nv2,fry,0:01,0:02\n"
SPELLINGS = {
    "any case": (PLAIN.replace("video,step,start,end", "Video,STEP,Start,End"), ()),
    "other names": (
        PLAIN.replace("video,step,start,end", "Video ID,Step name,Begin,Stop"),
        ("the column 'Video ID' is the video, 'Step name' is the step, 'Begin' is the start, 'Stop' is the end",),
    ),
    "seconds in the name": (
        PLAIN.replace("start,end", "Start (s),End [sec]"),
        ("the column 'Start (s)' is the start, 'End [sec]' is the end",),
    ),
    "milliseconds": (
        "video,step,start_ms,end_ms\nv1,flip,65000,66500\nv1,fry,0,5000\nv2,fry,1000,2000\n",
        ("the column 'start_ms' is the start, 'end_ms' is the end",),
    ),
    "semicolons": (PLAIN.replace(",", ";"), ("the columns are separated by semicolons",)),
    "bars": (PLAIN.replace(",", "|"), ("the columns are separated by bars",)),
    "spaces after commas": (PLAIN.replace(",", ", "), ("the columns are separated by commas and spaces",)),
    "quotes after spaces": (
        PLAIN.replace(",", ", ").replace("fry", '"fry"').replace("step", '"step"'),
        ("the columns are separated by commas and spaces",),
    ),
    "spaces around names": (PLAIN.replace(",", "\t").replace("step", " step "), ()),
    "decimal commas": (
        PLAIN.replace(",", ";").replace(".", ","),
        ("the columns are separated by semicolons", "numbers have a decimal comma"),
    ),
    "minutes": (CLOCK, ("times with colons are m:ss or h:mm:ss",)),
    "hours": (CLOCK.replace(",0:", ",0:00:").replace(",1:0", ",00:01:0"), ("times with colons are m:ss or h:mm:ss",)),
    "more columns": (PLAIN.replace("\n", ",,\n").replace("end,,", "end,,"), ()),
}


def written(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


@pytest.mark.parametrize("kind", SPELLINGS)
def test_the_same_table_as_people_write_it(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    content, assumed = SPELLINGS[kind]
    path = written(tmp_path / "toast.csv", content)
    with caplog.at_level(logging.WARNING):
        assert read(path) == TOAST
    notes = [f"{path}: assumed: {'; '.join(assumed)}"] if assumed else []
    assert [record.getMessage() for record in caplog.records] == notes
    assert summarize(path).assumptions == assumed


def test_a_start_without_an_end_is_an_instant(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "video,step,time\nv,b,0:20\nv,a,0:05\nv,c,0:20\n")
    segments = read(path).videos[0].segments
    assert segments == (Segment("a", 5, 5), Segment("b", 20, 20), Segment("c", 20, 20))
    assert segments[0].before(segments[1])
    assert not segments[1].before(segments[2])
    assert not segments[2].before(segments[1])
    assert summarize(path).assumptions[-1].startswith("a label with a start and no end is an instant")
    some = read(written(tmp_path / "t.csv", "video,step,start,end\nv,b,20,\nv,a,5,9\n"))
    assert some.videos[0].segments == (Segment("a", 5, 9), Segment("b", 20, 20))


def test_an_exact_name_is_taken_before_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    task = read(written(tmp_path / "t.csv", "Video,video,Step name,step\nx,v,y,a\n"))
    assert (task.videos[0].id, task.steps) == ("v", ("a",))
    assert "columns that are not used: 'Step name', 'Video'" in caplog.text
    assert "assumed" not in caplog.text


def test_columns_that_the_user_names(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "file,action,from,to,step\nv,a,0,1,7\n")
    task = read(path, columns="video=file,step=action,start=from,end=to")
    assert task == Task("t", ["a"], [Video("v", [Segment("a", 0, 1)])])
    assert task.absent == "unknown"
    with pytest.raises(InputError, match="the column 'video' is missing"):
        read_all(path)
    with pytest.raises(InputError, match="takes no columns"):
        read_all(written(tmp_path / "x.json", '[[0, 1, "take bowl"]]'), columns="video=file")


def test_other_kinds_of_tables_are_matched_as_well(tmp_path: Path) -> None:
    lines = '{"Video": "v", "Step Name": "a", "start": 1}\n{"Video": "v", "Step Name": "b", "start": 2, "end": 3}\n'
    expected = Task("t", ["a", "b"], [Video("v", [Segment("a", 1, 1), Segment("b", 2, 3)])])
    assert read(written(tmp_path / "t.jsonl", lines)) == expected

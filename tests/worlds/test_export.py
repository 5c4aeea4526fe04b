"""The table of a task reads back as the same task, in every format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.options import NoiseOptions, WorldOptions
from msg2.readers import read_all
from msg2.task import Segment, Task, Video
from msg2.worlds import as_table, simulate, world, worlds
from msg2.worlds.export import SUFFIXES, as_json_lines, as_parquet, to_dataframe, write

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
seconds = st.floats(0, 1e9, allow_nan=False)


def read_back(table: str, delimiter: str = ",") -> list[Task]:
    """An independent reader: Python's csv, and nothing else."""
    tasks: dict[str, dict[str, list[Segment]]] = {}
    for row in csv.DictReader(io.StringIO(table, newline=""), delimiter=delimiter):
        number = {name: float(row[name]) for name in ("start", "end", "confidence") if row.get(name)}
        segment = Segment(row["step"], **number, source=row.get("source") or None)
        tasks.setdefault(row["task"], {}).setdefault(row["video"], []).append(segment)
    return [
        Task(
            name, {s.step for segments in videos.values() for s in segments}, [Video(*item) for item in videos.items()]
        )
        for name, videos in tasks.items()
    ]


@st.composite
def some_tasks(draw: st.DrawFn) -> list[Task]:
    rows = draw(st.lists(st.tuples(names, names, names, seconds, seconds), min_size=1, max_size=6))
    tasks: list[Task] = []
    for name in dict.fromkeys(row[0] for row in rows):
        videos: dict[str, list[Segment]] = {}
        for _, video, label, start, duration in (row for row in rows if row[0] == name):
            videos.setdefault(video, []).append(Segment(label, start, start + duration))
        steps = {segment.step for segments in videos.values() for segment in segments}
        tasks.append(Task(name, steps, [Video(*item) for item in videos.items()]))
    return tasks


@given(some_tasks())
def test_any_name_and_number_survives(tasks: list[Task]) -> None:
    assert read_back(as_table(tasks)) == tasks
    assert read_back(as_table(tasks, "\t"), "\t") == tasks


@given(some_tasks())
def test_other_libraries_read_the_same_table(tasks: list[Task]) -> None:
    frame = pandas.read_parquet(io.BytesIO(as_parquet(tasks)))
    pandas.testing.assert_frame_equal(frame, to_dataframe(tasks))
    objects = [json.loads(line) for line in as_json_lines(tasks).split("\n")[:-1]]
    assert objects == frame.to_dict("records")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_our_reader_reads_the_same_tasks(suffix: str, tmp_path: Path) -> None:
    tasks = [simulate(one, WorldOptions(noise=NoiseOptions(overlapping=0.1)), seed=0).task for one in worlds()]
    (path,) = write(tasks, tmp_path / f"table{suffix}")
    found = read_all(path, repeats="keep")
    assert sorted(found, key=lambda task: task.name) == sorted(tasks, key=lambda task: task.name)


def test_times_are_short_and_exact() -> None:
    table = as_table([simulate(world("Tie Tie"), WorldOptions(videos=20), seed=0).task])
    numbers = [text for row in csv.reader(table.splitlines()[1:]) for text in row[3:]]
    assert numbers
    assert all(len(text.partition(".")[2]) <= 2 for text in numbers)


def test_optional_columns_and_order_without_times(tmp_path: Path) -> None:
    untimed = Task("t", "ab", [Video("v", [Segment("b"), Segment("a", confidence=0.25, source="me, myself")])])
    assert as_table([untimed]) == 'task,video,step,confidence,source\nt,v,b,,\nt,v,a,0.25,"me, myself"\n'
    assert read_back(as_table([untimed])) == [untimed]
    for suffix in (".tsv", ".jsonl", ".parquet"):
        assert read_all(*write(untimed, tmp_path / f"t{suffix}")) == [untimed]
    timed = Task("u", "a", [Video("v", [Segment("a", 0, 1)])])
    with pytest.raises(InputError, match="some of the tasks have times"):
        as_table([untimed, timed])
    assert as_table([]) == "task,video,step,start,end\n"
    assert as_json_lines([]) == ""


@pytest.mark.parametrize("name", ["labels.json", "labels", "labels.xml", "eaf"])
def test_unknown_suffixes_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"use one of {' '.join(SUFFIXES)}".replace(".", r"\.")):
        write([], tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["labels.eaf", "labels.label-studio.json"])
def test_labels_without_times_are_for_tables_only(name: str, tmp_path: Path) -> None:
    videos = [Video("v", [Segment("a", 0, 1)]), Video("w", [Segment("a")])]
    with pytest.raises(InputError, match=r"labels.*: video 'w' has no times, which .* needs\n  write a table") as error:
        write(Task("t", "a", videos), tmp_path / name)
    assert error.value.where == str(tmp_path / name)
    assert not list(tmp_path.iterdir())

"""The table of a task reads back as the same task."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.options import NoiseOptions, WorldOptions
from msg2.readers import read_all
from msg2.task import Segment, Task, Video
from msg2.worlds import as_table, simulate, world, worlds

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
seconds = st.floats(0, 1e9, allow_nan=False)


def read_back(table: str) -> list[Task]:
    """An independent reader: Python's csv, and nothing else."""
    tasks: dict[str, dict[str, list[Segment]]] = {}
    for row in csv.DictReader(io.StringIO(table, newline="")):
        number = {name: float(row[name]) for name in ("start", "end", "confidence") if row.get(name)}
        segment = Segment(row["step"], **number, source=row.get("source") or None)
        tasks.setdefault(row["task"], {}).setdefault(row["video"], []).append(segment)
    return [
        Task(
            name, {s.step for segments in videos.values() for s in segments}, [Video(*item) for item in videos.items()]
        )
        for name, videos in tasks.items()
    ]


@given(st.lists(st.tuples(names, names, names, seconds, seconds), min_size=1, max_size=6))
def test_any_name_and_number_survives(rows: list[tuple[str, str, str, float, float]]) -> None:
    tasks: list[Task] = []
    for name in dict.fromkeys(row[0] for row in rows):
        videos: dict[str, list[Segment]] = {}
        for _, video, label, start, duration in (row for row in rows if row[0] == name):
            videos.setdefault(video, []).append(Segment(label, start, start + duration))
        steps = {segment.step for segments in videos.values() for segment in segments}
        tasks.append(Task(name, steps, [Video(*item) for item in videos.items()]))
    assert read_back(as_table(tasks)) == tasks


def test_our_reader_reads_the_same_tasks(tmp_path: Path) -> None:
    tasks = [simulate(one, WorldOptions(noise=NoiseOptions(overlapping=0.1)), seed=0).task for one in worlds()]
    path = tmp_path / "table.csv"
    path.write_text(as_table(tasks), encoding="utf-8")
    found = read_all(path, repeats="keep")
    assert sorted(found, key=lambda task: task.name) == sorted(tasks, key=lambda task: task.name)


def test_times_are_short_and_exact() -> None:
    table = as_table([simulate(world("Tie Tie"), WorldOptions(videos=20), seed=0).task])
    numbers = [text for row in csv.reader(table.splitlines()[1:]) for text in row[3:]]
    assert numbers
    assert all(len(text.partition(".")[2]) <= 2 for text in numbers)


def test_optional_columns_and_order_without_times() -> None:
    untimed = Task("t", "ab", [Video("v", [Segment("b"), Segment("a", confidence=0.25, source="me, myself")])])
    assert as_table([untimed]) == 'task,video,step,confidence,source\nt,v,b,,\nt,v,a,0.25,"me, myself"\n'
    assert read_back(as_table([untimed])) == [untimed]
    timed = Task("u", "a", [Video("v", [Segment("a", 0, 1)])])
    with pytest.raises(InputError, match="some of the tasks have times"):
        as_table([untimed, timed])
    assert as_table([]) == "task,video,step,start,end\n"

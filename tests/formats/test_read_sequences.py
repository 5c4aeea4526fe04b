"""Tables that are read one at a time: the same as read at once."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from msg2.errors import InputError
from msg2.formats import read_all, read_sequences
from msg2.formats.conversion import _join_parts
from msg2.formats.source import Source
from msg2.parallel import WorkerDied
from msg2.progress import no_progress
from msg2.sequences import Sequences

HEADER = "video,step,start,end\n"
LOG = "case,activity,time\n"


def write(folder: Path, files: Mapping[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content)
    return folder


def same(found: Sequence[Sequences], expected: Sequence[Sequences]) -> bool:
    fields = ("name", "absent", "steps", "videos", "run_of_video", "run", "step", "start", "end")
    return len(found) == len(expected) and all(
        list(getattr(one, field)) == list(getattr(other, field))
        for one, other in zip(found, expected, strict=True)
        for field in fields
    )


def parts(rows: Sequence[str], count: int, header: str = HEADER) -> dict[str, str]:
    """Every part has whole videos, which come in no order."""
    return {f"part-{number}.csv": header + "".join(rows[number::count]) for number in range(count)}


ROWS = [
    f"v{n:02},{a},{n},{n + 3}\nv{n:02},{b},{n + 2 + n % 2},{n + 9}\n"
    for n in range(23)
    for a, b in [("boil", "pour") if n % 3 else ("pour", "stir")]
]


@pytest.mark.parametrize("jobs", [1, 2])
def test_parts_are_one_table(tmp_path: Path, jobs: int) -> None:
    folder = write(tmp_path / "tea", parts(ROWS, 4))
    whole = write(tmp_path / "whole", {"tea.csv": HEADER + "".join(ROWS)})
    found = read_sequences(folder, jobs=jobs)
    assert same(found, read_sequences(whole / "tea.csv"))
    assert same(found, [Sequences.from_task(task) for task in read_all(folder)])
    assert found[0].name == "tea"
    assert len(found[0].weight) < 23


def test_every_table_is_a_task_of_its_own_where_it_is_no_part(tmp_path: Path) -> None:
    folder = write(tmp_path / "all", {"tea.csv": HEADER + ROWS[0], "coffee.csv": HEADER + ROWS[1]})
    found = read_sequences(folder)
    assert [(one.name, one.videos) for one in found] == [("coffee", ("v01",)), ("tea", ("v00",))]
    assert same(found, [Sequences.from_task(task) for task in read_all(folder)])


def test_one_table_per_video_is_read_at_once(tmp_path: Path) -> None:
    folder = write(tmp_path / "tea", {f"v{n}.csv": "step,start,end\nboil,0,1\n" for n in range(2)})
    assert [(one.name, one.videos) for one in read_sequences(folder)] == [("tea", ("v0", "v1"))]


def test_a_video_in_two_tables_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "tea", {"part-0.csv": HEADER + ROWS[0], "part-1.csv": HEADER + ROWS[0]})
    with pytest.raises(InputError, match=r"tea: the video 'v00' of task 'tea' is in two files\n  give every video"):
        read_sequences(folder)


def test_cases_of_a_log_may_go_on_in_the_next_part(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    days = {
        "part-1.csv": LOG + "c1,pour,2024-05-02T10:00:00\nc2,boil,2024-05-02T10:00:00\n",
        "part-0.csv": LOG + "c1,boil,2024-05-01T10:00:00\n",
    }
    folder = write(tmp_path / "orders", days)
    with caplog.at_level(logging.WARNING):
        (found,) = read_sequences(folder)
    assert "cases go on from file to file, so all files are read at once" in caplog.text
    assert (found.name, found.absent, found.videos) == ("orders", "skipped", ("c1", "c2"))
    assert found.before.tolist() == [[0, 1], [0, 0]]
    (task,) = read_all(folder)
    assert [video.sequence() for video in task] == [("boil", "pour"), ("boil",)]


def test_logs_in_parts(tmp_path: Path) -> None:
    rows = [f"c{n:02},boil,2024-05-01T10:{n:02}:00\nc{n:02},pour,2024-05-01T11:00:{n:02}\n" for n in range(9)]
    folder = write(tmp_path / "orders", parts(rows, 3, LOG))
    whole = write(tmp_path / "whole", {"orders.csv": LOG + "".join(rows)})
    assert same(read_sequences(folder), read_sequences(whole / "orders.csv"))
    assert read_sequences(folder)[0].weight.tolist() == [9]


def test_parts_of_a_log_with_and_without_times_are_refused(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "orders", {"part-0.csv": LOG + "c,boil,2024-05-01\n", "part-1.csv": "case,activity\nc,b\n"}
    )
    with pytest.raises(InputError, match=r"part-1.csv: has no times, the parts before it have some\n  write all parts"):
        read_all(folder)


def test_what_was_assumed_is_told_once_for_all_tables(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [f"v{n},boil,{n},{n + 1},x\n" for n in range(4)]
    folder = write(tmp_path / "tea", parts(rows, 4, "Video,Step,Start,End,colour\n"))
    (folder / "readme.txt").write_text("about the tables")
    with caplog.at_level(logging.WARNING):
        read_sequences(folder)
    said = [record.getMessage().removeprefix(f"{folder}: ") for record in caplog.records]
    assert said == [
        "files that are no tables of steps, not read: 'readme.txt'",
        "columns that are not used: 'colour'",
    ]


def test_the_file_with_the_error_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "tea", parts(ROWS, 3) | {"part-1.csv": HEADER + "v1,boil,5,2\n"})
    with pytest.raises(InputError, match=r"part-1.csv, row 2: step 'boil' ends at 2, before its start at 5"):
        read_sequences(folder)


def test_a_worker_that_died_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"part-7.csv: the process that read this has been ended from outside"):
        _join_parts(Source(tmp_path), 1, [(Path("part-7.csv"), WorkerDied())], no_progress)

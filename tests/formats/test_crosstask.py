"""The CrossTask release: the real one, and small broken ones."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from msg2.errors import InputError
from msg2.formats import read, read_all
from msg2.task import Segment, Task, Video

TASKS = "7\nMake Tea\nhttp://x\n3\nboil water,add tea,pour\n\n8\nFly\nhttp://y\n1\nflap\n\n"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "some_release"
    (folder / "annotations").mkdir(parents=True)
    (folder / "tasks_primary.txt").write_text(TASKS)
    (folder / "videos.csv").write_text("7,a_b,http://x\n7,gone,http://x\n99,other,http://x\n")
    (folder / "annotations" / "7_a_b.csv").write_text("3,5.5,7\n1,0,4\n")
    return folder


TEA = Task(
    "Make Tea",
    ["boil water", "add tea", "pour"],
    [Video("a_b", [Segment("boil water", 0, 4), Segment("pour", 5.5, 7)])],
)


@pytest.mark.parametrize("inner", ["", "..", "annotations"])
def test_a_small_release(release: Path, inner: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert read_all(release / inner) == [TEA]
    assert "1 of the 2 listed videos have no annotation" in caplog.text


def test_a_release_whose_list_of_videos_is_lost(release: Path) -> None:
    (release / "videos.csv").unlink()
    assert read(release, task="make tea") == TEA


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("annotations/7_x.csv", "1,0,1\n4,0,1\n", r"7_x.csv, row 2: '4,0,1' is not the number of a step .1 … 3."),
        ("annotations/7_x.csv", "0,0,1\n", r"row 1: '0,0,1' is not the number of a step"),
        ("annotations/7_x.csv", "1,0\n", r"row 1: there are 3 columns, but the row has 2"),
        ("annotations/7_x.csv", "1,0,1\n\npour,0,1\n", r"row 3: 'pour,0,1' is not the number of a step"),
        ("annotations/7_x.csv", "1,5,1\n", r"row 1: step 'boil water' ends at 1, before its start at 5"),
        ("annotations/7_x.csv", "1,nan,1\n", r"row 1: step 'boil water' has the start nan"),
        ("annotations/9_x.csv", "1,0,1\n", r"9_x.csv: the task '9' in the file's name is not in tasks_primary.txt"),
        ("videos.csv", "7,a,u\n7,b,u\n7,a,u\n", r"videos.csv, row 3: the video 'a' is listed twice"),
        ("tasks_primary.txt", "7\nTea\nhttp\n2\na,b,c\n", r"row 5: there are 3 steps, not '2'"),
        ("tasks_primary.txt", "7\nTea\nhttp\n3\na,b,a\n", r"row 5: the list has an empty step, or one twice"),
        ("tasks_primary.txt", "7\nTea\n", r"row 2: the task above has 2 lines, not five"),
        ("tasks_primary.txt", TASKS + TASKS, r"row 13: the task 'Make Tea' is there twice"),
    ],
)
def test_a_broken_release(release: Path, name: str, content: str, complaint: str) -> None:
    (release / name).write_text(content)
    with pytest.raises(InputError, match=complaint):
        read_all(release)


def test_a_release_without_annotations(release: Path) -> None:
    (release / "annotations" / "7_a_b.csv").unlink()
    with pytest.raises(InputError, match="has no annotations"):
        read_all(release)
    (release / "annotations").rmdir()
    with pytest.raises(InputError, match="annotations: is not there"):
        read_all(release)


def test_the_official_release(data: Path) -> None:
    tasks = read_all(data / "crosstask")
    assert len(tasks) == 18
    assert sum(map(len, tasks)) == 2750
    assert sum(map(len, tasks)) / 18 == pytest.approx(152.8, abs=0.05)
    toast = read(data / "crosstask" / "crosstask_release", task="Make French Toast")
    assert (len(toast), len(toast.steps)) == (252, 10)
    assert all(video.is_timed and video.segments for task in tasks for video in task)


def test_no_label_of_the_official_release_is_lost(data: Path) -> None:
    release = data / "crosstask" / "crosstask_release"
    rows = sum(len(file.read_text().split()) for file in (release / "annotations").glob("*.csv"))
    kept = read_all(release, repeats="keep")
    assert sum(len(video.segments) for task in kept for video in task) == rows
    firsts = read_all(release)
    assert all(len(video.segments) == len(video.sequence()) for task in firsts for video in task)
    assert [[v.sequence() for v in task] for task in firsts] == [[v.sequence() for v in task] for task in kept]


def test_a_field_that_is_too_long(tmp_path: Path) -> None:
    (tmp_path / "annotations").mkdir()
    (tmp_path / "tasks_primary.txt").write_text("1\nToast\nurl\n2\nfry,flip\n\n")
    (tmp_path / "annotations" / "1_v.csv").write_text("1,0,1\n2," + "9" * 200_000 + ",3\n")
    with pytest.raises(InputError, match=r"1_v\.csv, row 2: the row cannot be read \(field larger"):
        read_all(tmp_path)

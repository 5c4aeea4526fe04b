"""CaptainCook4D: both annotation files, skipped steps, the order, and names that match the task graphs."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from msg2.errors import InputError
from msg2.formats import read, read_all, read_graph
from msg2.task import Segment, Task, Video

OFFICIAL, SELECTION = "complete_step_annotations.json", "task_graph_generation_annotations.json"


def row(step_id: int, start: float, end: float, description: str) -> dict[str, Any]:
    return {"step_id": step_id, "start_time": start, "end_time": end, "description": description, "has_errors": False}


def annotations(rows_key: str = "steps") -> dict[str, Any]:
    first = [row(2, 5, 6, "pour"), row(1, 0, 4, "boil"), row(3, -1.0, -1.0, "sip")]
    return {
        "1_1": {"activity_name": "Tea", rows_key: first},
        "1_2": {"activity_name": "Tea", rows_key: [row(1, 0, 1, "boil"), row(2, 2, 3, "pour"), row(2, 4, 5, "pour")]},
    }


def written(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value, indent=1))
    return path


@pytest.mark.parametrize("selected", [False, True])
def test_order_of_the_file_or_of_time(tmp_path: Path, selected: bool) -> None:
    value = {"annotations": annotations("segments"), "taxonomy": {}} if selected else annotations()
    path = written(tmp_path / "any.json", value)
    steps = ["boil", "pour", "sip"]
    untimed = [[Segment("pour"), Segment("boil")], [Segment("boil"), Segment("pour")]]
    timed = [[Segment("boil", 0, 4), Segment("pour", 5, 6)], [Segment("boil", 0, 1), Segment("pour", 2, 3)]]
    for order, labels in ((None, untimed), ("file", untimed), ("time", timed)):
        videos = [Video(name, segments) for name, segments in zip(("1_1", "1_2"), labels, strict=True)]
        assert read(path, order=order) == Task("Tea", steps, videos)
    assert len(read(path, repeats="keep").videos[1].segments) == 3
    assert read_all(tmp_path) == read_all(path)


def test_a_variant_of_a_description_is_its_step(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    value = annotations()
    value["1_3"] = {"activity_name": "Tea", "steps": [row(1, 0, 1, "boil twice"), row(1, 2, 3, "pour")]}
    with caplog.at_level(logging.WARNING):
        task = read(written(tmp_path / "a.json", value))
    assert task.steps == ("boil", "pour", "sip")
    assert task.videos[2].sequence() == ("boil", "pour")
    assert "$.1_3.steps[0]: 'boil twice' is read as 'boil'" in caplog.text


def test_both_files_in_a_folder(tmp_path: Path) -> None:
    written(tmp_path / "a.json", annotations())
    written(tmp_path / "b.json", {"annotations": annotations("segments")})
    with pytest.raises(InputError, match=r"the folder holds a.json and b.json\n  choose one"):
        read_all(tmp_path)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"start_time": "x"}, r"\$.1_1.steps\[1\].start_time: is not a number"),
        ({"start_time": True}, r"\$.1_1.steps\[1\].start_time: is not a number"),
        ({"start_time": 9}, r"\$.1_1.steps\[1\]: step 'boil' ends at 4, before its start at 9"),
        ({"end_time": 10**400}, r"\$.1_1.steps\[1\]: has a time that is too large"),
        ({"step_id": "x"}, r"\$.1_1.steps\[1\].step_id: is not a whole number"),
        ({"description": None}, r"\$.1_1.steps\[1\].description: is not text"),
        ({"description": ""}, r"\$.1_1.steps\[1\].description: is empty"),
    ],
)
def test_broken_rows(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    value = annotations()
    value["1_1"]["steps"][1] |= change
    with pytest.raises(InputError, match=complaint):
        read_all(written(tmp_path / "a.json", value))


def test_broken_recordings(tmp_path: Path) -> None:
    for broken, complaint in (
        ({"activity_name": "Tea"}, r"\$.1_2.steps: is missing"),
        ({"activity_name": 1, "steps": []}, r"\$.1_2.activity_name: is not text"),
        ([], r"\$.1_2.activity_name: is missing"),
        ({"activity_name": "Tea", "steps": [1]}, r"\$.1_2.steps\[0\]: is not an object"),
    ):
        with pytest.raises(InputError, match=complaint):
            read_all(written(tmp_path / "a.json", annotations() | {"1_2": broken}))
    twice = json.dumps(annotations()).replace("1_2", "1_1")
    (tmp_path / "a.json").write_text(twice)
    with pytest.raises(InputError, match="the key '1_1' is there twice"):
        read_all(tmp_path / "a.json")


@pytest.mark.parametrize(("file", "recipes", "recordings"), [(OFFICIAL, 12, 199), (SELECTION, 24, 194)])
def test_the_real_files(data: Path, file: str, recipes: int, recordings: int) -> None:
    folder = data / "captaincook4d"
    for order in ("file", "time"):
        tasks = read_all(folder / file, order=order)
        assert (len(tasks), sum(map(len, tasks))) == (recipes, recordings)
        assert all(video.is_timed == (order == "time") for task in tasks for video in task)
        for task in tasks:
            truth = read_graph(folder / "task_graphs" / f"{task.name.lower().replace(' ', '')}.json")
            assert sorted(truth.steps) == list(task.steps)


def test_the_real_folder_is_ambiguous(data: Path) -> None:
    with pytest.raises(InputError, match=f"{OFFICIAL} and {SELECTION}"):
        read_all(data / "captaincook4d")


def test_skipped_steps_of_the_real_selection_have_no_segment(data: Path) -> None:
    zoodles = read(data / "captaincook4d" / SELECTION, task="Zoodles")
    short = {video.id for video in zoodles if len(video.segments) < len(zoodles.steps)}
    assert short == {"18_11", "18_19"}

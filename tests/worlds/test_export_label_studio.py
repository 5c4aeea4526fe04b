"""Label Studio JSON has the documented layout of pre-annotated tasks, and fits the labelling interface beside it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from msg2.errors import InputError
from msg2.options import ExportOptions, WorldOptions
from msg2.readers import read_all
from msg2.task import Segment, Task, Video
from msg2.worlds import simulate, worlds
from msg2.worlds.export import write

NUMBER, TEXT = {"type": "number"}, {"type": "string", "minLength": 1}
LABELS = {"type": "array", "items": TEXT, "minItems": 1}


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(properties.keys() - {"score", "meta", "fps"}),
        "additionalProperties": False,
    }


def layout(value: dict[str, Any]) -> dict[str, Any]:
    """The basic format of Label Studio for tasks with predictions, with one kind of region."""
    score = {"type": "number", "minimum": 0, "maximum": 1}
    region = closed(
        id=TEXT, from_name=TEXT, to_name=TEXT, type={"enum": ["labels", "timelinelabels"]}, value=value, score=score,
        meta=closed(text=LABELS),
    )  # fmt: skip
    prediction = closed(model_version=TEXT, result={"type": "array", "items": region})
    data = closed(video=TEXT, id=TEXT, task=TEXT, fps=NUMBER)
    return {"type": "array", "items": closed(data=data, predictions={"type": "array", "items": prediction})}


SOUND = layout(closed(start=NUMBER, end=NUMBER, channel={"const": 0}, labels=LABELS))
FRAME = {"type": "integer", "minimum": 1}
PICTURE = layout(closed(ranges={"type": "array", "items": closed(start=FRAME, end=FRAME)}, timelinelabels=LABELS))


@pytest.fixture
def tasks() -> list[Task]:
    toast = [Segment("whisk", 0, 4.25), Segment('dip "x" <b>', 4.25, 6, 0.75, "predicted"), Segment("fry", 2, 2)]
    return [
        Task("toast", ["whisk", 'dip "x" <b>', "fry"], [Video("v1", toast), Video("v2", [])]),
        Task("tea", ["boil", "whisk"], [Video("v1", [Segment("boil", 1 / 3, 2 / 3)])]),
    ]


def exported(tasks: list[Task], folder: Path, **options: Any) -> tuple[list[Any], ElementTree.Element]:
    labels, interface = write(tasks, folder / "x.label-studio.json", ExportOptions(**options))
    assert interface == folder / "x.label-studio.xml"
    return json.loads(labels.read_text("utf-8")), ElementTree.fromstring(interface.read_text("utf-8"))


def test_seconds_along_the_sound(tasks: list[Task], tmp_path: Path) -> None:
    content, interface = exported(tasks, tmp_path, media="https://videos.example.org/{video}.webm")
    jsonschema.validate(content, SOUND)
    assert [task["data"] for task in content] == [
        {"video": f"https://videos.example.org/{video}.webm", "id": video, "task": name}
        for name, video in [("toast", "v1"), ("toast", "v2"), ("tea", "v1")]
    ]
    regions = content[0]["predictions"][0]["result"]
    assert [(r["value"]["labels"], r["value"]["start"], r["value"]["end"]) for r in regions] == [
        (["whisk"], 0, 4.25),
        (["fry"], 2, 2),
        (['dip "x" <b>'], 4.25, 6),
    ]
    assert [region.get("score") for region in regions] == [None, None, 0.75]
    assert regions[2]["meta"] == {"text": ["predicted"]}
    assert content[1]["predictions"][0]["result"] == []
    fits(content, interface)


def test_frames_of_the_picture(tasks: list[Task], tmp_path: Path) -> None:
    content, interface = exported(tasks, tmp_path, fps=30)
    jsonschema.validate(content, PICTURE)
    ranges = [region["value"]["ranges"][0] for task in content for region in task["predictions"][0]["result"]]
    # frame n, from 1, is seen from (n - 1) / 30 to n / 30 seconds
    assert ranges == [
        {"start": 1, "end": 128},
        {"start": 61, "end": 61},
        {"start": 128, "end": 180},
        {"start": 11, "end": 20},
    ]
    assert interface.find("Video").get("frameRate") == "30"
    assert {task["data"]["fps"] for task in content} == {30}
    fits(content, interface)


@pytest.mark.parametrize("fps", [None, 25])
def test_our_reader_reads_it_back(fps: float | None, tmp_path: Path) -> None:
    tasks = [simulate(one, WorldOptions(videos=5), seed=0).task for one in worlds()[:3]]
    if fps is not None:  # what lies on the borders of frames comes back as it was
        tasks = [on_frames(task, fps) for task in tasks]
    labels, _ = write(tasks, tmp_path / "x.label-studio.json", ExportOptions(fps=fps))
    found = read_all(labels, repeats="keep")
    assert [task.name for task in found] == sorted(task.name for task in tasks)
    for one, task in zip(found, sorted(tasks, key=lambda task: task.name), strict=True):
        assert one.videos == task.videos


def on_frames(task: Task, fps: float) -> Task:
    def moved(segment: Segment) -> Segment:
        start = round(segment.start * fps)
        return replace(segment, start=start / fps, end=max(start + 1, round(segment.end * fps)) / fps)

    return task.with_videos(Video(video.id, map(moved, video.segments)) for video in task)


def test_predicted_labels_read_back_with_confidence_and_source(tasks: list[Task], tmp_path: Path) -> None:
    labels, _ = write(tasks, tmp_path / "x.label-studio.json")
    found = {task.name: task.videos for task in read_all(labels, repeats="keep")}
    assert found == {task.name: task.videos for task in tasks}


def fits(content: list[Any], interface: ElementTree.Element) -> None:
    """Every region is made by a control of the interface, on an object of it, with a label that it offers."""
    known = {element.get("name"): element for element in interface if element.get("name")}
    for region in (region for task in content for one in task["predictions"] for region in one["result"]):
        control = known[region["from_name"]]
        assert control.tag.lower() == region["type"]
        assert control.get("toName") == region["to_name"] in known
        offered = {label.get("value") for label in control}
        assert set(region["value"][region["type"]]) <= offered == {"boil", 'dip "x" <b>', "fry", "whisk"}
        assert known[region["to_name"]].get("value") == "$video"
    for task in content:
        for one in task["predictions"]:
            assert len({region["id"] for region in one["result"]}) == len(one["result"])


@pytest.mark.parametrize("fps", [0, -1, float("nan"), float("inf")])
def test_a_frame_rate_is_a_number_above_zero(fps: float) -> None:
    with pytest.raises(InputError, match="fps is"):
        ExportOptions(fps=fps)

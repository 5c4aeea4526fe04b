"""Label Studio exports in their documented layouts are read; what is written has that layout and fits the interface."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from msg2.errors import InputError
from msg2.formats import read, read_all, summarize
from msg2.formats.reading import WriteOptions
from msg2.formats.registry import write
from msg2.simulation import household_worlds, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Segment, Task, Video


def spans(path: Path, **options: Any) -> dict[str, list[tuple[str, float | None, float | None]]]:
    (task,) = read_all(path, repeats="keep", **options)
    return {video.id: [(s.step, s.start, s.end) for s in video.segments] for video in task}


def complaint(path: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_all(path, **options)
    assert len(str(caught.value).splitlines()) <= 3
    return str(caught.value)


# -- reading ----------------------------------------------------------------------------------------------------


def region(kind: str, **value: Any) -> dict[str, Any]:
    return {"id": "x1", "from_name": "label", "to_name": "video", "type": kind, "value": value, "origin": "manual"}


def timeline(label: str, start: int, end: int) -> dict[str, Any]:
    return region("timelinelabels", ranges=[{"start": start, "end": end}], timelinelabels=[label])


def item(data: dict[str, Any], *results: dict[str, Any], **more: Any) -> dict[str, Any]:
    made = {"id": 5, "completed_by": 1, "result": list(results), "was_cancelled": False, "ground_truth": False}
    return {"id": 1, "data": data, "annotations": [made], "predictions": [], "project": 3} | more


def export(path: Path, *items: Any) -> Path:
    path.write_text(json.dumps(items))
    return path


def test_label_studio_timelines(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    box = region("videorectangle", framesCount=250, duration=10, sequence=[], labels=["hand"])
    labelled = (timeline("fry", 1, 25), timeline("flip", 26, 50))
    path = export(tmp_path / "toast.json", item({"video": "/data/upload/3/0a1b2c3d-v 1.mp4"}, *labelled))
    assert "$[0]: is labelled in frames, and does not say how long they are\n  say how many" in complaint(path)
    expected = {"v 1": [("fry", 0, 1), ("flip", 1, 2)]}
    assert spans(path, fps=25) == expected
    assert read(path, fps=25).name == "toast"
    data = {"video": "/data/local-files/?d=films/v 1.mp4", "fps": 25}
    assert spans(export(path, item(data, *labelled))) == expected
    assert spans(export(path, item({"video": "https://x.org/a/v 1.mp4?s=1"}, *labelled, box))) == expected
    assert "results that are no regions in time, not read: 'videorectangle' (1)" in caplog.text


def test_label_studio_ranges_that_are_switched_off(tmp_path: Path) -> None:
    spread = [{"start": 1, "end": 10, "enabled": True}, {"start": 11, "end": 20, "enabled": False}]
    path = export(tmp_path / "e.json", item({"video": "v"}, region("x", ranges=spread, timelinelabels=["a"])))
    assert spans(path, fps=10) == {"v": [("a", 0, 1)]}


def test_label_studio_sound_and_series(tmp_path: Path) -> None:
    sound = {**region("labels", start=3.1, end=8.25, channel=0, labels=["speech", "noise"]), "original_length": 98.2}
    words = region("labels", start=0, end=5, text="hello", labels=["greeting"])
    plain = region("labels", start=1, end=2, labels=["hum"])
    series = region("timeserieslabels", start=2, end=4, instant=False, timeserieslabels=["Run"])
    path = export(tmp_path / "e.json", item({"audio": "a.wav"}, sound, words), item({"csv": "b.csv"}, series))
    assert spans(export(tmp_path / "f.json", item({"audio": "a.wav"}, plain))) == {"a": [("hum", 1, 2)]}
    assert spans(export(tmp_path / "f.json", item({"text": "hum hum"}, plain))) == {"hum hum": []}
    assert spans(path) == {"a": [("noise", 3.1, 8.25), ("speech", 3.1, 8.25)], "b": [("Run", 2, 4)]}


def test_label_studio_min(tmp_path: Path) -> None:
    value = {"ranges": [{"start": 11, "end": 20}], "timelinelabels": ["fry"]}
    least = {"video": "v.mp4", "id": 7, "videoLabels": [value], "annotator": 1, "annotation_id": 4, "lead_time": 2.5}
    assert spans(export(tmp_path / "e.json", least), fps=10) == {"v": [("fry", 1, 2)]}


def test_label_studio_annotations_and_predictions(tmp_path: Path) -> None:
    path = tmp_path / "e.json"
    guess = {"model_version": "m", "score": 0.5, "result": [{**timeline("fry", 1, 10), "score": 0.25}]}
    export(path, item({"video": "v"}, timeline("flip", 1, 10), predictions=[guess]))
    assert spans(path, fps=10) == {"v": [("flip", 0, 1)]}
    export(path, item({"video": "v"}, annotations=[], predictions=[guess]))
    (video,) = read(path, fps=10).videos
    assert video.segments == (Segment("fry", 0, 1, 0.25, "predicted"),)
    both = item({"video": "v"}, timeline("flip", 1, 10))
    both["annotations"] *= 2
    assert "$[0]: has 2 annotations, which may not agree" in complaint(export(path, both), fps=10)
    both["annotations"][0] = both["annotations"][0] | {"ground_truth": True}
    assert spans(export(path, both), fps=10) == {"v": [("flip", 0, 1)]}
    both["annotations"] = [both["annotations"][0], both["annotations"][1] | {"was_cancelled": True}]
    assert spans(export(path, both), fps=10) == {"v": [("flip", 0, 1)]}
    assert "$[1]: is the second item of its video" in complaint(export(path, both, both), fps=10)


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (timeline("a", 0, 5), "step 'a' starts at -0.1, before the video does"),
        (timeline("a", 9, 5), "step 'a' ends at 0.5, before its start at 0.8"),
        (timeline("", 1, 5), "a step has an empty name"),
        (timeline("a", 1, 10**400), "has a time that is too large"),
        (region("timelinelabels", ranges=[{"start": "1", "end": 2}], timelinelabels=["a"]), "start: is not a number"),
        (region("timelinelabels", ranges=7, timelinelabels=["a"]), "ranges: is not a list"),
        (region("timelinelabels", ranges=[], timelinelabels=[7]), "is not text"),
        (region("timeserieslabels", start="2020-01-01", end="", timeserieslabels=["a"]), "start: is not a number"),
        ({"type": "labels"}, r"$[0].annotations.result[0].value: is missing"),
        (7, "$[0].annotations.result[0]: is not an object"),
    ],
)
def test_label_studio_that_is_refused(tmp_path: Path, wrong: Any, expected: str) -> None:
    assert expected in complaint(export(tmp_path / "e.json", item({"video": "v"}, wrong)), fps=10)


@pytest.mark.parametrize("key", ["annotations", "predictions"])
@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ("x", ": is not a list"),
        (7, ": is not a list"),
        ({"a": 1}, ": is not a list"),
        ([{}, 7], "[1]: is not an object"),
    ],
)
def test_annotations_that_are_none(tmp_path: Path, key: str, wrong: Any, expected: str) -> None:
    path = export(tmp_path / "e.json", item({"video": "v"}, **{"annotations": [], key: wrong}))
    assert f"$[0].{key}{expected}" in complaint(path, fps=10)


def test_a_table_is_read_as_the_items_that_it_holds(tmp_path: Path) -> None:
    regions = [{"ranges": [{"start": 1, "end": 25}], "timelinelabels": ["fry"]}]
    item = {"id": 7, "video": "/data/upload/3/0a1b2c3d-v1.mp4", "step": regions, "annotator": 4, "annotation_id": 2}
    path = tmp_path / "toast.csv"
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, sorted(item))
        writer.writeheader()
        writer.writerow(item | {"step": json.dumps(regions)})
    assert spans(path, fps=25) == spans(export(tmp_path / "toast.json", item), fps=25) == {"v1": [("fry", 0, 1)]}
    assert "toast.csv, row 2: is labelled in frames" in complaint(path)
    path.write_text(path.read_text().replace("timelinelabels", 'timeline"labels'))
    assert "toast.csv, row 2: " in complaint(path, fps=25)


def test_what_several_annotators_made(tmp_path: Path) -> None:
    both = [{"result": [timeline("fry", 1, 25)], "completed_by": who} for who in (1, {"id": 2, "email": "b@x.org"})]
    path = export(tmp_path / "toast.json", item({"video": "v1.mp4", "fps": 25}, annotations=both))
    assert "has 2 annotations, which may not agree\n" in complaint(path)
    assert "`msg2 describe` shows how far they agree" in complaint(path)
    (pair,) = summarize(path).tasks[0].agreement
    assert (pair.annotators, pair.agreement.overall.time_kappa) == (("1", "b@x.org"), None)


# -- writing ----------------------------------------------------------------------------------------------------


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
    labels, interface = write(tasks, folder / "x.label-studio.json", WriteOptions(**options))
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
    tasks = [simulate(one, SimulationOptions(videos=5), seed=0).task for one in household_worlds()[:3]]
    if fps is not None:  # what lies on the borders of frames comes back as it was
        tasks = [on_frames(task, fps) for task in tasks]
    labels, _ = write(tasks, tmp_path / "x.label-studio.json", WriteOptions(fps=fps))
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
        WriteOptions(fps=fps)


@pytest.mark.parametrize("value", [7, "text", {"a": 1}, True])
@pytest.mark.parametrize("key", ["annotations", "predictions"])
def test_annotations_that_are_no_list(tmp_path: Path, key: str, value: object) -> None:
    path = tmp_path / "export.json"
    path.write_text(json.dumps([{"data": {"id": "v"}, key: value}]))
    with pytest.raises(InputError, match=rf"\$\[0\]\.{key}: is not a list"):
        read_all(path)

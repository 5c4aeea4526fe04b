"""ELAN files of another library, CVAT and Label Studio exports in their documented layouts, and what msg2 writes."""

from __future__ import annotations

import json
import logging
import zipfile
from pathlib import Path
from typing import Any

import pympi
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.options import ExportOptions
from msg2.readers import read, read_all
from msg2.task import Segment, Task, Video
from msg2.worlds.export import write


def spans(path: Path, **options: Any) -> dict[str, list[tuple[str, float | None, float | None]]]:
    (task,) = read_all(path, repeats="keep", **options)
    return {video.id: [(s.step, s.start, s.end) for s in video.segments] for video in task}


def complaint(path: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_all(path, **options)
    assert len(str(caught.value).splitlines()) <= 3
    return str(caught.value)


# -- ELAN -------------------------------------------------------------------------------------------------------


@pytest.fixture
def eaf() -> pympi.Elan.Eaf:
    logging.getLogger("pympi").setLevel(logging.ERROR)
    made = pympi.Elan.Eaf(author="Ann")
    made.add_tier("steps")
    for start, end, value in [(0, 1500, "whisk <eggs>"), (2000, 2750, "dip\nbread"), (1500, 2000, "🍳 & 'heat'")]:
        made.add_annotation("steps", start, end, value)
    return made


def test_elan(tmp_path: Path, eaf: pympi.Elan.Eaf) -> None:
    folder = tmp_path / "toast"
    folder.mkdir()
    eaf.to_file(str(folder / "v1.eaf"))
    expected = [("whisk <eggs>", 0, 1.5), ("🍳 & 'heat'", 1.5, 2), ("dip\nbread", 2, 2.75)]
    assert spans(folder / "v1.eaf") == spans(folder) == {"v1": expected}
    assert read(folder).name == "toast"
    eaf.to_file(str(folder / "v2.eaf"))
    assert spans(folder) == {"v1": expected, "v2": expected}
    (tmp_path / "other").mkdir()
    eaf.to_file(str(tmp_path / "other" / "w.eaf"))
    assert [(task.name, len(task)) for task in read_all(tmp_path)] == [("other", 1), ("toast", 2)]


def test_elan_tiers(tmp_path: Path, eaf: pympi.Elan.Eaf) -> None:
    path = tmp_path / "v.eaf"
    eaf.add_tier("speech")
    eaf.add_annotation("speech", 100, 200, "ok")
    eaf.to_file(str(path))
    assert complaint(path).endswith(
        "has annotations on 2 tiers\n  choose the one with the steps (--tier NAME): 'speech', 'steps'"
    )
    assert spans(path, tier="speech") == {"v": [("ok", 0.1, 0.2)]}
    assert spans(path, tier="default") == {"v": []}
    assert "has no tier 'x'\n  its tiers are: 'default', 'speech', 'steps'" in complaint(path, tier="x")
    table = tmp_path / "t.csv"
    table.write_text("video,step\nv,a\n")
    assert "takes no tier" in complaint(table, tier="x")


def test_elan_annotations_that_refer_to_others(tmp_path: Path, eaf: pympi.Elan.Eaf) -> None:
    path = tmp_path / "v.eaf"
    eaf.add_linguistic_type("refers", "Symbolic_Association", timealignable=False)
    eaf.add_tier("names", "refers", "steps")
    eaf.add_ref_annotation("names", "steps", 100, "mix")
    eaf.add_tier("loud", "refers", "names")
    eaf.add_ref_annotation("loud", "names", 100, "MIX")
    eaf.to_file(str(path))
    assert spans(path, tier="names") == {"v": [("mix", 0, 1.5)]}
    assert spans(path, tier="loud") == {"v": [("MIX", 0, 1.5)]}
    path.write_text(path.read_text().replace("ANNOTATION_REF=", "OTHER_REF=", 1))
    assert "<REF_ANNOTATION> has no attribute 'ANNOTATION_REF'" in complaint(path, tier="names")


ELAN = """<?xml version="1.0" encoding="UTF-8"?>
<ANNOTATION_DOCUMENT AUTHOR="" DATE="2024-01-01T00:00:00+00:00" FORMAT="3.0" VERSION="3.0">
<HEADER MEDIA_FILE="" TIME_UNITS="milliseconds"/>
<TIME_ORDER><TIME_SLOT TIME_SLOT_ID="t1" TIME_VALUE="1000"/><TIME_SLOT TIME_SLOT_ID="t2"/>
<TIME_SLOT TIME_SLOT_ID="t3"/><TIME_SLOT TIME_SLOT_ID="t4" TIME_VALUE="4000"/></TIME_ORDER>
<TIER TIER_ID="s" LINGUISTIC_TYPE_REF="d">{}</TIER></ANNOTATION_DOCUMENT>"""


def elan(*annotations: tuple[str, str, str]) -> str:
    return ELAN.format(
        "\n".join(
            f'<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a{n}" TIME_SLOT_REF1="{a}" TIME_SLOT_REF2="{b}">'
            f"<ANNOTATION_VALUE>{value}</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>"
            for n, (a, b, value) in enumerate(annotations)
        )
    )


def test_elan_boundaries_without_a_time_lie_evenly(tmp_path: Path) -> None:
    path = tmp_path / "v.eaf"
    path.write_text(elan(("t1", "t2", "a"), ("t2", "t3", "b"), ("t3", "t4", "c")))
    assert spans(path) == {"v": [("a", 1, 2), ("b", 2, 3), ("c", 3, 4)]}
    path.write_text(elan(("t1", "t2", "a")))
    assert "v.eaf, annotation a0: has no times, and neither has what it refers to" in complaint(path)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (('"4000"', '"4.5"'), "row 5: the time '4.5' is not a number of milliseconds"),
        (('"4000"', f'"{"9" * 400}"'), "row 5: the time '999"),
        (('"4000"', '"500"'), "annotation a0: step 'a' ends at 0.5, before its start at 1"),
        (('TIME_UNITS="milliseconds"', 'TIME_UNITS="PAL-frames"'), "row 3: the unit of time is 'PAL-frames'"),
        (('REF2="t4"', 'REF2="t9"'), "row 6: the time 't9' is not in <TIME_ORDER>"),
        ((">a<", "><"), "annotation a0: is empty\n  its value is the name of the step"),
        (("<HEADER", "<!-- \f --><HEADER"), "row 3: is not valid XML"),
        (('<?xml version="1.0" encoding="UTF-8"?>', '<!DOCTYPE x [<!ENTITY e "">]>'), "row 1: defines the entity 'e'"),
    ],
)
def test_elan_that_is_refused(tmp_path: Path, change: tuple[str, str], expected: str) -> None:
    path = tmp_path / "v.eaf"
    path.write_text(elan(("t1", "t4", "a")).replace(*change))
    assert expected in complaint(path)


def test_a_document_without_annotations(tmp_path: Path) -> None:
    (tmp_path / "v.eaf").write_text(elan())
    assert "v.eaf: has no annotations" in complaint(tmp_path)


# -- CVAT -------------------------------------------------------------------------------------------------------

CVAT = """<?xml version="1.0" encoding="utf-8"?>
<annotations>
  <version>1.1</version>
  <meta>
    <task>
      <id>4</id><name>kitchen morning</name><size>100</size><mode>interpolation</mode><overlap>5</overlap>
      <start_frame>0</start_frame><stop_frame>200</stop_frame><frame_filter>{filter}</frame_filter>
      <labels><label><name>fry</name><attributes></attributes></label></labels>
      <segments><segment><id>9</id><start>0</start><stop>99</stop><url>http://localhost/?id=4</url></segment></segments>
      <owner><username>ann</username><email></email></owner>
      <original_size><width>1280</width><height>720</height></original_size>
    </task>
    <dumped>2024-05-01 12:00:00.000000+00:00</dumped>
    {source}
  </meta>
  {body}
</annotations>
"""


def track(number: int, label: str, *frames: tuple[int, int]) -> str:
    boxes = "".join(
        f'<box frame="{frame}" outside="{outside}" occluded="0" keyframe="1" xtl="1" ytl="2" xbr="3" ybr="4" '
        f'z_order="0"><attribute name="hand">left</attribute></box>'
        for frame, outside in frames
    )
    return f'<track id="{number}" label="{label}" source="manual">{boxes}</track>\n'


def cvat(body: str, source: str = "<source>v1.mp4</source>", step: str = "") -> str:
    return CVAT.format(body=body, source=source, filter=step)


def test_cvat_tracks(tmp_path: Path) -> None:
    path = tmp_path / "annotations.xml"
    body = track(0, "fry &lt;b&gt;", (30, 0), (45, 0), (60, 1)) + track(1, "flip", (60, 0), (61, 0), (90, 1), (120, 0))
    path.write_text(cvat(body))
    assert "annotations.xml: counts in frames, and does not say how long they are\n  say how" in complaint(path)
    found = {"v1": [("fry <b>", 1, 2), ("flip", 2, 3), ("flip", 4, 121 / 30)]}
    assert spans(path, fps=30) == found
    path.write_text(cvat(body, source=""))
    assert list(spans(path, fps=30)) == ["kitchen morning"]
    path.write_text(cvat(track(0, "a", (10, 0)), step="step=5"))
    assert spans(path, fps=10) == {"v1": [("a", 1, 1.5)]}
    path.write_text(cvat(""))
    assert spans(path, fps=10) == {"v1": []}


def test_cvat_folders_are_videos(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "annotations.xml").write_text(
            cvat(track(0, "a", (0, 0), (10, 1)), f"<source>{name}.mp4</source>")
        )
    assert spans(tmp_path, fps=10) == {"one": [("a", 0, 1)], "two": [("a", 0, 1)]}
    (tmp_path / "two" / "annotations.xml").write_text(cvat("", "<source>one.mp4</source>"))
    assert "the video 'one' of task" in complaint(tmp_path, fps=10)


def test_cvat_tags_of_neighbouring_frames_are_one_step(tmp_path: Path) -> None:
    path = tmp_path / "annotations.xml"
    tagged = {0: "a", 1: "a", 2: "ab", 3: "b", 4: "", 5: "a"}
    body = "".join(
        f'<image id="{frame}" name="frame_{frame:06}" width="9" height="9">'
        + "".join(f'<tag label="{label}" source="manual"></tag>' for label in labels)
        + "</image>\n"
        for frame, labels in tagged.items()
    )
    path.write_text(cvat(body))
    assert spans(path, fps=1) == {"v1": [("a", 0, 3), ("b", 2, 4), ("a", 5, 6)]}


def test_an_export_that_is_still_packed(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("annotations.xml", cvat(""))
    assert complaint(tmp_path / "export.zip").endswith(
        "export.zip: is a zip archive or a spreadsheet\n  unpack it and give what is in it; save a spreadsheet as CSV"
    )


def test_a_cvat_project(tmp_path: Path) -> None:
    path = tmp_path / "annotations.xml"
    tasks = "".join(f"<task><id>{n}</id><name>t{n}</name><source>v{n}.avi</source></task>" for n in (4, 7))
    meta = f"<project><id>1</id><name>p</name><tasks>{tasks}</tasks></project>"
    tracks = "".join(
        track(0, f"a{n}", (0, 0), (5, 1)).replace("<track", f'<track task_id="{n}" subset="Train"') for n in (4, 7)
    )
    path.write_text(f"<annotations><version>1.1</version><meta>{meta}</meta>{tracks}</annotations>")
    assert spans(path, fps=5) == {"v4": [("a4", 0, 1)], "v7": [("a7", 0, 1)]}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (('frame="30"', 'frame="3e9"'), "the frame '3e9' is not a whole number"),
        (('frame="30"', f'frame="{"9" * 5000}"'), "is not a whole number"),
        (('frame="30" ', ""), "<box> has no attribute 'frame'"),
        (('label="fry" ', ""), "<track> has no attribute 'label'"),
        (('label="fry"', 'label=""'), "a step has an empty name"),
    ],
)
def test_cvat_that_is_refused(tmp_path: Path, change: tuple[str, str], expected: str) -> None:
    path = tmp_path / "annotations.xml"
    path.write_text(cvat(track(0, "fry", (30, 0), (60, 1))).replace(*change))
    assert expected in complaint(path, fps=30)
    assert "fps is 0, it must be above 0" in complaint(path, fps=0)


# -- Label Studio -----------------------------------------------------------------------------------------------


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


# -- there and back ---------------------------------------------------------------------------------------------

names = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), min_size=1)
labels = st.builds(
    lambda step, start, length, source: Segment(step, start / 10, (start + length) / 10, None, source),
    st.sampled_from(["a", "b <i>", "ключ"]), st.integers(0, 50), st.integers(1, 30),
    st.sampled_from([None, "predicted"]),
)  # fmt: skip


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(labels, max_size=6), names, names, st.sampled_from([".eaf", ".label-studio.json"]), st.booleans())
def test_what_is_written_is_read(
    tmp_path: Path, given_labels: list[Segment], name: str, video: str, suffix: str, frames: bool
) -> None:
    task = Task(name, {"a", "b <i>", "ключ"}, [Video(video, given_labels)])
    path = tmp_path / f"out{suffix}"
    rate = 10.0 if frames and suffix != ".eaf" else None
    write([task], path, ExportOptions(fps=rate))
    (found,) = read_all(path, repeats="keep", fps=rate)
    assert found.name == name
    assert [one.id for one in found] == [video]
    assert set(found.videos[0].segments) == set(given_labels)

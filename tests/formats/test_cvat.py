"""CVAT exports in their documented layouts."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from msg2.errors import InputError
from msg2.formats import read_all


def spans(path: Path, **options: Any) -> dict[str, list[tuple[str, float | None, float | None]]]:
    (task,) = read_all(path, repeats="keep", **options)
    return {video.id: [(s.step, s.start, s.end) for s in video.segments] for video in task}


def complaint(path: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_all(path, **options)
    assert len(str(caught.value).splitlines()) <= 3
    return str(caught.value)


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
    assert "annotations.xml: counts in frames" in complaint(tmp_path / "export.zip")


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
    assert "fps is 0, it must be a number above 0" in complaint(path, fps=0)

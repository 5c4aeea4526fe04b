"""Pictures of steps: taken at the right moment, of the video that shows the step most usually."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from msg2.graph import SubtaskGraph
from msg2.media.stills import find_stills
from msg2.media.video_decoding import frame_at
from msg2.task import Segment, Task, Video

pytest.importorskip("av")


@pytest.mark.parametrize("seconds", [0.0, 0.39, 1.0, 3.79, 99.0])
def test_what_is_on_the_screen_at_a_time(
    film: Callable[..., Path], read_number: Callable[[np.ndarray], int], tmp_path: Path, seconds: float
) -> None:
    path = film(tmp_path / "film.mp4", [k / 5 for k in range(20)])
    image = frame_at(path, seconds)
    assert image is not None
    assert read_number(image) == min(int(seconds * 5 + 1e-6), 19)


def test_sound_alone_has_no_picture(film: Callable[..., Path], tmp_path: Path) -> None:
    assert frame_at(film(tmp_path / "voice.mp4", sound=1.0), 0.5) is None


def test_a_step_is_shown_in_the_middle_of_its_median_segment(film: Callable[..., Path], tmp_path: Path) -> None:
    from PIL import Image

    lengths = {"v0": 1.0, "v1": 2.0, "v2": 3.0, "gone": 9.0}
    task = Task("t", ["a", "b"], [Video(name, [Segment("a", 0, length)]) for name, length in lengths.items()])
    for name in ("v0", "v1", "v2"):
        film(tmp_path / f"{name}.mp4", [k / 5 for k in range(20)])
    stills = find_stills(task, tmp_path)
    assert {name: still.caption for name, still in stills.items()} == {"a": "v1, at 0:01"}
    assert Image.open(BytesIO(stills["a"].jpeg)).size == (88, 48)
    page = SubtaskGraph("t", ["a", "b"], {}).write(tmp_path / "page.html", task, stills).read_text("utf-8")
    assert len(re.findall("data:image/jpeg;base64", page)) == 1
    assert "ask them before you pass this on" in page

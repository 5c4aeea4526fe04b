"""Lists of timecodes, as people note them down."""

from __future__ import annotations

from pathlib import Path

import pytest

from msg2.errors import InputError
from msg2.formats import read, read_all, summarize
from msg2.task import Segment, Task, Video


def test_a_folder_of_lists_is_a_task(tmp_path: Path) -> None:
    folder = tmp_path / "toast"
    folder.mkdir()
    (folder / "v1.txt").write_text("00:05 whisk eggs\n\n1:02 - fry: slowly\n[0:01:30.5] flip\n(2:00) serve\n")
    (folder / "v2.txt").write_bytes(b"\xef\xbb\xbf0:05-0:07 whisk eggs\r\n0:10 --> 0:12\tflip\r\n0:20,0:30,serve\r\n")
    instants = [("whisk eggs", 5), ("fry: slowly", 62), ("flip", 90.5), ("serve", 120)]
    spans = [("whisk eggs", 5, 7), ("flip", 10, 12), ("serve", 20, 30)]
    videos = [
        Video("v1", [Segment(step, at, at) for step, at in instants]),
        Video("v2", [Segment(*span) for span in spans]),
    ]
    assert read(folder) == Task("toast", {step for step, _ in instants}, videos)
    assert len(summarize(folder).assumptions) == 2
    assert read(folder / "v2.txt").videos[0].id == "v2"
    assert len(summarize(folder / "v2.txt").assumptions) == 1


@pytest.mark.parametrize("line", ["flip", "0:75 flip", "0:05", "0:07-0:05 flip", "0:05 - 0:99 flip"])
def test_lines_that_are_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "v1.txt"
    path.write_text(f"0:01 fry\n{line}\n")
    with pytest.raises(InputError, match=r"v1.txt, row 2: "):
        read_all(path)

"""ELAN's tab-delimited exports: read as the documents that they were made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from msg2.errors import InputError
from msg2.formats import read, read_all, summarize
from msg2.task import Segment, Task, Video

LABELS = [('whisk "hard"', 1.23, 2.51), ("fry", 3.0, 64.5)]
VIDEO = Video("v1", [Segment(*label) for label in LABELS])


def clock(seconds: float) -> str:
    return f"00:{int(seconds // 60):02}:{seconds % 60:06.3f}"


def cells(begin: float, end: float, notations: int, duration: bool) -> list[str]:
    """The times of a row: begin, end and maybe duration, each as hh:mm:ss.ms, seconds and milliseconds."""
    times = [begin, end, end - begin] if duration else [begin, end]
    return [text for one in times for text in [clock(one), f"{one:.3f}", str(round(one * 1000))][:notations]]


@pytest.mark.parametrize("notations", [1, 2, 3])
@pytest.mark.parametrize("duration", [False, True])
@pytest.mark.parametrize("before", [["steps", "Ann"], ["steps"], []])
@pytest.mark.parametrize("path", ["", "C:\\\\data\\\\v1.eaf"])
def test_rows(tmp_path: Path, notations: int, duration: bool, before: list[str], path: str) -> None:
    file = tmp_path / ("all.txt" if path else "v1.txt")
    rows = [[*before, *cells(*span, notations, duration), step, *([path] * bool(path))] for step, *span in LABELS]
    file.write_text("\ufeff" + "".join("\t".join(row) + "\n" for row in rows))
    assert read(file) == Task(file.stem, [step for step, *_ in LABELS], [VIDEO])


def test_a_column_per_tier(tmp_path: Path) -> None:
    path = tmp_path / "v1.txt"
    times = ["Begin Time - hh:mm:ss.ms", "Begin Time - ss.msec", "End Time - hh:mm:ss.ms", "End Time - ss.msec"]
    rows = [[*cells(*span, 2, False), step, "well"] for step, *span in LABELS]
    rows += [[*cells(70, 71, 2, False), "", "done"]]
    lines = ["\t".join(row) for row in [[*times, "steps", "speech"], *rows]]
    path.write_text('"#file:///x/v1.mp4 -- offset: 0"\n\n' + "\n".join(lines))
    assert read(path, tier="steps").videos[0] == VIDEO
    assert len(read(path, tier="speech", repeats="keep").videos[0].segments) == 3
    for complaint, options in (
        ("has annotations on 2 tiers\n.*'speech', 'steps'$", {}),
        ("has no tier 'x'", {"tier": "x"}),
    ):
        with pytest.raises(InputError, match=complaint):
            read_all(path, **options)
    with pytest.raises(InputError, match="has annotations on 2 tiers"):
        summarize(path)  # tiers that share no step are not those of two annotators


def test_rows_that_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "v1.txt"
    first = "\t".join(["steps", *cells(1, 2, 1, True), "fry"])
    for row, complaint in (
        ("steps\t1\t2\t1\tfry", "row 2: the row has no times"),
        ("steps\tfry", "row 2: the row has fewer"),
    ):
        path.write_text(f"{first}\n{row}\n")
        with pytest.raises(InputError, match=complaint):
            read_all(path)

"""ProceL, on small `data.mat` files of its layout, written by scipy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from benchmarks.fuzz import run_in_fork
from msg2.errors import InputError
from msg2.formats import procel, read, read_all
from msg2.task import Segment, Sentence, Task, Video

NONE = np.zeros((0, 0))


@pytest.fixture(autouse=True)
def _quick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork reads as a process of its own does, without importing everything again."""
    if "crashes" not in request.node.name:
        monkeypatch.setattr(subprocess, "run", run_in_fork)


def cells(*values: Any) -> np.ndarray:
    column = np.empty((len(values), 1), dtype=object)
    for place, value in enumerate(values):
        column[place, 0] = value
    return column


REST = cells(NONE, NONE, NONE)


def content() -> dict[str, Any]:
    return {
        "grammar": cells("pour water", "boil water", "drink"),
        "key_steps_time": cells(
            cells(np.array([[5, 6.5], [9, 10]]), np.array([[0.0, 4.0]]), NONE),
            cells(NONE, np.array([[1, 2]]), NONE),
        ),
        "caption": cells(cells(" now pour", ""), cells("boil it")),
        "caption_time": cells(cells(np.array([[5.0, 7.0]]), NONE), cells(np.array([[1, 2]]))),
    }


def tea(first: str, second: str) -> Task:
    pour, again, boil = Segment("pour water", 5, 6.5), Segment("pour water", 9, 10), Segment("boil water", 0, 4)
    videos = [
        Video(first, [pour, again, boil], [Sentence("now pour", 5, 7)]),
        Video(second, [Segment("boil water", 1, 2)], [Sentence("boil it", 1, 2)]),
    ]
    return Task("make_tea", ["boil water", "drink", "pour water"], videos)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "ProceL" / "make_tea"
    folder.mkdir(parents=True)
    savemat(folder / "data.mat", content())
    return folder


@pytest.mark.parametrize("compressed", [False, True])
def test_a_file_a_folder_and_a_folder_of_folders(folder: Path, compressed: bool) -> None:
    savemat(folder / "data.mat", content(), do_compression=compressed)
    for path in (folder / "data.mat", folder, folder.parent):
        assert read(path, repeats="keep") == tea("1", "2")
    (folder.parent / "fly").mkdir()
    savemat(folder.parent / "fly" / "data.mat", content())
    assert [task.name for task in read_all(folder.parent)] == ["fly", "make_tea"]


def test_time_order_not_the_order_of_the_grammar(folder: Path) -> None:
    assert read(folder).videos[0].sequence() == ("boil water", "pour water")


def test_ids_of_the_videos(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    address = "https://www.youtube.com/watch?v="
    (folder / "readme.txt").write_text(f"{address}abcdefghij_\t0\t70\n{address}-bcdefghijk 3 80\n")
    assert read(folder, repeats="keep") == tea("abcdefghij_", "-bcdefghijk")
    (folder / "readme.txt").write_text(f"{address}abcdefghij_\t0\t70\n" * 2)
    assert read(folder, repeats="keep") == tea("1", "2")
    assert "they are numbered instead" in caplog.text


def test_without_captions(folder: Path) -> None:
    value = content()
    del value["caption_time"]
    savemat(folder / "data.mat", value)
    assert not any(video.sentences for video in read(folder))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            {"key_steps_time": cells(cells(NONE, NONE), REST)},
            r"key_steps_time\{1\}: has 2 key-steps, the grammar has 3",
        ),
        (
            {"key_steps_time": cells(cells(np.array([[5, 1]]), NONE, NONE), REST)},
            r"\{1\}\{1\}: step 'pour water' ends at 1",
        ),
        (
            {"key_steps_time": cells(cells(NONE, np.array([[np.nan, 1]]), NONE), REST)},
            r"\{1\}\{2\}: .* has the start nan",
        ),
        (
            {"key_steps_time": cells(cells(np.array([[1, 2, 3]]), NONE, NONE), REST)},
            r"is not an array of \[start, end\]",
        ),
        ({"grammar": cells("a", "a", "b")}, r"data.mat: task 'make_tea' has the step 'a' twice"),
        ({"grammar": cells("a", "", "b")}, r"grammar\{2\}: has a step without a name"),
        ({"grammar": cells("a", np.array([[np.nan]]), "b")}, r"grammar\{2\}: is not the name of a step, which is text"),
        ({"grammar": cells("a", cells("q"), "b")}, r"grammar\{2\}: is not the name of a step, which is text"),
        (
            {"caption": cells(cells("x"), cells()), "caption_time": cells(cells("soon"), cells())},
            r"caption\{1\}: has a caption that is not a text with its start and end",
        ),
        ({"caption": cells(cells("x"))}, "captions and times of captions that do not match"),
    ],
)
def test_broken_content(folder: Path, change: dict[str, Any], complaint: str) -> None:
    savemat(folder / "data.mat", content() | change)
    with pytest.raises(InputError, match=complaint):
        read(folder)


def test_broken_files(folder: Path) -> None:
    savemat(folder / "data.mat", {"other": 1})
    with pytest.raises(InputError, match=r"has no variable 'grammar'\n  its variables are: other"):
        read(folder)
    savemat(folder / "data.mat", content())
    whole = (folder / "data.mat").read_bytes()
    (folder / "data.mat").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="is broken MATLAB data"):
        read(folder)
    (folder / "data.mat").write_bytes(b"MATLAB 7.3 MAT-file" + bytes(600))
    with pytest.raises(InputError, match=r"is a MATLAB 7.3 file\n  .*-v7"):
        read(folder)


def test_a_reader_that_crashes_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procel, "_READER", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    with pytest.raises(InputError, match=r"data.mat: is broken MATLAB data \(its reader has crashed\)"):
        read(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such limit")
def test_no_reader_crashes_where_a_limit_of_memory_holds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    savemat(folder / "data.mat", content())
    program = "import sys, msg2; print(len(msg2.read(sys.argv[1])))"
    limited = ["bash", "-c", 'ulimit -v 2000000; exec "$0" "$@"', sys.executable, "-c", program, str(folder)]
    assert subprocess.run(limited, capture_output=True, text=True, check=False).stderr == ""
    monkeypatch.setattr(procel, "_READER", "raise MemoryError")
    with pytest.raises(InputError, match=r"data.mat: cannot be read as MATLAB data: there is not enough memory"):
        read(folder)

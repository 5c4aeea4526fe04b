"""Whatever a user hands over becomes a task, or one clear sentence."""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from msg2.errors import InputError
from msg2.formats import read, read_all, to_task, to_tasks
from msg2.formats.conversion import ACCEPTED
from msg2.task import Segment, Task, Video

SEEN = [["whisk", "dip", "fry"], ["dip", "fry"], ["whisk", "fry", "whisk"]]
EXPECTED = Task(
    "toast",
    ["whisk", "dip", "fry"],
    [
        Video("1", map(Segment, ["whisk", "dip", "fry"])),
        Video("2", map(Segment, ["dip", "fry"])),
        Video("3", map(Segment, ["whisk", "fry"])),
    ],
)
FRAME = pandas.DataFrame(
    [{"video": str(number), "step": step} for number, steps in enumerate(SEEN, start=1) for step in steps]
)


@pytest.mark.parametrize(
    "data",
    [
        SEEN,
        tuple(map(tuple, SEEN)),
        (steps for steps in SEEN),
        [iter(steps) for steps in SEEN],
        [np.array(steps) for steps in SEEN],
        [pandas.Series(steps) for steps in SEEN],
        np.array([np.array(steps, dtype=object) for steps in SEEN] + [None], dtype=object)[:-1],
        [[Segment(step) for step in steps] for steps in SEEN],
        {str(number): steps for number, steps in enumerate(SEEN, start=1)},
        OrderedDict((str(number), steps) for number, steps in reversed([*enumerate(SEEN, start=1)])),
        dict(enumerate(SEEN)).values(),
        EXPECTED.videos,
        FRAME,
    ],
    ids=lambda data: type(data).__name__,
)
def test_whatever_holds_the_same_steps_is_the_same_task(data: Any) -> None:
    task = to_task(data, "toast")
    assert task == EXPECTED
    assert all(type(segment.step) is str for video in task for segment in video.segments)


def test_names_that_nobody_gave() -> None:
    for data in (SEEN, FRAME):
        assert [task.name for task in to_tasks(data)] == ["task"]
        assert to_task(data).videos == EXPECTED.videos
    table = np.array([["whisk", "fry"], ["fry", "whisk"]])
    assert [video.sequence() for video in to_task(table)] == [("whisk", "fry"), ("fry", "whisk")]


def test_repeats_and_overlaps() -> None:
    for data in (SEEN, FRAME):
        kept = to_task(data, "toast", repeats="keep")
        assert [segment.step for segment in kept.videos[2].segments] == SEEN[2]
    timed = [[Segment("a", 0, 5), Segment("b", 3, 9)]]
    assert to_task(timed, overlap="start").videos[0].segments[0].end == 3
    assert to_task(timed).videos[0].segments[0].end == 5


def test_a_task_is_returned_as_it_is() -> None:
    task = Task("toast", ["a", "never"], [Video("v", map(Segment, "aa"))])
    assert to_task(task) is task
    assert to_task(task, "Toast ") is task
    assert to_tasks(task) == [task]
    with pytest.raises(InputError, match=r"^data: holds no task 'tea'\n  choose one of: 'toast'"):
        to_task(task, "tea")
    with pytest.raises(InputError, match=r"^repeats is an option for reading, a Task is taken as it is$"):
        to_task(task, repeats="keep")


def test_several_tasks() -> None:
    tea = Task("tea", ["boil"], [Video("v", [Segment("boil")])])
    for tasks in ([EXPECTED, tea], (EXPECTED, tea)):
        assert to_tasks(tasks) == [EXPECTED, tea]
        assert to_task(tasks, "tea") is tea
        with pytest.raises(InputError, match=r"^data: holds 2 tasks\n  choose one of: 'toast', 'tea'$"):
            to_task(tasks)
    frame = FRAME.assign(task=["toast"] * 6 + ["tea"] * 2)
    assert [task.name for task in to_tasks(frame)] == ["tea", "toast"]
    assert to_task(frame, "toast").name == "toast"
    with pytest.raises(InputError, match=r"^data: holds 2 tasks\n  choose one of: 'tea', 'toast'$"):
        to_task(frame)
    with pytest.raises(InputError, match="with something of type list among them"):
        to_tasks([EXPECTED, ["boil"]])


def test_paths(tmp_path: Path) -> None:
    path = tmp_path / "steps.csv"
    path.write_text("task,video,step\ntoast,v1,fry\ntea,v1,boil\ntea,v1,boil\n")
    for given in (path, str(path)):
        assert to_tasks(given, repeats="keep") == read_all(path, repeats="keep")
        assert to_task(given, "tea") == read(path, "tea")
        with pytest.raises(InputError, match=r"steps\.csv: holds 2 tasks\n  choose one of: 'tea', 'toast'$"):
            to_task(given)
    with pytest.raises(InputError, match=r"^nowhere\.csv: is not there"):
        to_task("nowhere.csv")
    with pytest.raises(InputError, match=r"^the path is empty"):
        to_task("")
    with pytest.raises(InputError, match=r"takes no tier"):
        to_task(path, "tea", tier="x")
    with pytest.raises(InputError, match=r"no option 'depth'"):
        to_task(path, "tea", depth=3)


WRONG: dict[str, tuple[Any, str]] = {
    "None": (None, "the data is of type NoneType, it must be a path, a Task"),
    "number": (3.5, "the data is of type float, it must be"),
    "bytes": (b"steps.csv", "the data is of type bytes, it must be"),
    "set": ({("a", "b")}, "the data is of type set, it must be"),
    "object": (object(), "the data is of type object, it must be"),
    "class": (Task, "the data is of type type, it must be"),
    "one video": (EXPECTED.videos[0], "the data is of type Video, it must be"),
    "scalar": (np.array(3), "the data is of type ndarray, it must be"),
    "empty list": ([], "the data is empty, it holds no video"),
    "empty mapping": ({}, "the data is empty, it holds no video"),
    "empty array": (np.array([]), "the data is empty, it holds no video"),
    "no steps": ([[], []], "the data holds no step"),
    "empty frame": (FRAME[:0], "data frame: has no rows"),
    "frame without steps": (FRAME[["video"]], "data frame: the column 'step' is missing"),
    "series": (FRAME["step"], "data frame: is a Series, not a pandas.DataFrame"),
    "text": (["whisk", "fry"], "video '1' is a text, not a sequence of steps\n  give a list of lists"),
    "text among lists": ([["whisk"], "fry"], "video '2' is a text, not a sequence of steps"),
    "array of texts": (np.array(["whisk", "fry"]), "video '1' is a text, not a sequence of steps"),
    "numbers": ([1, 2], "video '1' is of type int, not a sequence of steps"),
    "Nones": ([None], "video '1' is of type NoneType, not a sequence of steps"),
    "sets": ([{"a", "b"}], "video '1' is of type set, not a sequence of steps"),
    "mappings": ([{"a": 1}], "video '1' is of type dict, not a sequence of steps"),
    "frames": ([FRAME], "video '1' is of type DataFrame, not a sequence of steps"),
    "tables": ([np.array([["a"]])], "video '1' is of type ndarray, not a sequence of steps"),
    "numbers as steps": ([["a"], ["a", 7]], "step 2 of video '2' is of type int, not a text"),
    "None as a step": ([["a", None]], "step 2 of video '1' is of type NoneType, not a text"),
    "bytes as a step": ([[b"a"]], "step 1 of video '1' is of type bytes, not a text"),
    "lists as steps": ([[["a"]]], "step 1 of video '1' is of type list, not a text"),
    "matrix": (np.zeros((2, 2)), "step 1 of video '1' is of type float64, not a text"),
    "missing": ([["a", float("nan")]], "step 2 of video '1' is of type float, not a text"),
    "empty step": ({"v": ["a", ""]}, "step 2 of video 'v' has an empty name"),
    "mapping to texts": ({"v": "fry"}, "video 'v' is a text, not a sequence of steps"),
    "mapping to numbers": ({"v": 3}, "video 'v' is of type int, not a sequence of steps"),
    "numbers as ids": ({1: ["a"]}, "the video id '1' is of type int, not a text"),
    "empty id": ({"": ["a"]}, "a video has an empty id"),
    "twice the same id": ([EXPECTED.videos[0], EXPECTED.videos[0]], "has the video '1' twice"),
    "half timed": ([[Segment("a", 0, 1), Segment("b")]], "has times on some of its segments only"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_in_a_sentence(name: str) -> None:
    data, sentence = WRONG[name]
    for convert in (to_task, to_tasks):
        with pytest.raises(InputError) as raised:
            convert(data)
        assert sentence in str(raised.value)
    if "it must be" in sentence:
        assert ACCEPTED in str(raised.value)


def test_wrong_options() -> None:
    with pytest.raises(InputError, match=r"^fps is no option for data of type list\n  there are: repeats, overlap"):
        to_task(SEEN, fps=30)
    with pytest.raises(InputError, match="repeats is 'last', it must be"):
        to_task(SEEN, repeats="last")
    with pytest.raises(InputError, match="task is of type int, it must be a text"):
        to_task(SEEN, 3)  # type: ignore[arg-type]


def test_pandas_is_not_imported_to_look_for_it() -> None:
    code = "import sys; from msg2.formats import to_task; print(to_task([['a', 'b']]), 'pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "<Task 'task': 1 videos, 2 steps, 2 labels> False\n"

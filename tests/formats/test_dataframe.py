"""A data frame is read as the table of the same content is, and complained about in the same way."""

from __future__ import annotations

import logging
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas
import pyarrow
import pytest

import msg2
from msg2 import InputError, Segment, Task, Video
from msg2.formats import to_tasks
from msg2.simulation import household_worlds, simulate
from msg2.simulation.simulator import SimulationOptions


def test_out_and_in_again() -> None:
    tasks = [simulate(one, SimulationOptions(videos=5), seed=0).task for one in household_worlds()[:3]]
    frame = msg2.to_dataframe(tasks)
    assert len(frame) == sum(len(video.segments) for task in tasks for video in task)
    seen = [Task(t.name, {s.step for v in t for s in v.segments}, (v for v in t if v.segments)) for t in tasks]
    expected = sorted(seen, key=lambda task: task.name)
    shuffled = frame.sample(frac=1, random_state=0)[frame.columns[::-1]]  # with times, the order means nothing
    assert msg2.from_dataframe(shuffled, repeats="keep") == expected
    assert msg2.from_dataframe(frame, expected[1].name, repeats="keep") == [expected[1]]


def test_as_a_file_of_the_same_content(tmp_path: Path) -> None:
    frame = pandas.DataFrame(
        {
            "video": ["v1", "v1", "v1", "v2"],
            "step": ["b", "a", "b", "a"],
            "start": [4, 0, 2, 1],
            "end": [5.5, 3, 3, 2],
            "confidence": [0.5, np.nan, None, 1],
            "source": ["model", None, "", pandas.NA],
        }
    )
    frame.to_csv(tmp_path / "toast.csv", index=False)
    for options in ({}, {"repeats": "keep"}, {"overlap": "start"}):
        assert msg2.from_dataframe(frame, "toast", **options) == msg2.read_all(tmp_path / "toast.csv", **options)
    kept = msg2.from_dataframe(frame, "toast", repeats="keep")[0].videos[0]
    assert kept.segments == (Segment("a", 0, 3), Segment("b", 2, 3), Segment("b", 4, 5.5, 0.5, "model"))


def test_kinds_of_columns_and_indices() -> None:
    plain = pandas.DataFrame(
        {"video": ["v", "v"], "step": ["b", "a"], "start": [1, 2], "end": [2, 3]}, index=["x", "x"]
    )
    expected = [Task("t", "ab", [Video("v", [Segment("b", 1, 2), Segment("a", 2, 3)])])]
    assert msg2.from_dataframe(plain, "t") == expected
    for kinds in ({"start": "Int64", "end": "Float32"}, {"video": "category", "step": "string"}, {"start": "object"}):
        assert msg2.from_dataframe(plain.astype(kinds), "t") == expected
    untimed = plain[["video", "step"]]
    assert msg2.from_dataframe(untimed, "t")[0].videos[0].sequence() == ("b", "a")


GOOD = {"task": "t", "video": "v", "step": "a", "start": 0.0, "end": 1.0}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"step": 7}, r"^data frame, row 2: the step '7' is not text\n  names are verbatim text"),
        ({"step": None}, "row 2: the step is empty"),
        ({"video": ""}, "row 2: the video is empty"),
        ({"start": "soon"}, "row 2: the start 'soon' is not a number"),
        ({"start": True}, "row 2: the start 'True' is not a number"),
        ({"start": 5.0}, "row 2: step 'a' ends at 1, before its start at 5"),
        ({"end": float("inf")}, "row 2: the end inf is not a finite number"),
        ({"start": None, "end": None}, r"row 2: the row has no times, the rows above have some\n  give start and end"),
        ({"start": None}, "row 2: step 'a' has a start or an end, but not both"),
        ({"confidence": 2.0}, "row 2: step 'a' has the confidence 2.0"),
    ],
)
def test_complaints_name_the_row(change: dict[str, object], complaint: str) -> None:
    frame = pandas.DataFrame([GOOD, GOOD | change], dtype=object)
    with pytest.raises(InputError, match=complaint):
        msg2.from_dataframe(frame)


class Stream:
    """What Polars and DuckDB offer, and nothing else."""

    def __init__(self, table: pyarrow.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def test_any_table_of_arrow(tmp_path: Path) -> None:
    table = pyarrow.table(
        {
            "video": pyarrow.array(["v", "v"], pyarrow.string_view()),
            "step": pyarrow.array(["b", "a"]).dictionary_encode(),
            "start": pyarrow.array([Decimal("1.5"), Decimal("0.0")]),
            "end": pyarrow.array([2, 1], pyarrow.int8()),
        }
    )
    expected = [Task("t", "ab", [Video("v", [Segment("b", 1.5, 2), Segment("a", 0, 1)])])]
    assert msg2.from_dataframe(Stream(table), "t") == expected
    assert msg2.from_dataframe(table, "t") == expected
    with pytest.raises(InputError, match="row 1: the video '7' is not text"):
        msg2.from_dataframe(Stream(pyarrow.table({"video": [7], "step": ["a"]})), "t")
    unused = pyarrow.DictionaryArray.from_arrays([0, 0], ["a", "never"])
    assert msg2.from_dataframe(pyarrow.table({"video": ["v", "w"], "step": unused}), "t")[0].steps == ("a",)


def test_complaints_about_the_frame(caplog: pytest.LogCaptureFixture) -> None:
    frame = pandas.DataFrame([GOOD])
    for wrong, complaint in [
        (frame.drop(columns="step"), "the column 'step' is missing"),
        (frame.drop(columns="start"), "there is a column 'end', but no column 'start'"),
        (frame.drop(columns="task"), r"the column 'task' is missing\n  add it, or name the task"),
        (pandas.concat([frame, frame[["step"]]], axis=1), "the column 'step' is there twice"),
        (frame.iloc[:0], "has no rows"),
        ([GOOD], "is a list, not a pandas.DataFrame or another table"),
    ]:
        with pytest.raises(InputError, match=complaint):
            msg2.from_dataframe(wrong)
    with pytest.raises(InputError, match="holds no task 'x'"):
        msg2.from_dataframe(frame, "x")
    with caplog.at_level(logging.WARNING):
        msg2.from_dataframe(frame.assign(mood="ann", **{"1": 2}))
    assert caplog.messages == ["data frame: columns that are not used: '1', 'mood'"]


def test_pandas_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"pip install 'msg2\[pandas\]'"):
        msg2.to_dataframe([])


def test_columns_are_named_as_those_of_a_file_are() -> None:
    frame = pandas.DataFrame({"File": ["v"], "Action": ["a"]})
    (task,) = to_tasks(frame, columns={"video": "File", "step": "Action"})
    assert task.videos == (Video("v", [Segment("a")]),)

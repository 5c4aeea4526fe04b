"""Text that Arrow reads gives the same tasks, and the same errors, as text that Python's csv reads."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.formats import read_all, tables
from msg2.formats.source import Source
from msg2.sequences import Sequences
from msg2.task import LabelColumns, Task

CELLS = st.sampled_from(
    ["a", "b", "007", "NA", "", " ", " x", '"', '"a, b"', '"q""q"', "é", "nan", "-", "a\tb", "'", "\\"]
)
NUMBERS = st.sampled_from(["0", "1", "2.5", "1e2", "", " 3", "+4", "nan", "inf", "-1", "0x1", "1_0", "4.", ".5", "1,5"])
BREAKS = st.sampled_from(["\n", "\r\n", "\n\n", "\n \n"])


def _outcome(path: Path) -> list[Task] | str:
    try:
        with mock.patch.object(Source, "is_small", False):
            return read_all(path, repeats="keep")
    except InputError as error:
        return str(error)


def _assert_same(path: Path) -> None:
    found = _outcome(path)
    with mock.patch.object(tables, "_read_csv_by_arrow", return_value=None):
        expected = _outcome(path)
    assert found == expected
    if isinstance(found, list) and isinstance(expected, list):
        for one, other in zip(found, expected, strict=True):
            mine, theirs = one.columns, other.columns
            for name in ("videos", "video", "step", "start", "end"):
                assert np.array_equal(getattr(mine, name), getattr(theirs, name))


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.tuples(CELLS, CELLS, NUMBERS, NUMBERS), min_size=2, max_size=6),
    ends=st.lists(BREAKS, min_size=7, max_size=7),
    header=st.sampled_from(
        ["video,step,start,end", "step,video,start,end", "video,step,START,end", "video;step;start;end"]
    ),
    bom=st.booleans(),
    tabs=st.booleans(),
)
def test_odd_tables(
    rows: list[tuple[str, ...]],
    ends: list[str],
    header: str,
    bom: bool,
    tabs: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    lines = [header, *map(",".join, rows)]
    lines = [line.replace(",", "\t") for line in lines] if tabs else lines
    text = "".join(line + end for line, end in zip(lines, ends, strict=False))
    path = tmp_path_factory.mktemp("odd") / "t.csv"
    path.write_bytes((b"\xef\xbb\xbf" if bom else b"") + text.encode())
    _assert_same(path)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), timed=st.booleans(), tasks=st.booleans(), shuffled=st.booleans())
def test_plain_tables_are_read_by_arrow(
    seed: int, timed: bool, tasks: bool, shuffled: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rng = np.random.default_rng(seed)
    rows = []
    for video in range(rng.integers(1, 6)):
        for _ in range(rng.integers(1, 6)):
            start = rng.integers(0, 5)
            cells = [f"v{video}", "step " + "abé,"[rng.integers(4)]]
            cells += [str(start), str(start + rng.integers(0, 3) / 2)] if timed else []
            rows.append([f"t{rng.integers(2)}", *cells] if tasks else cells)
    if shuffled:
        rng.shuffle(rows)
    header = [*(["task"] if tasks else []), "video", "step", *(["start", "end"] if timed else [])]
    quoted = [[f'"{cell}"' if "," in cell else cell for cell in row] for row in (header, *rows)]
    path = tmp_path_factory.mktemp("plain") / "t.csv"
    path.write_text("".join(",".join(row) + "\n" for row in quoted))
    if len(rows) > 2:
        with mock.patch.object(tables, "_code_rows", side_effect=AssertionError):
            assert isinstance(_outcome(path), list)
    _assert_same(path)


TIMES = st.sampled_from(
    ["2024-05-01T10:00:00", "2024-05-01 10:00:01", "2024-05-01T10:00:00.25", "2024-05-01 09:59",
     "1969-12-31T23:59:59.5", "2024-05-01T10:00:00.123456789", "2024-05-01T12:00:00+02:00", "2024-05-01T10:00:00Z",
     "2024-05-01", "", " ",
     "01.05.2024 10:00", "1714557600", "5", "2024-02-30T10:00:00", "2300-01-01T00:00:00", "9999-12-31T23:59:59"]
)  # fmt: skip
GOOD_TIMES = st.sampled_from(
    [
        "2024-05-01T10:00:00",
        "2024-05-01T10:00:01",
        "2024-05-01T10:00:00.25",
        "1969-12-31T23:59:59.5",
        "2024-05-02T00:00:00",
    ]
)


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.tuples(CELLS, CELLS, TIMES), min_size=3, max_size=6)
    | st.lists(
        st.tuples(st.sampled_from("cd"), st.sampled_from(["a", "b", "a b"]), GOOD_TIMES), min_size=3, max_size=9
    ),
    header=st.sampled_from(
        ["case,activity,time", "Case ID,Activity,Complete Timestamp", "case,activity,start", "case,activity,x"]
    ),
)
def test_logs(rows: list[tuple[str, ...]], header: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("log") / "log.csv"
    path.write_text("\n".join([header, *map(",".join, rows), ""]))
    _assert_same(path)


def test_plain_logs_are_read_by_arrow(tmp_path: Path) -> None:
    rows = [f"c{n % 7},s{n % 3},2024-05-01T10:00:{n % 60:02}\n" for n in range(99)]
    folder = tmp_path / "orders"
    folder.mkdir()
    for part in range(3):
        (folder / f"part-{part}.csv").write_text("case,activity,time\n" + "".join(rows[part::3]))
    with (
        mock.patch.object(tables, "_code_rows", side_effect=AssertionError),
        mock.patch.object(Source, "is_small", False),
    ):
        (task,) = read_all(folder, repeats="keep")
    assert (task.name, len(task), task.labels, task.absent) == ("orders", 7, 99, "skipped")
    _assert_same(folder)


def test_parquet_and_parts(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    rows = {
        "video": [f"v{n // 5:03}" for n in range(500)],
        "step": [f"s{n}" for n in rng.integers(0, 7, 500)],
        "start": rng.integers(0, 50, 500).astype(float),
    }
    table = pyarrow.table({**rows, "end": rows["start"] + 1})
    parquet.write_table(table, tmp_path / "whole.parquet", row_group_size=64)
    parts = tmp_path / "whole"
    parts.mkdir()
    for number in range(5):
        parquet.write_table(table.slice(100 * number, 100), parts / f"{number}.parquet")
    (one,), many = read_all(tmp_path / "whole.parquet"), read_all(parts)
    assert len(one) == sum(map(len, many))


def test_first_labels_and_videos_of_arrays() -> None:
    columns = LabelColumns(
        ("v", "w"),
        np.array([0, 0, 0, 1], np.int32),
        np.array([1, 0, 1, 1], np.int32),
        np.array([0.0, 1, 2, 0]),
        np.array([1.0, 2, 3, 1]),
        False,
    )
    task = Task.from_columns("t", ("a", "b"), columns)
    assert [video.sequence() for video in task] == [("b", "a"), ("b",)]
    assert task.labels == 4
    assert task.with_first_labels() == Task("t", "ab", [video.with_first_labels() for video in task])
    assert Sequences.from_task(task.with_first_labels()).start.tolist() == [0, 1, 0]

"""Tables read in columns give what they give row by row, or are left to be read row by row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.formats import read_all, step_table
from msg2.formats.columnar_reader import NotPlainError, read_plain_tables
from msg2.formats.source import Source
from msg2.formats.table_rows import find_columns
from msg2.label_columns import LabelColumns
from msg2.sequences import Sequences
from msg2.task import Task

CELLS = st.sampled_from(
    ["a", "b", "007", "NA", "", " ", " x", '"', '"a, b"', '"q""q"', "é", "nan", "-", "a\tb", "'", "\\"]
)
NUMBERS = st.sampled_from(["0", "1", "2.5", "1e2", "", " 3", "+4", "nan", "inf", "-1", "0x1", "1_0", "4.", ".5", "1,5"])
BREAKS = st.sampled_from(["\n", "\r\n", "\n\n", "\n \n"])


@contextmanager
def _row_by_row() -> Iterator[None]:
    with mock.patch.object(step_table, "read_plain_tables", side_effect=NotPlainError):
        yield


def _outcome(path: Path) -> list[Task] | str:
    try:
        with mock.patch.object(step_table, "_is_small", return_value=False):
            return read_all(path, repeats="keep")
    except InputError as error:
        return str(error)


def _assert_same(path: Path) -> None:
    found = _outcome(path)
    with _row_by_row():
        expected = _outcome(path)
    assert found == expected
    if isinstance(found, list) and isinstance(expected, list):
        for one, other in zip(found, expected, strict=True):
            mine, theirs = one.columns, other.columns
            for name in ("videos", "video", "step", "start", "end"):
                assert np.array_equal(getattr(mine, name), getattr(theirs, name))


@settings(max_examples=300, deadline=None)
@given(
    rows=st.lists(st.tuples(CELLS, CELLS, NUMBERS, NUMBERS), min_size=2, max_size=6),
    ends=st.lists(BREAKS, min_size=7, max_size=7),
    header=st.sampled_from(
        ["video,step,start,end", "step,video,start,end", "video,step,START,end", "video;step;start;end"]
    ),
    bom=st.booleans(),
)
def test_odd_tables(
    rows: list[tuple[str, ...]], ends: list[str], header: str, bom: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = [header, *map(",".join, rows)]
    text = "".join(line + end for line, end in zip(lines, ends, strict=False))
    path = tmp_path_factory.mktemp("odd") / "t.csv"
    path.write_bytes((b"\xef\xbb\xbf" if bom else b"") + text.encode())
    _assert_same(path)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), timed=st.booleans(), tasks=st.booleans(), shuffled=st.booleans())
def test_plain_tables_are_read_in_columns(
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
    source = Source.at(path)
    if len(rows) > 2:
        assert read_plain_tables([(source, find_columns(source, {}), source.stem)]).tasks
    _assert_same(path)


def test_parquet_and_parts(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
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
    for path in (tmp_path / "whole.parquet", parts):
        _assert_same(path)
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

"""Small files that unpack to large ones are refused in one line, before they fill the memory."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

import msg2
from benchmarks import hostile_files
from msg2.errors import InputError
from msg2.formats import archives, read_all, read_graph, source


def packed_table(path: Path, rows: int) -> None:
    path.write_bytes(gzip.compress(b"video,step\n" + b"v,a\n" * rows, 1))


def packed_json_lines(path: Path, rows: int) -> None:
    path.write_bytes(gzip.compress(b'{"video": "v", "step": "a"}\n' * rows, 1))


def packed_list(path: Path, rows: int) -> None:
    path.write_bytes(gzip.compress(b"[" + b"[],[],[],[]," * rows + b"[]]", 1))


def packed_graph(path: Path, rows: int) -> None:
    head = b'{"format": "msg2.graph/2", "task": "t", "steps": ["a"], "preconditions": {}, "evidence": {"a": ['
    path.write_bytes(gzip.compress(head + b"[],[],[],[]," * rows + b"[]]}}", 1))


def parquet(path: Path, rows: int) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array(np.zeros(rows, np.int8)), ["a" * 100])
    write_table(pyarrow.table({"video": column, "step": column}), path, compression="zstd")


def matlab(path: Path, rows: int) -> None:
    savemat(path, {"grammar": np.zeros(rows * 20), "key_steps_time": 1}, do_compression=True)


BOMBS: dict[str, tuple[Callable[[Path, int], None], Callable[[Path], object]]] = {
    "t.csv.gz": (packed_table, read_all),
    "t.jsonl.gz": (packed_json_lines, read_all),
    "t.json.gz": (packed_list, read_all),
    "g.json.gz": (packed_graph, read_graph),
    "t.parquet": (parquet, read_all),
    "data.mat": (matlab, read_all),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_budget(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, read = BOMBS[name]
    make(tmp_path / name, 5000 * (archives.COLUMN_ROWS_PER_ROW if name == "t.parquet" else 1))
    monkeypatch.setattr(archives, "LEAST_ROWS", 4000)
    monkeypatch.setattr(archives, "LEAST_BYTES", 700_000)
    with pytest.raises(InputError, match=rf"{re.escape(name)}: unpacks to more than .*\n.*MSG2_UNPACK=10") as caught:
        read(tmp_path / name)
    assert len(str(caught.value).splitlines()) == 2
    monkeypatch.setenv("MSG2_UNPACK", "10")
    with suppress(InputError):
        read(tmp_path / name)
        return
    with pytest.raises(InputError, match=r"^(?!.*unpacks)"):
        read(tmp_path / name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rows"),
    [("t.csv.gz", 3_000_000), ("t.json.gz", 6_000_000), ("g.json.gz", 6_000_000), ("t.parquet", 25_000_000),
     ("data.mat", 600_000)],
)  # fmt: skip
def test_a_real_one_takes_less_than_a_gigabyte(name: str, rows: int, tmp_path: Path) -> None:
    make, read = BOMBS[name]
    make(tmp_path / name, rows)
    program = rf"""
import json, re, resource, sys
from msg2.errors import InputError
from msg2.formats import {read.__name__}
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
try:
    {read.__name__}(sys.argv[1])
except InputError as error:
    # Not ru_maxrss of itself: that begins with the memory of the process that started it.
    own = int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
    peak = max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    print(json.dumps([str(error), peak / 1024]))
"""
    environment = os.environ | {"PYTHONPATH": str(Path(msg2.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", program, tmp_path / name], env=environment, capture_output=True, text=True, check=True
    )
    said, megabytes = json.loads(ran.stdout)
    assert "unpacks to more than" in said
    assert megabytes < 1000


def parquet_of_labels(path: Path, videos: int, **columns: object) -> None:
    """A table as people have it: ten steps a video, in an order that varies."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    order = np.argsort(np.arange(10) + np.random.default_rng(1).normal(0, 0.7, (videos, 10)), axis=1)
    names = [f"v{number}" for number in range(videos)]
    video = pyarrow.DictionaryArray.from_arrays(pyarrow.array(np.repeat(np.arange(videos, dtype=np.int32), 10)), names)
    step = pyarrow.DictionaryArray.from_arrays(pyarrow.array(order.ravel().astype(np.int8)), [*"abcdefghij"])
    write_table(pyarrow.table({"video": video, "step": step, **columns}), path, compression="zstd")


def test_rows_of_half_a_byte_are_read_in_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "LEAST_ROWS", 10)
    parquet_of_labels(tmp_path / "t.parquet", 30_000)
    assert (tmp_path / "t.parquet").stat().st_size < 200_000
    (task,) = read_all(tmp_path / "t.parquet")
    assert len(task) == 30_000
    parquet_of_labels(tmp_path / "u.parquet", 30_000, confidence=[0.5] * 300_000)  # read row by row
    with pytest.raises(InputError, match="unpacks to more than"):
        read_all(tmp_path / "u.parquet")


@pytest.mark.parametrize("factor", ["0", "-1", "x", "nan", "inf", ""])
def test_a_factor_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: str) -> None:
    packed_table(tmp_path / "t.csv.gz", 5)
    monkeypatch.setenv("MSG2_UNPACK", factor)
    with pytest.raises(InputError, match=r"MSG2_UNPACK: is .*, not a number above 0"):
        read_all(tmp_path / "t.csv.gz")


def test_files_that_are_not_packed_have_no_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "LEAST_ROWS", 10)
    monkeypatch.setattr(archives, "LEAST_BYTES", 10)
    (tmp_path / "t.csv").write_text("video,step\n" + "v,a\n" * 100)
    assert len(read_all(tmp_path / "t.csv", repeats="keep")[0].videos[0].segments) == 100


def test_texts_of_parquet_are_held_once(tmp_path: Path) -> None:
    """Thousands of rows that share a long text are not thousands of long texts."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    long = pyarrow.DictionaryArray.from_arrays(pyarrow.array(np.zeros(50_000, np.int8)), ["a" * 1_000_000])
    path = tmp_path / "t.parquet"
    write_table(pyarrow.table({"video": ["v"] * 50_000, "step": long}), path, compression="zstd")
    (task,) = read_all(path)
    assert [len(step) for step in task.steps] == [1_000_000]


def test_a_folder_of_many_files_is_recognised_by_some_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MANY_FILES", 50)
    for number in range(300):
        (tmp_path / f"{number}.txt").write_bytes(b"x" * 80 + b"\n" * 100_000)
    opened: list[Path] = []
    original = source.Source.open_binary

    def open_binary(self: source.Source) -> object:
        opened.append(self.path)
        return original(self)

    monkeypatch.setattr(source.Source, "open_binary", open_binary)
    with pytest.raises(InputError, match="holds nothing that msg2 reads"):
        read_all(tmp_path)
    assert len(set(opened)) == 50
    folder = source.Source.at(tmp_path)
    assert sum(len(file.head) for file in folder.files) <= 300 * source.SHORT_HEAD_BYTES
    (tmp_path / "zzz.csv").write_text("video,step\nv,a\n")  # one of its kind is found among many of another
    assert read_all(tmp_path)[0].steps == ("a",)


SLOW_TO_MAKE = ("film with a slow clock", "Parquet, bytes of a fixed length in many rows", "a million names")


@pytest.mark.parametrize(
    "what", [pytest.param(name, marks=pytest.mark.slow if name in SLOW_TO_MAKE else ()) for name in hostile_files.BOMBS]
)
def test_bombs_take_little_memory_and_time(what: str) -> None:
    name, make = hostile_files.BOMBS[what]
    status, seconds, megabytes, said = hostile_files.read_bomb(name, make())
    assert status == (0 if what in hostile_files.READABLE else 1), said
    assert len(said.splitlines()) <= 2
    assert "Traceback" not in said
    assert megabytes <= hostile_files.MOST_MEGABYTES * (2 if what in hostile_files.READABLE else 1)
    assert seconds <= 4 * hostile_files.MOST_SECONDS  # of computing, where others share the machine

"""How fast tables of steps are read, and how much memory that takes: `python -m benchmarks.tables`.

CSV and Parquet files of 10⁴ to 10⁷ rows, each read in a process of its own: by msg2, by pyarrow alone, CSV also row by
row (as msg2 reads small files and those that Arrow refuses), and, where MSG2_PM4PY names an environment with it, by
pm4py, which also discovers a model (inductive miner). Times are CPU times of all threads.
`--graph` also learns the graph of a million videos (Parquet, 42 million rows) by `likelihood`, reading included: from
one file, from 100 parts by one process and by two, and by Ray with two workers; the graphs are compared byte by byte.
Fails where reading grows more than linearly with the rows, or graphs differ.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.likelihood import entangled_orders
from experiments.graph_learning.runtime_scaling import growth_exponent
from experiments.result_tables import Table, Value
from msg2.files import write_whole

VIDEOS = (250, 2_500, 25_000, 250_000)
STEPS, SHOWN = 60, 42
"""Steps of the task, and labels of each video."""
MOST_BY_ROWS = 2_500
"""Videos that are still read row by row, and by pm4py: more take minutes."""
REPEATS = 3
"""A new process pays for its memory pages, more or less of it from one time to the next."""
MILLION, PARTS = 1_000_000, 100
MOST = 1.15
"""Exponent of growth: linear, but for noise."""
_TELL = """
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
print(json.dumps([time.process_time() - begin, peak / 2**20]))
"""
_READ = f"""
import json, logging, re, sys, time
logging.disable(logging.WARNING)
how, path = sys.argv[1:3]
import pyarrow.csv, pyarrow.parquet
import msg2.formats
from msg2.formats import tables
if how == "by rows":
    tables._read_csv_by_arrow = lambda *arguments: None
begin = time.process_time()
if how == "pyarrow":
    (pyarrow.csv.read_csv if path.endswith("csv") else pyarrow.parquet.read_table)(path)
else:
    msg2.formats.read(path)
{_TELL}"""
_PM4PY = f"""
import json, re, sys, time, warnings
warnings.simplefilter("ignore")
import pandas, pm4py
begin = time.process_time()
path = sys.argv[2]
table = pandas.read_csv(path) if path.endswith("csv") else pandas.read_parquet(path)
table["start"] = pandas.to_datetime(table["start"], unit="s", utc=True)
log = pm4py.format_dataframe(table, case_id="video", activity_key="step", timestamp_key="start")
if sys.argv[1] == "model":
    pm4py.discover_process_tree_inductive(log)
{_TELL}"""
_GRAPH = f"""
import json, re, resource, sys, time
begin = time.process_time()
sys.argv[0] = "msg2"
from msg2.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
{_TELL}"""


def write_table(path: Path, videos: int) -> None:
    """Write a table of videos that do some steps in entangled orders.

    Parameters
    ----------
    path : Path
        The file, CSV or Parquet; without a suffix, a folder with Parquet files of a hundredth of the videos each.
    videos : int
        How many.
    """
    import pyarrow as pa
    from pyarrow import csv, parquet

    steps = entangled_orders(STEPS, videos)[:, :SHOWN].ravel()
    start = np.tile(10.0 * np.arange(SHOWN), videos)
    names = pa.array([f"v{number:07}" for number in range(videos)])
    video = pa.DictionaryArray.from_arrays(pa.array(np.repeat(np.arange(videos, dtype=np.int32), SHOWN)), names)
    step = pa.DictionaryArray.from_arrays(pa.array(steps), pa.array([f"step {number:02}" for number in range(STEPS)]))
    columns = {"video": video.cast(pa.string()), "step": step.cast(pa.string()), "start": start, "end": start + 5}
    table = pa.table(columns)
    if path.suffix == ".csv":
        csv.write_csv(table, path, write_options=csv.WriteOptions(quoting_style="needed"))
    elif path.suffix:
        parquet.write_table(table, path)
    else:
        path.mkdir()
        for number in range(PARTS):
            rows = len(table) // PARTS
            parquet.write_table(table.slice(number * rows, rows), path / f"part-{number:03}.parquet")


def measure(program: str, *arguments: str | Path, python: str | Path = sys.executable) -> tuple[float, float]:
    """Measure what a program takes at best of three times, each in a process of its own.

    Parameters
    ----------
    program : str
        It prints its seconds and the peak of its memory as the last line.
    *arguments : str or Path
        Its arguments.
    python : str or Path
        The interpreter.

    Returns
    -------
    tuple of (float, float)
        Seconds, and the peak of the memory in GB.
    """
    command = [python, "-c", program, *arguments]
    ran = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(REPEATS)]
    taken, peak = min(json.loads(run.stdout.splitlines()[-1]) for run in ran)
    return float(taken), float(peak)


def measure_reading(folder: Path, suffix: str, pm4py: Path | None) -> tuple[list[list[Value]], float]:
    """Read files of several sizes, each in several ways.

    Parameters
    ----------
    folder : Path
        Where files are written.
    suffix : str
        "csv" or "parquet".
    pm4py : Path, optional
        An environment with pm4py.

    Returns
    -------
    tuple of (list of list, float)
        The rows of the table, and the exponent of growth with the rows that are read.
    """
    times = []
    lines: list[list[Value]] = []
    for videos in VIDEOS:
        path = folder / f"table.{suffix}"
        write_table(path, videos)
        rows, size = videos * SHOWN, path.stat().st_size / 2**20
        found = {"msg2": measure(_READ, "msg2", path), "pyarrow": measure(_READ, "pyarrow", path)}
        if videos <= MOST_BY_ROWS:
            if suffix == "csv":
                found["msg2, row by row"] = measure(_READ, "by rows", path)
            if pm4py is not None:
                for way, what in (("pm4py", "read"), ("pm4py, with inductive miner", "model")):
                    found[way] = measure(_PM4PY, what, path, python=pm4py / "bin/python")
        times.append(found["msg2"][0])
        for way, (taken, peak) in found.items():
            ratio = f"{taken / found['pyarrow'][0]:.1f}"
            speed = [f"{taken:.2f}", f"{rows / taken:,.0f}", f"{peak:.2f}", ratio]
            lines.append([f"{suffix}, {rows:,} rows, {size:.1f} MB", way, *speed])
            print(*lines[-1], sep=" | ", flush=True)
    return lines, growth_exponent(VIDEOS[1:], times[1:])


def measure_graphs(folder: Path) -> tuple[list[list[Value]], bool]:
    """Learn the graph of a million videos in several ways.

    Parameters
    ----------
    folder : Path
        Where files are written.

    Returns
    -------
    tuple of (list of list, bool)
        The rows of the table, and whether all graphs are the same, byte by byte.
    """
    whole, parts = folder / "million.parquet", folder / "parts" / "million"
    parts.parent.mkdir()
    write_table(whole, MILLION)
    write_table(parts, MILLION)
    ways: dict[str, list[str | Path]] = {
        "one file": [whole],
        f"{PARTS} parts": [parts],
        f"{PARTS} parts, two processes": [parts, "--jobs", "2"],
        f"{PARTS} parts, two workers of Ray": [parts, "--jobs", "2", "--engine", "ray"],
    }
    graphs = set()
    lines: list[list[Value]] = []
    for way, arguments in ways.items():
        output = folder / "graph.json"
        taken, peak = measure(_GRAPH, "infer", *arguments, "-o", output)
        graphs.add(hashlib.sha256(output.read_bytes()).hexdigest())
        lines.append([way, f"{taken:.0f}", f"{peak:.1f}"])
        print(*lines[-1], sep=" | ", flush=True)
    return lines, len(graphs) == 1


def main() -> int:
    """Run everything; 1 where reading grows more than linearly, or graphs differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--graph", action="store_true", help="also the graph of a million videos")
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="also write the tables to tables.md in it")
    given = parser.parse_args()
    environment = os.environ.get("MSG2_PM4PY")
    columns = ["file", "read by", "seconds", "rows per second", "GB at most", "seconds, pyarrow = 1"]
    with tempfile.TemporaryDirectory() as folder:
        pm4py = Path(environment) if environment else None
        read = {suffix: measure_reading(Path(folder), suffix, pm4py) for suffix in ("csv", "parquet")}
        growth = [f"{suffix} {exponent:.2f}" for suffix, (_, exponent) in read.items()]
        notes = [f"Reading by msg2 grows with the rows to the power of: {', '.join(growth)} (at most {MOST})."]
        tables = [Table("Reading", columns, [line for lines, _ in read.values() for line in lines], notes)]
        same = True
        if given.graph:
            lines, same = measure_graphs(Path(folder))
            title = f"From {MILLION * SHOWN:,} rows ({MILLION:,} videos, Parquet) to a graph, reading included"
            note = f"The graphs are {'the same, byte by byte' if same else 'NOT the same'}."
            tables.append(Table(title, ["data", "seconds", "GB at most"], lines, [note]))
    for table in tables:
        print(*table.notes, sep="\n")
    if given.output is not None:
        write_whole(given.output / "tables.md", "\n".join(table.to_markdown() for table in tables))
    return int(not same or any(exponent > MOST for _, exponent in read.values()))


if __name__ == "__main__":
    sys.exit(main())

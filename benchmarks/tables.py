"""How fast tables of steps are read, and how much memory that takes: `python -m benchmarks.tables`.

CSV and Parquet files of 10⁴ to 10⁷ rows, each read in a process of its own, by msg2 and by pyarrow alone. `--graph`
also learns the graph of a million videos (Parquet, 42 million rows) by `likelihood`, reading included. Fails where
reading grows more than linearly with the rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.likelihood import entangled_orders
from experiments.graph_learning.runtime_scaling import growth_exponent

VIDEOS = (250, 2_500, 25_000, 250_000)
STEPS, SHOWN = 60, 42
"""Steps of the task, and labels of each video."""
MOST = 1.15
"""Exponent of growth: linear, but for noise."""
_PROGRAM = """
import json, logging, re, sys, time
logging.disable(logging.WARNING)
how, path = sys.argv[1:3]
import pyarrow.csv, pyarrow.parquet
import msg2.formats, msg2.inference
begin = time.perf_counter()
if how == "pyarrow":
    (pyarrow.csv.read_csv if path.endswith("csv") else pyarrow.parquet.read_table)(path)
else:
    task = msg2.formats.read(path)
    if how == "graph":
        msg2.inference.infer(task)
taken = time.perf_counter() - begin
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
print(json.dumps([taken, peak / 2**20]))
"""


def write_table(path: Path, videos: int) -> None:
    """Write a table of videos that do some steps in entangled orders.

    Parameters
    ----------
    path : Path
        The file, CSV or Parquet.
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
    else:
        parquet.write_table(table, path)


def measure(how: str, path: Path) -> tuple[float, float]:
    """Measure what reading a file takes, in a process of its own.

    Parameters
    ----------
    how : str
        "msg2", "pyarrow", or "graph": read and learn.
    path : Path
        The file.

    Returns
    -------
    tuple of (float, float)
        Seconds, and the peak of the memory in GB.
    """
    ran = subprocess.run([sys.executable, "-c", _PROGRAM, how, path], capture_output=True, text=True, check=True)
    taken, peak = json.loads(ran.stdout)
    return float(taken), float(peak)


def measure_reading(folder: Path, suffix: str) -> float:
    """Print a line for each size of a format.

    Parameters
    ----------
    folder : Path
        Where files are written.
    suffix : str
        "csv" or "parquet".

    Returns
    -------
    float
        The exponent of growth with the rows.
    """
    times = []
    for videos in VIDEOS:
        path = folder / f"table.{suffix}"
        write_table(path, videos)
        (own, peak), (alone, least) = measure("msg2", path), measure("pyarrow", path)
        times.append(own)
        rows, size = videos * SHOWN, path.stat().st_size / 2**20
        file = f"{suffix:8} {rows:10,} rows {size:7.1f} MB"
        mine = f"msg2 {own:6.2f} s {rows / own:12,.0f} rows/s {peak:5.2f} GB"
        print(f"{file}  {mine}  pyarrow {alone:6.2f} s {least:5.2f} GB  ratio {own / alone:5.1f}", flush=True)
    return growth_exponent(VIDEOS[1:], times[1:])


def main() -> int:
    """Run everything; 1 where reading grows more than linearly."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--graph", action="store_true", help="also the graph of a million videos")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        growth = {suffix: measure_reading(Path(folder), suffix) for suffix in ("csv", "parquet")}
        if given.graph:
            path = Path(folder) / "million.parquet"
            write_table(path, 1_000_000)
            taken, peak = measure("graph", path)
            print(f"a graph of 1,000,000 videos, {1_000_000 * SHOWN:,} rows: {taken:.0f} s, {peak:.1f} GB")
    for suffix, exponent in growth.items():
        print(f"reading {suffix} grows with rows to the power {exponent:.2f} (at most {MOST})")
    return int(any(exponent > MOST for exponent in growth.values()))


if __name__ == "__main__":
    sys.exit(main())

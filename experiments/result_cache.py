"""A cache of measured cells in one JSON file: an interrupted experiment goes on where it was.

A cell is a frozen dataclass that says what is measured, and on what. Cells are measured side by side, and each is
written as soon as it is there, with the options that it depends on.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from msg2.errors import InputError
from msg2.files import write_whole
from msg2.parallel import WorkerDied, process_engine
from msg2.progress import Progress, no_progress

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

CellType = TypeVar("CellType", bound="DataclassInstance")
"""A cell: what is measured, and on what; frozen and made of plain values."""
Item = TypeVar("Item")
Output = TypeVar("Output")

Measurement: TypeAlias = dict[str, Any]
"""What was measured in a cell: plain numbers under names, as they go into JSON."""

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def measure_cells(
    cells: Sequence[CellType],
    measure: Callable[[CellType], Measurement],
    *,
    cell_options: Callable[[CellType], Any] = lambda _: None,
    file: Path | None = None,
    jobs: int = 1,
    seconds: float = float("inf"),
    progress: Progress = no_progress,
) -> dict[CellType, Measurement]:
    """Measure the cells that are not in the file yet, and return all of them.

    Parameters
    ----------
    cells : sequence of CellType
        All cells of the experiment, the most important first.
    measure : callable
        From a cell to its measurement; it can be pickled where there are several jobs.
    cell_options : callable
        The options that a cell depends on, as they go into JSON: with others it is measured again.
    file : Path or None
        Where cells are kept; None: nowhere.
    jobs : int
        Cells that are measured at the same time, each in a process with one thread.
    seconds : float
        After so many, no more cells are begun.
    progress : Progress
        Called after every cell.

    Returns
    -------
    dict of CellType to Measurement
        In the order of `cells`; those that were not begun in time are left out.

    Raises
    ------
    InputError
        Where the file is no such cache, or a process has come to a sudden end.
    """
    records = _read_records(file)
    measurements = _matching_records(records, cells, cell_options)
    missing = [cell for cell in cells if cell not in measurements]
    task = _MeasureInTime(measure, time.monotonic() + seconds)
    for cell, numbers in measure_in_parallel(task, missing, jobs):
        if numbers is None:
            continue
        measurements[cell] = numbers = json.loads(_to_json(numbers))  # as it would be read from the file
        if file is not None:
            records.append({"cell": asdict(cell), "options": cell_options(cell), "found": numbers})
            write_whole(file, "[\n" + ",\n".join(map(_to_json, records)) + "\n]\n")
        progress(len(measurements), len(cells), ", ".join(map(str, list(asdict(cell).values())[:2])))
    return {cell: measurements[cell] for cell in cells if cell in measurements}


def measure_in_parallel(
    measure: Callable[[Item], Output], items: Sequence[Item], jobs: int
) -> Iterator[tuple[Item, Output]]:
    """Apply `measure` to all items, several at a time.

    Parameters
    ----------
    measure : callable
        From an item to its result; it can be pickled where there are several jobs.
    items : sequence of Item
        They are begun in this order.
    jobs : int
        Processes, each with one thread; one job is done in this process.

    Yields
    ------
    tuple of Item and Output
        As soon as a result is there.

    Raises
    ------
    InputError
        Where a process has come to a sudden end.
    """
    with _single_threads(jobs):
        for item, output in process_engine(_QuietTask(measure) if jobs > 1 else measure, items, jobs):
            if isinstance(output, WorkerDied):
                hint = "it may have run out of memory: take fewer --jobs"
                raise InputError(f"the process that measured {item} has been ended from outside", hint=hint)
            yield item, output


@dataclass(frozen=True, slots=True)
class _MeasureInTime(Generic[CellType]):
    """Measures a cell, or returns None after the deadline, a time of the monotonic clock of this machine."""

    measure: Callable[[CellType], Measurement]
    deadline: float

    def __call__(self, cell: CellType) -> Measurement | None:
        return self.measure(cell) if time.monotonic() < self.deadline else None


@dataclass(frozen=True, slots=True)
class _QuietTask(Generic[Item, Output]):
    """Work in a process of its own without messages: those on single graphs would drown a table of many."""

    measure: Callable[[Item], Output]

    def __call__(self, item: Item) -> Output:
        logging.getLogger("msg2").setLevel(logging.ERROR)
        return self.measure(item)


@contextmanager
def _single_threads(jobs: int) -> Iterator[None]:
    """Give one thread each to processes that are started here; alone, this process keeps its threads."""
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES if jobs > 1}
    os.environ.update(dict.fromkeys(before, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _read_records(file: Path | None) -> list[Measurement]:
    """Return a record per cell that was ever measured into `file`, with its options; the latest last."""
    if file is None or not file.exists():
        return []
    try:
        records = json.loads(file.read_text(encoding="utf-8"))
        return [{key: record[key] for key in ("cell", "options", "found")} for record in records]
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = f"cannot be read as cells of this experiment ({error})"
        raise InputError(what, where=file, hint="remove it: they are measured again") from error


def _matching_records(
    records: Sequence[Measurement], cells: Sequence[CellType], cell_options: Callable[[CellType], Any]
) -> dict[CellType, Measurement]:
    """Return the measurements of these cells; records with other options say nothing."""
    known = {_to_json([record["cell"], record["options"]]): record["found"] for record in records}
    keys = {cell: _to_json([asdict(cell), cell_options(cell)]) for cell in cells}
    return {cell: known[key] for cell, key in keys.items() if key in known}


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)

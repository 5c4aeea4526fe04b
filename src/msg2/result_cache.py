"""A cache of measured cells in one JSON file: an interrupted comparison goes on where it was.

A cell is a frozen dataclass that says what is measured, and on what. Cells are measured side by side, and each is
written as soon as it is there, with the options that it depends on.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from msg2.errors import InputError
from msg2.files import write_whole
from msg2.parallel import WorkerDied, process_engine
from msg2.progress import LOGGER, Progress, no_progress

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
    measure: Callable[[CellType], Measurement | None],
    *,
    cell_options: Callable[[CellType], Any] = lambda _: None,
    file: Path | None = None,
    jobs: int = 1,
    progress: Progress = no_progress,
) -> dict[CellType, Measurement]:
    """Measure the cells that are not in the file yet, the first ones first, and return all of them.

    `measure` may return None for a cell that is left for another time; where there are several jobs, it is pickled. A
    cell whose `cell_options` differ from those in the file is measured again.
    """
    records = _read_records(file)
    measurements = _matching_records(records, cells, cell_options)
    missing = [cell for cell in cells if cell not in measurements]
    for cell, numbers in measure_in_parallel(measure, missing, jobs):
        if numbers is None:
            continue
        measurements[cell] = numbers = json.loads(_to_json(numbers))  # as it would be read from the file
        if file is not None:
            records.append({"cell": asdict(cell), "options": cell_options(cell), "found": numbers})
            write_whole(file, "[\n" + ",\n".join(sorted(map(_to_json, records))) + "\n]\n")
        progress(len(measurements), len(cells), ", ".join(map(str, list(asdict(cell).values())[:2])))
    return {cell: measurements[cell] for cell in cells if cell in measurements}


def measure_in_parallel(
    measure: Callable[[Item], Output], items: Sequence[Item], jobs: int
) -> Iterator[tuple[Item, Output]]:
    """Yield every item with its measurement as soon as that is there; several jobs are processes with one thread."""
    with _single_threads(jobs):
        for item, output in process_engine(partial(_measure_quietly, measure) if jobs > 1 else measure, items, jobs):
            if isinstance(output, WorkerDied):
                hint = "it may have run out of memory: take fewer --jobs"
                raise InputError(f"the process that measured {item} has been ended from outside", hint=hint)
            yield item, output


def _measure_quietly(measure: Callable[[Item], Output], item: Item) -> Output:
    """In a process of its own, without messages: those on single graphs would drown a table of many."""
    LOGGER.setLevel(logging.ERROR)
    return measure(item)


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
    """Return a record per cell that was ever measured into `file`, with its options."""
    if file is None or not file.exists():
        return []
    try:
        records = json.loads(file.read_text(encoding="utf-8"))
        return [{key: record[key] for key in ("cell", "options", "found")} for record in records]
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = f"cannot be read as measured cells ({error})"
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

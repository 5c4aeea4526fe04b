"""Many cells, measured side by side and kept in one file as they come in: an interrupted run goes on where it was."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from msg2.errors import InputError
from msg2.files import write_whole

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

C = TypeVar("C", bound="DataclassInstance")
"""A cell: what is measured, and on what; frozen and made of plain values."""

Found: TypeAlias = dict[str, Any]
"""What was found in a cell: plain numbers under names, as they go into JSON."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def filled_in(
    planned: Sequence[C],
    measured: Callable[[C], Found],
    *,
    depends: Callable[[C], Any] = lambda _: None,
    file: Path | None = None,
    jobs: int = 1,
    seconds: float = float("inf"),
    report: Callable[[str], None] = lambda _: None,
) -> dict[C, Found]:
    """The planned cells with what was found in them: those in `file`, and the others, `measured` `jobs` at a time.

    Every cell is added to `file` as soon as it is there, with the options that it `depends` on: with others it is
    measured again. After so many `seconds` no more are begun.
    """
    records = _records(file)
    found = _fitting(records, planned, depends)
    missing = [cell for cell in planned if cell not in found]
    end = time.monotonic() + seconds
    for cell, numbers in _measured(iter(missing), measured, jobs, lambda: time.monotonic() < end):
        found[cell] = numbers = json.loads(_text(numbers))  # as it would be read from the file
        if file is not None:
            records.append({"cell": asdict(cell), "options": depends(cell), "found": numbers})
            write_whole(file, "[\n" + ",\n".join(map(_text, records)) + "\n]\n")
        report(f"{len(found)} of {len(planned)} cells ({', '.join(map(str, list(asdict(cell).values())[:2]))})")
    return {cell: found[cell] for cell in planned if cell in found}


def _measured(
    waiting: Iterator[C], measured: Callable[[C], Found], jobs: int, time_left: Callable[[], bool]
) -> Iterator[tuple[C, Found]]:
    """The cells as they are done; a new one is begun when one is done and there is time left."""
    if jobs <= 1:
        for cell in waiting:
            if not time_left():
                return
            yield cell, measured(cell)
        return
    with _single_threads(), ProcessPoolExecutor(jobs, get_context("spawn"), _quiet) as pool:
        running: dict[Future[Found], C] = {}
        try:
            while True:
                free = jobs - len(running) if time_left() else 0
                for cell in islice(waiting, free):
                    running[pool.submit(measured, cell)] = cell
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _quiet() -> None:
    """Remarks on single graphs would drown the news."""
    logging.getLogger("msg2").setLevel(logging.ERROR)


@contextmanager
def _single_threads() -> Iterator[None]:
    """Processes that are started here get one thread each."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _records(file: Path | None) -> list[Found]:
    """One per cell that was ever measured into `file`, with the options that it depends on; the latest last."""
    if file is None or not file.exists():
        return []
    try:
        records = json.loads(file.read_text(encoding="utf-8"))
        return [{key: one[key] for key in ("cell", "options", "found")} for one in records]
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = f"cannot be read as cells of this experiment ({error})"
        raise InputError(what, where=file, hint="remove it: they are measured again") from error


def _fitting(records: Sequence[Found], planned: Sequence[C], depends: Callable[[C], Any]) -> dict[C, Found]:
    """What the records say about the planned cells; those that were measured with other options say nothing."""
    known = {_text([one["cell"], one["options"]]): one["found"] for one in records}
    keys = {cell: _text([asdict(cell), depends(cell)]) for cell in planned}
    return {cell: known[key] for cell, key in keys.items() if key in known}


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)

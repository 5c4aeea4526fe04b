"""A pandas data frame is a table of steps as well: the same columns, the same rules, the same complaints."""

from __future__ import annotations

import logging
from collections.abc import Generator
from pathlib import Path
from typing import Any, Literal

from msg2.errors import InputError, MissingExtraError, shortened
from msg2.options import ReadOptions
from msg2.readers.found import Labels, tasks_of
from msg2.readers.registry import prepared, the_task
from msg2.readers.rows import KNOWN, Row, alike, check_columns, same_strings, typed_row
from msg2.readers.sources import Source
from msg2.task import Task

_FRAME = Source(Path("data frame"))
"""Only its name is used, to say where something is wrong; rows are counted from 1, whatever the index is."""
_DEFAULT = ReadOptions()
_log = logging.getLogger(__name__)


def from_dataframe(
    frame: Any,
    task: str | None = None,
    *,
    repeats: Literal["first", "keep"] = _DEFAULT.repeats,
    overlap: Literal["unordered", "start"] = _DEFAULT.overlap,
) -> list[Task]:
    """The tasks of a `pandas.DataFrame` with the columns of a table of steps, sorted by name.

    `task` chooses one of them; where there is no column `task`, it names the only one. Missing values are as empty
    cells of a file: without times, the order of the rows within a video is its order in time.

    >>> import pandas
    >>> frame = pandas.DataFrame({"video": ["v1", "v1"], "step": ["flip", "fry"], "start": [5, 0], "end": [6.5, 5]})
    >>> [(task.name, task.steps, task.videos[0].sequence()) for task in from_dataframe(frame, "toast")]
    [('toast', ('flip', 'fry'), ('fry', 'flip'))]
    """
    options = ReadOptions(repeats=repeats, overlap=overlap)
    labels: Labels = {}
    for row in alike(_FRAME, _rows(frame)):
        name = row.task or task
        if name is None:
            hint = "add it, or name the task: from_dataframe(frame, task='make coffee')"
            raise InputError("the column 'task' is missing", where=_FRAME.path, hint=hint)
        labels.setdefault((name, row.video or ""), []).append(row.segment)
    if not labels:
        raise InputError("has no rows", where=_FRAME.path, hint="give one row per labelled step")
    tasks = sorted((prepared(one, options) for one in tasks_of(labels)), key=lambda one: one.name)
    return tasks if task is None else [the_task(tasks, task, _FRAME.path)]


def _rows(frame: Any) -> Generator[Row]:
    try:
        import pandas  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtraError("data frames", "pandas") from None
    if not isinstance(frame, pandas.DataFrame):
        raise InputError(f"is a {type(frame).__name__}, not a pandas.DataFrame", where=_FRAME.path)
    header = [str(name) for name in frame.columns]
    check_columns(header, ("video", "step"), str(_FRAME.path))
    ignored = [shortened(name) for name in header if name not in KNOWN]
    if ignored:
        _log.warning("%s: columns that are not used: %s", _FRAME.path, ", ".join(sorted(ignored)))
    wanted = [name for name in header if name in KNOWN]
    cells = [_python_values(frame.iloc[:, header.index(name)]) for name in wanted]
    names = same_strings()
    for number, values in enumerate(zip(*cells, strict=True), start=1):
        yield typed_row(_FRAME, number, dict(zip(wanted, values, strict=True)), names)


def _python_values(column: Any) -> list[Any]:
    """The values of a column as Python's own; what pandas counts as missing is None."""
    missing = column.isna().tolist()
    return [None if gone else value for value, gone in zip(column.tolist(), missing, strict=True)]

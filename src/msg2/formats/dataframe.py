"""Tasks from a pandas data frame, and a data frame from tasks.

A data frame is a table of steps as well: the same columns, the same rules, the same errors as a file.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, Literal

from msg2.errors import InputError, errors_at, optional_dependency
from msg2.formats.column_roles import STEP_NAMES, match_columns
from msg2.formats.reading import ReadNotes, ReadOptions, SegmentsByVideo, apply_options, build_tasks, choose_task
from msg2.formats.source import Source
from msg2.formats.step_table import table_cells
from msg2.formats.table_rows import TableRow, check_columns, parse_typed_row, require_uniform_times
from msg2.task import Task
from msg2.text import join_names

_PLACE = Source(Path("data frame"))
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
    """The tasks of a `pandas.DataFrame` with the columns of a table of steps.

    Missing values are as empty cells of a file: without times, the order of the rows within a video is its order in
    time.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns `video`, `step` and maybe `task`, `start` and `end` (seconds), `confidence`, `source`.
    task : str, optional
        The only task that is wanted; where there is no column `task`, its name.
    repeats : {"first", "keep"}
        A repeated step keeps its first segment, or all of them.
    overlap : {"unordered", "start"}
        Overlapping segments say nothing about order, or are ordered by their start.

    Returns
    -------
    list of Task
        Sorted by name.

    Raises
    ------
    InputError
        Where something is wrong with the frame; rows are counted from 1.

    >>> import pandas
    >>> frame = pandas.DataFrame({"video": ["v1", "v1"], "step": ["flip", "fry"], "start": [5, 0], "end": [6.5, 5]})
    >>> [(task.name, task.steps, task.videos[0].sequence()) for task in from_dataframe(frame, "toast")]
    [('toast', ('flip', 'fry'), ('fry', 'flip'))]
    """
    options = ReadOptions(repeats=repeats, overlap=overlap)
    labels: SegmentsByVideo = {}
    notes = ReadNotes()
    for row in require_uniform_times(_PLACE, _rows(frame, notes)):
        name = row.task or task
        if name is None:
            hint = "add it, or name the task: from_dataframe(frame, task='make coffee')"
            raise InputError("the column 'task' is missing", where=_PLACE.path, hint=hint)
        labels.setdefault((name, row.video or ""), []).append(row.segment)
        notes.assume_instants(row.open_ended)
    if notes.assumptions:
        _log.warning("%s: assumed: %s", _PLACE.path, "; ".join(notes.assumptions))
    if not labels:
        raise InputError("has no rows", where=_PLACE.path, hint="give one row per labelled step")
    tasks = sorted((apply_options(one, options) for one in build_tasks(labels)), key=lambda one: one.name)
    return tasks if task is None else [choose_task(tasks, task, _PLACE.path)]


def _rows(frame: Any, notes: ReadNotes) -> Generator[TableRow]:
    with optional_dependency("data frames", "pandas"):
        import pandas  # type: ignore[import-untyped]
    if not isinstance(frame, pandas.DataFrame):
        raise InputError(f"is a {type(frame).__name__}, not a pandas.DataFrame", where=_PLACE.path)
    header = [str(name) for name in frame.columns]
    with errors_at(_PLACE.path):
        mapping = match_columns(header, STEP_NAMES, {})
        check_columns(mapping, header, ("video", "step"), str(_PLACE.path))
    if mapping.unused:
        _log.warning("%s: columns that are not used: %s", _PLACE.path, join_names(sorted(mapping.unused)))
    notes.add(mapping)
    cells = [_python_values(frame.iloc[:, header.index(column)]) for column in mapping.columns.values()]
    for number, values in enumerate(zip(*cells, strict=True), start=1):
        yield parse_typed_row(_PLACE, number, dict(zip(mapping.columns, values, strict=True)))


def _python_values(column: Any) -> list[Any]:
    """The values of a column as Python's own; what pandas counts as missing is None."""
    return [None if gone else value for value, gone in zip(column.tolist(), column.isna().tolist(), strict=True)]


def to_dataframe(tasks: Task | Iterable[Task]) -> Any:
    """The labels of one task or of many as a `pandas.DataFrame`, a row per label, with the columns of a table of steps.

    >>> from msg2.task import Segment, Video
    >>> to_dataframe(Task("toast", ["fry"], [Video("v1", [Segment("fry", 0.5, 2)])]))
        task video step  start  end
    0  toast    v1  fry    0.5  2.0
    """
    with optional_dependency("data frames", "pandas"):
        import pandas
    columns, rows = table_cells([tasks] if isinstance(tasks, Task) else tasks)
    return pandas.DataFrame(rows, columns=columns)

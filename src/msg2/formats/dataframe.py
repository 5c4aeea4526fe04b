"""Tasks from data frames and Arrow tables, and a data frame from tasks.

A data frame is a table as well: the same columns, the same rules, the same errors as a file.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from msg2.errors import InputError, optional_dependency
from msg2.formats.columns import match_step_columns
from msg2.formats.label_arrays import make_tasks
from msg2.formats.reading import ReadNotes, ReadOptions, apply_options, choose_task
from msg2.formats.source import Source
from msg2.formats.step_table import read_labels, table_cells
from msg2.formats.tables import Column, Table, Wanted, arrow_column, code_values, open_arrow
from msg2.task import Task
from msg2.text import join_names

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

_PLACE = Source(Path("data frame"), b"")
"""Only its name is used, to say where something is wrong; rows are counted from 1, whatever the index is."""
_DEFAULT = ReadOptions()
_log = logging.getLogger(__name__)


@runtime_checkable
class ArrowTable(Protocol):
    """A table of pandas, Polars, DuckDB, Arrow or any other library that speaks Arrow's C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as a stream of Arrow's."""


def from_dataframe(
    frame: ArrowTable,
    task: str | None = None,
    *,
    repeats: Literal["first", "keep"] = _DEFAULT.repeats,
    overlap: Literal["unordered", "start"] = _DEFAULT.overlap,
) -> list[Task]:
    """The tasks of a data frame with the columns of a table of steps.

    Missing values are as empty cells of a file: without times, the order of the rows within a video is its order in
    time.

    Parameters
    ----------
    frame : pandas.DataFrame, or any object with `__arrow_c_stream__`
        Columns `video`, `step` and maybe `task`, `start` and `end` (seconds), `confidence`, `source`. Polars, DuckDB
        and Arrow tables are such objects.
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
    return read_frame(frame, task, None, ReadOptions(repeats=repeats, overlap=overlap))


def read_frame(frame: object, task: str | None, default: str | None, options: ReadOptions) -> list[Task]:
    """The tasks of a data frame; `default` is the name of the task where the frame and `task` name none."""
    table = _open(frame)
    mapping = match_step_columns(table.header, {}, table.where, ("video", "step"))
    name = task or default
    if "task" not in mapping.columns and name is None:
        hint = "add it, or name the task: from_dataframe(frame, task='make coffee')"
        raise InputError("the column 'task' is missing", where=_PLACE.path, hint=hint)
    notes = ReadNotes()
    labels = read_labels(table, mapping, name or "", None, notes)
    if not len(labels.step.code):
        raise InputError("has no rows", where=_PLACE.path, hint="give one row per labelled step")
    if mapping.unused:
        _log.warning("%s: columns that are not used: %s", _PLACE.path, join_names(sorted(mapping.unused)))
    if notes.assumptions:
        _log.warning("%s: assumed: %s", _PLACE.path, "; ".join(notes.assumptions))
    tasks = sorted((apply_options(own, options) for own in make_tasks([(_PLACE, labels)])), key=lambda own: own.name)
    return tasks if task is None else [choose_task(tasks, task, _PLACE.path)]


def is_table(data: object) -> bool:
    """Whether this is a data frame or another table in memory; no library is imported for it."""
    return is_pandas(data) or isinstance(data, ArrowTable)


def is_pandas(data: object) -> bool:
    """Whether this is an object of pandas, which is not imported for it."""
    return any(kind.__module__.partition(".")[0] == "pandas" for kind in type(data).__mro__)


def _open(frame: object) -> Table:
    if is_pandas(frame) and hasattr(frame, "columns"):
        return _open_pandas(frame)
    if is_pandas(frame) or not isinstance(frame, ArrowTable):
        raise InputError(f"is a {type(frame).__name__}, not a pandas.DataFrame or another table", where=_PLACE.path)
    return open_arrow(frame, _PLACE)


def _open_pandas(frame: pandas.DataFrame) -> Table:
    """A data frame column by column: Arrow refuses a column of mixed types, of which the wrong row is to be named."""
    header = tuple(str(name) for name in frame.columns)

    def read(wanted: Wanted) -> Mapping[str, Column]:
        import pyarrow

        columns: dict[str, Column] = {}
        for name in wanted.names:
            column = frame.iloc[:, header.index(name)]
            with suppress(pyarrow.ArrowException, TypeError):
                values = pyarrow.chunked_array([pyarrow.array(column, from_pandas=True)])
                if column.dtype != object or pyarrow.types.is_string(values.type):
                    columns[name] = arrow_column(values)
                    continue
            pairs = zip(column.tolist(), column.isna().tolist(), strict=True)
            columns[name] = code_values(None if is_missing else value for value, is_missing in pairs)
        return columns

    return Table(_PLACE, header, read, lambda: count(1))


def to_dataframe(tasks: Task | Iterable[Task]) -> pandas.DataFrame:
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

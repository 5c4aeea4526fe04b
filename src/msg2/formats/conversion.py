"""Tasks from whatever a user hands over: a path, a data frame, sequences of step names, videos, tasks.

Folders that are larger than the memory, or read by many machines, are read file by file: of each file only its runs
are kept (`msg2.sequences`). The result is the same as that of reading everything at once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from msg2.errors import InputError, errors_at, optional_dependency, require
from msg2.formats import event_log, step_table
from msg2.formats.columns import EVENTS, STEPS
from msg2.formats.reading import Reader, ReadNotes, ReadOptions, Ties, apply_options, choose_task, separate_ties
from msg2.formats.registry import find_reader, read_all, read_source
from msg2.formats.source import Source
from msg2.formats.step_table import make_tasks, read_labels, table_cells
from msg2.formats.tables import Column, Table, arrow_column, code_column
from msg2.parallel import ENGINES, WorkerDied
from msg2.progress import LOGGER, Progress, collect_logs, no_progress
from msg2.sequences import RepeatedVideoError, Sequences
from msg2.task import Segment, Step, Task, Video
from msg2.text import short_repr

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]


@runtime_checkable
class ArrowTable(Protocol):
    """A table of pandas, Polars, DuckDB, Arrow or any other library that speaks Arrow's C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as a stream of Arrow's."""


_Steps: TypeAlias = Iterable[Step | Segment]
Demonstrations: TypeAlias = (
    Task | str | PathLike[str] | ArrowTable | Iterable[Task | Video | _Steps] | Mapping[str, _Steps]
)  # what `to_task` accepts: tasks, a file or folder, a data frame, videos or the steps of each, video id -> its steps

DEFAULT_NAME = "task"  # name of a task whose data does not name it
ACCEPTED = (
    "a path, a Task, a pandas.DataFrame, a list of sequences of step names, or a mapping of video ids to sequences of "
    "step names"
)
_FRAME = Source(Path("data frame"), b"")  # only its name is used; rows are counted from 1, whatever the index is
_FEW_LABELS = 1_000_000  # labels of runs that are not compared with others yet
_log = logging.getLogger(__name__)
_TEXTS = (str, bytes, bytearray)
_EXAMPLE = 'give a list of lists of steps, such as [["whisk", "fry"], ["whisk", "flip", "fry"]]'


def to_task(data: Demonstrations, task: str | None = None, **options: Any) -> Task:
    """One task from data of any accepted kind.

    Parameters
    ----------
    data : Task, str, Path, pandas.DataFrame, iterable or mapping
        A task, which is returned as it is; a file or folder; a table of steps; the steps of each video in their order,
        or `Video` objects; or video id -> its steps.
    task : str, optional
        Which task, where the data holds several; the name of the task, where the data names none.
    **options
        Those of `msg2.formats.reading.ReadOptions`; other data than a path takes `repeats`, `overlap` and `ties`, data
        frames `columns` and `strict` as well.

    Returns
    -------
    Task
        Videos without an id are called "1", "2", ….

    Raises
    ------
    InputError
        Where the data is something else, is wrong, or holds several tasks or not the wanted one.

    >>> to_task([["whisk", "fry"], ["fry"]], task="toast")
    <Task 'toast': 2 videos, 2 steps, 3 labels>
    >>> to_task({"v1": ["whisk", "fry"]}).videos[0].id
    'v1'
    """
    if task is not None and not isinstance(task, str):
        raise InputError(f"task is of type {type(task).__name__}, it must be a text")
    where = data if isinstance(data, str | Path) else "data"
    return choose_task(_read_tasks(data, task, options), task, where)


def to_tasks(data: Demonstrations, **options: Any) -> list[Task]:
    """All tasks from data of any accepted kind.

    Parameters
    ----------
    data : Task, str, Path, pandas.DataFrame, iterable or mapping
        As `to_task`, or a list of tasks.
    **options
        As `to_task`.

    Returns
    -------
    list of Task
        Those of a file or data frame sorted by name, else in the order given.

    Raises
    ------
    InputError
        Where the data is something else, or is wrong.

    >>> [task.name for task in to_tasks([["whisk", "fry"], ["fry"]])]
    ['task']
    """
    return _read_tasks(data, None, options)


def to_tasks_with_repeats(data: Demonstrations) -> list[Task]:
    """All tasks from data of any accepted kind, with every label of a repeated step."""
    return to_tasks([data] if isinstance(data, Task) else data, repeats="keep")


def _read_tasks(data: object, task: str | None, options: dict[str, Any]) -> list[Task]:
    if isinstance(data, str | PathLike):
        require(data != "", "the path is empty", hint="name a file or folder")
        return read_all(Path(data), **options)
    if isinstance(data, Task):
        if options:
            raise InputError(f"{next(iter(options))} is an option for reading, a Task is taken as it is")
        return [data]
    is_frame = not isinstance(data, list) and (is_pandas(data) or isinstance(data, ArrowTable))
    known = ["repeats", "overlap", "ties", *["columns", "strict"] * is_frame]
    for name in options:
        hint = f"there are: {', '.join(known)}; a file may have others"
        require(name in known, f"{name} is no option for data of type {type(data).__name__}", hint=hint)
    chosen = ReadOptions(**options)
    if is_frame:
        return _read_frame(data, task, DEFAULT_NAME, chosen)
    if isinstance(data, Iterator):
        data = list(data)
    if isinstance(data, list | tuple) and any(isinstance(item, Task) for item in data):
        if others := [type(item).__name__ for item in data if not isinstance(item, Task)]:
            raise InputError(f"the data is a list of tasks, with something of type {others[0]} among them")
        return list(data)
    videos = _to_videos(data, chosen)
    if chosen.overlap == "start":
        videos = [video.order_by_start() for video in videos]
    if not (steps := {segment.step for video in videos for segment in video.segments}):
        what = "the data holds no step" if videos else "the data is empty, it holds no video"
        raise InputError(what, hint=_EXAMPLE)
    return [Task(DEFAULT_NAME if task is None else task, steps, videos)]


def _to_videos(data: object, options: ReadOptions) -> list[Video]:
    if isinstance(data, Mapping):
        for id in data:
            if not isinstance(id, str):
                raise InputError(f"the video id {short_repr(str(id))} is of type {type(id).__name__}, not a text")
        return [_to_video(id, steps, options) for id, steps in data.items()]
    if not isinstance(data, Iterable) or isinstance(data, (*_TEXTS, Set)) or getattr(data, "ndim", 1) == 0:
        raise InputError(f"the data is of type {type(data).__name__}, it must be {ACCEPTED}")
    return [_to_video(str(number), steps, options) for number, steps in enumerate(data, start=1)]


def _to_video(id: str, steps: object, options: ReadOptions) -> Video:
    if isinstance(steps, Video):
        return steps
    if isinstance(steps, _TEXTS):
        raise InputError(f"video {short_repr(id)} is a text, not a sequence of steps", hint=_EXAMPLE)
    if not isinstance(steps, Iterable) or isinstance(steps, Set | Mapping | Task) or getattr(steps, "ndim", 1) != 1:
        what = f"video {short_repr(id)} is of type {type(steps).__name__}, not a sequence of steps"
        raise InputError(what, hint=_EXAMPLE)
    segments: list[Segment] = []
    for position, step in enumerate(steps, start=1):
        if not isinstance(step, str | Segment):
            what = f"step {position} of video {short_repr(id)} is of type {type(step).__name__}, not a text"
            raise InputError(what, hint=_EXAMPLE)
        if not step:
            raise InputError(f"step {position} of video {short_repr(id)} has an empty name")
        segments.append(step if isinstance(step, Segment) else Segment(str(step)))  # of NumPy, too, it becomes Python's
    video = Video(id, separate_ties(segments) if options.ties == "file" else segments)
    return video.with_first_labels() if options.repeats == "first" else video


# -- data frames -----------------------------------------------------------------------------------------------


def from_dataframe(
    frame: ArrowTable,
    task: str | None = None,
    *,
    repeats: Literal["first", "keep"] = "first",
    overlap: Literal["unordered", "start"] = "unordered",
    ties: Ties = "unknown",
) -> list[Task]:
    """The tasks of a data frame with the columns of a table of steps, or of an event log.

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
    ties : {"unknown", "file"}
        Equal instants say nothing about order, or are in that of the rows.

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
    return _read_frame(frame, task, None, ReadOptions(repeats=repeats, overlap=overlap, ties=ties))


def _read_frame(frame: object, task: str | None, default: str | None, options: ReadOptions) -> list[Task]:
    """The tasks of a data frame; `default` is the name of the task where the frame and `task` name none."""
    table, notes = _open_frame(frame), ReadNotes(options)
    log = EVENTS.for_user(options.columns)
    if log.fits(table.header) and not {"video", "step"} <= set(table.header):
        name = task or default or DEFAULT_NAME
        tasks, _ = event_log.read_table(table, log.match(table.header, table.where), name, notes)
        notes.log(_FRAME.path)
        return [apply_options(own, options) for own in tasks]
    mapping = STEPS.for_user(options.columns).match(table.header, table.where)
    name = task or default or ""
    hint = "add it, or name the task: from_dataframe(frame, task='make coffee')"
    require("task" in mapping.columns or name, "the column 'task' is missing", where=_FRAME.path, hint=hint)
    labels = read_labels(table, mapping, name, None, notes)
    require(len(labels.step), "has no rows", where=_FRAME.path, hint="give one row per labelled step")
    notes.log(_FRAME.path)
    tasks = sorted(
        (apply_options(own, options) for own in make_tasks([(_FRAME, labels)], options.ties)), key=lambda own: own.name
    )
    return tasks if task is None else [choose_task(tasks, task, _FRAME.path)]


def is_pandas(data: object) -> bool:
    """Whether this is an object of pandas, which is not imported for it."""
    return any(kind.__module__.partition(".")[0] == "pandas" for kind in type(data).__mro__)


def _open_frame(frame: Any) -> Table:
    """A data frame as a table; of pandas, Arrow may refuse a column of mixed types, of which the wrong row is named."""
    import pyarrow

    if is_pandas(frame) and hasattr(frame, "columns"):
        header, columns = [str(name) for name in frame.columns], [frame.iloc[:, n] for n in range(frame.shape[1])]
    elif isinstance(frame, ArrowTable) and not is_pandas(frame):
        table = pyarrow.table(frame)
        header, columns = table.column_names, table.columns
    else:
        raise InputError(f"is a {type(frame).__name__}, not a pandas.DataFrame or another table", where=_FRAME.path)

    def read_column(name: str) -> Column:
        column = columns[header.index(name)]
        if isinstance(column, pyarrow.ChunkedArray):
            return arrow_column(column)
        with suppress(pyarrow.ArrowException, TypeError):
            values = pyarrow.chunked_array([pyarrow.array(column, from_pandas=True)])
            if column.dtype != object or pyarrow.types.is_string(values.type):
                return arrow_column(values)
        return code_column(np.ma.array(np.asarray(column, dtype=object), mask=np.asarray(column.isna())))

    return Table(_FRAME, tuple(header), lambda wanted: {name: read_column(name) for name in wanted}, str(_FRAME.path))


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


# -- file by file ------------------------------------------------------------------------------------------------


_Part: TypeAlias = tuple[Sequence[Sequences], ReadNotes, Sequence[tuple[int, str]]]
"""What was read of one file, what was noted about it, and what was logged."""


def read_sequences(
    data: Demonstrations,
    task: str | None = None,
    *,
    engine: str = "local",
    jobs: int = 1,
    progress: Progress = no_progress,
    **options: Any,
) -> list[Sequences]:
    """Read the runs of all tasks in data of any accepted kind: the road of the library, the command line and the app.

    Parameters
    ----------
    data : Task, str, Path, pandas.DataFrame, iterable or mapping
        As `to_tasks`. The tables of a folder are read one at a time, or `jobs` at a time.
    task : str, optional
        The name of the task of data that has none.
    engine : str
        Who reads the tables of a folder: "local", processes of this machine, or "ray", a cluster; see `msg2.parallel`.
    jobs : int
        How many are read at the same time.
    progress : Progress
        Is told after every table of a folder.
    **options
        Those of `ReadOptions`.

    Returns
    -------
    list of Sequences
        Those of a file or data frame sorted by name, else in the order given.

    Raises
    ------
    InputError
        Where something is wrong with the data.
    """
    if not isinstance(data, str | PathLike) or data == "":
        return [Sequences.from_task(task) for task in _read_tasks(data, task, options)]
    chosen, source = ReadOptions(**options), Source.of_data(Path(data))
    reader = find_reader(source, chosen.columns)
    files = _find_parts(source, reader, chosen.columns) if source.is_folder and source.content is None else []
    if len(files) > 1:
        try:
            results = ENGINES[engine](partial(_read_part, folder=source.path, options=chosen), files, jobs)
            return _join_parts(source, len(files), results, progress)
        except RepeatedVideoError as error:
            if reader is step_table.READER:
                raise error.at(source.path) from None
            _log.warning("%s: cases go on from file to file, so all files are read at once", source.path)
    tasks = read_source(source, reader, chosen).tasks
    return [Sequences.from_task(apply_options(task, chosen)) for task in tasks]


def _find_parts(source: Source, reader: Reader, columns: str | None) -> list[Path]:
    """The tables of a folder that can be read one by one."""
    if reader is event_log.EVENT_TABLES:
        return [file.path for file in event_log.find_logs(source, EVENTS.for_user(columns))]
    if reader is not step_table.READER:
        return []
    kind = STEPS.for_user(columns)
    tables = step_table.open_tables(source, kind)
    return [] if step_table.are_one_per_video(tables, kind) else [table.source.path for table in tables]


def _join_parts(
    source: Source, count: int, results: Iterable[tuple[Path, _Part | WorkerDied]], progress: Progress
) -> list[Sequences]:
    """The runs of all parts, in whatever order they come."""
    by_task: dict[str, list[Sequences]] = {}
    notes = ReadNotes()
    for number, (path, part) in enumerate(results, start=1):
        if isinstance(part, WorkerDied):
            hint = "it may have run out of memory: take fewer --jobs, or smaller files"
            raise InputError("the process that read this has been ended from outside", where=path, hint=hint)
        sequences_of_file, own_notes, messages = part
        for level, message in messages:
            LOGGER.log(level, message)
        notes.add(own_notes.assumptions, own_notes.unused)
        notes.faults += own_notes.faults
        for sequences in sequences_of_file:
            own = by_task.setdefault(sequences.name, [])
            own.append(sequences)
            if sum(len(other.step) for other in own[1:]) > _FEW_LABELS + len(own[0].step):
                own[:] = [Sequences.join(own)]
        progress(number, count, path.name)
    replace(notes, assumptions=dict.fromkeys(sorted(notes.assumptions)), faults=sorted(notes.faults)).log(source.path)
    return [Sequences.join(by_task[name]) for name in sorted(by_task)]


def _read_part(path: Path, folder: Path, options: ReadOptions) -> _Part:
    """Read one table of a folder, in any process."""
    part = Source(folder, chosen_files=(Source.at(path),))
    reader = find_reader(part, options.columns)
    with collect_logs() as logs, errors_at(path):
        result = reader.read(part, options)
    return [Sequences.from_task(apply_options(task, options)) for task in result.tasks], result.notes, logs.messages

"""All formats of labels: a new one is a module beside this one and a line here, in `READERS` or `WRITERS`.

A plug-in is such a module elsewhere, with an entry point of the group `msg2.formats`.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from msg2.errors import InputError, errors_at, require
from msg2.files import write_together
from msg2.formats import cvat, elan, label_studio, ocel, procel, reading, step_table, xes
from msg2.formats.columns import STEPS, parse_columns
from msg2.formats.elan import EAF, ELAN_TEXT
from msg2.formats.event_log import EVENT_TABLES
from msg2.formats.reading import Reader, ReadOptions, ReadResult, WriteOptions, Writer
from msg2.formats.source import ZIP, Source
from msg2.formats.tables import first_cells
from msg2.formats.timecode_list import READER as TIMECODE_LIST
from msg2.formats.video_datasets import ASSEMBLY101, CAPTAINCOOK4D, COIN, CROSSTASK, EGO_EXO4D, EGOPROCEL, EPIC_TENT
from msg2.graph.graph_file import FORMAT, OLD_FORMAT
from msg2.plugins import Registry
from msg2.progress import Progress, no_progress
from msg2.task import Task

FORMAT_OPTIONS: Mapping[str, tuple[Reader, ...]] = {
    "order": (CAPTAINCOOK4D,),
    "tier": (EAF, ELAN_TEXT),
    "fps": (cvat.READER, label_studio.READER),
    "columns": (EVENT_TABLES, step_table.READER),
    "object": (ocel.READER,),
}  # options of `ReadOptions` that mean something to some formats only -> the readers of these formats
READERS: tuple[Reader, ...] = (
    CROSSTASK, procel.READER, CAPTAINCOOK4D, COIN, EGO_EXO4D, EGOPROCEL, ASSEMBLY101, EPIC_TENT, ocel.READER,
    xes.READER, EVENT_TABLES, EAF, ELAN_TEXT, cvat.READER, label_studio.READER, TIMECODE_LIST, step_table.READER,
)  # fmt: skip
"""In the order of asking: `step_table` takes every file that is left, and plug-ins are asked just before it."""


def _accept_reader(name: str, module: object) -> Mapping[str, Reader]:
    reader = getattr(module, "READER", None)
    require(isinstance(reader, Reader) or hasattr(module, "WRITERS"), "it has neither a READER nor WRITERS")
    return {name: replace(reader, can_read=partial(_ask_plugin, name, reader))} if isinstance(reader, Reader) else {}


def _ask_plugin(name: str, reader: Reader, source: Source) -> object:
    """Ask the reader of a plug-in; one that breaks down does not keep others from reading."""
    try:
        return reader.can_read(source)
    except Exception as error:
        _log.warning("the plug-in %r cannot tell whether it reads %s: %r", name, source.path.name, error)
        return False


def _accept_writers(name: str, module: object) -> Mapping[str, Writer]:
    return getattr(module, "WRITERS", {})


_PLUGINS: Registry[Reader] = Registry("msg2.formats", _accept_reader, {})
WRITERS: Registry[Writer] = Registry("msg2.formats", _accept_writers, {
    **step_table.WRITERS, **elan.WRITERS, **label_studio.WRITERS, **xes.WRITERS
})  # fmt: skip
"""Suffix of a file -> what writes it: the formats of labels that can be written, plug-ins included."""
_log = logging.getLogger(__name__)
_OLD_EXCEL = b"\xd0\xcf\x11\xe0"


def read(path: str | Path | Source, task: str | None = None, **options: Any) -> Task:
    """Read one task from a file or folder of any known format.

    Parameters
    ----------
    path : str, Path or Source
        The file or folder.
    task : str, optional
        Name of the task (exactly, else case-folded and stripped); by default the only one there is.
    **options
        Those of `ReadOptions`, such as ``repeats="keep"``.

    Returns
    -------
    Task
        The videos with their segments in seconds.

    Raises
    ------
    InputError
        Where something is wrong with the data, or it holds no such task, or several.

    >>> read("nowhere.csv", task="toast")
    Traceback (most recent call last):
    msg2.errors.InputError: nowhere.csv: is not there
      check the path
    """
    return reading.choose_task(read_all(path, **options), task, path.path if isinstance(path, Source) else path)


def read_all(path: str | Path | Source, **options: Any) -> list[Task]:
    """Read all tasks in a file or folder of any known format.

    Parameters
    ----------
    path : str, Path or Source
        The file or folder. A `Source` remembers its parsed JSON, so that nothing is parsed twice.
    **options
        Those of `ReadOptions`, such as ``repeats="keep"``.

    Returns
    -------
    list of Task
        Sorted by name.

    Raises
    ------
    InputError
        Where something is wrong with the data.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "toast.csv")
    ...     _ = path.write_text("video,step,start,end\\nv1,flip,5,6\\nv1,fry,0,5\\n")
    ...     [(task.name, task.steps, task.videos[0].sequence()) for task in read_all(path)]
    [('toast', ('flip', 'fry'), ('fry', 'flip'))]
    """
    chosen = ReadOptions(**options)
    source = path if isinstance(path, Source) else Source.of_data(path)
    reader = find_reader(source, chosen.columns)
    return [reading.apply_options(task, chosen) for task in read_source(source, reader, chosen).tasks]


def find_reader(source: Source, columns: str | None = None) -> Reader:
    """The reader of the format of the source, which is recognised by its content."""
    is_text = columns is None and not source.is_folder and source.kind == "text"
    if is_text and {"video", "step"} <= set(first_cells(source)) <= STEPS.names.keys():
        return step_table.READER
    is_other = source.is_folder and source.member("mimetype") and source.member("content.xml")
    if is_other or source.head.startswith(_OLD_EXCEL):
        what = "is a spreadsheet of an old or another program than Excel"
        raise InputError(what, where=source.path, hint="save it as .xlsx or CSV")
    if source.head.startswith(ZIP) and source.kind != "workbook":
        raise InputError("is an archive in an archive", where=source.path, hint="unpack it and give what is in it")
    if columns is not None and step_table.READER.can_read(source):
        return step_table.READER if parse_columns(columns).keys() <= STEPS.names.keys() else EVENT_TABLES
    sample, readers = source.sample(), (*READERS[:-1], *_PLUGINS.values(), *READERS[-1:])
    for reader in readers:
        if reader.can_read(sample):
            return reader
    hint = "msg2 reads: " + "; ".join(reader.description for reader in readers)
    require(not source.is_folder, "the folder holds nothing that msg2 reads", where=source.path, hint=hint)
    if isinstance(source.document, dict) and source.document.get("format") in (FORMAT, OLD_FORMAT):
        hint = "give the data that it was learnt from; `msg2 show`, `next`, `check`, `explain` and others take graphs"
        raise InputError("is a graph, not data", where=source.path, hint=hint)
    raise InputError(f"is {source.kind}, but in no layout that msg2 reads", where=source.path, hint=hint)


def read_source(source: Source, reader: Reader, options: ReadOptions) -> ReadResult:
    """Read a source with its reader, every label kept; tasks are sorted by name, files in time order left out."""
    for name, readers in FORMAT_OPTIONS.items():
        if getattr(options, name) is not None and reader not in readers:
            what = f"takes no {name}, it was recognised as {reader.description}"
            takers = "; ".join(other.description for other in readers)
            raise InputError(what, where=source.path, hint=f"only these take --{name}: {takers}")
    with errors_at(source.path):
        result = reader.read(source, options)
    result.notes.log(source.path)
    tasks = sorted(result.tasks, key=lambda task: task.name)
    return replace(result, tasks=tasks, unsorted={file: rows for file, rows in result.unsorted.items() if rows})


def write(
    tasks: Task | Sequence[Task],
    path: str | Path,
    options: WriteOptions | None = None,
    progress: Progress = no_progress,
) -> list[Path]:
    """Write the labels of one task or of many in the format of the suffix of `path`.

    ELAN has a file per video: of many videos, `labels.eaf` is a folder `labels` of them, in folders per task where
    there are many tasks. Beside `labels.label-studio.json`, `labels.label-studio.xml` is the labelling interface.
    All of the files appear, or none.

    Parameters
    ----------
    tasks : Task or sequence of Task
        What is written.
    path : str or Path
        Its end is one of `WRITERS`.
    options : WriteOptions, optional
        Where the videos lie, and their frame rate.
    progress : Progress
        Is told how many labels of a table are written.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    InputError
        Where the suffix is no known one, the format cannot hold the labels, or a file cannot be written.

    >>> from tempfile import TemporaryDirectory
    >>> from msg2.task import Segment, Video
    >>> toast = Task("toast", ["fry"], [Video(name, [Segment("fry", 0.5, 2)]) for name in ("v1", "v2")])
    >>> with TemporaryDirectory() as folder:
    ...     sorted(file.name for file in write(toast, f"{folder}/labels.eaf"))
    ['v1.eaf', 'v2.eaf']
    """
    path, tasks = Path(path), [tasks] if isinstance(tasks, Task) else tasks
    suffix = match_suffix(path)
    if options is not None and options.guard:
        if suffix not in (".csv", ".tsv"):
            raise InputError("is no table of text, whose names could be guarded", where=path, hint="leave out --guard")
        tasks = [*map(reading.guard_names, tasks)]
    with errors_at(path):
        contents = WRITERS[suffix](tasks, path, options or WriteOptions())
    labels = sum(task.labels for task in tasks)

    def report_rows(pieces: Iterable[bytes]) -> Iterator[bytes]:
        for number, piece in enumerate(pieces, start=1):
            yield piece
            progress(min(number * step_table.ROWS_AT_ONCE, labels), labels, "")

    write_together({
        file: content if isinstance(content, str | bytes) else report_rows(content)
        for file, content in contents.items()
    })  # fmt: skip
    return list(contents)


def match_suffix(path: Path) -> str:
    """The one of `WRITERS` that `path` ends in; any other is refused, best before there is anything to write."""
    if (suffix := next((known for known in WRITERS if path.name.lower().endswith(known)), None)) is None:
        hint = f"use one of {' '.join(WRITERS)}; `msg2 show` writes graphs"
        raise InputError("its suffix is no format of labels that msg2 can write", where=path, hint=hint)
    return suffix

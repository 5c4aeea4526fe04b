"""All formats of labels: a new one is a module beside this one and a line here, in `READERS` or `WRITERS`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from msg2.errors import InputError, errors_at
from msg2.files import write_together
from msg2.formats import captaincook4d, crosstask, cvat, elan_writer, label_studio, procel, reading, step_table
from msg2.formats.columns import STEP_NAMES, format_columns, is_event_log, parse_columns
from msg2.formats.elan import EAF, ELAN_TEXT
from msg2.formats.event_log import EVENT_TABLES, XES
from msg2.formats.reading import Reader, ReadOptions, ReadResult, WriteOptions, Writer
from msg2.formats.source import ZIP, Source
from msg2.formats.tables import first_cells
from msg2.formats.timecode_list import READER as TIMECODE_LIST
from msg2.formats.video_datasets import ASSEMBLY101, COIN, EGO_EXO4D, EGOPROCEL, EPIC_TENT
from msg2.graph.graph import FORMAT, OLD_FORMAT
from msg2.progress import Progress, no_progress
from msg2.task import Task
from msg2.text import join_names

FORMAT_OPTIONS: Mapping[str, tuple[Reader, ...]] = {
    "order": (captaincook4d.READER,),
    "tier": (EAF, ELAN_TEXT),
    "fps": (cvat.READER, label_studio.READER),
    "columns": (EVENT_TABLES, step_table.READER),
}  # options of `ReadOptions` that mean something to some formats only -> the readers of these formats
READERS: tuple[Reader, ...] = (
    crosstask.READER, procel.READER, captaincook4d.READER, COIN, EGO_EXO4D, EGOPROCEL, ASSEMBLY101, EPIC_TENT, XES,
    EVENT_TABLES, EAF, ELAN_TEXT, cvat.READER, label_studio.READER, TIMECODE_LIST, step_table.READER,
)  # fmt: skip
"""In the order of asking: `step_table` takes every file that is left."""
WRITERS: Mapping[str, Writer] = {**step_table.WRITERS, **elan_writer.WRITERS, **label_studio.WRITERS}
"""Suffix of a file -> what writes it."""
WRITE_SUFFIXES = tuple(WRITERS)  # the formats of labels that can be written, by the end of the file's name
_OLD_EXCEL = b"\xd0\xcf\x11\xe0"
_log = logging.getLogger(__name__)


# -- reading ----------------------------------------------------------------------------------------------------


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
    chosen = make_read_options(options)
    source = path if isinstance(path, Source) else Source.of_data(path)
    reader = find_reader(source, chosen.columns)
    return [reading.apply_options(task, chosen) for task in read_source(source, reader, chosen).tasks]


def make_read_options(options: Mapping[str, Any]) -> ReadOptions:
    """The options of reading by name; one that there is not is refused."""
    known = [field.name for field in fields(ReadOptions)]
    for name in options:
        if name not in known:
            raise InputError(f"there is no option {name!r} for reading", hint=f"there are: {', '.join(known)}")
    if isinstance(options.get("columns"), Mapping):
        options = {**options, "columns": format_columns(options["columns"])}
    return ReadOptions(**options)


def find_reader(source: Source, columns: str | None = None) -> Reader:
    """The reader of the format of the source, which is recognised by its content."""
    is_text = columns is None and not source.is_folder and source.kind == "text"
    if is_text and {"video", "step"} <= set(first_cells(source)) <= STEP_NAMES.keys():
        return step_table.READER
    is_other = source.is_folder and source.member("mimetype") and source.member("content.xml")
    if is_other or source.head.startswith(_OLD_EXCEL):
        what = "is a spreadsheet of an old or another program than Excel"
        raise InputError(what, where=source.path, hint="save it as .xlsx or CSV")
    if source.head.startswith(ZIP) and not source.is_spreadsheet:
        raise InputError("is an archive in an archive", where=source.path, hint="unpack it and give what is in it")
    if columns is not None and step_table.READER.can_read(source):
        return EVENT_TABLES if is_event_log(parse_columns(columns)) else step_table.READER
    sample = source.sample()
    for reader in READERS:
        if (source.is_folder or source.kind in reader.kinds) and reader.can_read(sample):
            return reader
    hint = "msg2 reads: " + "; ".join(reader.description for reader in READERS)
    if source.is_folder:
        raise InputError("the folder holds nothing that msg2 reads", where=source.path, hint=hint)
    if isinstance(source.document, dict) and source.document.get("format") in (FORMAT, OLD_FORMAT):
        hint = "give the data that it was learnt from; `msg2 show`, `next`, `check`, `explain` and others take graphs"
        raise InputError("is a graph, not data", where=source.path, hint=hint)
    raise InputError(f"is {source.kind}, but in no layout that msg2 reads", where=source.path, hint=hint)


def read_source(source: Source, reader: Reader, options: ReadOptions) -> ReadResult:
    """Read a source with its reader, every label kept."""
    for name, readers in FORMAT_OPTIONS.items():
        if getattr(options, name) is not None and reader not in readers:
            what = f"takes no {name}, it was recognised as {reader.description}"
            takers = "; ".join(other.description for other in readers)
            raise InputError(what, where=source.path, hint=f"only these take --{name}: {takers}")
    with errors_at(source.path):
        result = reader.read(source, options)
    log_notes(source, result.assumptions, result.unused)
    return result


def log_notes(source: Source, assumptions: Sequence[str], unused: Sequence[str]) -> None:
    """Log what was assumed of the data, and what of it was not used."""
    if unused:
        _log.warning("%s: columns that are not used: %s", source.path, join_names(unused))
    if assumptions:
        _log.warning("%s: assumed: %s", source.path, "; ".join(assumptions))


# -- writing ----------------------------------------------------------------------------------------------------


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
        Its end is one of `WRITE_SUFFIXES`.
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
    """The one of `WRITE_SUFFIXES` that `path` ends in; any other is refused, best before there is anything to write."""
    suffix = next((known for known in WRITERS if path.name.lower().endswith(known)), None)
    if suffix is None:
        hint = f"use one of {' '.join(WRITE_SUFFIXES)}; `msg2 show` writes graphs"
        raise InputError("its suffix is no format of labels that msg2 can write", where=path, hint=hint)
    return suffix

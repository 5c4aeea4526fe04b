"""Which reader reads what. A new format is one module beside this one, and one line here."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol

from msg2.errors import InputError, MissingExtraError, shortened
from msg2.graph.subtask import FORMAT
from msg2.options import ReadOptions
from msg2.readers import (
    assembly101,
    captaincook4d,
    coin,
    crosstask,
    cvat,
    egoexo4d,
    egoprocel,
    elan,
    epic_tent,
    event_logs,
    label_studio,
    procel,
    tables,
    xes,
)
from msg2.readers.found import Found
from msg2.readers.sources import Source
from msg2.task import Task


class Reader(Protocol):
    """What a module offers to be a reader."""

    @property
    def READS(self) -> str:  # noqa: N802
        """What it reads, in words."""

    @property
    def TAKES(self) -> tuple[str, ...]:  # noqa: N802
        """The `SPECIAL` options that mean something to it."""

    def recognises(self, source: Source) -> bool:
        """Whether the source is in its format, by its content."""

    def read(self, source: Source, options: ReadOptions) -> Found:
        """The tasks in the source, every label kept."""


SPECIAL = ("order", "tier", "fps")
"""Options that mean something to some readers only."""
READERS: tuple[Reader, ...] = (
    crosstask, procel, captaincook4d, coin, egoexo4d, egoprocel, assembly101, epic_tent,
    xes, event_logs, elan, cvat, label_studio, tables,
)  # fmt: skip
"""In the order of asking: `tables` takes every file that is left."""


def reader_of(source: Source) -> Reader:
    """The reader that recognises the source."""
    if source.head.startswith(b"PK\x03\x04"):
        hint = "unpack it and give what is in it; save a spreadsheet as CSV"
        raise InputError("is a zip archive or a spreadsheet", where=source.path, hint=hint)
    for reader in READERS:
        if reader.recognises(source):
            return reader
    hint = "msg2 reads: " + "; ".join(reader.READS for reader in READERS)
    if source.is_folder:
        raise InputError("the folder holds nothing that msg2 reads", where=source.path, hint=hint)
    if isinstance(source.document, dict) and source.document.get("format") == FORMAT:
        hint = "give the data that it was learnt from; `msg2 show`, `next`, `check` and `merge` take graphs"
        raise InputError("is a graph, not data", where=source.path, hint=hint)
    kind = "JSON" if source.is_json else "XML"
    raise InputError(f"is {kind}, but in no layout that msg2 reads", where=source.path, hint=hint)


def found_in(source: Source, reader: Reader, options: ReadOptions) -> Found:
    """What the reader finds; a special option is refused where it means nothing."""
    for name in SPECIAL:
        if getattr(options, name) is not None and name not in reader.TAKES:
            what = f"takes no {name}, it was recognised as {reader.READS}"
            takers = "; ".join(other.READS for other in READERS if name in other.TAKES)
            raise InputError(what, where=source.path, hint=f"only these take --{name}: {takers}")
    try:
        return reader.read(source, options)
    except MissingExtraError:
        raise
    except InputError as error:
        raise InputError(error.what, where=error.where or source.path, hint=error.hint) from None


def options_for(path: str | Path) -> tuple[str, ...]:
    """The `SPECIAL` options that mean something to the data at `path`."""
    return reader_of(Source.at(path)).TAKES


def read_all(path: str | Path, **options: Any) -> list[Task]:
    """All tasks in a file or folder of any known format, sorted by name.

    `options` are those of `msg2.options.ReadOptions`, such as `repeats="keep"`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "toast.csv")
    ...     _ = path.write_text("video,step,start,end\\nv1,flip,5,6\\nv1,fry,0,5\\n")
    ...     [(task.name, task.steps, task.videos[0].sequence()) for task in read_all(path)]
    [('toast', ('flip', 'fry'), ('fry', 'flip'))]
    """
    known = [field.name for field in fields(ReadOptions)]
    for name in options:
        if name not in known:
            raise InputError(f"there is no option {name!r} for reading", hint=f"there are: {', '.join(known)}")
    chosen = ReadOptions(**options)
    source = Source.at(path)
    return [prepared(task, chosen) for task in found_in(source, reader_of(source), chosen).tasks]


def read(path: str | Path, task: str | None = None, **options: Any) -> Task:
    """The task of that name in the data (exactly, else case-folded and stripped), or the only one there is.

    `options` are those of `read_all`.

    >>> read("nowhere.csv", task="toast")
    Traceback (most recent call last):
    msg2.errors.InputError: nowhere.csv: is not there
      check the path
    """
    return the_task(read_all(path, **options), task, path)


def the_task(tasks: list[Task], name: str | None, where: str | Path) -> Task:
    """The one of `tasks` with that name, or the only one."""
    fitting = [task for task in tasks if name in (None, task.name)] or [
        task for task in tasks if name is not None and task.name.strip().casefold() == name.strip().casefold()
    ]
    if len(fitting) == 1:
        return fitting[0]
    names = [shortened(task.name, 30) for task in (fitting or tasks)]
    hint = "choose one of: " + ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    what = f"holds no task {shortened(name or '')}" if not fitting else f"holds {len(fitting)} tasks"
    if fitting and name is not None:
        what += f" that could be {shortened(name)}"
    raise InputError(what, where=where, hint=hint)


def prepared(task: Task, options: ReadOptions) -> Task:
    """First labels before anything else: an overlap with a label that is dropped must not cut one that is kept."""
    if options.repeats == "first":
        task = task.with_first_labels()
    return task.ordered_by_start() if options.overlap == "start" else task

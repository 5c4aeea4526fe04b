"""Which reader reads what. A new format is one module beside this one, and one line here."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol

from msg2.errors import InputError, MissingExtraError, shortened
from msg2.graph.subtask import FORMAT
from msg2.options import ReadOptions
from msg2.readers import captaincook4d, coin, crosstask, procel, tables
from msg2.readers.found import Found
from msg2.readers.sources import Source
from msg2.task import Task


class Reader(Protocol):
    """What a module offers to be a reader."""

    @property
    def READS(self) -> str:  # noqa: N802
        """What it reads, in words."""

    @property
    def TAKES_ORDER(self) -> bool:  # noqa: N802
        """Whether the option `order` means anything to it."""

    def recognises(self, source: Source) -> bool:
        """Whether the source is in its format, by its content."""

    def read(self, source: Source, options: ReadOptions) -> Found:
        """The tasks in the source, every label kept."""


READERS: tuple[Reader, ...] = (crosstask, procel, captaincook4d, coin, tables)
"""In the order of asking: `tables` takes every file that is left."""


def reader_of(source: Source) -> Reader:
    """The reader that recognises the source."""
    for reader in READERS:
        if reader.recognises(source):
            return reader
    hint = "msg2 reads: " + "; ".join(reader.READS for reader in READERS)
    if source.is_folder:
        raise InputError("the folder holds nothing that msg2 reads", where=source.path, hint=hint)
    if isinstance(source.document, dict) and source.document.get("format") == FORMAT:
        raise InputError("is a graph, not data", where=source.path, hint=hint)
    raise InputError("is JSON, but in no layout that msg2 reads", where=source.path, hint=hint)


def found_in(source: Source, reader: Reader, options: ReadOptions) -> Found:
    """What the reader finds; an order that was asked for is refused where the data has only one."""
    if options.order is not None and not reader.TAKES_ORDER:
        what = f"takes no order, it was recognised as {reader.READS}"
        raise InputError(what, where=source.path, hint="only CaptainCook4D data takes --order")
    try:
        return reader.read(source, options)
    except MissingExtraError:
        raise
    except InputError as error:
        raise InputError(error.what, where=error.where or source.path, hint=error.hint) from None


def takes_order(path: str | Path) -> bool:
    """Whether the option `order` means anything to the data at `path`."""
    return reader_of(Source.at(path)).TAKES_ORDER


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
    return [_prepared(task, chosen) for task in found_in(source, reader_of(source), chosen).tasks]


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


def _prepared(task: Task, options: ReadOptions) -> Task:
    """First labels before anything else: an overlap with a label that is dropped must not cut one that is kept."""
    if options.repeats == "first":
        task = task.with_first_labels()
    return task.ordered_by_start() if options.overlap == "start" else task

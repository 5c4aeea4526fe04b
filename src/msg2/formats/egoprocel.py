"""EgoProceL: one table per video without a header, `start second, end second, key-step`; or the same rows as JSON.

A file is a video and its folder the task. Folders may lie in folders; those of a subject (`S07_Brownie_Video`) belong
to the task around them. As JSON, a file is a list of `[start, end, key-step]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msg2.errors import InputError
from msg2.formats.json_files import list_items, member
from msg2.formats.reading import Reader, ReadOptions, ReadResult, timed_segment
from msg2.formats.source import Source
from msg2.formats.tables import first_cells, read_headerless_rows
from msg2.task import Segment
from msg2.text import short_repr

DESCRIPTION = "EgoProceL (start, end, key-step per row; CSV or JSON)"

_SUBJECT = re.compile(r"S\d+_\w+_Video")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_LIST = re.compile(rb'\s*\[\s*\[\s*[\d.]+\s*,\s*[\d.]+\s*,\s*"')
_SUFFIXES = (".csv", ".json", ".gz")
_LEVELS = 3
"""Folders within folders in the release: dataset, category, subject."""


def can_read(source: Source) -> bool:
    """Whether there are such files, in the folder or up to three folders down."""
    return next(_files(source, source.stem), None) is not None


def read(source: Source, options: ReadOptions) -> ReadResult:
    """Read one task per folder that is not a subject's.

    Parameters
    ----------
    source : Source
        A file or folder that `can_read` accepts.
    options : ReadOptions
        Not looked at.

    Returns
    -------
    ReadResult
        The tasks, every label kept.

    Raises
    ------
    InputError
        Where something is wrong with the data.
    """
    return ReadResult.from_files(
        (file, {(task, file.stem): list(_read_segments(file))}) for task, file in _files(source, source.stem)
    )


def _files(source: Source, task: str, levels: int = _LEVELS) -> Iterator[tuple[str, Source]]:
    """The files with the names of their tasks; a folder that holds other tables is not looked into further."""
    files = [file for file in source.files if file.path.suffix.lower() in _SUFFIXES] if source.is_folder else [source]
    yield from ((task, file) for file in files if _is_table(file) or _LIST.match(file.head))
    for folder in source.folders if levels and not files else ():
        yield from _files(folder, task if _SUBJECT.fullmatch(folder.stem) else folder.stem, levels - 1)


def _is_table(file: Source) -> bool:
    return [bool(_NUMBER.fullmatch(cell.strip())) for cell in first_cells(file)] == [True, True, False]


def _read_segments(file: Source) -> Iterator[Segment]:
    if file.document is None:
        for line, (start, end, step) in read_headerless_rows(file, ",", 3):
            where = file.row(line)
            yield timed_segment(step.strip(), _parse_seconds(start, where), _parse_seconds(end, where), where)
        return
    for where, row in list_items(file.document, list, f"{file.path}, $"):
        start, end = (member(row, place, (int, float), where) for place in (0, 1))
        yield timed_segment(member(row, 2, str, where), start, end, where)


def _parse_seconds(text: str, where: str) -> float:
    if not _NUMBER.fullmatch(text.strip()):
        raise InputError(f"{short_repr(text)} is not a number of seconds", where=where)
    return float(text)


READER = Reader(DESCRIPTION, can_read, read, ("text", "JSON"))

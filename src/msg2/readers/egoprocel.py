"""EgoProceL: one table per video without a header, `start second, end second, key-step`; or the same rows as JSON.

A file is a video and its folder the task. Folders may lie in folders; those of a subject (`S07_Brownie_Video`) belong
to the task around them. As JSON, a file is a list of `[start, end, key-step]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msg2.errors import InputError, shortened
from msg2.options import ReadOptions
from msg2.readers.delimited import bare_rows, first_cells
from msg2.readers.documents import member
from msg2.readers.found import Found, Labels, merge, tasks_of, timed_segment, unsorted_rows
from msg2.readers.sources import Source
from msg2.task import Segment

READS = "EgoProceL (start, end, key-step per row; CSV or JSON)"
TAKES = ()

_SUBJECT = re.compile(r"S\d+_\w+_Video")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_LIST = re.compile(rb'\s*\[\s*\[\s*[\d.]+\s*,\s*[\d.]+\s*,\s*"')
_SUFFIXES = (".csv", ".json", ".gz")
_LEVELS = 3
"""Folders within folders in the release: dataset, category, subject."""


def recognises(source: Source) -> bool:
    """Whether there are such files, in the folder or up to three folders down."""
    return next(_files(source, source.stem), None) is not None


def read(source: Source, options: ReadOptions) -> Found:
    """One task per folder that is not a subject's."""
    labels: Labels = {}
    unsorted = {}
    for task, file in _files(source, source.stem):
        found = {(task, file.stem): list(_segments(file))}
        merge(labels, found, str(file.path))
        unsorted[file.path.name] = unsorted_rows(found)
    return Found.of(tasks_of(labels), unsorted)


def _files(source: Source, task: str, levels: int = _LEVELS) -> Iterator[tuple[str, Source]]:
    """The files with the names of their tasks; a folder that holds other tables is not looked into further."""
    files = [file for file in source.files if file.path.suffix.lower() in _SUFFIXES] if source.is_folder else [source]
    yield from ((task, file) for file in files if _is_table(file) or _LIST.match(file.head))
    for folder in source.folders if levels and not files else ():
        yield from _files(folder, task if _SUBJECT.fullmatch(folder.stem) else folder.stem, levels - 1)


def _is_table(file: Source) -> bool:
    cells = first_cells(file)
    return (
        len(cells) == 3
        and all(_NUMBER.fullmatch(cell.strip()) for cell in cells[:2])
        and not _NUMBER.fullmatch(cells[2].strip())
    )


def _segments(file: Source) -> Iterator[Segment]:
    if file.document is None:
        for line, (start, end, step) in bare_rows(file, ",", 3):
            where = file.row(line)
            yield timed_segment(step.strip(), _seconds(start, where), _seconds(end, where), where)
        return
    for position in range(len(file.document)):
        where = f"{file.path}, $[{position}]"
        row = member(file.document, position, list, f"{file.path}, $")
        start, end = (member(row, place, (int, float), where) for place in (0, 1))
        yield timed_segment(member(row, 2, str, where), start, end, where)


def _seconds(text: str, where: str) -> float:
    if not _NUMBER.fullmatch(text.strip()):
        raise InputError(f"{shortened(text)} is not a number of seconds", where=where)
    return float(text)

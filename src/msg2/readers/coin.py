"""COIN: `{"database": {video: {"class": task, "annotation": [{"label": step, "segment": [start, end]}]}}}`.

The file lists no steps of a task beside those that occur, so these are its steps.
"""

from __future__ import annotations

from typing import Any

from msg2.errors import InputError
from msg2.options import ReadOptions
from msg2.readers.documents import fitting_files, member, the_file
from msg2.readers.found import Found, Labels, tasks_of, timed_segment, unsorted_rows
from msg2.readers.sources import Source

READS = "COIN (JSON)"
TAKES = ()


def recognises(source: Source) -> bool:
    """Whether the file, or a file in the folder, is a COIN annotation."""
    return bool(fitting_files(source, _is_coin))


def read(source: Source, options: ReadOptions) -> Found:
    """One task per class."""
    file = the_file(source, _is_coin)
    labels: Labels = {}
    for video, value in file.document["database"].items():
        at = f"{file.path}, $.database.{video}"
        segments = labels[member(value, "class", str, at), video] = []
        for position in range(len(member(value, "annotation", list, at))):
            where = f"{at}.annotation[{position}]"
            row = member(value["annotation"], position, dict, f"{at}.annotation")
            times = member(row, "segment", list, where)
            if len(times) != 2:
                raise InputError("is not a pair of a start and an end", where=f"{where}.segment")
            start, end = (member(times, index, (int, float), f"{where}.segment") for index in (0, 1))
            segments.append(timed_segment(member(row, "label", str, where), start, end, where))
    return Found.of(tasks_of(labels), {file.path.name: unsorted_rows(labels)})


def _is_coin(document: Any) -> bool:
    database = document.get("database") if isinstance(document, dict) else None
    first = next(iter(database.values()), None) if isinstance(database, dict) else None
    return isinstance(first, dict) and "class" in first and "annotation" in first

"""COIN: `{"database": {video: {"class": task, "annotation": [{"label": step, "segment": [start, end]}]}}}`.

The file lists no steps of a task beside those that occur, so these are its steps.
"""

from __future__ import annotations

from typing import Any

from msg2.errors import InputError
from msg2.formats.json_files import keys_of_first, list_items, matching_files, member, only_matching_file
from msg2.formats.reading import Reader, ReadOptions, ReadResult, SegmentsByVideo, timed_segment
from msg2.formats.source import Source

DESCRIPTION = "COIN (JSON)"


def can_read(source: Source) -> bool:
    """Whether the file, or a file in the folder, is a COIN annotation."""
    return bool(matching_files(source, _is_coin))


def read(source: Source, options: ReadOptions) -> ReadResult:
    """Read one task per class.

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
    file = only_matching_file(source, _is_coin)
    labels: SegmentsByVideo = {}
    for video, value in file.document["database"].items():
        at = f"{file.path}, $.database.{video}"
        segments = labels[member(value, "class", str, at), video] = []
        for where, row in list_items(member(value, "annotation", list, at), dict, f"{at}.annotation"):
            times = member(row, "segment", list, where)
            if len(times) != 2:
                raise InputError("is not a pair of a start and an end", where=f"{where}.segment")
            start, end = (member(times, index, (int, float), f"{where}.segment") for index in (0, 1))
            segments.append(timed_segment(member(row, "label", str, where), start, end, where))
    return ReadResult.from_labels(labels, file.path.name)


def _is_coin(document: Any) -> bool:
    return isinstance(document, dict) and {"class", "annotation"} <= keys_of_first(document.get("database"))


READER = Reader(DESCRIPTION, can_read, read, ("JSON",))

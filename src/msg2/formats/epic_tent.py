"""EPIC-Tent: `Synchronised_action_label.txt`, a CSV with the times of three cameras for each action of a subject.

A subject is a video. The camera with the eye tracker (`SMI_w`) is the one that saw everything: every row gives its
time both as hours:minutes:seconds:frames and as the number of the frame, which are 30 to a second.
"""

from __future__ import annotations

import logging
import re

from msg2.errors import InputError
from msg2.formats.reading import Reader, ReadOptions, ReadResult, SegmentsByVideo, timed_segment
from msg2.formats.source import Source
from msg2.formats.tables import first_cells, read_records
from msg2.text import short_repr

DESCRIPTION = "EPIC-Tent (Synchronised_action_label.txt)"

_TASK = "EPIC-Tent"
_RATE = 30
_COLUMNS = ("subject_id", "str_SMI_w_ts", "end_SMI_w_ts", "str_SMI_w_frame", "end_SMI_w_frame", "action_label")
_STEPS = (
    "assemble support", "insert stake", "insert support", "insert support tab", "instruction", "pickup/open stakebag",
    "pickup/open supportbag", "pickup/open tentbag", "pickup/place ventcover", "place guyline", "spread tent",
    "tie top",
)  # fmt: skip
"""By their number in the file, as the documentation of the dataset lists them."""
_CODE = re.compile(r"(\d\d):(\d\d):(\d\d):(\d\d)")
_log = logging.getLogger(__name__)


def can_read(source: Source) -> bool:
    """Whether the file, or a file in the folder, has these columns; the file of errors has the same and more."""
    return bool(_files(source))


def read(source: Source, options: ReadOptions) -> ReadResult:
    """Read one task with all twelve steps.

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
    labels: SegmentsByVideo = {}
    file, missing = _files(source)[0], 0
    for line, row in read_records(file, _COLUMNS):
        subject, number, where = row["subject_id"], row["action_label"], file.row(line)
        if not subject:
            raise InputError("the subject is empty", where=where)
        if not (number.isascii() and number.isdigit() and int(number[:3]) < len(_STEPS)):
            what = f"the action {short_repr(number)} is unknown, there are 0 … {len(_STEPS) - 1}"
            raise InputError(what, where=where)
        segments = labels.setdefault((_TASK, subject), [])
        if row["str_SMI_w_frame"] == "-1" or row["end_SMI_w_frame"] == "-1":
            missing += 1
            continue
        start = _parse_seconds(row["str_SMI_w_ts"], row["str_SMI_w_frame"], where)
        end = _parse_seconds(row["end_SMI_w_ts"], row["end_SMI_w_frame"], where)
        segments.append(timed_segment(_STEPS[int(number)], start, end, where))
    if missing:
        _log.warning("%s: rows without a time of the camera with the eye tracker, not read: %d", file.path, missing)
    return ReadResult.from_labels(labels, file.path.name, {_TASK: _STEPS})


def _files(source: Source) -> list[Source]:
    headers = ((file, set(first_cells(file))) for file in source.files_or_self)
    return [file for file, columns in headers if columns.issuperset(_COLUMNS) and "error_label_main" not in columns]


def _parse_seconds(code: str, frame: str, where: str) -> float:
    """The time of a frame; its number and its time code must agree."""
    match = _CODE.fullmatch(code)
    hours, minutes, seconds, rest = map(int, match.groups()) if match else (0, 0, 0, -1)
    number = ((hours * 60 + minutes) * 60 + seconds) * _RATE + rest
    if str(number) != frame:
        what = f"the frame {short_repr(frame)} is not that of the time {short_repr(code)}, with {_RATE} to a second"
        raise InputError(what, where=where)
    return number / _RATE


READER = Reader(DESCRIPTION, can_read, read, ("text",))

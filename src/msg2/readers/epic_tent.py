"""EPIC-Tent: `Synchronised_action_label.txt`, a CSV with the times of three cameras for each action of a subject.

A subject is a video. The camera with the eye tracker (`SMI_w`) is the one that saw everything: every row gives its
time both as hours:minutes:seconds:frames and as the number of the frame, which are 30 to a second.
"""

from __future__ import annotations

import logging
import re

from msg2.errors import InputError, shortened
from msg2.options import ReadOptions
from msg2.readers.delimited import first_cells, records
from msg2.readers.found import Found, Labels, tasks_of, timed_segment, unsorted_rows
from msg2.readers.sources import Source

READS = "EPIC-Tent (Synchronised_action_label.txt)"
TAKES = ()

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


def recognises(source: Source) -> bool:
    """Whether the file, or a file in the folder, has these columns; the file of errors has the same and more."""
    return bool(_files(source))


def read(source: Source, options: ReadOptions) -> Found:
    """One task with all twelve steps."""
    labels: Labels = {}
    file, missing = _files(source)[0], 0
    for line, row in records(file, _COLUMNS):
        subject, number, where = row["subject_id"], row["action_label"], file.row(line)
        if not subject:
            raise InputError("the subject is empty", where=where)
        if not (number.isascii() and number.isdigit() and int(number[:3]) < len(_STEPS)):
            raise InputError(f"the action {shortened(number)} is unknown, there are 0 … {len(_STEPS) - 1}", where=where)
        segments = labels.setdefault((_TASK, subject), [])
        if row["str_SMI_w_frame"] == "-1" or row["end_SMI_w_frame"] == "-1":
            missing += 1
            continue
        start, end = (_seconds(row[f"{edge}_SMI_w_ts"], row[f"{edge}_SMI_w_frame"], where) for edge in ("str", "end"))
        segments.append(timed_segment(_STEPS[int(number)], start, end, where))
    if missing:
        _log.warning("%s: rows without a time of the camera with the eye tracker, not read: %d", file.path, missing)
    return Found.of(tasks_of(labels, {_TASK: _STEPS}), {file.path.name: unsorted_rows(labels)})


def _files(source: Source) -> list[Source]:
    files = source.files if source.is_folder else (source,)
    return [
        file for file in files if set(_COLUMNS) <= set(cells := first_cells(file)) and "error_label_main" not in cells
    ]


def _seconds(code: str, frame: str, where: str) -> float:
    """The time of a frame; its number and its time code must agree."""
    found = _CODE.fullmatch(code)
    hours, minutes, seconds, rest = map(int, found.groups()) if found else (0, 0, 0, -1)
    number = ((hours * 60 + minutes) * 60 + seconds) * _RATE + rest
    if str(number) != frame:
        what = f"the frame {shortened(frame)} is not that of the time {shortened(code)}, with {_RATE} to a second"
        raise InputError(what, where=where)
    return number / _RATE

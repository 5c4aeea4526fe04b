"""Assembly101: fine-grained CSV, coarse labels (one text file per sequence), or mistakes (one CSV per sequence).

Times are frames, and the documentation of the dataset states 30 of them per second for all of these files.

- Fine: columns `video` (sequence/view), `start_frame`, `end_frame`, `action_cls`, `toy_name`. The toy is the task, and
  a sequence a video: its views show the same thing.
- Coarse: tabs between start, end and action; the file is `assembly_` or `disassembly_`, which is the task, and the
  sequence.
- Mistakes: start, end, verb, this, that, whether it is correct, a remark. The step is the verb and this; mistaken ones
  are steps as well. The task is `assembly`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msg2.errors import InputError, shortened
from msg2.options import ReadOptions
from msg2.readers.delimited import bare_rows, first_cells, records
from msg2.readers.found import Found, Labels, merge, tasks_of, timed_segment, unsorted_rows
from msg2.readers.sources import Source

READS = "Assembly101 (fine-grained CSV, coarse labels, or mistakes)"
TAKES = ()

_RATE = 30
_FINE = ("video", "start_frame", "end_frame", "action_cls", "toy_name")
_SEQUENCE = re.compile(r"(assembly|disassembly)_(nusar-.+)")
_VERDICTS = {"correct", "mistake", "correction"}


def recognises(source: Source) -> bool:
    """Whether the file, a file in the folder, or one in its `coarse_labels` or `annots` is in one of the layouts."""
    return next(_files(source), None) is not None


def read(source: Source, options: ReadOptions) -> Found:
    """One task per toy, or `assembly` and `disassembly`."""
    labels: Labels = {}
    unsorted = {}
    for file, labels_of in _files(source):
        found = labels_of(file)
        merge(labels, found, str(file.path))
        unsorted[file.path.name] = unsorted_rows(found)
    return Found.of(tasks_of(labels), unsorted)


def _files(source: Source) -> Iterator[tuple[Source, Callable[[Source], Labels]]]:
    folders = [folder for folder in source.folders if folder.stem in ("coarse_labels", "annots")]
    for file in [*source.files, *(file for folder in folders for file in folder.files)] or [source]:
        if file.is_folder:
            continue
        if set(_FINE) <= set(first_cells(file)):
            yield file, _fine
        elif _SEQUENCE.fullmatch(file.stem) and _are_frames(first_cells(file, "\t"), 3):
            yield file, _coarse
        elif _are_frames(cells := first_cells(file), 7) and cells[5] in _VERDICTS:
            yield file, _mistakes


def _are_frames(cells: list[str], width: int) -> bool:
    return len(cells) == width and all(cell.isascii() and cell.isdigit() for cell in cells[:2])


def _fine(file: Source) -> Labels:
    labels: Labels = {}
    seen: set[tuple[str, ...]] = set()
    for line, row in records(file, _FINE):
        sequence = row["video"].partition("/")[0]
        label = (row["toy_name"], sequence, row["action_cls"], row["start_frame"], row["end_frame"])
        if label in seen:  # another view of the same thing
            continue
        seen.add(label)
        if not (row["toy_name"] and sequence):
            raise InputError("the video or the toy is empty", where=file.row(line))
        _add(labels, label[:2], row["action_cls"], label[3:], file.row(line))
    return labels


def _coarse(file: Source) -> Labels:
    name = _SEQUENCE.fullmatch(file.stem)
    key = (name[1], name[2]) if name else ("", "")
    labels: Labels = {key: []}
    for line, (start, end, action) in bare_rows(file, "\t", 3):
        _add(labels, key, action, (start, end), file.row(line))
    return labels


def _mistakes(file: Source) -> Labels:
    key = ("assembly", file.stem)
    labels: Labels = {key: []}
    for line, (start, end, verb, this, _, _, _) in bare_rows(file, ",", 7):
        _add(labels, key, f"{verb} {this}", (start, end), file.row(line))
    return labels


def _add(labels: Labels, key: tuple[str, ...], step: str, frames: tuple[str, ...], where: str) -> None:
    for frame in frames:
        if not (frame.isascii() and frame.isdigit() and len(frame) <= 12):
            raise InputError(f"the frame {shortened(frame)} is not a whole number", where=where)
    start, end = (int(frame) / _RATE for frame in frames)
    task, video = key
    labels.setdefault((task, video), []).append(timed_segment(step, start, end, where))

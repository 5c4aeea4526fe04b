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

from msg2.errors import InputError
from msg2.formats.reading import Reader, ReadOptions, ReadResult, SegmentsByVideo, parse_frame, timed_segment
from msg2.formats.source import Source
from msg2.formats.tables import first_cells, read_headerless_rows, read_records
from msg2.task import Segment

DESCRIPTION = "Assembly101 (fine-grained CSV, coarse labels, or mistakes)"

_RATE = 30
_FINE = ("video", "start_frame", "end_frame", "action_cls", "toy_name")
_SEQUENCE = re.compile(r"(assembly|disassembly)_nusar-.+")
_VERDICTS = {"correct", "mistake", "correction"}


def can_read(source: Source) -> bool:
    """Whether the file, a file in the folder, or one in its `coarse_labels` or `annots` is in one of the layouts."""
    return next(_files(source), None) is not None


def read(source: Source, options: ReadOptions) -> ReadResult:
    """Read one task per toy, or `assembly` and `disassembly`.

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
    return ReadResult.from_files((file, read_labels(file)) for file, read_labels in _files(source))


def _files(source: Source) -> Iterator[tuple[Source, Callable[[Source], SegmentsByVideo]]]:
    folders = [folder for folder in source.folders if folder.stem in ("coarse_labels", "annots")]
    for file in (*source.files_or_self, *(file for folder in folders for file in folder.files)):
        if set(_FINE) <= set(first_cells(file)):
            yield file, _read_fine_labels
        elif _SEQUENCE.fullmatch(file.stem) and _are_frames(first_cells(file, "\t"), 3):
            yield file, _read_coarse_labels
        elif _are_frames(cells := first_cells(file), 7) and cells[5] in _VERDICTS:
            yield file, _read_mistakes


def _are_frames(cells: list[str], width: int) -> bool:
    return len(cells) == width and all(cell.isascii() and cell.isdigit() for cell in cells[:2])


def _read_fine_labels(file: Source) -> SegmentsByVideo:
    labels: SegmentsByVideo = {}
    seen: set[tuple[str, ...]] = set()
    for line, row in read_records(file, _FINE):
        toy, sequence = row["toy_name"], row["video"].partition("/")[0]
        label = (row["action_cls"], row["start_frame"], row["end_frame"])
        if (toy, sequence, *label) in seen:  # another view of the same thing
            continue
        seen.add((toy, sequence, *label))
        if not (toy and sequence):
            raise InputError("the video or the toy is empty", where=file.row(line))
        labels.setdefault((toy, sequence), []).append(_segment(*label, file.row(line)))
    return labels


def _read_coarse_labels(file: Source) -> SegmentsByVideo:
    task, _, sequence = file.stem.partition("_")
    rows = read_headerless_rows(file, "\t", 3)
    return {(task, sequence): [_segment(action, start, end, file.row(line)) for line, (start, end, action) in rows]}


def _read_mistakes(file: Source) -> SegmentsByVideo:
    rows = ((line, cells[:4]) for line, cells in read_headerless_rows(file, ",", 7))
    segments = [_segment(f"{verb} {this}", start, end, file.row(line)) for line, (start, end, verb, this) in rows]
    return {("assembly", file.stem): segments}


def _segment(step: str, first: str, last: str, where: str) -> Segment:
    start, end = (parse_frame(frame, where) / _RATE for frame in (first, last))
    return timed_segment(step, start, end, where)


READER = Reader(DESCRIPTION, can_read, read, ("text",))

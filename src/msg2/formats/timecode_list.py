"""Lists of timecodes: a line per step, `00:05 whisk` or `00:05 - 00:20 whisk`; a file is a video, a folder a task."""

from __future__ import annotations

import re
from contextlib import closing, suppress
from dataclasses import replace

from msg2.errors import InputError
from msg2.formats.reading import INSTANTS, Reader, ReadNotes, ReadOptions, ReadResult, SegmentsByVideo, timed_segment
from msg2.formats.source import Source
from msg2.formats.times import parse_clock

_TIME = r"\d{1,3}(?::\d{1,2}){1,2}(?:[.,]\d{1,6})?"
_BETWEEN = r"(?:\s*(?:-+>?|–|—|→|to|[,;])\s*|\s+)"
_LINE = re.compile(rf"[\[(]?({_TIME})[\])]?(?:{_BETWEEN}[\[(]?({_TIME})[\])]?)?(?:\s*[-–—:|]\s+|\s*[,;\s]\s*)(\S.*)")


def read(source: Source, options: ReadOptions) -> ReadResult:
    """Read one task, named after the folder, or the file."""
    notes = ReadNotes()
    notes.add(["times with colons are m:ss or h:mm:ss"])
    result = ReadResult.from_files((file, _read_list(file, source.stem, notes)) for file in _lists(source))
    return replace(result, assumptions=tuple(notes.assumptions))


def _lists(source: Source) -> list[Source]:
    return [file for file in source.files_or_self if _is_list(file)]


def _is_list(file: Source) -> bool:
    first = file.head.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0]
    with suppress(UnicodeDecodeError):
        return _LINE.fullmatch(first.decode().strip()) is not None
    return False


def _read_list(file: Source, task: str, notes: ReadNotes) -> SegmentsByVideo:
    segments = []
    with closing(file.lines()) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            found = _LINE.fullmatch(line.strip())
            start = parse_clock(found[1]) if found else None
            end = parse_clock(found[2]) if found and found[2] else start
            if found is None or start is None or end is None:
                what = "the line is not a time and the name of a step"
                raise InputError(what, where=file.row(number), hint="write lines such as: 1:05 whisk eggs")
            segments.append(timed_segment(found[3], start, end, file.row(number)))
            notes.add([] if found[2] else [INSTANTS])
    return {(task, file.stem): segments}


READER = Reader(
    "lists of timecodes (00:05 whisk), a file per video", lambda source: bool(_lists(source)), read, ("text",)
)

"""Lists of timecodes: a line per step, `00:05 whisk` or `00:05 - 00:20 whisk`; a file is a video, a folder a task."""

import re
from contextlib import closing, suppress

from msg2.errors import InputError
from msg2.formats.reading import INSTANTS, LabelCollector, ReadOptions, file_reader, files_where, timed_segment
from msg2.formats.source import Source
from msg2.formats.times import parse_clock

_TIME = r"\d{1,3}(?::\d{1,2}){1,2}(?:[.,]\d{1,6})?"
_BETWEEN = r"(?:\s*(?:-+>?|–|—|→|to|[,;])\s*|\s+)"
_LINE = re.compile(rf"[\[(]?({_TIME})[\])]?(?:{_BETWEEN}[\[(]?({_TIME})[\])]?)?(?:\s*[-–—:|]\s+|\s*[,;\s]\s*)(\S.*)")


def _is_list(file: Source) -> bool:
    first = file.head.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0]
    with suppress(UnicodeDecodeError):
        return _LINE.fullmatch(first.decode().strip()) is not None
    return False


def _read(file: Source, options: ReadOptions, labels: LabelCollector) -> None:
    """Read a video, named after its file; the task is named after the folder, or the file."""
    labels.notes.add(["times with colons are m:ss or h:mm:ss"])
    segments = labels.video(file, file.stem)
    with closing(file.lines()) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            match = _LINE.fullmatch(line.strip())
            start = parse_clock(match[1]) if match else None
            end = parse_clock(match[2]) if match and match[2] else start
            if match is None or start is None or end is None:
                what = "the line is not a time and the name of a step"
                raise InputError(what, where=file.row(number), hint="write lines such as: 1:05 whisk eggs")
            segments.append(timed_segment(match[3], start, end, file.row(number)))
            labels.notes.add([] if match[2] else [INSTANTS])


READER = file_reader("lists of timecodes (00:05 whisk), a file per video", files_where(_is_list), _read)

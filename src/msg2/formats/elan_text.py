"""ELAN's export as tab-delimited text: a row per annotation, or a column per tier.

Without a header, the first cell of a row is the tier, and the annotation stands after its begin, end and duration, each
in one or several notations. With one (`Begin Time - hh:mm:ss.ms`), every column without a time is a tier.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import PureWindowsPath
from typing import NamedTuple

from msg2.errors import InputError
from msg2.formats.elan import choose_tiers
from msg2.formats.reading import Reader, ReadOptions, ReadResult, SegmentsByVideo, timed_segment
from msg2.formats.source import Source
from msg2.formats.times import parse_clock

DESCRIPTION = "ELAN annotations as tab-delimited text"

_TIME_COLUMN = re.compile(r"(Begin|End) Time - (hh:mm:ss\.ms)|(?:Begin|End) Time - .*|Duration - .*|File( Path)?")
_CLOCK = re.compile(r"\d+:\d\d:\d\d\.\d{3}")


class _Layout(NamedTuple):
    """Where in a row everything is."""

    begin: int
    end: int
    tiers: Mapping[int, str]
    """Place of an annotation -> its tier; None: the first cell of the row names it."""
    has_header: bool


class _Annotation(NamedTuple):
    """A cell of the export."""

    line: int
    video: str
    tier: str
    value: str
    begin: float
    end: float


def can_read(source: Source) -> bool:
    """Whether the file, or a file in the folder, is such an export."""
    return bool(_exports(source))


def read(source: Source, options: ReadOptions) -> ReadResult:
    """Read one task, named after the folder, or the file; a file is a video, unless its rows name their documents.

    Parameters
    ----------
    source : Source
        A file or folder that `can_read` accepts.
    options : ReadOptions
        `tier` and `every_annotator` are looked at.

    Returns
    -------
    ReadResult
        The task, every label kept.

    Raises
    ------
    InputError
        Where something is wrong with the data.
    """
    return ReadResult.from_files((file, _read_labels(file, source.stem, options)) for file in _exports(source))


def _exports(source: Source) -> list[Source]:
    return [file for file in source.files_or_self if _find_layout(_first_row(file)) is not None]


def _first_row(file: Source) -> list[str]:
    head = file.head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    return next((line.split("\t") for line in head.splitlines() if _is_row(line)), [])


def _is_row(line: str) -> bool:
    """Whether a line is a row; those on the media of the document begin with a cross."""
    return bool(line.strip()) and not line.startswith(("#", '"#'))


def _find_layout(cells: Sequence[str]) -> _Layout | None:
    named = [_TIME_COLUMN.fullmatch(cell) for cell in cells]
    places = {found[1]: place for place, found in enumerate(named) if found and found[2]}
    if {"Begin", "End"} <= places.keys():
        tiers = {place: cell for place, cell in enumerate(cells) if cell and named[place] is None}
        return _Layout(places["Begin"], places["End"], tiers, True)
    clocks = [place for place, cell in enumerate(cells) if _CLOCK.fullmatch(cell)]
    if len(clocks) < 2:
        return None
    begin, end = clocks[:2]
    duration = 2 * end - begin
    has_duration = len(clocks) > 2 and clocks[2] == duration and _adds_up(cells[begin], cells[end], cells[duration])
    value = (duration if has_duration else end) + end - begin
    return _Layout(begin, end, {value: cells[0] if begin else ""}, False) if value < len(cells) else None


def _adds_up(begin: str, end: str, duration: str) -> bool:
    first, last, length = (parse_clock(text) or 0.0 for text in (begin, end, duration))
    return abs(first + length - last) < 0.0015


def _read_labels(file: Source, task: str, options: ReadOptions) -> SegmentsByVideo:
    annotations = list(_annotations(file))
    names = {tier: {one.value for one in annotations if one.tier == tier} for tier in {one.tier for one in annotations}}
    chosen = choose_tiers(file, names, options)
    labels: SegmentsByVideo = {}
    for one in annotations:
        if one.tier in chosen:
            segment = timed_segment(one.value, one.begin, one.end, file.row(one.line), chosen[one.tier])
            labels.setdefault((task, one.video), []).append(segment)
    return labels


def _annotations(file: Source) -> Iterator[_Annotation]:
    layout: _Layout | None = None
    with closing(file.lines()) as lines:
        for number, line in enumerate(lines, start=1):
            cells = line.rstrip("\r\n").split("\t")
            if not _is_row(line):
                continue
            if layout is None:
                layout = _find_layout(cells)
                if layout is None or layout.has_header:
                    continue
            if len(cells) <= max(layout.begin, layout.end, *layout.tiers):
                raise InputError("the row has fewer cells than the first one", where=file.row(number))
            begin, end = parse_clock(cells[layout.begin]), parse_clock(cells[layout.end])
            if begin is None or end is None:
                raise InputError("the row has no times as hh:mm:ss.ms", where=file.row(number))
            document = PureWindowsPath(cells[-1])  # takes both kinds of paths
            video = document.stem if document.suffix.lower() == ".eaf" else file.stem
            for place, tier in layout.tiers.items():
                own = tier if layout.has_header or not layout.begin else cells[0]
                if cells[place]:
                    yield _Annotation(number, video, own, cells[place], begin, end)


READER = Reader(DESCRIPTION, can_read, read, ("text",))

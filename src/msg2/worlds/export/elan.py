"""Tasks as ELAN annotation files (EAF 3.0), so that labels can be corrected where people annotate.

One file per video. ELAN allows no overlap within a tier and knows whole milliseconds only: labels of another source, or
that overlap, have tiers of their own, all of the linguistic type `step`, whose vocabulary is the steps of the task.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from msg2.errors import InputError, shortened
from msg2.options import ExportOptions
from msg2.task import Task, Video

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write."""
_SCHEMA = (
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xsi:noNamespaceSchemaLocation="http://www.mpi.nl/tools/elan/EAFv3.0.xsd"'
)
_NO_DATE = "1970-01-01T00:00:00+00:00"
"""The format asks for a date; the same labels are to give the same bytes."""


class _Mark(NamedTuple):
    """A label in whole milliseconds."""

    start: int
    end: int
    step: str


def as_elan(task: Task, video: Video, options: ExportOptions) -> str:
    """The labels of a `video` of `task` as the text of an `.eaf` file.

    Its header has the properties `msg2.task` and `msg2.video`: a file may be called otherwise. A tier's annotator is
    the `source` of its labels. Confidences have no place in the format. An instant lasts one millisecond, or it could
    not be selected.
    """
    tiers = dict(_tiers(video))
    times = sorted({time for _, marks in tiers.values() for mark in marks for time in (mark.start, mark.end)})
    slots = {time: f"ts{number}" for number, time in enumerate(times, start=1)}
    media = quoteattr(_text(options.media_of(video.id)))
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<ANNOTATION_DOCUMENT AUTHOR="msg2" DATE="{_NO_DATE}" FORMAT="3.0" VERSION="3.0" {_SCHEMA}>',
        '<HEADER MEDIA_FILE="" TIME_UNITS="milliseconds">',
        f'<MEDIA_DESCRIPTOR MEDIA_URL={media} MIME_TYPE="video/mp4"/>',
        f'<PROPERTY NAME="msg2.task">{_escaped(task.name)}</PROPERTY>',
        f'<PROPERTY NAME="msg2.video">{_escaped(video.id)}</PROPERTY>',
        "</HEADER>",
        "<TIME_ORDER>",
        *(f'<TIME_SLOT TIME_SLOT_ID="{slot}" TIME_VALUE="{time}"/>' for time, slot in slots.items()),
        "</TIME_ORDER>",
    ]
    number = 0
    for name, (source, marks) in tiers.items():
        annotator = "" if source is None else f" ANNOTATOR={quoteattr(_text(source))}"
        lines.append(f'<TIER{annotator} LINGUISTIC_TYPE_REF="step" TIER_ID={quoteattr(_text(name))}>')
        for mark in marks:
            number += 1
            ends = f'TIME_SLOT_REF1="{slots[mark.start]}" TIME_SLOT_REF2="{slots[mark.end]}"'
            lines.append(
                f'<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a{number}" {ends}>'
                f"<ANNOTATION_VALUE>{_escaped(mark.step)}</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>"
            )
        lines.append("</TIER>")
    vocabulary = (
        f'<CV_ENTRY_ML CVE_ID="step{number}"><CVE_VALUE LANG_REF="und">{_escaped(step)}</CVE_VALUE></CV_ENTRY_ML>'
        for number, step in enumerate(task.steps, start=1)
    )
    lines += [
        '<LINGUISTIC_TYPE CONTROLLED_VOCABULARY_REF="steps" GRAPHIC_REFERENCES="false" LINGUISTIC_TYPE_ID="step" '
        'TIME_ALIGNABLE="true"/>',
        '<LANGUAGE LANG_ID="und" LANG_LABEL="undetermined (und)"/>',
        '<CONTROLLED_VOCABULARY CV_ID="steps"><DESCRIPTION LANG_REF="und"/>',
        *vocabulary,
        "</CONTROLLED_VOCABULARY>",
        "</ANNOTATION_DOCUMENT>",
    ]
    return "\n".join(lines) + "\n"


def _tiers(video: Video) -> Iterator[tuple[str, tuple[str | None, list[_Mark]]]]:
    """(name, (source, labels)) of every tier; there is always one, so that labels can be added to it.

    Each label goes to the first tier of its source that is free by its start.
    """
    lanes: dict[str | None, list[list[_Mark]]] = {None: [[]]}
    for segment in video.segments:
        if segment.start is None or segment.end is None:
            what = f"video {shortened(video.id)} has no times, which ELAN needs"
            raise InputError(what, hint="write a table: .csv, .tsv, .jsonl or .parquet")
        start = round(segment.start * 1000)
        mark = _Mark(start, max(start + 1, round(segment.end * 1000)), segment.step)
        own = lanes.setdefault(segment.source, [[]])
        free = next((lane for lane in own if not lane or lane[-1].end <= mark.start), None)
        if free is None:
            own.append(free := [])
        free.append(mark)
    for source, own in lanes.items():
        base = "steps" if source is None else f"steps ({source})"
        for number, lane in enumerate(own, start=1):
            yield (base if number == 1 else f"{base} {number}"), (source, lane)


def _escaped(text: str) -> str:
    return escape(_text(text), {"\r": "&#13;"})


def _text(text: str) -> str:
    if _FORBIDDEN.search(text):
        what = f"{shortened(text)} has a character that no XML file can hold"
        raise InputError(what, hint="rename it, or write a table: .csv, .tsv, .jsonl or .parquet")
    return text

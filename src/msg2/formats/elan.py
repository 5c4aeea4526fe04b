"""ELAN annotation files (`.eaf`), read and written.

One file per video; its annotations are the steps. A folder of files is a task, a folder of folders many tasks.

Reading: steps are on the tiers of the linguistic type `step`, as msg2 writes them, else on the only tier with
annotations, or on the one that is asked for. Where the tier has a vocabulary, all of its words are steps. Times are
milliseconds, or left out where annotations only divide another one: such boundaries lie evenly between those that are
known, as ELAN draws them. Annotations that refer to others have the times of those.

Writing (EAF 3.0): ELAN allows no overlap within a tier and knows whole milliseconds only. Labels of another source, or
that overlap, have tiers of their own, all of the linguistic type `step`, whose vocabulary is the steps of the task.
Where the labels are from an ELAN document, that is kept, and only the labels that its tiers of steps lack are added.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from msg2.errors import InputError
from msg2.files import safe_names
from msg2.formats.eaf_document import EafDocument
from msg2.formats.eaf_extension import extend_eaf
from msg2.formats.reading import (
    FileContents,
    Reader,
    ReadOptions,
    ReadResult,
    SegmentsByVideo,
    WriteOptions,
    merge_labels,
    timed_segment,
)
from msg2.formats.source import Source
from msg2.formats.xml_parser import root_name
from msg2.task import Segment, Step, Task, Video
from msg2.text import join_names, short_repr

DESCRIPTION = "ELAN annotations (.eaf)"

_TYPE, _TASK, _VIDEO = "step", "msg2.task", "msg2.video"
_LEVELS = 100
"""Annotations that refer to one another in a row; more only occur where they run in a circle."""
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write."""
_SCHEMA = (
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xsi:noNamespaceSchemaLocation="http://www.mpi.nl/tools/elan/EAFv3.0.xsd"'
)
_NO_DATE = "1970-01-01T00:00:00+00:00"
"""The format asks for a date; the same labels are to give the same bytes."""


# -- reading --------------------------------------------------------------------------------------------------


def can_read(source: Source) -> bool:
    """Whether the file, a file in the folder, or one in a folder in it is an ELAN document."""
    return next(_files(source), None) is not None


def read(source: Source, options: ReadOptions) -> ReadResult:
    """Read tasks and videos, named as msg2 noted it in the file, else after the folder and the file.

    Parameters
    ----------
    source : Source
        A file or folder that `can_read` accepts.
    options : ReadOptions
        `tier` and `every_annotator` are looked at.

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
    steps: dict[str, set[Step]] = {}
    for name, file in _files(source):
        document = EafDocument(file)
        task, video = _names(document, name, file)
        annotators = _annotators(file, document, options)
        merge_labels(labels, {(task, video): list(_segments(file, document, annotators))}, str(file.path))
        own = (tier.type for tier in document.tiers if tier.name in annotators)
        steps.setdefault(task, set()).update(word for type in own for word in document.words(type))
    return ReadResult.from_labels(labels, source.path.name, steps)


def _names(document: EafDocument, task: str, file: Source) -> tuple[str, str]:
    """Task and video, as msg2 noted them in the document, else after the folder and the file."""
    return document.properties.get(_TASK) or task, document.properties.get(_VIDEO) or file.stem


def _files(source: Source) -> Iterator[tuple[str, Source]]:
    """The documents, each with the name of its task."""
    pairs = [(source.stem, file) for file in source.files_or_self]
    nested = ((folder.stem, file) for folder in source.folders for file in folder.files)
    pairs += [(task, file) for task, file in nested if file.path.suffix.lower() == ".eaf"]
    yield from ((task, file) for task, file in pairs if root_name(file) == "ANNOTATION_DOCUMENT")


def _annotators(file: Source, document: EafDocument, options: ReadOptions) -> dict[str, str | None]:
    """The tiers with the steps, each with its annotator."""
    marked = {tier.name: tier.annotator for tier in document.tiers if tier.type == _TYPE}
    if marked and options.tier is None:
        return marked
    known = {tier.name: tier.annotator for tier in document.tiers}
    names = {tier.name: [one.value for one in tier.annotations] for tier in document.tiers}
    chosen = choose_tiers(file, names, options)
    return {name: known[name] or annotator for name, annotator in chosen.items()}


def choose_tiers(file: Source, names: Mapping[str, Collection[Step]], options: ReadOptions) -> dict[str, str | None]:
    """Choose the tiers with the steps: the one that is wanted, else the only one, else those of several annotators."""
    if options.tier is not None:
        if options.tier in names:
            return {options.tier: None}
        hint = f"its tiers are: {join_names(sorted(names))}"
        raise InputError(f"has no tier {short_repr(options.tier)}", where=file.path, hint=hint)
    filled = [name for name in names if names[name]]
    if not filled:
        raise InputError("has no annotations", where=file.path)
    if len(filled) == 1:
        return dict.fromkeys(filled)
    shared = [one for one in filled if any(one != other and set(names[one]) & set(names[other]) for other in filled)]
    if options.every_annotator and shared:
        return {name: name for name in shared}
    hint = f"choose the one with the steps (--tier NAME): {join_names(sorted(filled))}"
    if shared:
        hint += "; `msg2 describe` shows how far they agree"
    raise InputError(f"has annotations on {len(filled)} tiers", where=file.path, hint=hint)


def _segments(file: Source, document: EafDocument, annotators: Mapping[str, str | None]) -> Iterator[Segment]:
    times: dict[str, tuple[float, float]] = {}
    parents: dict[str, str] = {}
    for tier in document.tiers:
        times |= document.align(tier)
        parents |= {annotation.id: annotation.parent for annotation in tier.annotations}
    for tier in (tier for tier in document.tiers if tier.name in annotators):
        for annotation in tier.annotations:
            where, holder = f"{file.path}, annotation {annotation.id}", annotation.id
            if not annotation.value:
                raise InputError("is empty", where=where, hint="its value is the name of the step")
            for _ in range(_LEVELS):
                if holder not in times:
                    holder = parents.get(holder, "")
            if holder not in times:
                hint = "give its boundaries a time in ELAN"
                raise InputError("has no times, and neither has what it refers to", where=where, hint=hint)
            yield timed_segment(annotation.value, *times[holder], where, annotators[tier.name])


# -- writing --------------------------------------------------------------------------------------------------


class _TimedLabel(NamedTuple):
    """A label in whole milliseconds."""

    start: int
    end: int
    step: str

    @staticmethod
    def of(segment: Segment) -> _TimedLabel:
        """A segment; an instant lasts one millisecond."""
        start = round((segment.start or 0.0) * 1000)
        return _TimedLabel(start, max(start + 1, round((segment.end or 0.0) * 1000)), segment.step)


def to_elan(task: Task, video: Video, options: WriteOptions) -> str:
    """The labels of one video as the text of an `.eaf` file.

    Its header has the properties `msg2.task` and `msg2.video`: a file may be called otherwise. A tier's annotator is
    the `source` of its labels. Confidences have no place in the format. An instant lasts one millisecond, or it could
    not be selected.
    """
    tiers = dict(_assign_tiers(video))
    times = sorted({time for _, marks in tiers.values() for mark in marks for time in (mark.start, mark.end)})
    slots = {time: f"ts{number}" for number, time in enumerate(times, start=1)}
    media = quoteattr(_require_xml_text(options.media_url(video.id)))
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<ANNOTATION_DOCUMENT AUTHOR="msg2" DATE="{_NO_DATE}" FORMAT="3.0" VERSION="3.0" {_SCHEMA}>',
        '<HEADER MEDIA_FILE="" TIME_UNITS="milliseconds">',
        f'<MEDIA_DESCRIPTOR MEDIA_URL={media} MIME_TYPE="video/mp4"/>',
        f'<PROPERTY NAME="msg2.task">{_escape_xml(task.name)}</PROPERTY>',
        f'<PROPERTY NAME="msg2.video">{_escape_xml(video.id)}</PROPERTY>',
        "</HEADER>",
        "<TIME_ORDER>",
        *(f'<TIME_SLOT TIME_SLOT_ID="{slot}" TIME_VALUE="{time}"/>' for time, slot in slots.items()),
        "</TIME_ORDER>",
    ]
    numbers = count(1)
    for name, (source, marks) in tiers.items():
        annotator = "" if source is None else f" ANNOTATOR={quoteattr(_require_xml_text(source))}"
        lines.append(f'<TIER{annotator} LINGUISTIC_TYPE_REF="step" TIER_ID={quoteattr(_require_xml_text(name))}>')
        for mark in marks:
            ends = f'TIME_SLOT_REF1="{slots[mark.start]}" TIME_SLOT_REF2="{slots[mark.end]}"'
            value = f"<ANNOTATION_VALUE>{_escape_xml(mark.step)}</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION>"
            annotation = f'<ALIGNABLE_ANNOTATION ANNOTATION_ID="a{next(numbers)}" {ends}>{value}'
            lines.append(f"<ANNOTATION>{annotation}</ANNOTATION>")
        lines.append("</TIER>")
    vocabulary = (
        f'<CV_ENTRY_ML CVE_ID="step{number}"><CVE_VALUE LANG_REF="und">{_escape_xml(step)}</CVE_VALUE></CV_ENTRY_ML>'
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


def _assign_tiers(video: Video) -> Iterator[tuple[str, tuple[str | None, list[_TimedLabel]]]]:
    """(name, (source, labels)) of every tier; there is always one, so that labels can be added to it.

    Each label goes to the first tier of its source that is free by its start.
    """
    lanes: dict[str | None, list[list[_TimedLabel]]] = {None: [[]]}
    for segment in video.segments:
        if segment.start is None or segment.end is None:
            what = f"video {short_repr(video.id)} has no times, which ELAN needs"
            raise InputError(what, hint="write a table: .csv, .tsv, .jsonl or .parquet")
        mark = _TimedLabel.of(segment)
        own = lanes.setdefault(segment.source, [[]])
        free = next((lane for lane in own if not lane or lane[-1].end <= mark.start), None)
        if free is None:
            own.append(free := [])
        free.append(mark)
    for source, own in lanes.items():
        base = "steps" if source is None else f"steps ({source})"
        for number, lane in enumerate(own, start=1):
            yield (base if number == 1 else f"{base} {number}"), (source, lane)


def _escape_xml(text: str) -> str:
    return escape(_require_xml_text(text), {"\r": "&#13;"})


def _require_xml_text(text: str) -> str:
    if _NOT_XML.search(text):
        what = f"{short_repr(text)} has a character that no XML file can hold"
        raise InputError(what, hint="rename it, or write a table: .csv, .tsv, .jsonl or .parquet")
    return text


def _extend(file: Source, task: Task, video: Video, options: WriteOptions) -> bytes:
    """A document with the labels that its tiers of steps lack."""
    document = EafDocument(file)
    marked = {tier.name: tier.annotator for tier in document.tiers if tier.type == _TYPE}
    there = Counter(_TimedLabel.of(segment) for segment in _segments(file, document, marked))
    missing = []
    for segment in video.segments:
        label = _TimedLabel.of(segment)
        there[label] -= 1
        missing += [segment] * (there[label] < 0)
    tiers = dict(_assign_tiers(Video(video.id, missing)))
    for text in (task.name, video.id, *task.steps):
        _require_xml_text(text)
    media = None if options.media == WriteOptions().media else options.media_url(video.id)
    names = {_TASK: task.name, _VIDEO: video.id}
    return extend_eaf(file.read_bytes(), tiers, _TYPE, task.steps, properties=names, media=media)


def _originals(source: Source | None) -> dict[tuple[str, str], Source]:
    """(task, video) -> the document from which its labels are."""
    return {_names(EafDocument(file), name, file): file for name, file in (_files(source) if source else ())}


def _write_elan(tasks: Sequence[Task], path: Path, options: WriteOptions) -> FileContents:
    originals = _originals(options.original)

    def content(task: Task, video: Video) -> str | bytes:
        file = originals.get((task.name, video.id))
        return to_elan(task, video, options) if file is None else _extend(file, task, video, options)

    pairs = [(task, video) for task in tasks for video in task]
    if len(pairs) == 1:
        return {path: content(*pairs[0])}
    folder = path.with_suffix("")
    folders = [folder / name for name in safe_names([task.name for task in tasks])] if len(tasks) > 1 else [folder]
    return {
        place / f"{name}.eaf": content(task, video)
        for task, place in zip(tasks, folders, strict=True)
        for video, name in zip(task, _file_names([video.id for video in task]), strict=True)
    }


def _file_names(ids: Sequence[str]) -> list[str]:
    """The ids of videos as they are where all of them are plain, and otherwise safe names.

    >>> _file_names(["xQ-1_a", "v1.2"])
    ['xQ-1_a', 'v1.2']
    >>> _file_names(["../x", "a", "A"])
    ['x', 'a', 'a-2']
    """
    good = all(re.fullmatch(r"[\w-][\w.-]{0,99}", name, re.ASCII) for name in ids)
    return list(ids) if good and len({name.lower() for name in ids}) == len(ids) else safe_names(ids)


WRITERS = {".eaf": _write_elan}
"""Suffix -> what writes it."""


READER = Reader(DESCRIPTION, can_read, read, ("XML",))

"""ELAN annotations, written: an `.eaf` file (EAF 3.0) per video.

ELAN allows no overlap within a tier and knows whole milliseconds only. Labels of another source, or that overlap, have
tiers of their own, all of the linguistic type `step`, whose vocabulary is the steps of the task. Where the labels are
from an ELAN document, that is kept: tiers, links and everything else that it holds stay as they are, and only the
labels that its tiers of steps lack are added.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeAlias
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement
from xml.sax.saxutils import escape, quoteattr

from msg2.errors import InputError
from msg2.files import safe_names
from msg2.formats.elan import (
    STEP_TYPE,
    TASK_PROPERTY,
    VIDEO_PROPERTY,
    EafDocument,
    elan_files,
    elan_names,
    elan_segments,
)
from msg2.formats.reading import FileContents, WriteOptions
from msg2.formats.source import Source
from msg2.task import Segment, Task, Video
from msg2.text import short_repr

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write."""
_SCHEMA = (
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xsi:noNamespaceSchemaLocation="http://www.mpi.nl/tools/elan/EAFv3.0.xsd"'
)
_NO_DATE = "1970-01-01T00:00:00+00:00"
"""The format asks for a date; the same labels are to give the same bytes."""


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
    marked = {tier.name: tier.annotator for tier in document.tiers if tier.type == STEP_TYPE}
    there = Counter(_TimedLabel.of(segment) for segment in elan_segments(file, document, marked))
    missing = []
    for segment in video.segments:
        label = _TimedLabel.of(segment)
        there[label] -= 1
        missing += [segment] * (there[label] < 0)
    tiers = dict(_assign_tiers(Video(video.id, missing)))
    for text in (task.name, video.id, *task.steps):
        _require_xml_text(text)
    media = None if options.media == WriteOptions().media else options.media_url(video.id)
    names = {TASK_PROPERTY: task.name, VIDEO_PROPERTY: video.id}
    return extend_eaf(file.read_bytes(), tiers, STEP_TYPE, task.steps, properties=names, media=media)


def _originals(source: Source | None) -> dict[tuple[str, str], Source]:
    """(task, video) -> the document from which its labels are."""
    return {elan_names(EafDocument(file), name, file): file for name, file in (elan_files(source) if source else ())}


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


# -- documents that are kept ------------------------------------------------------------------------------------

Tiers: TypeAlias = Mapping[str, tuple[str | None, Sequence[tuple[int, int, str]]]]
"""Name of a tier -> its annotator, and its labels: start and end in milliseconds, and the step."""
_AFTER_TIERS = ("LINGUISTIC_TYPE", "LOCALE", "LANGUAGE", "CONSTRAINT", "CONTROLLED_VOCABULARY", "LEXICON_REF")
"""What may follow the tiers in a document, in the order of the format."""


def extend_eaf(
    content: bytes, tiers: Tiers, type: str, words: Sequence[str], *, properties: Mapping[str, str], media: str | None
) -> bytes:
    """Add tiers to a document."""
    root = ElementTree.fromstring(content)
    header, order = _child(root, "HEADER", 0), _child(root, "TIME_ORDER", 1)
    known = {one.get("NAME") for one in header.iter("PROPERTY")}
    missing = {name: text for name, text in properties.items() if name not in known}
    if not (any(marks for _, marks in tiers.values()) or missing or media is not None):
        return content
    for name, text in missing.items():
        SubElement(header, "PROPERTY", NAME=name).text = text
    if media is not None:
        for link in header.findall("MEDIA_DESCRIPTOR"):
            header.remove(link)
        header.insert(0, Element("MEDIA_DESCRIPTOR", MEDIA_URL=media, MIME_TYPE="video/mp4"))
    numbers = count(1 + max(map(_number, root.iter()), default=0))
    slots = {
        time: _add_slot(order, time, f"ts{next(numbers)}")
        for time in sorted({time for _, marks in tiers.values() for *span, _ in marks for time in span})
    }
    taken = {tier.get("TIER_ID") for tier in root.iter("TIER")}
    for name, (annotator, marks) in tiers.items():
        if not marks:
            continue
        unique = _unused(name, taken)
        taken.add(unique)
        tier = Element("TIER", LINGUISTIC_TYPE_REF=type, TIER_ID=unique)
        if annotator is not None:
            tier.set("ANNOTATOR", annotator)
        for start, end, step in marks:
            aligned = SubElement(
                SubElement(tier, "ANNOTATION"), "ALIGNABLE_ANNOTATION", ANNOTATION_ID=f"a{next(numbers)}"
            )
            aligned.set("TIME_SLOT_REF1", slots[start])
            aligned.set("TIME_SLOT_REF2", slots[end])
            SubElement(aligned, "ANNOTATION_VALUE").text = step
        _insert(root, tier)
    if all(one.get("LINGUISTIC_TYPE_ID") != type for one in root.iter("LINGUISTIC_TYPE")):
        _add_type(root, type, words)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _child(root: Element, name: str, place: int) -> Element:
    found = root.find(name)
    if found is None:
        found = Element(name)
        root.insert(place, found)
    return found


def _number(element: Element) -> int:
    """The number in the id of a time slot or an annotation."""
    digits = re.sub(r"\D", "", element.get("TIME_SLOT_ID") or element.get("ANNOTATION_ID") or "")
    return int(digits[:12] or 0)


def _unused(name: str, taken: set[str | None]) -> str:
    """A name like this one that is not taken."""
    return name if name not in taken else next(one for n in count(2) if (one := f"{name} {n}") not in taken)


def _add_slot(order: Element, time: int, name: str) -> str:
    """Add a time after the last one that is no later, so that the slots stay in their order."""
    earlier = [place for place, slot in enumerate(order) if int(slot.get("TIME_VALUE") or time + 1) <= time]
    order.insert(earlier[-1] + 1 if earlier else 0, Element("TIME_SLOT", TIME_SLOT_ID=name, TIME_VALUE=str(time)))
    return name


def _insert(root: Element, element: Element) -> None:
    """Put an element after the others of its kind, or where the format wants the first one."""
    kinds = ("HEADER", "TIME_ORDER", "TIER", *_AFTER_TIERS)
    before = kinds[: kinds.index(element.tag) + 1]
    places = [place for place, one in enumerate(root) if one.tag in before]
    root.insert(places[-1] + 1 if places else 0, element)


def _add_type(root: Element, type: str, words: Sequence[str]) -> None:
    taken = {one.get("CV_ID") for one in root.iter("CONTROLLED_VOCABULARY")}
    name = _unused("steps", taken)
    kind = {"GRAPHIC_REFERENCES": "false", "LINGUISTIC_TYPE_ID": type, "TIME_ALIGNABLE": "true"}
    _insert(root, Element("LINGUISTIC_TYPE", {"CONTROLLED_VOCABULARY_REF": name, **kind}))
    if all(one.get("LANG_ID") != "und" for one in root.iter("LANGUAGE")):
        _insert(root, Element("LANGUAGE", LANG_ID="und", LANG_LABEL="undetermined (und)"))
    vocabulary = Element("CONTROLLED_VOCABULARY", CV_ID=name)
    SubElement(vocabulary, "DESCRIPTION", LANG_REF="und")
    for number, word in enumerate(words, start=1):
        entry = SubElement(vocabulary, "CV_ENTRY_ML", CVE_ID=f"msg2-{number}")
        SubElement(entry, "CVE_VALUE", LANG_REF="und").text = word
    _insert(root, vocabulary)


WRITERS = {".eaf": _write_elan}
"""Suffix -> what writes it."""

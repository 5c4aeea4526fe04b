"""ELAN annotations, written: an `.eaf` file (EAF 3.0) per video.

ELAN allows no overlap within a tier and knows whole milliseconds only. Labels of another source, or that overlap, have
tiers of their own, all of the linguistic type `step`, whose vocabulary is the steps of the task. Where the labels are
from an ELAN document, all that it holds is kept, and only the labels that its tiers of steps lack are added.
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

from msg2.errors import InputError
from msg2.files import safe_names
from msg2.formats import elan
from msg2.formats.elan import STEP_TYPE, TASK_PROPERTY, VIDEO_PROPERTY
from msg2.formats.reading import FileContents, WriteOptions
from msg2.formats.source import Source
from msg2.task import Segment, Step, Task, Video
from msg2.text import short_repr

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write."""
_ROOT = {
    "AUTHOR": "msg2",
    "DATE": "1970-01-01T00:00:00+00:00",  # the format asks for one; the same labels are to give the same bytes
    "FORMAT": "3.0",
    "VERSION": "3.0",
    "xmlns:xsi": "http://www.w3.org/2001/XMLSchema-instance",
    "xsi:noNamespaceSchemaLocation": "http://www.mpi.nl/tools/elan/EAFv3.0.xsd",
}
_KINDS = (
    "HEADER", "TIME_ORDER", "TIER", "LINGUISTIC_TYPE", "LOCALE", "LANGUAGE", "CONSTRAINT", "CONTROLLED_VOCABULARY",
    "LEXICON_REF",
)  # fmt: skip
"""What a document holds, in the order of the format."""


class _TimedLabel(NamedTuple):
    """A label in whole milliseconds."""

    start: int
    end: int
    step: str

    @staticmethod
    def of(segment: Segment) -> _TimedLabel:
        """A segment; an instant lasts one millisecond, or it could not be selected."""
        start = round((segment.start or 0.0) * 1000)
        return _TimedLabel(start, max(start + 1, round((segment.end or 0.0) * 1000)), segment.step)


_Tiers: TypeAlias = Mapping[str, tuple[str | None, Sequence[_TimedLabel]]]
"""Name of a tier -> its annotator, who is the source of its labels, and these."""


def to_elan(task: Task, video: Video, options: WriteOptions) -> str:
    """The labels of one video as the text of an `.eaf` file, whose header names the task and the video.

    Confidences have no place in the format. An instant lasts one millisecond.
    """
    tiers = _assign_tiers(task, video, options)
    root = Element("ANNOTATION_DOCUMENT", _ROOT)
    header = SubElement(root, "HEADER", MEDIA_FILE="", TIME_UNITS="milliseconds")
    SubElement(header, "MEDIA_DESCRIPTOR", MEDIA_URL=options.media_url(video.id), MIME_TYPE="video/mp4")
    for name, text in ((TASK_PROPERTY, task.name), (VIDEO_PROPERTY, video.id)):
        SubElement(header, "PROPERTY", NAME=name).text = text
    SubElement(root, "TIME_ORDER")
    _add_tiers(root, tiers, count(1), count(1))
    _add_type(root, task.steps, "step")
    for element in (root, *root):  # a line for each element, with all that is in it
        for child in element:
            child.tail = "\n"
        if element.tag in ("ANNOTATION_DOCUMENT", "HEADER", "TIME_ORDER", "TIER"):
            element.text = "\n"
    text = ElementTree.tostring(root, encoding="unicode").replace(" />", "/>").replace("\r", "&#13;")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _assign_tiers(task: Task, video: Video, options: WriteOptions) -> _Tiers:
    """The tiers with the labels of a video; there is always one, so that labels can be added to it.

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
    for text in (options.media_url(video.id), task.name, video.id, *filter(None, lanes), *task.steps):
        if _NOT_XML.search(text):
            what = f"{short_repr(text)} has a character that no XML file can hold"
            raise InputError(what, hint="rename it, or write a table: .csv, .tsv, .jsonl or .parquet")
    return {
        ("steps" if source is None else f"steps ({source})") + (f" {number}" if number > 1 else ""): (source, lane)
        for source, own in lanes.items()
        for number, lane in enumerate(own, start=1)
    }


def _add_tiers(root: Element, tiers: _Tiers, slot_numbers: Iterator[int], annotation_numbers: Iterator[int]) -> None:
    times = sorted({time for _, marks in tiers.values() for mark in marks for time in (mark.start, mark.end)})
    order = _child(root, "TIME_ORDER", 1)
    slots = {time: _add_slot(order, time, f"ts{next(slot_numbers)}") for time in times}
    taken = {tier.get("TIER_ID") for tier in root.iter("TIER")}
    for name, (annotator, marks) in tiers.items():
        unique = _unused(name, taken)
        taken.add(unique)
        who = {} if annotator is None else {"ANNOTATOR": annotator}
        tier = Element("TIER", {**who, "LINGUISTIC_TYPE_REF": STEP_TYPE, "TIER_ID": unique})
        for start, end, step in marks:
            ends = {"TIME_SLOT_REF1": slots[start], "TIME_SLOT_REF2": slots[end]}
            annotation = {"ANNOTATION_ID": f"a{next(annotation_numbers)}", **ends}
            aligned = SubElement(SubElement(tier, "ANNOTATION"), "ALIGNABLE_ANNOTATION", annotation)
            SubElement(aligned, "ANNOTATION_VALUE").text = step
        _insert(root, tier)


def _add_type(root: Element, steps: Sequence[Step], prefix: str) -> None:
    """Add the linguistic type of steps, with their vocabulary; ids in it begin with the prefix."""
    name = _unused("steps", {vocabulary.get("CV_ID") for vocabulary in root.iter("CONTROLLED_VOCABULARY")})
    kind = {"GRAPHIC_REFERENCES": "false", "LINGUISTIC_TYPE_ID": STEP_TYPE, "TIME_ALIGNABLE": "true"}
    _insert(root, Element("LINGUISTIC_TYPE", {"CONTROLLED_VOCABULARY_REF": name, **kind}))
    if all(language.get("LANG_ID") != "und" for language in root.iter("LANGUAGE")):
        _insert(root, Element("LANGUAGE", LANG_ID="und", LANG_LABEL="undetermined (und)"))
    vocabulary = Element("CONTROLLED_VOCABULARY", CV_ID=name)
    SubElement(vocabulary, "DESCRIPTION", LANG_REF="und")
    for number, step in enumerate(steps, start=1):
        entry = SubElement(vocabulary, "CV_ENTRY_ML", CVE_ID=f"{prefix}{number}")
        SubElement(entry, "CVE_VALUE", LANG_REF="und").text = step
    _insert(root, vocabulary)


def _child(root: Element, name: str, place: int) -> Element:
    if (child := root.find(name)) is None:
        root.insert(place, child := Element(name))
    return child


def _unused(name: str, taken: set[str | None]) -> str:
    """A name like this one that is not taken."""
    others = (f"{name} {number}" for number in count(2))
    return name if name not in taken else next(other for other in others if other not in taken)


def _add_slot(order: Element, time: int, name: str) -> str:
    """Add a time after the last one that is no later, so that the slots stay in their order."""
    places = range(len(order), 0, -1)
    place = next((place for place in places if int(order[place - 1].get("TIME_VALUE") or time + 1) <= time), 0)
    order.insert(place, Element("TIME_SLOT", TIME_SLOT_ID=name, TIME_VALUE=str(time)))
    return name


def _insert(root: Element, element: Element) -> None:
    """Put an element after the others of its kind, or where the format wants the first one."""
    before = _KINDS[: _KINDS.index(element.tag) + 1]
    root.insert(max((place for place, child in enumerate(root, start=1) if child.tag in before), default=0), element)


# -- documents that are kept ------------------------------------------------------------------------------------


def _extend(file: Source, task: Task, video: Video, options: WriteOptions) -> bytes:
    """A document with the labels that its tiers of steps lack."""
    document = elan.EafDocument(file)
    marked = {tier.name: tier.annotator for tier in document.tiers if tier.type == STEP_TYPE}
    there = Counter(_TimedLabel.of(segment) for segment in elan.elan_segments(file, document, marked))
    lacking = []
    for segment in video.segments:
        label = _TimedLabel.of(segment)
        there[label] -= 1
        lacking += [segment] * (there[label] < 0)
    assigned = _assign_tiers(task, Video(video.id, lacking), options)
    tiers = {name: (source, marks) for name, (source, marks) in assigned.items() if marks}
    media = None if options.media == WriteOptions().media else options.media_url(video.id)
    content = file.read_bytes()
    root = ElementTree.fromstring(content)
    header = _child(root, "HEADER", 0)
    known = {element.get("NAME") for element in header.iter("PROPERTY")}
    names = {TASK_PROPERTY: task.name, VIDEO_PROPERTY: video.id}
    missing = {name: text for name, text in names.items() if name not in known}
    if not (tiers or missing or media is not None):
        return content
    for name, text in missing.items():
        SubElement(header, "PROPERTY", NAME=name).text = text
    if media is not None:
        for link in header.findall("MEDIA_DESCRIPTOR"):
            header.remove(link)
        header.insert(0, Element("MEDIA_DESCRIPTOR", MEDIA_URL=media, MIME_TYPE="video/mp4"))
    numbers = count(1 + max(map(_number, root.iter()), default=0))
    _add_tiers(root, tiers, numbers, numbers)
    if all(element.get("LINGUISTIC_TYPE_ID") != STEP_TYPE for element in root.iter("LINGUISTIC_TYPE")):
        _add_type(root, task.steps, "msg2-")
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _number(element: Element) -> int:
    """The number in the id of a time slot or an annotation."""
    digits = re.sub(r"\D", "", element.get("TIME_SLOT_ID") or element.get("ANNOTATION_ID") or "")
    return int(digits[:12] or 0)


def _write_elan(tasks: Sequence[Task], path: Path, options: WriteOptions) -> FileContents:
    documents = elan.elan_files(options.original) if options.original else ()
    originals = {elan.elan_names(elan.EafDocument(file), name, file): file for name, file in documents}

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

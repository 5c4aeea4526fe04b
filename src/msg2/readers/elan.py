"""ELAN: one `.eaf` file per video; its annotations are the steps. A folder of them is a task, a folder of folders many.

Steps are on the tiers of the linguistic type `step`, as msg2 writes them, else on the only tier with annotations, or on
the one that is asked for. Where the tier has a vocabulary, all of its words are steps.

Times are milliseconds, or left out where annotations only divide another one: such boundaries lie evenly between those
that are known, as ELAN draws them. Annotations that refer to others have the times of those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from msg2.errors import InputError, shortened
from msg2.options import ReadOptions
from msg2.readers.found import Found, Labels, merge, tasks_of, timed_segment, unsorted_rows
from msg2.readers.markup import attribute, root_name, walk
from msg2.readers.sources import Source
from msg2.readers.wording import listed
from msg2.task import Segment, Step

READS = "ELAN annotations (.eaf)"
TAKES = ("tier",)

_TYPE, _TASK, _VIDEO = "step", "msg2.task", "msg2.video"
_LEVELS = 100
"""Annotations that refer to one another in a row; more only occur where they run in a circle."""


class _Annotation(NamedTuple):
    """`slots` are the ids of its two times; None where it has those of the annotation `parent`."""

    id: str
    slots: tuple[str, str] | None
    parent: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class _Tier:
    name: str
    type: str
    annotator: str | None
    annotations: list[_Annotation] = field(default_factory=list)


def recognises(source: Source) -> bool:
    """Whether the file, a file in the folder, or one in a folder in it is an ELAN document."""
    return next(_files(source), None) is not None


def read(source: Source, options: ReadOptions) -> Found:
    """Tasks and videos are named as msg2 noted it in the file, else after the folder and the file."""
    labels: Labels = {}
    steps: dict[str, set[Step]] = {}
    for name, file in _files(source):
        document = _Document()
        walk(file, document.opened, document.closed, document.text)
        task, video = document.noted.get(_TASK) or name, document.noted.get(_VIDEO) or file.stem
        tiers = _tiers(file, document.tiers, options.tier)
        segments = list(_segments(file, document, tiers))
        merge(labels, {(task, video): segments}, str(file.path))
        words = {word for tier in tiers for word in document.words(tier.type)}
        steps.setdefault(task, set()).update(words, (segment.step for segment in segments))
    return Found.of(tasks_of(labels, steps), {source.path.name: unsorted_rows(labels)})


def _files(source: Source) -> Iterator[tuple[str, Source]]:
    """The documents, each with the name of its task."""
    for file in source.files if source.is_folder else (source,):
        if root_name(file) == "ANNOTATION_DOCUMENT":
            yield source.stem, file
    for folder in source.folders:
        for file in folder.files:
            if file.path.suffix.lower() == ".eaf" and root_name(file) == "ANNOTATION_DOCUMENT":
                yield folder.stem, file


class _Document:
    """What has been read of a document; `opened`, `text` and `closed` are told of its elements."""

    def __init__(self) -> None:
        self.times: dict[str, int | None] = {}
        """Milliseconds, or None, by id."""
        self.tiers: list[_Tier] = []
        self.noted: dict[str, str] = {}
        self._vocabularies: dict[str, list[str]] = {"": []}
        self._types: dict[str, str] = {}
        """Linguistic type -> its vocabulary."""
        self._open = _Annotation("", None, "")
        self._name = ""
        """Of the property or vocabulary that is being read."""
        self._text: list[str] = []

    def words(self, type: str) -> list[str]:
        """The vocabulary of a linguistic type."""
        return self._vocabularies.get(self._types.get(type, ""), [])

    def opened(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self._text = []
        match name:
            case "HEADER" if attributes.get("TIME_UNITS", "milliseconds") != "milliseconds":
                raise InputError(f"the unit of time is {shortened(attributes['TIME_UNITS'])}, not milliseconds")
            case "PROPERTY":
                self._name = attributes.get("NAME", "")
            case "TIME_SLOT":
                self.times[attribute(attributes, "TIME_SLOT_ID", name)] = _milliseconds(attributes.get("TIME_VALUE"))
            case "TIER":
                type, annotator = attributes.get("LINGUISTIC_TYPE_REF", ""), attributes.get("ANNOTATOR") or None
                self.tiers.append(_Tier(attribute(attributes, "TIER_ID", name), type, annotator))
            case "ALIGNABLE_ANNOTATION":
                slots = attribute(attributes, "TIME_SLOT_REF1", name), attribute(attributes, "TIME_SLOT_REF2", name)
                for slot in slots:
                    if slot not in self.times:
                        raise InputError(f"the time {shortened(slot)} is not in <TIME_ORDER>")
                self._open = _Annotation(attribute(attributes, "ANNOTATION_ID", name), slots, "")
            case "REF_ANNOTATION":
                parent = attribute(attributes, "ANNOTATION_REF", name)
                self._open = _Annotation(attribute(attributes, "ANNOTATION_ID", name), None, parent)
            case "LINGUISTIC_TYPE":
                self._types[attributes.get("LINGUISTIC_TYPE_ID", "")] = attributes.get("CONTROLLED_VOCABULARY_REF", "")
            case "CONTROLLED_VOCABULARY":
                self._name = attribute(attributes, "CV_ID", name)

    def text(self, piece: str) -> None:
        """A part of what stands in an element."""
        self._text.append(piece)

    def closed(self, name: str) -> None:
        """An element ends."""
        text, self._text = "".join(self._text), []
        match name:
            case "PROPERTY":
                self.noted[self._name] = text
            case "ANNOTATION_VALUE":
                self._open = self._open._replace(value=text)
            case "ALIGNABLE_ANNOTATION" | "REF_ANNOTATION" if self.tiers:
                self.tiers[-1].annotations.append(self._open)
            case "CVE_VALUE" | "CV_ENTRY" if text:
                self._vocabularies.setdefault(self._name, []).append(text)


def _milliseconds(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise InputError(f"the time {shortened(text)} is not a number of milliseconds")
    return int(text)


def _tiers(file: Source, tiers: list[_Tier], wanted: str | None) -> list[_Tier]:
    """The tiers with the steps."""
    if wanted is not None:
        chosen = [tier for tier in tiers if tier.name == wanted]
        if not chosen:
            hint = f"its tiers are: {listed(tier.name for tier in tiers)}"
            raise InputError(f"has no tier {shortened(wanted)}", where=file.path, hint=hint)
        return chosen
    chosen = [tier for tier in tiers if tier.type == _TYPE]
    filled = chosen or [tier for tier in tiers if tier.annotations]
    if not filled:
        raise InputError("has no annotations", where=file.path)
    if len(filled) > 1 and not chosen:
        hint = f"choose the one with the steps (--tier NAME): {listed(tier.name for tier in filled)}"
        raise InputError(f"has annotations on {len(filled)} tiers", where=file.path, hint=hint)
    return filled


def _segments(file: Source, document: _Document, tiers: Iterable[_Tier]) -> Iterator[Segment]:
    times: dict[str, tuple[float, float]] = {}
    parents: dict[str, str] = {}
    for tier in document.tiers:
        times |= _aligned(document.times, tier.annotations)
        parents |= {one.id: one.parent for one in tier.annotations}
    for tier in tiers:
        for one in tier.annotations:
            where, holder = f"{file.path}, annotation {one.id}", one.id
            if not one.value:
                raise InputError("is empty", where=where, hint="its value is the name of the step")
            for _ in range(_LEVELS):
                if holder not in times:
                    holder = parents.get(holder, "")
            if holder not in times:
                hint = "give its boundaries a time in ELAN"
                raise InputError("has no times, and neither has what it refers to", where=where, hint=hint)
            yield replace(timed_segment(one.value, *times[holder], where), source=tier.annotator)


def _aligned(times: dict[str, int | None], row: list[_Annotation]) -> dict[str, tuple[float, float]]:
    """Annotation -> its start and end in seconds; boundaries without a time lie evenly between the known ones."""
    slots = [slot for one in row for slot in one.slots or ()]
    chain = [slot for slot, after in pairwise([*slots, ""]) if slot != after]  # neighbours share a boundary
    seconds = {slot: time / 1000 for slot in chain if (time := times[slot]) is not None}
    known = [place for place, slot in enumerate(chain) if slot in seconds]
    for before, after in pairwise(known):
        step = (seconds[chain[after]] - seconds[chain[before]]) / (after - before)
        for place in range(before + 1, after):
            seconds[chain[place]] = seconds[chain[before]] + step * (place - before)
    return {
        one.id: (seconds[one.slots[0]], seconds[one.slots[1]])
        for one in row
        if one.slots is not None and seconds.keys() >= set(one.slots)
    }

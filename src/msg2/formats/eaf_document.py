"""The structure of an ELAN annotation file (EAF): times, tiers with annotations, vocabularies and properties."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import NamedTuple

from msg2.errors import InputError
from msg2.formats.source import Source
from msg2.formats.xml_parser import parse_xml, require_attribute
from msg2.text import short_repr


class EafAnnotation(NamedTuple):
    """One annotation; `slots` are the ids of its two times, None where it has those of the annotation `parent`."""

    id: str
    slots: tuple[str, str] | None
    parent: str
    value: str = ""


class EafTier(NamedTuple):
    """A tier: a row of annotations."""

    name: str
    type: str
    annotator: str | None
    annotations: list[EafAnnotation]


class EafDocument:
    """An EAF file."""

    def __init__(self, file: Source) -> None:
        self._times: dict[str, int | None] = {}
        """Milliseconds, or None, by id."""
        self.tiers: list[EafTier] = []
        self.properties: dict[str, str] = {}
        self._vocabularies: dict[str, list[str]] = {"": []}
        self._types: dict[str, str] = {}
        """Linguistic type -> its vocabulary."""
        self._open = EafAnnotation("", None, "")
        self._name = ""
        """Of the property or vocabulary that is being read."""
        self._text: list[str] = []
        parse_xml(file, self._start_element, self._end_element, self._text.append)

    def words(self, type: str) -> list[str]:
        """The vocabulary of a linguistic type."""
        return self._vocabularies.get(self._types.get(type, ""), [])

    def align(self, tier: EafTier) -> dict[str, tuple[float, float]]:
        """Annotation -> its start and end in seconds; boundaries without a time lie evenly between the known ones."""
        slots = [slot for annotation in tier.annotations for slot in annotation.slots or ()]
        chain = [slot for slot, after in pairwise([*slots, ""]) if slot != after]  # neighbours share a boundary
        seconds = {slot: time / 1000 for slot in chain if (time := self._times[slot]) is not None}
        known = [place for place, slot in enumerate(chain) if slot in seconds]
        for before, after in pairwise(known):
            step = (seconds[chain[after]] - seconds[chain[before]]) / (after - before)
            for place in range(before + 1, after):
                seconds[chain[place]] = seconds[chain[before]] + step * (place - before)
        return {
            annotation.id: (seconds[annotation.slots[0]], seconds[annotation.slots[1]])
            for annotation in tier.annotations
            if annotation.slots is not None and seconds.keys() >= set(annotation.slots)
        }

    def _start_element(self, name: str, attributes: dict[str, str]) -> None:
        self._text.clear()
        required = partial(require_attribute, attributes, element=name)
        match name:
            case "HEADER" if attributes.get("TIME_UNITS", "milliseconds") != "milliseconds":
                raise InputError(f"the unit of time is {short_repr(attributes['TIME_UNITS'])}, not milliseconds")
            case "PROPERTY":
                self._name = attributes.get("NAME", "")
            case "TIME_SLOT":
                self._times[required("TIME_SLOT_ID")] = _milliseconds(attributes.get("TIME_VALUE"))
            case "TIER":
                type, annotator = attributes.get("LINGUISTIC_TYPE_REF", ""), attributes.get("ANNOTATOR") or None
                self.tiers.append(EafTier(required("TIER_ID"), type, annotator, []))
            case "ALIGNABLE_ANNOTATION":
                slots = required("TIME_SLOT_REF1"), required("TIME_SLOT_REF2")
                for slot in slots:
                    if slot not in self._times:
                        raise InputError(f"the time {short_repr(slot)} is not in <TIME_ORDER>")
                self._open = EafAnnotation(required("ANNOTATION_ID"), slots, "")
            case "REF_ANNOTATION":
                self._open = EafAnnotation(parent=required("ANNOTATION_REF"), id=required("ANNOTATION_ID"), slots=None)
            case "LINGUISTIC_TYPE":
                self._types[attributes.get("LINGUISTIC_TYPE_ID", "")] = attributes.get("CONTROLLED_VOCABULARY_REF", "")
            case "CONTROLLED_VOCABULARY":
                self._name = required("CV_ID")

    def _end_element(self, name: str) -> None:
        text = "".join(self._text)
        self._text.clear()
        match name:
            case "PROPERTY":
                self.properties[self._name] = text
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
        raise InputError(f"the time {short_repr(text)} is not a number of milliseconds")
    return int(text)

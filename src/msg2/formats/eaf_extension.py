"""An ELAN document with labels added to it: tiers, links and everything else that it holds stay as they are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import TypeAlias
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

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

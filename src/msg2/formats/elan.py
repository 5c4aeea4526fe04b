"""ELAN annotations, read: `.eaf` files, one per video, and the export as tab-delimited text.

Steps are on the tiers of the linguistic type `step`, as msg2 writes them, else on the only tier with annotations, or on
the one that is asked for; where a tier has a vocabulary, all of its words are steps. Boundaries without a time lie
evenly between those that are known, as ELAN draws them. In the text, a row is an annotation, or a column a tier.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import islice, pairwise
from pathlib import PureWindowsPath
from typing import NamedTuple
from xml.etree.ElementTree import Element, TreeBuilder

from msg2.errors import InputError
from msg2.formats.reading import Reader, ReadOptions, ReadResult, SegmentsByVideo, merge_labels, timed_segment
from msg2.formats.source import Source
from msg2.formats.times import parse_clock
from msg2.formats.xml_parser import parse_xml, require_attribute, root_name
from msg2.task import Segment, Step
from msg2.text import join_names, short_repr

STEP_TYPE, TASK_PROPERTY, VIDEO_PROPERTY = "step", "msg2.task", "msg2.video"
"""The linguistic type of the tiers with steps, and where the header names the task and the video."""
_LEVELS = 100
"""Annotations that refer to one another in a row; more only occur where they run in a circle."""

# -- the document -----------------------------------------------------------------------------------------------


class EafAnnotation(NamedTuple):
    """One annotation; `slots` are the ids of its two times, None where it has those of the annotation `parent`."""

    id: str
    slots: tuple[str, str] | None
    parent: str
    value: str


class EafTier(NamedTuple):
    """A tier: a row of annotations."""

    name: str
    type: str
    annotator: str | None
    annotations: list[EafAnnotation]


class EafDocument:
    """An EAF file; times are milliseconds, or None, by id."""

    def __init__(self, file: Source) -> None:
        self.tiers: list[EafTier] = []
        self.properties: dict[str, str] = {}
        self._times: dict[str, int | None] = {}
        self._vocabularies: dict[str, list[str]] = {}
        self._types: dict[str, str] = {}  # linguistic type -> its vocabulary
        self._annotations: list[EafAnnotation] = []  # of the tier that is being read
        builder = TreeBuilder()

        def start_element(name: str, attributes: dict[str, str]) -> None:
            if (unit := attributes.get("TIME_UNITS", "milliseconds")) != "milliseconds":
                raise InputError(f"the unit of time is {short_repr(unit)}, not milliseconds")
            builder.start(name, attributes)

        parse_xml(file, start_element, lambda name: self._read_element(builder.end(name)), builder.data)

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

    def _read_element(self, element: Element) -> None:
        required = partial(require_attribute, element.attrib, element=element.tag)
        match element.tag:
            case "PROPERTY":
                self.properties[element.get("NAME", "")] = element.text or ""
            case "TIME_SLOT":
                self._times[required("TIME_SLOT_ID")] = _milliseconds(element.get("TIME_VALUE"))
            case "ALIGNABLE_ANNOTATION" | "REF_ANNOTATION":
                slots, parent = None, ""
                if element.tag == "ALIGNABLE_ANNOTATION":
                    slots = required("TIME_SLOT_REF1"), required("TIME_SLOT_REF2")
                    if missing := [slot for slot in slots if slot not in self._times]:
                        raise InputError(f"the time {short_repr(missing[0])} is not in <TIME_ORDER>")
                else:
                    parent = required("ANNOTATION_REF")
                value = element.findtext("ANNOTATION_VALUE", "")
                self._annotations.append(EafAnnotation(required("ANNOTATION_ID"), slots, parent, value))
            case "TIER":
                type, annotator = element.get("LINGUISTIC_TYPE_REF", ""), element.get("ANNOTATOR") or None
                self.tiers.append(EafTier(required("TIER_ID"), type, annotator, self._annotations))
                self._annotations = []
            case "LINGUISTIC_TYPE":
                self._types[element.get("LINGUISTIC_TYPE_ID", "")] = element.get("CONTROLLED_VOCABULARY_REF", "")
            case "CONTROLLED_VOCABULARY":
                words = [word.text for word in element.iter() if word.tag in ("CVE_VALUE", "CV_ENTRY") and word.text]
                self._vocabularies[required("CV_ID")] = words


def _milliseconds(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise InputError(f"the time {short_repr(text)} is not a number of milliseconds")
    return int(text)


# -- .eaf -------------------------------------------------------------------------------------------------------


def _read_eaf(source: Source, options: ReadOptions) -> ReadResult:
    """Read tasks and videos, named as msg2 noted it in the file, else after the folder and the file."""
    labels: SegmentsByVideo = {}
    steps: dict[str, set[Step]] = {}
    for name, file in elan_files(source):
        document = EafDocument(file)
        task, video = elan_names(document, name, file)
        annotators = _tier_annotators(file, document, options)
        merge_labels(labels, {(task, video): list(elan_segments(file, document, annotators))}, str(file.path))
        own = (tier.type for tier in document.tiers if tier.name in annotators)
        steps.setdefault(task, set()).update(word for type in own for word in document.words(type))
    return ReadResult.from_labels(labels, source.path.name, steps)


def elan_names(document: EafDocument, task: str, file: Source) -> tuple[str, str]:
    """Task and video, as msg2 noted them in the document, else after the folder and the file."""
    return document.properties.get(TASK_PROPERTY) or task, document.properties.get(VIDEO_PROPERTY) or file.stem


def elan_files(source: Source) -> Iterator[tuple[str, Source]]:
    """The documents, each with the name of its task."""
    pairs = [(source.stem, file) for file in source.files_or_self]
    nested = ((folder.stem, file) for folder in source.folders for file in folder.files)
    pairs += [(task, file) for task, file in nested if file.path.suffix.lower() == ".eaf"]
    yield from ((task, file) for task, file in pairs if root_name(file) == "ANNOTATION_DOCUMENT")


def _tier_annotators(file: Source, document: EafDocument, options: ReadOptions) -> dict[str, str | None]:
    """The tiers with the steps, each with its annotator."""
    known = {tier.name: tier.annotator for tier in document.tiers}
    marked = {tier.name: tier.annotator for tier in document.tiers if tier.type == STEP_TYPE}
    if marked and options.tier is None:
        return marked
    steps = {tier.name: {annotation.value for annotation in tier.annotations} for tier in document.tiers}
    return {name: known[name] or annotator for name, annotator in choose_tiers(file, steps, options).items()}


def choose_tiers(file: Source, steps: Mapping[str, set[Step]], options: ReadOptions) -> dict[str, str | None]:
    """Choose the tiers with the steps: the one that is wanted, else the only one, else those of several annotators."""
    if options.tier is not None:
        if options.tier in steps:
            return {options.tier: None}
        hint = f"its tiers are: {join_names(sorted(steps))}"
        raise InputError(f"has no tier {short_repr(options.tier)}", where=file.path, hint=hint)
    filled = [name for name in steps if steps[name]]
    if not filled:
        raise InputError("has no annotations", where=file.path)
    if len(filled) == 1:
        return dict.fromkeys(filled)
    shared = [name for name in filled if any(name != other and steps[name] & steps[other] for other in filled)]
    if options.every_annotator and shared:
        return {name: name for name in shared}
    hint = f"choose the one with the steps (--tier NAME): {join_names(sorted(filled))}"
    hint += "; `msg2 describe` shows how far they agree" if shared else ""
    raise InputError(f"has annotations on {len(filled)} tiers", where=file.path, hint=hint)


def elan_segments(file: Source, document: EafDocument, annotators: Mapping[str, str | None]) -> Iterator[Segment]:
    """The segments on some tiers, each with the annotator of its tier."""
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


EAF = Reader("ELAN annotations (.eaf)", lambda source: any(True for _ in elan_files(source)), _read_eaf, ("XML",))

# -- text -------------------------------------------------------------------------------------------------------

_TIME_COLUMN = re.compile(r"(Begin|End) Time - (hh:mm:ss\.ms)|(?:Begin|End) Time - .*|Duration - .*|File( Path)?")
_CLOCK = re.compile(r"\d+:\d\d:\d\d\.\d{3}")


class _Layout(NamedTuple):
    """Where in a row everything is; `tiers` has the place of an annotation -> its tier."""

    begin: int
    end: int
    tiers: Mapping[int, str]
    has_header: bool


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
    steps_by_tier: dict[str, set[Step]] = {}
    for _, _, tier, step, *_ in annotations:
        steps_by_tier.setdefault(tier, set()).add(step)
    chosen = choose_tiers(file, steps_by_tier, options)
    labels: SegmentsByVideo = {}
    for row, video, tier, step, begin, end in annotations:
        if tier in chosen:
            labels.setdefault((task, video), []).append(timed_segment(step, begin, end, row, chosen[tier]))
    return labels


def _annotations(file: Source) -> Iterator[tuple[str, str, str, Step, float, float]]:
    """Row, video, tier, value, begin and end of every annotation."""
    layout = _find_layout(_first_row(file))
    if layout is None:
        return
    with closing(file.lines()) as lines:
        rows = (row for row in enumerate(lines, start=1) if _is_row(row[1]))
        for number, line in islice(rows, int(layout.has_header), None):
            cells = line.rstrip("\r\n").split("\t")
            if len(cells) <= max(layout.begin, layout.end, *layout.tiers):
                raise InputError("the row has fewer cells than the first one", where=file.row(number))
            begin, end = parse_clock(cells[layout.begin]), parse_clock(cells[layout.end])
            if begin is None or end is None:
                raise InputError("the row has no times as hh:mm:ss.ms", where=file.row(number))
            document = PureWindowsPath(cells[-1])  # takes both kinds of paths
            video = document.stem if document.suffix.lower() == ".eaf" else file.stem
            for place, tier in layout.tiers.items():
                if cells[place]:
                    name = tier if layout.has_header or not layout.begin else cells[0]
                    yield file.row(number), video, name, cells[place], begin, end


ELAN_TEXT = Reader(
    "ELAN annotations as tab-delimited text", lambda source: bool(_exports(source)),
    lambda source, options: ReadResult.from_files(
        (file, _read_labels(file, source.stem, options)) for file in _exports(source)
    ), ("text",),
)  # fmt: skip

"""ELAN annotations: an `.eaf` file (EAF 3.0) per video, or tab-delimited text.

Steps are on the tiers of the linguistic type `step`, as msg2 writes them, else on the only tier with annotations, or on
the one you name; all words in the vocabulary of such a tier are steps. Boundaries without a time lie evenly between
those that have one, as ELAN draws them. When msg2 writes labels, those of another source and those that overlap get
tiers of their own. A document that the labels come from is kept, and only gains the labels that it lacks.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, count, islice, pairwise
from pathlib import Path, PureWindowsPath
from typing import NamedTuple, TypeAlias
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from msg2.errors import InputError, errors_at, require
from msg2.files import safe_names
from msg2.formats.reading import LabelCollector, ReadOptions, WriteOptions, file_reader, files_where, timed_segment
from msg2.formats.source import Source
from msg2.formats.times import parse_clock
from msg2.formats.xml_parser import parse_children, require_attribute, root_name
from msg2.task import Segment, Step, Task, Video
from msg2.text import join_names, short_repr

_STEP_TYPE, _TASK, _VIDEO = "step", "msg2.task", "msg2.video"
"""The linguistic type of the tiers with steps, and the properties that name the task and the video."""
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
_TimedLabel: TypeAlias = tuple[int, int, Step]
"""Start, end and step of a label, in whole milliseconds."""
_Tiers: TypeAlias = Mapping[str, tuple[str | None, Sequence[_TimedLabel]]]
"""Name of a tier -> its annotator, who is the source of its labels, and these."""


# -- reading ----------------------------------------------------------------------------------------------------


class EafDocument:
    """An EAF file; `tiers` are the elements that hold the annotations."""

    def __init__(self, file: Source) -> None:
        self.file, self._root = file, Element("ANNOTATION_DOCUMENT")
        parse_children(file, self._root.append)
        self.tiers = list(self._root.iter("TIER"))
        self.properties = {item.get("NAME"): item.text for item in self._root.iter("PROPERTY")}
        self._seconds: dict[str, float] = {}  # of slots of time, NaN where they have none
        for tier in self.tiers:
            require_attribute(tier, "TIER_ID")
        for header in self._root.iter("HEADER"):
            if (unit := header.get("TIME_UNITS", "milliseconds")) != "milliseconds":
                raise InputError(f"the unit of time is {short_repr(unit)}, not milliseconds")
        for slot in self._root.iter("TIME_SLOT"):
            time = slot.get("TIME_VALUE")
            if time is not None and not (time.isascii() and time.isdigit() and len(time) <= 15):
                raise InputError(f"the time {short_repr(time)} is not a number of milliseconds")
            self._seconds[require_attribute(slot, "TIME_SLOT_ID")] = math.nan if time is None else int(time) / 1000

    @property
    def names(self) -> tuple[str, str]:
        """Task and video, as msg2 noted them in the document, else after the folder and the file."""
        folder = self.file.around[-1] if self.file.around else self.file.stem
        return self.properties.get(_TASK) or folder, self.properties.get(_VIDEO) or self.file.stem

    def words(self, types: set[str]) -> set[Step]:
        """The words in the vocabularies of some linguistic types."""
        used = [kind for kind in self._root.iter("LINGUISTIC_TYPE") if kind.get("LINGUISTIC_TYPE_ID", "") in types]
        ids = {kind.get("CONTROLLED_VOCABULARY_REF", "") for kind in used}
        vocabularies = [each for each in self._root.iter("CONTROLLED_VOCABULARY") if each.get("CV_ID") in ids]
        entries = (entry for each in vocabularies for entry in each.iter() if entry.tag in ("CVE_VALUE", "CV_ENTRY"))
        return {entry.text for entry in entries if entry.text}

    def segments(self, annotators: Mapping[str, str | None]) -> Iterator[Segment]:
        """The segments on some tiers, each with the annotator of its tier."""
        spans = self._spans()
        for tier in self.tiers:
            name = tier.get("TIER_ID", "")
            for annotation in _annotations(tier) if name in annotators else ():
                id, value = annotation.get("ANNOTATION_ID", ""), annotation.findtext("ANNOTATION_VALUE", "")
                where = f"{self.file.path}, annotation {id}"
                require(value, "is empty", where=where, hint="its value is the name of the step")
                hint = "give its boundaries a time in ELAN"
                require(id in spans, "has no times, and neither has what it refers to", where=where, hint=hint)
                yield timed_segment(value, *spans[id], where, annotators[name])

    def _spans(self) -> dict[str, tuple[float, float]]:
        """Annotation -> its start and end in seconds."""
        spans: dict[str, tuple[float, float]] = {}
        parents: dict[str, str] = {}
        for tier in self.tiers:
            aligned: dict[str, list[str]] = {}
            for annotation in _annotations(tier):
                id = require_attribute(annotation, "ANNOTATION_ID")
                if annotation.tag == "REF_ANNOTATION":
                    parents[id] = require_attribute(annotation, "ANNOTATION_REF")
                else:
                    aligned[id] = [require_attribute(annotation, f"TIME_SLOT_REF{end}") for end in (1, 2)]
            seconds = self._interpolate([slot for slots in aligned.values() for slot in slots])
            spans |= {id: (seconds[first], seconds[last]) for id, (first, last) in aligned.items()}
        spans = {id: span for id, span in spans.items() if not math.isnan(sum(span))}
        while more := {id: spans[to] for id, to in parents.items() if to in spans and id not in spans}:
            spans |= more
        return spans

    def _interpolate(self, slots: Sequence[str]) -> dict[str, float]:
        """Find the time of each slot; those without one lie evenly between the others, neighbours share a boundary."""
        if missing := [slot for slot in slots if slot not in self._seconds]:
            raise InputError(f"the time {short_repr(missing[0])} is not in <TIME_ORDER>")
        boundaries = [slot for slot, after in pairwise([*slots, ""]) if slot != after]
        times = np.array([self._seconds[slot] for slot in boundaries])
        if len(known := np.flatnonzero(~np.isnan(times))):
            times = np.interp(np.arange(len(times)), known, times[known], left=np.nan, right=np.nan)
        return dict(zip(boundaries, times.tolist(), strict=True))


def _annotations(tier: Element) -> list[Element]:
    return [part for part in tier.iter() if part.tag in ("ALIGNABLE_ANNOTATION", "REF_ANNOTATION")]


def _read(file: Source, options: ReadOptions, labels: LabelCollector) -> None:
    document = EafDocument(file)
    task, video = document.names
    annotators = _marked_tiers(document) if options.tier is None else {}
    if not annotators:
        tiers = {tier.get("TIER_ID", ""): tier for tier in document.tiers}
        steps = {
            name: {annotation.findtext("ANNOTATION_VALUE", "") for annotation in _annotations(tier)}
            for name, tier in tiers.items()
        }
        chosen = _choose_tiers(steps, options)
        annotators = {name: tiers[name].get("ANNOTATOR") or annotator for name, annotator in chosen.items()}
    labels.video(file, video, task).extend(document.segments(annotators))
    types = {tier.get("LINGUISTIC_TYPE_REF", "") for tier in document.tiers if tier.get("TIER_ID") in annotators}
    labels.steps[task] |= document.words(types)


def _documents(source: Source) -> list[Source]:
    """The documents in a folder or its folders."""
    nested = (file for folder in source.folders for file in folder.files if file.path.suffix.lower() == ".eaf")
    return [file for file in (*source.files_or_self, *nested) if root_name(file) == "ANNOTATION_DOCUMENT"]


def _marked_tiers(document: EafDocument) -> dict[str, str | None]:
    """The tiers whose type says that they hold steps, each with its annotator."""
    marked = [tier for tier in document.tiers if tier.get("LINGUISTIC_TYPE_REF") == _STEP_TYPE]
    return {tier.get("TIER_ID", ""): tier.get("ANNOTATOR") or None for tier in marked}


def _choose_tiers(steps: Mapping[str, set[Step]], options: ReadOptions) -> dict[str, str | None]:
    """Choose the tiers with the steps: the one that is wanted, else the only one, else those of several annotators."""
    if options.tier is not None:
        if options.tier in steps:
            return {options.tier: None}
        raise InputError(f"has no tier {short_repr(options.tier)}", hint=f"its tiers are: {join_names(sorted(steps))}")
    filled = [name for name in steps if steps[name]]
    require(filled, "has no annotations")
    if len(filled) == 1:
        return dict.fromkeys(filled)
    shared = [name for name in filled if any(name != other and steps[name] & steps[other] for other in filled)]
    if options.every_annotator and shared:
        return {name: name for name in shared}
    hint = f"choose the one with the steps (--tier NAME): {join_names(sorted(filled))}"
    hint += "; `msg2 describe` shows how far they agree" if shared else ""
    raise InputError(f"has annotations on {len(filled)} tiers", hint=hint)


EAF = file_reader("ELAN annotations (.eaf)", _documents, _read)


# -- its export as tab-delimited text: a row is an annotation, or a column a tier -------------------------------

_TIME_COLUMN = re.compile(r"(Begin|End) Time - (hh:mm:ss\.ms)|(?:Begin|End) Time - .*|Duration - .*|File( Path)?")
_CLOCK = re.compile(r"\d+:\d\d:\d\d\.\d{3}")


class _Layout(NamedTuple):
    """Where in a row everything is; `tiers` has the place of an annotation -> its tier."""

    begin: int
    end: int
    tiers: Mapping[int, str]
    has_header: bool


def _is_row(line: str) -> bool:
    """Whether a line is a row; those on the media of the document begin with a cross."""
    return bool(line.strip()) and not line.startswith(("#", '"#'))


def _find_layout(file: Source) -> _Layout | None:
    head = file.head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    cells = next((line.split("\t") for line in head.splitlines() if _is_row(line)), [])
    named = [_TIME_COLUMN.fullmatch(cell) for cell in cells]
    times = {match[1]: column for column, match in enumerate(named) if match and match[2]}
    if {"Begin", "End"} <= times.keys():
        tiers = {column: cell for column, cell in enumerate(cells) if cell and named[column] is None}
        return _Layout(times["Begin"], times["End"], tiers, True)
    clocks = [column for column, cell in enumerate(cells) if _CLOCK.fullmatch(cell)]
    if len(clocks) < 2:
        return None
    begin, end = clocks[:2]
    seconds = [parse_clock(cells[column]) or 0.0 for column in clocks[:3]]
    has_duration = clocks[2:3] == [2 * end - begin] and abs(seconds[0] + seconds[2] - seconds[1]) < 0.0015
    value = clocks[1 + has_duration] + end - begin
    return _Layout(begin, end, {value: cells[0] if begin else ""}, False) if value < len(cells) else None


def _read_text(file: Source, options: ReadOptions, labels: LabelCollector) -> None:
    layout = _find_layout(file)
    assert layout is not None  # or it would not be read
    annotations: list[tuple[str, str, Step, float, float, str]] = []
    steps: dict[str, set[Step]] = defaultdict(set)  # by tier
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
            for column, tier in layout.tiers.items():
                if cells[column]:
                    name = tier if layout.has_header or not layout.begin else cells[0]
                    annotations.append((name, video, cells[column], begin, end, file.row(number)))
                    steps[name].add(cells[column])
    chosen = _choose_tiers(steps, options)
    for tier, video, step, begin, end, row in annotations:
        if tier in chosen:
            labels.video(file, video).append(timed_segment(step, begin, end, row, chosen[tier]))


ELAN_TEXT = file_reader("ELAN annotations as tab-delimited text", files_where(_find_layout), _read_text)


# -- writing ----------------------------------------------------------------------------------------------------


def _to_milliseconds(segment: Segment) -> _TimedLabel:
    """A label in whole milliseconds; an instant lasts one, or it could not be selected."""
    start = round((segment.start or 0.0) * 1000)
    return start, max(start + 1, round((segment.end or 0.0) * 1000)), segment.step


def to_elan(task: Task, video: Video, options: WriteOptions) -> str:
    """Write the labels of one video as the text of an `.eaf` file, which has no place for confidences."""
    tiers = _assign_tiers(task, video, options)
    root = Element("ANNOTATION_DOCUMENT", _ROOT)
    SubElement(root, "HEADER", MEDIA_FILE="", TIME_UNITS="milliseconds")
    _fill_header(root, {_TASK: task.name, _VIDEO: video.id}, options.media_url(video.id))
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
    """Put each label on the first free tier of its source; one tier is always there, for more labels."""
    lanes: dict[str | None, list[list[_TimedLabel]]] = {None: [[]]}
    for segment in video.segments:
        what = f"video {short_repr(video.id)} has no times, which ELAN needs"
        require(segment.is_timed, what, hint="write a table: .csv, .tsv, .jsonl or .parquet")
        label = _to_milliseconds(segment)
        own = lanes.setdefault(segment.source, [[]])
        if (free := next((lane for lane in own if not lane or lane[-1][1] <= label[0]), None)) is None:
            own.append(free := [])
        free.append(label)
    for text in (options.media_url(video.id), task.name, video.id, *filter(None, lanes), *task.steps):
        what = f"{short_repr(text)} has a character that no XML file can hold"
        require(not _NOT_XML.search(text), what, hint="rename it, or write a table: .csv, .tsv, .jsonl or .parquet")
    return {
        ("steps" if source is None else f"steps ({source})") + (f" {number}" if number > 1 else ""): (source, lane)
        for source, own in lanes.items()
        for number, lane in enumerate(own, start=1)
    }


def _fill_header(root: Element, properties: Mapping[str, str], media: str | None) -> None:
    header = _child(root, "HEADER", 0)
    for name, text in properties.items():
        SubElement(header, "PROPERTY", NAME=name).text = text
    if media is not None:
        for link in header.findall("MEDIA_DESCRIPTOR"):
            header.remove(link)
        header.insert(0, Element("MEDIA_DESCRIPTOR", MEDIA_URL=media, MIME_TYPE="video/mp4"))


def _add_tiers(root: Element, tiers: _Tiers, slot_numbers: Iterator[int], annotation_numbers: Iterator[int]) -> None:
    order = _child(root, "TIME_ORDER", 1)
    times = sorted({time for _, labels in tiers.values() for start, end, _ in labels for time in (start, end)})
    slots = {time: f"ts{next(slot_numbers)}" for time in times}
    for time, slot in slots.items():  # after the last one that is no later, so that they stay in their order
        earlier = (n for n in range(len(order), 0, -1) if int(order[n - 1].get("TIME_VALUE") or time + 1) <= time)
        order.insert(next(earlier, 0), Element("TIME_SLOT", TIME_SLOT_ID=slot, TIME_VALUE=str(time)))
    for name, (annotator, labels) in tiers.items():
        unique = _unused(name, {tier.get("TIER_ID") for tier in root.iter("TIER")})
        who = {} if annotator is None else {"ANNOTATOR": annotator}
        tier = Element("TIER", {**who, "LINGUISTIC_TYPE_REF": _STEP_TYPE, "TIER_ID": unique})
        for start, end, step in labels:
            ends = {"TIME_SLOT_REF1": slots[start], "TIME_SLOT_REF2": slots[end]}
            annotation = {"ANNOTATION_ID": f"a{next(annotation_numbers)}", **ends}
            aligned = SubElement(SubElement(tier, "ANNOTATION"), "ALIGNABLE_ANNOTATION", annotation)
            SubElement(aligned, "ANNOTATION_VALUE").text = step
        _insert(root, tier)


def _add_type(root: Element, steps: Sequence[Step], prefix: str) -> None:
    """Add the linguistic type of steps, with their vocabulary; ids in it begin with the prefix."""
    name = _unused("steps", {vocabulary.get("CV_ID") for vocabulary in root.iter("CONTROLLED_VOCABULARY")})
    kind = {"GRAPHIC_REFERENCES": "false", "LINGUISTIC_TYPE_ID": _STEP_TYPE, "TIME_ALIGNABLE": "true"}
    _insert(root, Element("LINGUISTIC_TYPE", {"CONTROLLED_VOCABULARY_REF": name, **kind}))
    if all(language.get("LANG_ID") != "und" for language in root.iter("LANGUAGE")):
        _insert(root, Element("LANGUAGE", LANG_ID="und", LANG_LABEL="undetermined (und)"))
    vocabulary = Element("CONTROLLED_VOCABULARY", CV_ID=name)
    SubElement(vocabulary, "DESCRIPTION", LANG_REF="und")
    for number, step in enumerate(steps, start=1):
        entry = SubElement(vocabulary, "CV_ENTRY_ML", CVE_ID=f"{prefix}{number}")
        SubElement(entry, "CVE_VALUE", LANG_REF="und").text = step
    _insert(root, vocabulary)


def _child(root: Element, name: str, position: int) -> Element:
    if (child := root.find(name)) is None:
        root.insert(position, child := Element(name))
    return child


def _unused(name: str, taken: set[str | None]) -> str:
    """Find a name like this one that is not taken."""
    candidates = chain([name], (f"{name} {number}" for number in count(2)))
    return next(candidate for candidate in candidates if candidate not in taken)


def _insert(root: Element, element: Element) -> None:
    """Put an element after the others of its kind, or where the format wants the first one."""
    before = _KINDS[: _KINDS.index(element.tag) + 1]
    root.insert(max((number for number, child in enumerate(root, start=1) if child.tag in before), default=0), element)


def _extend(document: EafDocument, task: Task, video: Video, options: WriteOptions) -> bytes:
    """Add to a document the labels that its tiers of steps lack."""
    there = Counter(map(_to_milliseconds, document.segments(_marked_tiers(document))))
    lacking = []
    for segment in video.segments:
        label = _to_milliseconds(segment)
        there[label] -= 1
        lacking += [segment] * (there[label] < 0)
    assigned = _assign_tiers(task, Video(video.id, lacking), options)
    tiers = {name: (source, labels) for name, (source, labels) in assigned.items() if labels}
    media = None if options.media == WriteOptions().media else options.media_url(video.id)
    names = {_TASK: task.name, _VIDEO: video.id}
    missing = {name: text for name, text in names.items() if name not in document.properties}
    content = document.file.read_bytes()
    if not (tiers or missing or media is not None):
        return content
    root = ElementTree.fromstring(content)
    _fill_header(root, missing, media)
    ids = (element.get("TIME_SLOT_ID") or element.get("ANNOTATION_ID") or "" for element in root.iter())
    numbers = count(1 + max((int(re.sub(r"\D", "", id)[:12] or 0) for id in ids), default=0))
    _add_tiers(root, tiers, numbers, numbers)
    if all(element.get("LINGUISTIC_TYPE_ID") != _STEP_TYPE for element in root.iter("LINGUISTIC_TYPE")):
        _add_type(root, task.steps, "msg2-")
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _write_elan(tasks: Sequence[Task], path: Path, options: WriteOptions) -> dict[Path, str | bytes]:
    originals = {}
    for file in _documents(options.original) if options.original else ():
        with errors_at(file.path):
            document = EafDocument(file)
        originals[document.names] = document

    def content(task: Task, video: Video) -> str | bytes:
        document = originals.get((task.name, video.id))
        return to_elan(task, video, options) if document is None else _extend(document, task, video, options)

    pairs = [(task, video) for task in tasks for video in task]
    if len(pairs) == 1:
        return {path: content(*pairs[0])}
    folder = path.with_suffix("")
    folders = [folder / name for name in safe_names([task.name for task in tasks])] if len(tasks) > 1 else [folder]
    return {
        own_folder / f"{name}.eaf": content(task, video)
        for task, own_folder in zip(tasks, folders, strict=True)
        for video, name in zip(task, _file_names([video.id for video in task]), strict=True)
    }


def _file_names(ids: Sequence[str]) -> list[str]:
    """The ids of videos as they are where all of them are plain, and otherwise safe names."""
    good = all(re.fullmatch(r"[\w-][\w.-]{0,99}", name, re.ASCII) for name in ids)
    return list(ids) if good and len({name.lower() for name in ids}) == len(ids) else safe_names(ids)


WRITERS = {".eaf": _write_elan}

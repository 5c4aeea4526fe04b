"""Public sets of labelled videos: COIN, EPIC-Tent, EgoProceL, Ego-Exo4D keysteps and Assembly101."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator

from msg2.errors import InputError
from msg2.formats.json_files import keys_of_first, list_items, member, member_items, member_span
from msg2.formats.reading import (
    Reader,
    ReadOptions,
    ReadResult,
    SegmentsByVideo,
    json_reader,
    parse_frame,
    timed_segment,
)
from msg2.formats.source import Source
from msg2.formats.tables import first_cells, read_records, read_rows
from msg2.task import Segment, Step
from msg2.text import short_repr

_RATE = 30  # frames per second of EPIC-Tent and Assembly101
_log = logging.getLogger(__name__)

# -- COIN: {"database": {video: {"class": task, "annotation": [{"label": step, "segment": [start, end]}]}}} ------


def _is_coin(document: object) -> bool:
    return isinstance(document, dict) and {"class", "annotation"} <= keys_of_first(document.get("database"))


def _read_coin(file: Source, options: ReadOptions) -> ReadResult:
    labels: SegmentsByVideo = {}
    for video, value in file.document["database"].items():
        at = f"{file.path}, $.database.{video}"
        segments = labels[member(value, "class", str, at), video] = []
        for where, row in member_items(value, "annotation", dict, at):
            times = member(row, "segment", list, where)
            if len(times) != 2:
                raise InputError("is not a pair of a start and an end", where=f"{where}.segment")
            start, end = member_span(times, (0, 1), f"{where}.segment")
            segments.append(timed_segment(member(row, "label", str, where), start, end, where))
    return ReadResult.from_labels(labels, file.path.name)


COIN = json_reader("COIN (JSON)", _is_coin, _read_coin)

# -- EPIC-Tent --------------------------------------------------------------------------------------------------
# A CSV with the times of three cameras for each action of a subject, who is a video; that with the eye tracker (SMI_w)
# saw everything. Times are hours:minutes:seconds:frames, and the number of the frame.

_TENT = "EPIC-Tent"
_TENT_COLUMNS = ("subject_id", "str_SMI_w_ts", "end_SMI_w_ts", "str_SMI_w_frame", "end_SMI_w_frame", "action_label")
_TENT_STEPS = (
    "assemble support", "insert stake", "insert support", "insert support tab", "instruction", "pickup/open stakebag",
    "pickup/open supportbag", "pickup/open tentbag", "pickup/place ventcover", "place guyline", "spread tent",
    "tie top",
)  # fmt: skip
"""By their number in the file, as the documentation of the dataset lists them."""
_TIME_CODE = re.compile(r"(\d\d):(\d\d):(\d\d):(\d\d)")


def _tent_files(source: Source) -> list[Source]:
    """The files with these columns; the file of errors has the same and more."""
    headers = ((file, set(first_cells(file))) for file in source.files_or_self)
    return [f for f, columns in headers if columns.issuperset(_TENT_COLUMNS) and "error_label_main" not in columns]


def _read_tent(source: Source, options: ReadOptions) -> ReadResult:
    labels: SegmentsByVideo = {}
    file, missing = _tent_files(source)[0], 0
    for line, row in read_records(file, _TENT_COLUMNS):
        subject, number, where = row["subject_id"], row["action_label"], file.row(line)
        if not subject:
            raise InputError("the subject is empty", where=where)
        if not (number.isascii() and number.isdigit() and int(number[:3]) < len(_TENT_STEPS)):
            what = f"the action {short_repr(number)} is unknown, there are 0 … {len(_TENT_STEPS) - 1}"
            raise InputError(what, where=where)
        segments = labels.setdefault((_TENT, subject), [])
        if row["str_SMI_w_frame"] == "-1" or row["end_SMI_w_frame"] == "-1":
            missing += 1
            continue
        start, end = (
            _tent_seconds(row[f"{which}_SMI_w_ts"], row[f"{which}_SMI_w_frame"], where) for which in ("str", "end")
        )
        segments.append(timed_segment(_TENT_STEPS[int(number)], start, end, where))
    if missing:
        _log.warning("%s: rows without a time of the camera with the eye tracker, not read: %d", file.path, missing)
    return ReadResult.from_labels(labels, file.path.name, {_TENT: _TENT_STEPS})


def _tent_seconds(code: str, frame: str, where: str) -> float:
    """The time of a frame; its number and its time code must agree."""
    match = _TIME_CODE.fullmatch(code)
    hours, minutes, seconds, rest = map(int, match.groups()) if match else (0, 0, 0, -1)
    number = ((hours * 60 + minutes) * 60 + seconds) * _RATE + rest
    if str(number) != frame:
        what = f"the frame {short_repr(frame)} is not that of the time {short_repr(code)}, with {_RATE} to a second"
        raise InputError(what, where=where)
    return number / _RATE


EPIC_TENT = Reader(
    "EPIC-Tent (Synchronised_action_label.txt)", lambda source: bool(_tent_files(source)), _read_tent, ("text",)
)

# -- EgoProceL --------------------------------------------------------------------------------------------------
# A table per video without a header, or the same rows as JSON. Its folder is the task; folders of a subject
# (S07_Brownie_Video) belong to the task around them.

_SUBJECT = re.compile(r"S\d+_\w+_Video")
_SECONDS = re.compile(r"\d+(?:\.\d+)?")
_JSON_ROWS = re.compile(rb'\s*\[\s*\[\s*[\d.]+\s*,\s*[\d.]+\s*,\s*"')
_LEVELS = 3  # folders within folders in the release: dataset, category, subject


def _egoprocel_files(source: Source, task: str, levels: int = _LEVELS) -> Iterator[tuple[str, Source]]:
    """The files with the names of their tasks; a folder that holds other tables is not looked into further."""
    suffixes = (".csv", ".json", ".gz")
    files = [file for file in source.files if file.path.suffix.lower() in suffixes] if source.is_folder else [source]
    yield from ((task, file) for file in files if _is_egoprocel(file))
    for folder in source.folders if levels and not files else ():
        yield from _egoprocel_files(folder, task if _SUBJECT.fullmatch(folder.stem) else folder.stem, levels - 1)


def _is_egoprocel(file: Source) -> bool:
    are_numbers = [bool(_SECONDS.fullmatch(cell.strip())) for cell in first_cells(file)]
    return are_numbers == [True, True, False] or bool(_JSON_ROWS.match(file.head))


def _read_egoprocel(source: Source, options: ReadOptions) -> ReadResult:
    return ReadResult.from_files(
        (file, {(task, file.stem): list(_egoprocel_segments(file))})
        for task, file in _egoprocel_files(source, source.stem)
    )


def _egoprocel_segments(file: Source) -> Iterator[Segment]:
    if file.document is None:
        for line, (start, end, step) in read_rows(file, ",", 3):
            for text in (start, end):
                if not _SECONDS.fullmatch(text.strip()):
                    raise InputError(f"{short_repr(text)} is not a number of seconds", where=file.row(line))
            yield timed_segment(step.strip(), float(start), float(end), file.row(line))
        return
    for where, row in list_items(file.document, list, f"{file.path}, $"):
        yield timed_segment(member(row, 2, str, where), *member_span(row, (0, 1), where), where)


EGOPROCEL = Reader(
    "EgoProceL (start, end, key-step per row; CSV or JSON)",
    lambda source: any(True for _ in _egoprocel_files(source, source.stem)), _read_egoprocel, ("text", "JSON"),
)  # fmt: skip

# -- Ego-Exo4D: a scenario is a task, a take a video; steps are the leaves of its taxonomy and all that occur --------


def _is_keysteps(document: object) -> bool:
    needed = {"take_name", "scenario", "segments"}
    return isinstance(document, dict) and needed <= keys_of_first(document.get("annotations"))


def _read_keysteps(file: Source, options: ReadOptions) -> ReadResult:
    root = f"{file.path}, $"
    labels: SegmentsByVideo = {}
    for take, value in file.document["annotations"].items():
        at = f"{root}.annotations.{take}"
        key = (member(value, "scenario", str, at), member(value, "take_name", str, at))
        segments = labels.setdefault(key, [])
        for where, row in member_items(value, "segments", dict, at):
            start, end = member_span(row, ("start_time", "end_time"), where)
            segments.append(timed_segment(member(row, "step_name", str, where), start, end, where))
    steps = {task: _leaves(file.document.get("taxonomy"), task, root) for task, _ in labels}
    return ReadResult.from_labels(labels, file.path.name, steps)


def _leaves(taxonomy: object, task: str, root: str) -> set[Step]:
    if not isinstance(taxonomy, dict) or task not in taxonomy:
        return set()
    nodes, at = member(taxonomy, task, dict, f"{root}.taxonomy"), f"{root}.taxonomy.{task}"
    leaves = [key for key in nodes if member(nodes, key, dict, at).get("is_leafnode")]
    return {member(nodes[key], "name", str, f"{at}.{key}") for key in leaves}


EGO_EXO4D = json_reader("Ego-Exo4D keysteps (JSON)", _is_keysteps, _read_keysteps)

# -- Assembly101 ------------------------------------------------------------------------------------------------
# Fine-grained: the toy is the task, and a sequence a video, whose views show the same. Coarse: tabs between start, end
# and action, in a file named after the task and the sequence. Mistakes: start, end, verb, this, that, whether it is
# correct, a remark; the step is the verb and this.

_FINE = ("video", "start_frame", "end_frame", "action_cls", "toy_name")
_SEQUENCE = re.compile(r"(assembly|disassembly)_nusar-.+")
_VERDICTS = {"correct", "mistake", "correction"}


def _assembly_files(source: Source) -> Iterator[tuple[Source, Callable[[Source], SegmentsByVideo]]]:
    """The files in one of the layouts, also those in `coarse_labels` or `annots`, with the function that reads it."""
    folders = [folder for folder in source.folders if folder.stem in ("coarse_labels", "annots")]
    for file in (*source.files_or_self, *(file for folder in folders for file in folder.files)):
        if set(_FINE) <= set(first_cells(file)):
            yield file, _read_fine_labels
        elif _SEQUENCE.fullmatch(file.stem) and _are_frames(first_cells(file, "\t"), 3):
            yield file, _read_coarse_labels
        elif _are_frames(cells := first_cells(file), 7) and cells[5] in _VERDICTS:
            yield file, _read_mistakes


def _are_frames(cells: list[str], width: int) -> bool:
    return len(cells) == width and all(cell.isascii() and cell.isdigit() for cell in cells[:2])


def _read_fine_labels(file: Source) -> SegmentsByVideo:
    labels: SegmentsByVideo = {}
    seen: set[tuple[str, ...]] = set()
    for line, row in read_records(file, _FINE):
        toy, sequence = row["toy_name"], row["video"].partition("/")[0]
        label = (row["action_cls"], row["start_frame"], row["end_frame"])
        if (toy, sequence, *label) in seen:  # another view of the same thing
            continue
        seen.add((toy, sequence, *label))
        if not (toy and sequence):
            raise InputError("the video or the toy is empty", where=file.row(line))
        labels.setdefault((toy, sequence), []).append(_frame_segment(*label, file.row(line)))
    return labels


def _read_coarse_labels(file: Source) -> SegmentsByVideo:
    task, _, sequence = file.stem.partition("_")
    rows = read_rows(file, "\t", 3)
    return {(task, sequence): [_frame_segment(step, start, end, file.row(n)) for n, (start, end, step) in rows]}


def _read_mistakes(file: Source) -> SegmentsByVideo:
    rows = ((line, cells[:4]) for line, cells in read_rows(file, ",", 7))
    segments = [_frame_segment(f"{verb} {this}", start, end, file.row(n)) for n, (start, end, verb, this) in rows]
    return {("assembly", file.stem): segments}


def _frame_segment(step: str, first: str, last: str, where: str) -> Segment:
    return timed_segment(step, parse_frame(first, where) / _RATE, parse_frame(last, where) / _RATE, where)


ASSEMBLY101 = Reader(
    "Assembly101 (fine-grained CSV, coarse labels, or mistakes)",
    lambda source: any(True for _ in _assembly_files(source)),
    lambda source, options: ReadResult.from_files((file, read(file)) for file, read in _assembly_files(source)),
    ("text",),
)

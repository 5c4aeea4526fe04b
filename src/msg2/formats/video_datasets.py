"""Public sets of labelled videos: CrossTask, EPIC-Tent, EgoProceL and Assembly101, which are text files, and COIN,
Ego-Exo4D keysteps and CaptainCook4D, which are one JSON document each."""

import logging
import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from msg2.errors import InputError, errors_at, require
from msg2.formats import reading
from msg2.formats.json_files import JsonItem, keys_of_first, list_items, member, member_items, member_span
from msg2.formats.reading import LabelCollector, ReadOptions, file_reader, files_where, parse_frame, timed_segment
from msg2.formats.source import Source
from msg2.formats.tables import first_cells, read_records, read_rows
from msg2.task import Segment, Step
from msg2.text import short_repr

_RATE = 30  # frames per second of EPIC-Tent and Assembly101
_log = logging.getLogger(__name__)

# -- CrossTask --------------------------------------------------------------------------------------------------
# The official release: `tasks_primary.txt`, `videos.csv` and `annotations/<task>_<video>.csv`. Rows of the last are the
# number of a step, start and end; numbers count from 1 into the task's ordered list of steps.

_TASKS, _VIDEOS, _ANNOTATIONS = "tasks_primary.txt", "videos.csv", "annotations"


def _read_crosstask(source: Source, options: ReadOptions) -> reading.ReadResult:
    """Read the primary tasks that have annotations; steps that never occur stay in the list of steps."""
    release = _find_release(source) or source
    entries = _read_tasks(_require_member(release, _TASKS))
    labels = LabelCollector("")
    annotated: set[tuple[str, str]] = set()
    for file in _require_member(release, _ANNOTATIONS).files:
        number, _, video = file.stem.partition("_")
        if file.path.suffix != ".csv":
            continue
        what = f"the task {short_repr(number)} in the file's name is not in {_TASKS}"
        require(number in entries, what, where=file.path, hint="the name is <task id>_<video id>.csv")
        task, steps = entries[number]
        annotated.add((number, video))
        labels.steps[task].update(steps.values())
        segments = labels.video(file, video, task)
        for row, cells in read_rows(file, ",", 3):
            try:
                step, start, end = steps[int(cells[0])], float(cells[1]), float(cells[2])
            except (KeyError, ValueError):
                wanted = f"the number of a step (1 … {len(steps)}), a start and an end"
                raise InputError(f"{short_repr(','.join(cells))} is not {wanted}", where=file.row(row)) from None
            segments.append(timed_segment(step, start, end, file.row(row)))
    require(annotated, "has no annotations", where=release.path / _ANNOTATIONS, hint="get the official release")
    _log_missing(release, entries, annotated)
    result = labels.result()
    return replace(result, unsorted={f"{_ANNOTATIONS}/{name}": rows for name, rows in result.unsorted.items()})


def _find_release(source: Source) -> Source | None:
    if not source.is_folder:
        return None
    around = [source, *source.folders, *([Source(source.path.parent)] if source.stem == _ANNOTATIONS else [])]
    return next((folder for folder in around if folder.member(_TASKS)), None)


def _require_member(release: Source, name: str) -> Source:
    return release.member(name) or Source.at(release.path / name)  # which says that it is not there


def _read_tasks(file: Source) -> dict[str, tuple[str, dict[int, Step]]]:
    """Task id -> name, numbered steps. A block has five lines: id, name, address, number of steps, steps by commas."""
    entries: dict[str, tuple[str, dict[int, Step]]] = {}
    block: list[str] = []
    for row, line in enumerate([*(line.rstrip("\r\n") for line in file.lines()), ""], start=1):
        if line.strip():
            block.append(line)
        elif block:
            where = file.row(row - 1)
            require(len(block) == 5, f"the task above has {len(block)} lines, not five", where=where)
            number, name, _, count, names = block
            steps = names.split(",")
            fits = str(len(steps)) == count.strip()
            require(fits, f"there are {len(steps)} steps, not {short_repr(count)}", where=where)
            are_distinct = len(set(steps)) == len(steps) and "" not in steps
            require(are_distinct, "the list has an empty step, or one twice", where=where)
            if number in entries or name in dict(entries.values()):
                raise InputError(f"the task {short_repr(name)} is there twice", where=file.row(row - 5))
            entries[number] = (name, dict(enumerate(steps, start=1)))
            block = []
    return entries


def _log_missing(release: Source, tasks: Container[str], annotated: set[tuple[str, str]]) -> None:
    """Datasets rot: say how many of the listed videos have no annotation here, and go on."""
    if (file := release.member(_VIDEOS)) is None:
        return
    listed: set[tuple[str, str]] = set()
    for row, cells in read_rows(file, ",", None):
        if len(cells) >= 2 and cells[0] in tasks:
            if (cells[0], cells[1]) in listed:
                raise InputError(f"the video {short_repr(cells[1])} is listed twice", where=file.row(row))
            listed.add((cells[0], cells[1]))
    if missing := len(listed - annotated):
        _log.info("%s: %d of the %d listed videos have no annotation", release.path, missing, len(listed))


CROSSTASK = reading.Reader("the CrossTask release folder", _find_release, _read_crosstask)

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
    """The first file with these columns; the file of errors has the same and more."""
    headers = ((file, set(first_cells(file))) for file in source.files_or_self)
    return [f for f, columns in headers if columns.issuperset(_TENT_COLUMNS) and "error_label_main" not in columns][:1]


def _read_tent(file: Source, options: ReadOptions, labels: LabelCollector) -> None:
    missing = 0
    labels.steps[_TENT].update(_TENT_STEPS)
    for line, row in read_records(file, _TENT_COLUMNS[0]):
        with errors_at(file.row(line)):
            segments, number = labels.video(file, row["subject_id"], _TENT), row["action_label"]
            if not (number.isascii() and number.isdigit() and int(number[:3]) < len(_TENT_STEPS)):
                raise InputError(f"the action {short_repr(number)} is unknown, there are 0 … {len(_TENT_STEPS) - 1}")
            if "-1" in (row["str_SMI_w_frame"], row["end_SMI_w_frame"]):
                missing += 1
                continue
            start, end = (_tent_seconds(row[f"{at}_SMI_w_ts"], row[f"{at}_SMI_w_frame"]) for at in ("str", "end"))
            segments.append(Segment(_TENT_STEPS[int(number)], start, end))
    if missing:
        _log.warning("%s: rows without a time of the camera with the eye tracker, not read: %d", file.path, missing)


def _tent_seconds(code: str, frame: str) -> float:
    """The time of a frame; its number and its time code must agree."""
    match = _TIME_CODE.fullmatch(code)
    hours, minutes, seconds, rest = map(int, match.groups()) if match else (0, 0, 0, -1)
    number = ((hours * 60 + minutes) * 60 + seconds) * _RATE + rest
    what = f"the frame {short_repr(frame)} is not that of the time {short_repr(code)}, with {_RATE} to a second"
    require(str(number) == frame, what)
    return number / _RATE


EPIC_TENT = file_reader("EPIC-Tent (Synchronised_action_label.txt)", _tent_files, _read_tent)

# -- EgoProceL --------------------------------------------------------------------------------------------------
# A table per video without a header, or the same rows as JSON. Its folder is the task; folders of a subject
# (S07_Brownie_Video) belong to the task around them.

_SUBJECT = re.compile(r"S\d+_\w+_Video")
_SECONDS = re.compile(r"\d+(?:\.\d+)?")
_JSON_ROWS = re.compile(rb'\s*\[\s*\[\s*[\d.]+\s*,\s*[\d.]+\s*,\s*"')
_LEVELS = 3  # folders within folders in the release: dataset, category, subject


def _egoprocel_files(source: Source, levels: int = _LEVELS) -> list[Source]:
    """The files, also those in folders; a folder that holds other tables is not looked into further."""
    suffixes = (".csv", ".json", ".gz")
    files = [file for file in source.files if file.path.suffix.lower() in suffixes] if source.is_folder else [source]
    folders = source.folders if levels and not files else ()
    nested = [file for folder in folders for file in _egoprocel_files(folder, levels - 1)]
    return [*filter(_is_egoprocel, files), *nested]


def _is_egoprocel(file: Source) -> bool:
    are_numbers = [bool(_SECONDS.fullmatch(cell.strip())) for cell in first_cells(file)]
    return are_numbers == [True, True, False] or bool(_JSON_ROWS.match(file.head))


def _read_egoprocel(file: Source, options: ReadOptions, labels: LabelCollector) -> None:
    folders = file.around or (file.stem,)
    task = next((name for name in reversed(folders) if not _SUBJECT.fullmatch(name)), folders[0])
    segments = labels.video(file, file.stem, task)
    if file.document is not None:
        for where, row in list_items(file.document, list, f"{file.path}, $"):
            segments.append(timed_segment(member(row, 2, str, where), *member_span(row, (0, 1), where), where))
        return
    for line, (start, end, step) in read_rows(file, ",", 3):
        for text in (start, end):
            if not _SECONDS.fullmatch(text.strip()):
                raise InputError(f"{short_repr(text)} is not a number of seconds", where=file.row(line))
        segments.append(timed_segment(step.strip(), float(start), float(end), file.row(line)))


EGOPROCEL = file_reader("EgoProceL (start, end, key-step per row; CSV or JSON)", _egoprocel_files, _read_egoprocel)

# -- Assembly101 ------------------------------------------------------------------------------------------------
# Fine-grained: the toy is the task, and a sequence a video, whose views show the same. Coarse: tabs between start, end
# and action, in a file named after the task and the sequence. Mistakes: start, end, verb, this, that, whether it is
# correct, a remark; the step is the verb and this.

_FINE = ("video", "start_frame", "end_frame", "action_cls", "toy_name")
_SEQUENCE = re.compile(r"(assembly|disassembly)_nusar-.+")
_VERDICTS = {"correct", "mistake", "correction"}


def _assembly_files(source: Source) -> list[Source]:
    """The files in one of the layouts, also those in `coarse_labels` or `annots`."""
    folders = [folder for folder in source.folders if folder.stem in ("coarse_labels", "annots")]
    files = (*source.files_or_self, *(file for folder in folders for file in folder.files))
    return [file for file in files if _assembly_layout(file)]


def _assembly_layout(file: Source) -> Literal["fine", "coarse", "mistakes", ""]:
    cells = first_cells(file)
    if set(_FINE) <= set(cells):
        return "fine"
    if _SEQUENCE.fullmatch(file.stem) and _are_frames(first_cells(file, "\t"), 3):
        return "coarse"
    return "mistakes" if _are_frames(cells, 7) and cells[5] in _VERDICTS else ""


def _are_frames(cells: list[str], width: int) -> bool:
    return len(cells) == width and all(cell.isascii() and cell.isdigit() for cell in cells[:2])


def _assembly_rows(file: Source) -> Iterator[tuple[int, tuple[str, str, str, str, str]]]:
    """Every label with its line: task, video, step, first and last frame."""
    match _assembly_layout(file):
        case "fine":
            lines: dict[tuple[str, str, str, str, str], int] = {}  # several views show the same thing
            for line, row in read_records(file, _FINE[0]):
                sequence = row["video"].partition("/")[0]
                label = (row["toy_name"], sequence, row["action_cls"], row["start_frame"], row["end_frame"])
                lines.setdefault(label, line)
            yield from ((line, label) for label, line in lines.items())
        case "coarse":
            task, _, sequence = file.stem.partition("_")
            for line, (start, end, step) in read_rows(file, "\t", 3):
                yield line, (task, sequence, step, start, end)
        case _:
            for line, (start, end, verb, this, *_) in read_rows(file, ",", 7):
                yield line, ("assembly", file.stem, f"{verb} {this}", start, end)


def _read_assembly(file: Source, options: ReadOptions, labels: LabelCollector) -> None:
    for line, (task, video, step, first, last) in _assembly_rows(file):
        with errors_at(file.row(line)):
            segment = Segment(step, parse_frame(first) / _RATE, parse_frame(last) / _RATE)
            labels.video(file, video, task).append(segment)


ASSEMBLY101 = file_reader("Assembly101 (fine-grained CSV, coarse labels, or mistakes)", _assembly_files, _read_assembly)

# -- JSON documents -----------------------------------------------------------------------------------------------


_Recording: TypeAlias = tuple[str, str, Sequence[tuple[str, JsonItem]]]
"""The task and the name of a video in a document, and its rows with the path to each."""


def _documents_with(root: str, *keys: str) -> reading.FileFinder:
    """Find the documents whose first recording, under the key `root`, has these keys."""
    return files_where(lambda file: keys_of_first(file.document, root).issuperset(keys))


def _recordings(file: Source, root: str, task: str, rows: str, video: str = "") -> Iterator[_Recording]:
    """The recordings that the document has for the key `root`, or is; `task`, `rows` and `video` are keys of theirs."""
    for key, value in (file.document[root] if root else file.document).items():
        where = f"{file.path}, $" + f".{root}" * bool(root) + f".{key}"
        name = member(value, video, str, where) if video else key
        yield member(value, task, str, where), name, list(member_items(value, rows, dict, where))


# -- COIN: {"database": {video: {"class": task, "annotation": [{"label": step, "segment": [start, end]}]}}} ------


def _read_coin(file: Source, options: ReadOptions, labels: LabelCollector) -> None:
    for task, video, rows in _recordings(file, "database", "class", "annotation"):
        segments = labels.video(file, video, task)
        for where, row in rows:
            times = member(row, "segment", list, where)
            require(len(times) == 2, "is not a pair of a start and an end", where=f"{where}.segment")
            span = member_span(times, (0, 1), f"{where}.segment")
            segments.append(timed_segment(member(row, "label", str, where), *span, where))


COIN = file_reader("COIN (JSON)", _documents_with("database", "class", "annotation"), _read_coin, single=True)

# -- Ego-Exo4D: a scenario is a task, a take a video; steps are the leaves of its taxonomy and all that occur --------


def _read_keysteps(file: Source, options: ReadOptions, labels: LabelCollector) -> None:
    for task, video, rows in _recordings(file, "annotations", "scenario", "segments", "take_name"):
        if task not in labels.steps:
            labels.steps[task] = _leaves(file.document.get("taxonomy"), task, f"{file.path}, $.taxonomy")
        segments = labels.video(file, video, task)
        for where, row in rows:
            span = member_span(row, ("start_time", "end_time"), where)
            segments.append(timed_segment(member(row, "step_name", str, where), *span, where))


def _leaves(taxonomy: object, task: str, where: str) -> set[Step]:
    if not isinstance(taxonomy, dict) or task not in taxonomy:
        return set()
    nodes, at = member(taxonomy, task, dict, where), f"{where}.{task}"
    leaves = [key for key in nodes if member(nodes, key, dict, at).get("is_leafnode")]
    return {member(nodes[key], "name", str, f"{at}.{key}") for key in leaves}


_TAKES = _documents_with("annotations", "take_name", "scenario", "segments")
EGO_EXO4D = file_reader("Ego-Exo4D keysteps (JSON)", _TAKES, _read_keysteps, single=True)

# -- CaptainCook4D ----------------------------------------------------------------------------------------------
# All recordings with their real mistakes, or the published error-free selection. A negative start means that the step
# was skipped: it stays among the steps of the task, without a segment.


def _is_captaincook(file: Source) -> bool:
    keys = keys_of_first(file.document, "annotations" if "annotations" in (file.document or ()) else "")
    return "activity_name" in keys and not keys.isdisjoint(("steps", "segments"))


def _read_captaincook(file: Source, options: ReadOptions, labels: LabelCollector) -> None:
    """Read the recipes; videos are untimed, in the order of the file, unless `options.order` is "time"."""
    labels.timed = options.order == "time"
    selected = "annotations" in file.document
    keys = ("annotations", "activity_name", "segments") if selected else ("", "activity_name", "steps")
    recordings = list(_recordings(file, *keys))
    names = _step_names(recordings)
    for task, video, rows in recordings:
        segments = labels.video(file, video, task)
        for where, row in rows:
            name = names[row["step_id"], row["description"]]
            if name != row["description"]:
                _log.warning("%s: %s is read as %s", where, short_repr(row["description"]), short_repr(name))
            labels.steps[task].add(name)
            start, end = member_span(row, ("start_time", "end_time"), where)
            if start >= 0:
                segments.append(timed_segment(name, start, end, where))


def _step_names(recordings: Sequence[_Recording]) -> Mapping[tuple[int, str], Step]:
    """Map (step id, description) to the name of the step."""
    # The usual description of some step of the recipe names that step, even where the id disagrees: in the real data
    # ids of twin steps are swapped, and the descriptions fit the time. Any other one is a variant of its id's step.
    counts: Counter[tuple[int, str]] = Counter()
    task_of: dict[int, str] = {}
    for task, _, rows in recordings:
        for where, row in rows:
            step_id, description = member(row, "step_id", int, where), member(row, "description", str, where)
            require(description, "is empty, it is the name of a step", where=f"{where}.description")
            counts[step_id, description] += 1
            task_of[step_id] = task
    usual: dict[int, str] = {}
    for (step_id, description), _ in sorted(counts.items(), key=lambda item: (-item[1], item[0][1])):
        usual.setdefault(step_id, description)
    known = {(task_of[step_id], description) for step_id, description in usual.items()}
    return {
        (step_id, description): description if (task_of[step_id], description) in known else usual[step_id]
        for step_id, description in counts
    }


CAPTAINCOOK4D = file_reader(
    "CaptainCook4D annotations (JSON)", files_where(_is_captaincook), _read_captaincook, single=True
)

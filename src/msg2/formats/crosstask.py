"""CrossTask, the official release: `tasks_primary.txt`, `videos.csv` and `annotations/<task>_<video>.csv`.

Rows of an annotation are `number of the step, start, end`; numbers count from 1 into the task's ordered list of steps.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from msg2.errors import InputError
from msg2.formats.reading import (
    Reader,
    ReadOptions,
    ReadResult,
    SegmentsByVideo,
    build_tasks,
    count_unsorted,
    timed_segment,
)
from msg2.formats.source import Source
from msg2.formats.tables import read_rows
from msg2.task import Segment, Step
from msg2.text import short_repr

_TASKS, _VIDEOS, _ANNOTATIONS = "tasks_primary.txt", "videos.csv", "annotations"
_log = logging.getLogger(__name__)


def read(source: Source, options: ReadOptions) -> ReadResult:
    """Read the primary tasks that have annotations; steps that never occur stay in the list of steps."""
    release = _find_release(source) or source
    entries = _read_tasks(_require_member(release, _TASKS))
    labels: SegmentsByVideo = {}
    unsorted: dict[str, int] = {}
    for file in _require_member(release, _ANNOTATIONS).files:
        if file.path.suffix != ".csv":
            continue
        number, _, video = file.stem.partition("_")
        if number not in entries:
            what = f"the task {short_repr(number)} in the file's name is not in {_TASKS}"
            raise InputError(what, where=file.path, hint="the name is <task id>_<video id>.csv")
        task, steps = entries[number]
        own = {(task, video): list(_read_segments(file, task, steps))}
        unsorted[f"{_ANNOTATIONS}/{file.path.name}"] = count_unsorted(own)
        labels |= own
    if not labels:
        raise InputError("has no annotations", where=release.path / _ANNOTATIONS, hint="get the official release")
    _log_missing(release, {number: task for number, (task, _) in entries.items()}, labels)
    return ReadResult(build_tasks(labels, dict(entries.values())), unsorted)


def listed_steps(folder: Path) -> dict[str, list[Step]]:
    """The steps of every primary task in the order of the release, which is about that in which they are done."""
    release = _find_release(Source.at(folder))
    if release is None:
        raise InputError(f"is not the CrossTask release: there is no {_TASKS}", where=folder)
    return dict(_read_tasks(_require_member(release, _TASKS)).values())


def _find_release(source: Source) -> Source | None:
    if not source.is_folder:
        return None
    around = [source, *source.folders, *([Source(source.path.parent)] if source.stem == _ANNOTATIONS else [])]
    return next((folder for folder in around if folder.member(_TASKS)), None)


def _require_member(release: Source, name: str) -> Source:
    return release.member(name) or Source.at(release.path / name)  # which says that it is not there


def _read_tasks(file: Source) -> dict[str, tuple[str, list[Step]]]:
    """Task id -> name and steps. A block has five lines: id, name, address, number of steps, steps by commas."""
    entries: dict[str, tuple[str, list[Step]]] = {}
    block: list[str] = []
    for row, line in enumerate([*(line.rstrip("\r\n") for line in file.lines()), ""], start=1):
        if line.strip():
            block.append(line)
        elif block:
            if len(block) != 5:
                raise InputError(f"the task above has {len(block)} lines, not five", where=file.row(row - 1))
            number, name, _, count, names = block
            steps = names.split(",")
            if str(len(steps)) != count.strip():
                raise InputError(f"there are {len(steps)} steps, not {short_repr(count)}", where=file.row(row - 1))
            if len(set(steps)) < len(steps) or "" in steps:
                raise InputError("the list has an empty step, or one twice", where=file.row(row - 1))
            if number in entries or name in dict(entries.values()):
                raise InputError(f"the task {short_repr(name)} is there twice", where=file.row(row - 5))
            entries[number] = (name, steps)
            block = []
    return entries


def _read_segments(file: Source, task: str, steps: list[Step]) -> Iterator[Segment]:
    for row, cells in read_rows(file, ",", None):
        if len(cells) != 3:
            hint = "a row is: number of the step, start, end"
            raise InputError(f"the row has {len(cells)} fields, not three", where=file.row(row), hint=hint)
        try:
            number, start, end = int(cells[0]), float(cells[1]), float(cells[2])
        except ValueError:
            what = f"{short_repr(','.join(cells))} is not a step's number, a start and an end"
            raise InputError(what, where=file.row(row)) from None
        if not 1 <= number <= len(steps):
            what = f"the step number {number} is unknown, task {short_repr(task)} has 1 … {len(steps)}"
            raise InputError(what, where=file.row(row))
        yield timed_segment(steps[number - 1], start, end, file.row(row))


def _log_missing(release: Source, tasks: dict[str, str], labels: SegmentsByVideo) -> None:
    """Datasets rot: say how many of the listed videos have no annotation here, and go on."""
    file = release.member(_VIDEOS)
    if file is None:
        return
    listed: set[tuple[str, str]] = set()
    for row, cells in read_rows(file, ",", None):
        if len(cells) >= 2 and cells[0] in tasks:
            video = (tasks[cells[0]], cells[1])
            if video in listed:
                raise InputError(f"the video {short_repr(cells[1])} is listed twice", where=file.row(row))
            listed.add(video)
    missing = len(listed - labels.keys())
    if missing:
        _log.info("%s: %d of the %d listed videos have no annotation", release.path, missing, len(listed))


READER = Reader("the CrossTask release folder", lambda source: _find_release(source) is not None, read, ())

"""CaptainCook4D: all recordings with their real mistakes, or the published error-free selection; and its task graphs.

A negative start means that the step was skipped: it stays among the steps of the task, without a segment.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msg2.errors import InputError, errors_at
from msg2.formats.json_files import JsonItem, keys_of_first, list_items, matching_files, member, only_matching_file
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
from msg2.graph import END, START, SubtaskGraph, all_of
from msg2.graph import step as literal
from msg2.task import Segment, Step
from msg2.text import short_repr

_log = logging.getLogger(__name__)


class _CaptainCookLabel(NamedTuple):
    """One row of a recording; `where` is the path to it."""

    task: str
    recording: str
    step_id: int
    description: str
    start: float
    end: float
    where: str


def read(source: Source, options: ReadOptions) -> ReadResult:
    """Read the recipes; videos are untimed, in the order of the file, unless `options.order` is "time"."""
    file = only_matching_file(source, _is_annotation)
    labels = list(_read_labels(file))
    names = _step_names(labels)
    timed: SegmentsByVideo = {(label.task, label.recording): [] for label in labels}
    steps: dict[str, set[Step]] = {label.task: set() for label in labels}
    for label in labels:
        name = names[label.step_id, label.description]
        steps[label.task].add(name)
        if name != label.description:
            _log.warning("%s: %s is read as %s", label.where, short_repr(label.description), short_repr(name))
        if label.start >= 0:
            timed[label.task, label.recording].append(timed_segment(name, label.start, label.end, label.where))
    untimed = {key: [Segment(segment.step) for segment in segments] for key, segments in timed.items()}
    tasks = build_tasks(timed if options.order == "time" else untimed, steps)
    return ReadResult(tasks, {file.path.name: count_unsorted(timed)})


def _is_annotation(document: object) -> bool:
    if not isinstance(document, dict):
        return False
    keys = keys_of_first(document.get("annotations", document))
    return "activity_name" in keys and not keys.isdisjoint(("steps", "segments"))


def _read_labels(file: Source) -> Iterator[_CaptainCookLabel]:
    selected = "annotations" in file.document
    root = f"{file.path}, $" + (".annotations" if selected else "")
    for recording, value in (file.document["annotations"] if selected else file.document).items():
        at = f"{root}.{recording}"
        task = member(value, "activity_name", str, at)
        rows = "segments" if selected else "steps"
        for where, row in list_items(member(value, rows, list, at), dict, f"{at}.{rows}"):
            step_id, description = member(row, "step_id", int, where), member(row, "description", str, where)
            if not description:
                raise InputError("is empty, it is the name of a step", where=f"{where}.description")
            start, end = (member(row, key, (int, float), where) for key in ("start_time", "end_time"))
            yield _CaptainCookLabel(task, recording, step_id, description, start, end, where)


def _step_names(labels: list[_CaptainCookLabel]) -> Mapping[tuple[int, str], Step]:
    """(step id, description) -> the name of the step.

    A description that is the usual one of some step of the recipe names that step, even where the id disagrees (in
    the real data ids of twin steps are swapped, and the descriptions are the ones that fit the time). Any other
    description is a variant: the step is then the one of its id.
    """
    usual: dict[int, str] = {}
    counts = Counter((label.step_id, label.description) for label in labels)
    for (step_id, description), _ in sorted(counts.items(), key=lambda item: (-item[1], item[0][1])):
        usual.setdefault(step_id, description)
    task_of = {label.step_id: label.task for label in labels}
    known = {(task_of[step_id], description) for step_id, description in usual.items()}
    return {
        (step_id, description): description if (task_of[step_id], description) in known else usual[step_id]
        for step_id, description in counts
    }


def is_task_graph(document: object) -> bool:
    """Whether a JSON document is a CaptainCook4D task graph: `{"steps": {id: name}, "edges": [[before, after]]}`."""
    return isinstance(document, dict) and isinstance(document.get("steps"), dict) and "edges" in document


def parse_task_graph(document: JsonItem, source: Source) -> SubtaskGraph:
    """The graph of a CaptainCook4D task graph: a step needs all its direct parents; START and END are left out."""
    root = f"{source.path}, $"
    names = {number: member(document["steps"], number, str, f"{root}.steps") for number in document["steps"]}
    inner = {number for number, name in names.items() if name not in (START, END)}
    parents: dict[Step, set[Step]] = {}
    for where, pair in list_items(member(document, "edges", list, root), list, f"{root}.edges"):
        edge = [str(number) for number in pair]
        if len(edge) != 2 or not set(edge) <= names.keys():
            raise InputError("is not a pair of step ids [before, after]", where=where)
        before, after = edge
        if before in inner and after in inner:
            parents.setdefault(names[after], set()).add(names[before])
    preconditions = {name: all_of([literal(parent) for parent in sorted(needed)]) for name, needed in parents.items()}
    with errors_at(source.path):
        return SubtaskGraph(source.stem, [names[number] for number in inner], preconditions)


READER = Reader(
    "CaptainCook4D annotations (JSON)", lambda source: bool(matching_files(source, _is_annotation)), read, ("JSON",)
)

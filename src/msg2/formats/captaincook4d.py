"""CaptainCook4D: all recordings with their real mistakes, or the published error-free selection; and its task graphs.

A negative start means that the step was skipped: it stays among the steps of the task, without a segment.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from msg2.errors import InputError, errors_at
from msg2.formats.json_files import JsonItem, keys_of_first, member, member_items, member_span
from msg2.formats.reading import ReadOptions, ReadResult, SegmentsByVideo, build_tasks, json_reader, timed_segment
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


def _read(file: Source, options: ReadOptions) -> ReadResult:
    """Read the recipes; videos are untimed, in the order of the file, unless `options.order` is "time"."""
    labels = list(_read_labels(file))
    names = _step_names(labels)
    timed: SegmentsByVideo = {}
    steps: dict[str, set[Step]] = {}
    for label in labels:
        name = names[label.step_id, label.description]
        steps.setdefault(label.task, set()).add(name)
        segments = timed.setdefault((label.task, label.recording), [])
        if name != label.description:
            _log.warning("%s: %s is read as %s", label.where, short_repr(label.description), short_repr(name))
        if label.start >= 0:
            segments.append(timed_segment(name, label.start, label.end, label.where))
    result = ReadResult.from_labels(timed, file.path.name, steps)
    if options.order == "time":
        return result
    untimed = {key: [Segment(segment.step) for segment in segments] for key, segments in timed.items()}
    return replace(result, tasks=build_tasks(untimed, steps))


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
        for where, row in member_items(value, "segments" if selected else "steps", dict, at):
            step_id, description = member(row, "step_id", int, where), member(row, "description", str, where)
            if not description:
                raise InputError("is empty, it is the name of a step", where=f"{where}.description")
            start, end = member_span(row, ("start_time", "end_time"), where)
            yield _CaptainCookLabel(task, recording, step_id, description, start, end, where)


def _step_names(labels: list[_CaptainCookLabel]) -> Mapping[tuple[int, str], Step]:
    """(step id, description) -> the name of the step.

    The usual description of some step of the recipe names that step, even where the id disagrees: in the real data ids
    of twin steps are swapped, and the descriptions fit the time. Any other one is a variant of the step of its id.
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
    for where, pair in member_items(document, "edges", list, root):
        edge = [str(number) for number in pair]
        if len(edge) != 2 or not set(edge) <= names.keys():
            raise InputError("is not a pair of step ids [before, after]", where=where)
        before, after = edge
        if before in inner and after in inner:
            parents.setdefault(names[after], set()).add(names[before])
    preconditions = {name: all_of([literal(parent) for parent in sorted(needed)]) for name, needed in parents.items()}
    with errors_at(source.path):
        return SubtaskGraph(source.stem, [names[number] for number in inner], preconditions)


READER = json_reader("CaptainCook4D annotations (JSON)", _is_annotation, _read)

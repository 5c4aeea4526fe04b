"""Ego-Exo4D keysteps: `{"annotations": {take: {"take_name", "scenario", "segments": [...]}}, "taxonomy": {...}}`.

A scenario is a task, a take a video. Steps are the leaves of the scenario's taxonomy and all that occur; seconds.
"""

from __future__ import annotations

from typing import Any

from msg2.options import ReadOptions
from msg2.readers.documents import fitting_files, member, the_file
from msg2.readers.found import Found, Labels, tasks_of, timed_segment, unsorted_rows
from msg2.readers.sources import Source
from msg2.task import Step

READS = "Ego-Exo4D keysteps (JSON)"
TAKES = ()


def recognises(source: Source) -> bool:
    """Whether the file, or a file in the folder, is an annotation of keysteps."""
    return bool(fitting_files(source, _is_keysteps))


def read(source: Source, options: ReadOptions) -> Found:
    """One task per scenario."""
    file = the_file(source, _is_keysteps)
    root = f"{file.path}, $"
    labels: Labels = {}
    for take, value in file.document["annotations"].items():
        at = f"{root}.annotations.{take}"
        key = (member(value, "scenario", str, at), member(value, "take_name", str, at))
        segments = labels.setdefault(key, [])
        for position in range(len(member(value, "segments", list, at))):
            where = f"{at}.segments[{position}]"
            row = member(value["segments"], position, dict, f"{at}.segments")
            start, end = (member(row, name, (int, float), where) for name in ("start_time", "end_time"))
            segments.append(timed_segment(member(row, "step_name", str, where), start, end, where))
    steps: dict[str, set[Step]] = {task: _leaves(file.document.get("taxonomy"), task, root) for task, _ in labels}
    for (task, _), segments in labels.items():
        steps[task].update(segment.step for segment in segments)
    return Found.of(tasks_of(labels, steps), {file.path.name: unsorted_rows(labels)})


def _is_keysteps(document: Any) -> bool:
    takes = document.get("annotations") if isinstance(document, dict) else None
    first = next(iter(takes.values()), None) if isinstance(takes, dict) else None
    return isinstance(first, dict) and {"take_name", "scenario", "segments"} <= first.keys()


def _leaves(taxonomy: Any, task: str, root: str) -> set[Step]:
    if not isinstance(taxonomy, dict) or task not in taxonomy:
        return set()
    nodes, at = member(taxonomy, task, dict, f"{root}.taxonomy"), f"{root}.taxonomy.{task}"
    leaves = [key for key in nodes if member(nodes, key, dict, at).get("is_leafnode")]
    return {member(nodes[key], "name", str, f"{at}.{key}") for key in leaves}

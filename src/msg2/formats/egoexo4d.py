"""Ego-Exo4D keysteps: `{"annotations": {take: {"take_name", "scenario", "segments": [...]}}, "taxonomy": {...}}`.

A scenario is a task, a take a video. Steps are the leaves of the scenario's taxonomy and all that occur; seconds.
"""

from __future__ import annotations

from typing import Any

from msg2.formats.json_files import keys_of_first, list_items, matching_files, member, only_matching_file
from msg2.formats.reading import Reader, ReadOptions, ReadResult, SegmentsByVideo, timed_segment
from msg2.formats.source import Source
from msg2.task import Step

DESCRIPTION = "Ego-Exo4D keysteps (JSON)"


def can_read(source: Source) -> bool:
    """Whether the file, or a file in the folder, is an annotation of keysteps."""
    return bool(matching_files(source, _is_keysteps))


def read(source: Source, options: ReadOptions) -> ReadResult:
    """Read one task per scenario.

    Parameters
    ----------
    source : Source
        A file or folder that `can_read` accepts.
    options : ReadOptions
        Not looked at.

    Returns
    -------
    ReadResult
        The tasks, every label kept.

    Raises
    ------
    InputError
        Where something is wrong with the data.
    """
    file = only_matching_file(source, _is_keysteps)
    root = f"{file.path}, $"
    labels: SegmentsByVideo = {}
    for take, value in file.document["annotations"].items():
        at = f"{root}.annotations.{take}"
        key = (member(value, "scenario", str, at), member(value, "take_name", str, at))
        segments = labels.setdefault(key, [])
        for where, row in list_items(member(value, "segments", list, at), dict, f"{at}.segments"):
            start, end = (member(row, name, (int, float), where) for name in ("start_time", "end_time"))
            segments.append(timed_segment(member(row, "step_name", str, where), start, end, where))
    steps = {task: _leaves(file.document.get("taxonomy"), task, root) for task, _ in labels}
    return ReadResult.from_labels(labels, file.path.name, steps)


def _is_keysteps(document: Any) -> bool:
    needed = {"take_name", "scenario", "segments"}
    return isinstance(document, dict) and needed <= keys_of_first(document.get("annotations"))


def _leaves(taxonomy: Any, task: str, root: str) -> set[Step]:
    if not isinstance(taxonomy, dict) or task not in taxonomy:
        return set()
    nodes, at = member(taxonomy, task, dict, f"{root}.taxonomy"), f"{root}.taxonomy.{task}"
    leaves = [key for key in nodes if member(nodes, key, dict, at).get("is_leafnode")]
    return {member(nodes[key], "name", str, f"{at}.{key}") for key in leaves}


READER = Reader(DESCRIPTION, can_read, read, ("JSON",))

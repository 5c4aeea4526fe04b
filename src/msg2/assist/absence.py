"""What a missing label means: that the step was not done, or perhaps only that nobody labelled it."""

from __future__ import annotations

from collections.abc import Mapping

from msg2.graph import SubtaskGraph
from msg2.task import Absent, Task


def absent_meaning(graph: SubtaskGraph, task: Task | None) -> Absent:
    """Say whether a step without a label was skipped."""
    options = graph.method.get("options")
    recorded = options.get("absent") if isinstance(options, Mapping) else None
    if recorded == "skipped":
        return "skipped"
    return "unknown" if recorded == "unknown" or task is None else task.absent

"""How noisy labels are, in the paper's terms: the share of labels that violate the true graph (Sec. 3)."""

from __future__ import annotations

from msg2.evidence import Evidence
from msg2.graph import SubtaskGraph
from msg2.task import Task


def violation_rate(task: Task, graph: SubtaskGraph) -> float:
    """The share of all labels of `task` that start while their true precondition does not hold; 0 without labels.

    >>> from msg2.graph import step
    >>> from msg2.task import Segment, Video
    >>> toast = SubtaskGraph("toast", ["fry", "flip"], {"flip": step("fry")})
    >>> violation_rate(Task("toast", toast.steps, [Video("v", [Segment("flip", 0, 1), Segment("fry", 2, 3)])]), toast)
    0.5
    """
    evidence = Evidence.of(task)
    labels = len(evidence.step)
    return evidence.violations(graph.preconditions) / labels if labels else 0.0

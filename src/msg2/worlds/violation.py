"""How noisy labels are, in the paper's terms: the share of labels that violate the true graph (Sec. 3)."""

from __future__ import annotations

from msg2.graph import TRUE, SubtaskGraph
from msg2.task import Segment, Task, Video


def violation_rate(task: Task, graph: SubtaskGraph) -> float:
    """The share of all labels of the timed `task` that violate `graph`; 0 where there are no labels.

    >>> from msg2.graph import step
    >>> toast = SubtaskGraph("toast", ["fry", "flip"], {"flip": step("fry")})
    >>> violation_rate(Task("toast", toast.steps, [Video("v", [Segment("flip", 0, 1), Segment("fry", 2, 3)])]), toast)
    0.5
    """
    labels = sum(len(video.segments) for video in task)
    return sum(len(violations(video, graph)) for video in task) / labels if labels else 0.0


def violations(video: Video, graph: SubtaskGraph) -> tuple[Segment, ...]:
    """The segments that start while their true precondition does not hold on the labels completed by then."""
    return tuple(
        segment
        for segment in video.segments
        if not graph.preconditions.get(segment.step, TRUE).evaluate(
            {other.step for other in video.segments if other.before(segment)}
        )
    )

"""Graphs, and random videos that deviate from them."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from msg2.assist.deviations import Deviation, DeviationDetector
from msg2.graph import SubtaskGraph, all_of, any_of, step
from msg2.task import Segment, Task, Video

NAMES = "abcde"
CHAIN = SubtaskGraph("toast", ["whisk", "dip", "fry"], {"dip": step("whisk"), "fry": step("dip")})
COFFEE = SubtaskGraph(
    "coffee", ["boil", "grind", "open", "pour"], {"pour": all_of([step("boil"), any_of([step("grind"), step("open")])])}
)


def untimed(steps: Sequence[str], id: str = "v") -> Video:
    return Video(id, map(Segment, steps))


def task(graph: SubtaskGraph, *sequences: Sequence[str]) -> Task:
    return Task(graph.task, graph.steps, [untimed(steps, f"v{n:03d}") for n, steps in enumerate(sequences)])


def deviations(graph: SubtaskGraph, video: Video) -> list[tuple[Deviation, ...]]:
    detector = DeviationDetector(graph)
    return [detector.detect(segment) for segment in video.segments]


@st.composite
def graphs(draw: st.DrawFn, ors: bool = True) -> SubtaskGraph:
    preconditions = {}
    for place, name in enumerate(NAMES[1:], start=1):
        literals = st.lists(st.sampled_from(NAMES[:place]).map(step), max_size=3)
        joined = literals.map(all_of) | literals.filter(bool).map(any_of) if ors else literals.map(all_of)
        preconditions[name] = draw(st.lists(joined, max_size=2).map(all_of))
    return SubtaskGraph("task", NAMES, preconditions)


SEQUENCES = st.lists(st.sampled_from(NAMES), max_size=8)
TIMED = st.lists(
    st.builds(
        lambda name, start, length: Segment(name, start, start + length),
        st.sampled_from(NAMES), st.integers(0, 8), st.integers(0, 4),
    ),
    max_size=8,
).map(lambda segments: Video("v", segments))  # fmt: skip
VIDEOS = TIMED | SEQUENCES.map(untimed)

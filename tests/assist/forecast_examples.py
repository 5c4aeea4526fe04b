"""A task of four steps, its graph and random videos of it."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from msg2.graph import SubtaskGraph, all_of, step
from msg2.task import Segment, Task, Video

NAMES = "abcd"
GRAPH = SubtaskGraph("t", NAMES, {"c": all_of([step("a"), step("b")])})


def task_of(sequences: Sequence[str], steps: str = NAMES, name: str = "t") -> Task:
    return Task(name, steps, [Video(f"v{n:02}", map(Segment, s)) for n, s in enumerate(sequences)])


SEQUENCES = st.lists(st.permutations(NAMES).flatmap(lambda p: st.integers(1, 4).map(lambda n: "".join(p[:n]))),
                     min_size=1, max_size=8)  # fmt: skip
DONE = st.lists(st.sampled_from(NAMES), unique=True, max_size=3)

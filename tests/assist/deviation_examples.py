"""Graphs, the runs that they allow by definition, and random videos that deviate from them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from hypothesis import strategies as st

from msg2.assist.following import Deviation, Run
from msg2.graph import SubtaskGraph, all_of, any_of, step
from msg2.task import Segment, Task, Video

NAMES = "abcde"
CHAIN = SubtaskGraph("toast", ["whisk", "dip", "fry"], {"dip": step("whisk"), "fry": step("dip")})
COFFEE = SubtaskGraph(
    "coffee", ["boil", "grind", "open", "pour"], {"pour": all_of([step("boil"), any_of([step("grind"), step("open")])])}
)
TEA = SubtaskGraph(
    "tea", ["boil", "bag", "leaves", "pour", "sugar", "stir"],
    {"pour": all_of([step("boil"), any_of([step("bag"), step("leaves")])]), "stir": step("pour")},
    order=[("sugar", "stir")], exclusive=[("bag", "leaves")], optional=["sugar", "stir"], repeats={"stir": 0.3},
)  # fmt: skip


def untimed(steps: Sequence[str], id: str = "v") -> Video:
    return Video(id, map(Segment, steps))


def task(graph: SubtaskGraph, *sequences: Sequence[str]) -> Task:
    return Task(graph.task, graph.steps, [untimed(steps, f"v{n:03d}") for n, steps in enumerate(sequences)])


def deviations(graph: SubtaskGraph, video: Video) -> list[tuple[Deviation, ...]]:
    run = Run(graph)
    return [run.step(segment) for segment in video.segments]


@st.composite
def graphs(draw: st.DrawFn, ors: bool = True) -> SubtaskGraph:
    """Preconditions only."""
    return SubtaskGraph("task", NAMES, _draw_preconditions(draw, NAMES, ors))


@st.composite
def graphs_of_all_kinds(draw: st.DrawFn, names: str = NAMES, ors: bool = True) -> SubtaskGraph:
    """Preconditions, order, exclusive groups and optional steps; some of these graphs allow no run at all."""
    pairs = [(before, after) for place, after in enumerate(names) for before in names[:place]]
    return SubtaskGraph(
        "task", names, _draw_preconditions(draw, names, ors),
        order=draw(st.lists(st.sampled_from(pairs), max_size=4)),
        exclusive=draw(st.lists(st.sets(st.sampled_from(names), min_size=2, max_size=3), max_size=2)),
        optional=draw(st.sets(st.sampled_from(names))),
    )  # fmt: skip


def _draw_preconditions(draw: st.DrawFn, names: str, ors: bool) -> dict:
    preconditions = {}
    for place, name in enumerate(names[1:], start=1):
        literals = st.lists(st.sampled_from(names[:place]).map(step), max_size=3)
        joined = literals.map(all_of) | literals.filter(bool).map(any_of) if ors else literals.map(all_of)
        preconditions[name] = draw(st.lists(joined, max_size=2).map(all_of))
    return preconditions


def orders(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Every order of every set of steps."""
    return [order for size in range(len(names) + 1) for order in permutations(names, size)]


def is_faultless(graph: SubtaskGraph, order: Sequence[str]) -> bool:
    """By definition: every step was eligible when it came, and nothing is left out that may not be."""
    groups = [group for group in graph.exclusive if graph.optional.isdisjoint(group)]
    return (
        all(name in graph.eligible(order[:place]) for place, name in enumerate(order))
        and graph.required <= set(order)
        and not any(set(order).isdisjoint(group) for group in groups)
    )


def faultless_runs(graph: SubtaskGraph) -> list[tuple[str, ...]]:
    return [order for order in orders(graph.steps) if order and is_faultless(graph, order)]


SEQUENCES = st.lists(st.sampled_from(NAMES), max_size=8)
TIMED = st.lists(
    st.builds(
        lambda name, start, length: Segment(name, start, start + length),
        st.sampled_from(NAMES), st.integers(0, 8), st.integers(0, 4),
    ),
    max_size=8,
).map(lambda segments: Video("v", segments))  # fmt: skip
VIDEOS = TIMED | SEQUENCES.map(untimed)

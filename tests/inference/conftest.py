"""Slow, obvious reference answers, straight from the paper: loops over videos, segments and formulas, and networkx."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count, product

import networkx
from hypothesis import strategies as st

from msg2.graph import Formula
from msg2.task import Segment, Step, Task, Video

NAMES = "abcdef"
DELTAS = st.sampled_from([0.3, 0.5, 0.55, 0.6, 0.75, 0.8, 0.96])
Gaps = Mapping[Step, int]


@st.composite
def tasks(draw: st.DrawFn, most_steps: int = 5, most_videos: int = 6, repeats: bool = False) -> Task:
    """Timed tasks (overlaps, instants and equal times are common) and untimed ones; some steps are never seen."""
    steps = NAMES[: draw(st.integers(1, most_steps))]
    segments = untimed_segments(steps)
    if draw(st.booleans()):
        segments = st.builds(timed_segment, st.sampled_from(steps), st.integers(0, 8), st.integers(0, 3))
    labels = st.lists(segments, max_size=len(steps) + 2, unique_by=None if repeats else lambda segment: segment.step)
    seen = draw(st.lists(labels, min_size=1, max_size=most_videos))
    return Task("task", steps, (Video(f"v{number}", inner) for number, inner in enumerate(seen)))


def untimed_segments(steps: str) -> st.SearchStrategy[Segment]:
    return st.sampled_from(steps).map(Segment)


def timed_segment(step: Step, start: int, seconds: int) -> Segment:
    return Segment(step, start, start + seconds)


def ends(video: Video, place: int) -> float:
    """When a segment has ended; untimed segments end one after the other."""
    end = video.segments[place].end
    return place if end is None else end


def precedes(video: Video, one: int, other: int) -> bool:
    """a ends no later than b starts; two instants at the same time say nothing about order."""
    first, second = video.segments[one], video.segments[other]
    if first.start is None or first.end is None or second.start is None or second.end is None:
        return one < other
    both_instants_at_once = first.start == first.end == second.start == second.end
    return first.end <= second.start and not both_instants_at_once


def gaps_at(video: Video, place: int) -> dict[Step, int]:
    """What was completed when a segment started: from 1 for the step completed last, equal moments alike."""
    moment: dict[Step, float] = {}
    for other, segment in enumerate(video.segments):
        if precedes(video, other, place):
            moment[segment.step] = min(ends(video, other), moment.get(segment.step, float("inf")))
    return {name: 1 + sum(later > ended for later in moment.values()) for name, ended in moment.items()}


def dataset(task: Task, target: Step) -> list[tuple[str, dict[Step, int]]]:
    """D_n: (video, gaps of the other steps) for every label of the target."""
    return [
        (video.id, {name: gap for name, gap in gaps_at(video, place).items() if name != target})
        for video in task
        for place, segment in enumerate(video.segments)
        if segment.step == target
    ]


def times_before(task: Task, one: Step, other: Step) -> int:
    """How often `one` was completed when `other` started."""
    return sum(one in gaps for _, gaps in dataset(task, other))


def critical_graph(task: Task, delta: float) -> tuple[networkx.DiGraph, int]:
    """Critical pairs without cycles, and the co-occurrence count up to which pairs had to be ignored."""
    counts = {(n, m): times_before(task, n, m) for n in task.steps for m in task.steps if n != m}
    together = {(n, m): counts[n, m] + counts[m, n] for n, m in counts}
    critical = [pair for pair in counts if together[pair] and counts[pair] / together[pair] > delta]
    for least in count():
        graph = networkx.DiGraph()
        graph.add_nodes_from(task.steps)
        graph.add_edges_from(pair for pair in critical if together[pair] > least)
        if networkx.is_directed_acyclic_graph(graph):
            return graph, least
    raise AssertionError


def longest_paths(graph: networkx.DiGraph) -> dict[Step, int]:
    """Depth of every node: the longest path that ends in it."""
    depth: dict[Step, int] = {}
    for name in networkx.topological_sort(graph):
        depth[name] = max((depth[parent] + 1 for parent in graph.predecessors(name)), default=0)
    return depth


def states(names: str | tuple[Step, ...] | list[Step]) -> Iterator[frozenset[Step]]:
    """All 2^N completion vectors."""
    for bits in product([False, True], repeat=len(names)):
        yield frozenset(name for name, bit in zip(names, bits, strict=True) if bit)


def chance(formula: Formula) -> float:
    """E_c[f(c)] by enumeration."""
    values = [formula.evaluate(state) for state in states(sorted(formula.steps))]
    return sum(values) / len(values)


def name_order(formula: Formula) -> tuple[int, list[Step], str]:
    """Of equal scores the first by this is taken: fewer literals, then by name, then AND before OR."""
    return formula.literal_count, sorted(formula.steps), formula.kind

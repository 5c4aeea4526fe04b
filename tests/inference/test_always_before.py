"""Always-before against networkx, and against the truth where the data are clean."""

from __future__ import annotations

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.graph import all_of, step
from msg2.inference import infer
from msg2.inference.baselines import AlwaysBeforeOptions, learn_always_before
from msg2.sequences import Sequences
from msg2.simulation import NoiseOptions, RandomWorldOptions, random_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Segment, Task, Video
from tests.inference.conftest import DELTAS, NAMES, critical_graph, tasks, times_before


@given(tasks(repeats=True), DELTAS)
def test_delta(task: Task, delta: float) -> None:
    hasse = networkx.transitive_reduction(critical_graph(task, delta)[0])
    learnt = learn_always_before(Sequences.from_task(task), AlwaysBeforeOptions(delta=delta))
    assert learnt.preconditions == {name: all_of(map(step, hasse.predecessors(name))) for name in task.steps}


@given(st.lists(st.permutations(NAMES), min_size=1, max_size=6))
def test_strict_is_what_every_video_agrees_on(sequences: list[list[str]]) -> None:
    task = Task("t", NAMES, (Video(str(number), map(Segment, seen)) for number, seen in enumerate(sequences)))
    agreed = networkx.DiGraph()
    agreed.add_nodes_from(NAMES)
    agreed.add_edges_from(
        (a, b) for a in NAMES for b in NAMES if a != b and all(seen.index(a) < seen.index(b) for seen in sequences)
    )
    graph = infer(task, "always-before")
    assert graph.edge_pairs() == set(networkx.transitive_reduction(agreed).edges)


@given(tasks(repeats=True))
def test_strict_never_contradicts_a_video_unless_a_circle_was_broken(task: Task) -> None:
    for parent, name in order_edges(task):
        assert times_before(task, parent, name) > 0 == times_before(task, name, parent)


def order_edges(task: Task) -> frozenset[tuple[str, str]]:
    learnt = learn_always_before(Sequences.from_task(task), AlwaysBeforeOptions())
    return frozenset((parent, name) for name, formula in learnt.preconditions.items() for parent in formula.steps)


def test_a_circle_is_broken_and_said() -> None:
    seen = ["ab", "ab", "bc", "bc", "ca"]
    task = Task("t", "abc", (Video(str(number), map(Segment, steps)) for number, steps in enumerate(seen)))
    learnt = learn_always_before(Sequences.from_task(task), AlwaysBeforeOptions())
    assert learnt.preconditions == {"a": all_of([]), "b": step("a"), "c": step("b")}
    assert len(learnt.notes) == 1


@pytest.mark.parametrize("seed", range(6))
def test_clean_worlds_without_or_are_recovered_exactly(seed: int) -> None:
    world = random_world(RandomWorldOptions(steps=12, depth=4, or_rate=0), seed)
    task = simulate(world, SimulationOptions(videos=500, noise=NoiseOptions.none()), seed).task
    graph = infer(task, "always-before")
    assert graph.preconditions == world.graph.preconditions
    for name in world.graph.steps:
        assert graph.evidence[name]["holds"] == graph.evidence[name]["videos"] == 500

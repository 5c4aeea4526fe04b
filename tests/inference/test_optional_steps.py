"""Optional and interchangeable steps, against hand-made tasks and scipy's Fisher test."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from msg2.graph import SubtaskGraph, any_of, step
from msg2.inference import infer
from msg2.inference.result import _hypergeometric_tail, interchangeable_steps, optional_steps
from msg2.sequences import Sequences
from msg2.simulation import NoiseOptions, World, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Segment, Task, Video


def task_of(*sequences: str) -> Task:
    steps = sorted(set("".join(sequences)))
    return Task("t", steps, (Video(f"v{number:03}", map(Segment, seen)) for number, seen in enumerate(sequences)))


def test_an_optional_step_is_left_out_and_not_needed() -> None:
    task = task_of(*["abc"] * 8, *["ab"] * 2, *["b"] * 2)
    graph = SubtaskGraph("t", "abc", {"b": step("a")})
    assert optional_steps(Sequences.from_task(task), graph) == {"c": 4}
    assert optional_steps(Sequences.from_task(task), SubtaskGraph("t", "abc", {})) == {"c": 4}


def test_what_labels_lack_everywhere_is_not_optional() -> None:
    rng = random.Random(1)
    everyone = task_of(*("".join(s for s in "abcdef" if rng.random() < 0.7) for _ in range(60)))
    assert optional_steps(Sequences.from_task(everyone), SubtaskGraph("t", "abcdef", {})) == {}


def test_a_step_that_is_never_seen_or_never_missing_is_not_optional() -> None:
    task = Task("t", "abz", [Video("v", map(Segment, "ab")), Video("w", map(Segment, "ab")), Video("x", [])])
    assert optional_steps(Sequences.from_task(task), SubtaskGraph("t", "abz", {})) == {}


def test_three_ways_to_do_one_thing() -> None:
    task = task_of(*["axz", "ayz", "awz"] * 24, "axyz")
    assert interchangeable_steps(Sequences.from_task(task)) == [("w", "x", "y")]


def test_the_alternatives_of_a_world_are_found() -> None:
    graph = SubtaskGraph("tea", "abcd", {"c": any_of([step("a"), step("b")]), "d": step("c")})
    options = SimulationOptions(videos=60, both_branches=0.0, noise=NoiseOptions.none())
    sequences = Sequences.from_task(simulate(World(graph), options, seed=0).task)
    assert interchangeable_steps(sequences) == [("a", "b")]


def test_chance_is_not_called_a_role() -> None:
    rng = random.Random(0)
    for _ in range(20):
        task = task_of("abcdef", *("".join(s for s in "abcdef" if rng.random() < 0.3) for _ in range(30)))
        assert interchangeable_steps(Sequences.from_task(task)) == []


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=25))
def test_the_chance_is_that_of_fisher(seen: list[tuple[bool, bool]]) -> None:
    one, other = np.array(seen).T
    table = [[np.sum(one & other), np.sum(one & ~other)], [np.sum(~one & other), np.sum(~one & ~other)]]
    assert _hypergeometric_tail(one, other) == pytest.approx(fisher_exact(table, alternative="less").pvalue)


def test_a_graph_tells_the_parts_of_its_steps() -> None:
    """Methods that know preconditions only have them in the evidence; `likelihood` in the graph itself."""
    graph = infer(task_of(*["axzo", "ayz", "awz", "axz", "ayzo", "awzo"] * 12), "msg2", delta=0.9)
    assert graph.evidence["x"]["instead"] == ["w", "y"]
    assert "Videos show it or 'w' or 'y', hardly ever both." in graph.explain("x")
    assert "It is optional: 36 of 72 videos do without it, and no step needs it." in graph.explain("o")
    assert "It held, for instance, in: v000, v001" in graph.explain("z")

"""Random worlds are what was asked for."""

from __future__ import annotations

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.simulation import RandomWorldOptions, World, random_world


@st.composite
def shapes(draw: st.DrawFn) -> RandomWorldOptions:
    depth = draw(st.integers(0, 6))
    steps = draw(st.integers(2 * (depth + 1), 40))
    return RandomWorldOptions(steps, depth, draw(st.sampled_from([0.0, 0.2, 0.5, 1.0])), draw(st.integers(2, 5)))


def check_shape(one: World, options: RandomWorldOptions) -> None:
    graph = one.graph
    hasse = networkx.DiGraph(sorted(graph.edge_pairs()))
    formulas = graph.preconditions.values()
    assert len(graph.steps) == options.steps
    assert (networkx.dag_longest_path_length(hasse) if hasse else 0) == options.depth
    assert sum("|" in str(formula) for formula in formulas) == round(options.or_rate * len(formulas))
    assert all(formula.literal_count <= options.max_parents for formula in formulas)
    assert graph == graph.transitive_reduction()


@given(shapes(), st.integers(0, 1000))
def test_size_depth_and_or_rate_are_exact(options: RandomWorldOptions, seed: int) -> None:
    check_shape(random_world(options, seed), options)


def test_three_hundred_steps() -> None:
    options = RandomWorldOptions(steps=300, depth=15, or_rate=0.3)
    check_shape(random_world(options, seed=3), options)


def test_without_or_the_edges_are_their_own_transitive_reduction() -> None:
    graph = random_world(RandomWorldOptions(steps=40, depth=6, or_rate=0), seed=5).graph
    hasse = networkx.DiGraph(sorted(graph.edge_pairs()))
    assert set(networkx.transitive_reduction(hasse).edges) == set(hasse.edges)


def test_parents_come_from_any_lower_layer() -> None:
    graph = random_world(RandomWorldOptions(steps=40, depth=6), seed=5).graph
    spans = {graph.layer[after] - graph.layer[before] for before, after in graph.edge_pairs()}
    assert {1, 2, 3} <= spans


def test_a_chain_is_the_deepest_world() -> None:
    graph = random_world(RandomWorldOptions(steps=9, depth=8, or_rate=0), seed=0).graph
    assert sorted(graph.layer.values()) == list(range(9))


def test_seed_decides() -> None:
    options = RandomWorldOptions()
    assert random_world(options, 1) == random_world(options, 1)
    assert random_world(options, 1).graph.edge_pairs() != random_world(options, 2).graph.edge_pairs()


def test_impossible_shapes_are_refused() -> None:
    with pytest.raises(InputError, match="steps is 5, a depth of 5 takes at least one more"):
        RandomWorldOptions(steps=5, depth=5)
    with pytest.raises(InputError, match="4 preconditions are to have an OR, but only"):
        random_world(RandomWorldOptions(steps=5, depth=4, or_rate=1), seed=0)
    with pytest.raises(InputError, match="seed is -1"):
        random_world(RandomWorldOptions(), seed=-1)

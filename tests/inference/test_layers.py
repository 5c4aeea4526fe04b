"""Purity, cycle breaking, depth and reduction against networkx and plain loops."""

from __future__ import annotations

from itertools import product

import networkx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from msg2.graph.closure import break_cycles, depths, transitive_closure, transitive_reduction
from msg2.inference.msg2 import build_layers, order_notes, purity
from msg2.sequences import Sequences
from msg2.task import Task
from tests.inference.conftest import DELTAS, critical_graph, longest_paths, tasks


@st.composite
def square(draw: st.DrawFn, values: st.SearchStrategy[int]) -> NDArray[np.int64]:
    size = draw(st.integers(0, 7))
    matrix = np.array(draw(st.lists(values, min_size=size**2, max_size=size**2)), dtype=np.int64).reshape(size, size)
    np.fill_diagonal(matrix, 0)
    return matrix


COUNTS = square(st.integers(0, 6))
RELATIONS = square(st.integers(0, 1)).map(lambda matrix: matrix.astype(np.bool_))
ORDERS = RELATIONS.map(np.triu)
"""Acyclic relations: nothing leads to a lower index."""


def graph_of(relation: NDArray[np.bool_]) -> networkx.DiGraph:
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(len(relation)))
    graph.add_edges_from(zip(*np.nonzero(relation), strict=True))
    return graph


def matrix_of(graph: networkx.DiGraph) -> list[list[bool]]:
    return [[graph.has_edge(a, b) for b in range(len(graph))] for a in range(len(graph))]


@given(COUNTS)
def test_purity_is_the_share_of_one_order(before: NDArray[np.int64]) -> None:
    share = purity(before)
    for n, m in product(range(len(before)), repeat=2):
        together = before[n, m] + before[m, n]
        assert share[n, m] == (before[n, m] / together if together else 0)


@given(RELATIONS, st.data())
def test_cycles_lose_their_least_supported_pairs(relation: NDArray[np.bool_], more: st.DataObject) -> None:
    half = np.array(more.draw(st.lists(st.integers(1, 5), min_size=relation.size, max_size=relation.size)), dtype=int)
    support = half.reshape(relation.shape) + half.reshape(relation.shape).T
    kept, ignored = break_cycles(relation, support)
    assert networkx.is_directed_acyclic_graph(graph_of(kept))
    assert (kept == (relation & (support > ignored))).all()
    if ignored:
        assert not networkx.is_directed_acyclic_graph(graph_of(relation & (support > ignored - 1)))
    again, _ = break_cycles(relation, support)
    assert (again == kept).all()


def test_a_circle_of_three_by_hand() -> None:
    before = np.zeros((4, 4), dtype=np.int64)
    before[0, 1], before[1, 2], before[2, 0], before[0, 3], before[1, 3] = 9, 7, 3, 2, 8
    found = build_layers(before, 0.9)
    # The weakest pair of the circle, 2 → 0, was ordered 3 times; 0 → 3 has even less support and goes with it.
    assert found.ignored == 3
    assert set(zip(*np.nonzero(found.critical), strict=True)) == {(0, 1), (1, 2), (1, 3)}
    assert found.depth.tolist() == [0, 1, 2, 2]
    assert "at most 3 videos" in order_notes(found.critical, found.ignored, before)[0]
    assert order_notes(found.critical, 0, before) == []
    assert "no precondition" in order_notes(np.zeros_like(found.critical), 0, before)[0]


@given(ORDERS)
def test_depth_is_the_longest_path(order: NDArray[np.bool_]) -> None:
    expected = longest_paths(graph_of(order))
    assert depths(order).tolist() == [expected[index] for index in range(len(order))]


@given(RELATIONS)
def test_closure(relation: NDArray[np.bool_]) -> None:
    expected = networkx.transitive_closure(graph_of(relation), reflexive=False)
    assert transitive_closure(relation).tolist() == matrix_of(expected)


@given(ORDERS)
def test_reduction(order: NDArray[np.bool_]) -> None:
    assert transitive_reduction(order).tolist() == matrix_of(networkx.transitive_reduction(graph_of(order)))


@given(tasks(repeats=True), DELTAS)
def test_layers_of_a_task(task: Task, delta: float) -> None:
    graph, ignored = critical_graph(task, delta)
    depth = longest_paths(graph)
    found = build_layers(Sequences.from_task(task).before, delta)
    steps = task.steps
    assert found.ignored == ignored
    assert {(steps[n], steps[m]) for n, m in zip(*np.nonzero(found.critical), strict=True)} == set(graph.edges)
    assert found.depth.tolist() == [depth[name] for name in steps]


@given(COUNTS, st.floats(0, 1), st.floats(0, 1))
def test_a_higher_delta_never_adds_a_critical_pair(before: NDArray[np.int64], one: float, other: float) -> None:
    loose, strict = build_layers(before, min(one, other)), build_layers(before, max(one, other))
    assert strict.ignored <= loose.ignored
    if not loose.ignored:  # else pairs may have been ignored to break a cycle that the strict relation does not have
        assert not (strict.critical & ~loose.critical).any()
        assert (strict.depth <= loose.depth).all()

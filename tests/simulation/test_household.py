"""The twelve worlds: sizes as in the paper, well-formed, in reduced form, with real alternatives."""

from __future__ import annotations

import networkx
import pytest

from msg2.errors import InputError
from msg2.graph import Formula, SubtaskGraph, negation, step
from msg2.simulation import World, household_world, household_worlds

SIZES = {
    "Assemble Clarinet": 16,
    "Change Tire": 18,
    "Perform CPR": 8,
    "Setup Chromecast": 12,
    "Change Toilet Seat": 21,
    "Make Peanut Butter and Jelly Sandwich": 10,
    "Jump Car": 14,
    "Tie Tie": 14,
    "Change iPhone Battery": 14,
    "Make Coffee": 12,
    "Repot Plant": 10,
    "Make Salmon Sandwich": 9,
}


def number_of_ors(formula: Formula) -> int:
    return (formula.kind == "any") + sum(number_of_ors(operand) for operand in formula.operands)


def test_sizes_and_order_are_the_papers() -> None:
    assert {w.name: len(w.graph.steps) for w in household_worlds()} == SIZES
    assert [w.name for w in household_worlds()] == list(SIZES)
    assert all(w.graph.task == w.name for w in household_worlds())


@pytest.mark.parametrize("one", household_worlds(), ids=lambda w: w.name)
def test_graph_is_acyclic_reduced_and_one_piece(one: World) -> None:
    edges = networkx.DiGraph(sorted(one.graph.edge_pairs()))
    assert networkx.is_directed_acyclic_graph(edges)
    assert networkx.is_weakly_connected(edges)
    assert set(edges) == set(one.graph.steps), "a step that neither needs nor is needed teaches nothing"
    assert one.graph == one.graph.transitive_reduction()


@pytest.mark.parametrize("one", household_worlds(), ids=lambda w: w.name)
def test_graph_has_alternatives_and_is_no_total_order(one: World) -> None:
    assert sum(number_of_ors(formula) for formula in one.graph.preconditions.values()) >= 1
    hasse = networkx.DiGraph(sorted(one.graph.edge_pairs()))
    assert networkx.dag_longest_path_length(hasse) < len(one.graph.steps) - 1


def test_number_of_ors_overall() -> None:
    assert sum(number_of_ors(f) for w in household_worlds() for f in w.graph.preconditions.values()) == 13


def test_goals_are_the_steps_nobody_needs() -> None:
    for one in household_worlds():
        assert one.goals == {before for before, after in one.graph.edge_pairs(ends=True) if after == "END"}
        for name in one.graph.steps:
            assert set(one.children[name]) == {after for before, after in one.graph.edge_pairs() if before == name}


def test_worlds_are_found_by_name() -> None:
    assert household_world("make coffee") is household_world(" Make Coffee ")
    with pytest.raises(InputError, match=r"no world called 'Make Tea'\n.*Make Coffee"):
        household_world("Make Tea")


def test_a_world_has_no_negation() -> None:
    graph = SubtaskGraph("w", ["a", "b"], {"b": negation(step("a"))})
    with pytest.raises(InputError, match="precondition of 'b' in the world 'w' has a NOT"):
        World(graph)

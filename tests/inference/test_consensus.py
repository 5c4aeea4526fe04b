"""The consensus of several graphs."""

from __future__ import annotations

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.graph import Formula, SubtaskGraph, step
from msg2.inference.consensus import consensus
from msg2.task import Step
from tests.inference.test_knowledge import ancestors, preconditions


@settings(deadline=None, max_examples=60)
@given(st.lists(preconditions("abcde", kinds="and or"), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_only_majorities_and_what_follows_from_them(many: list[dict[Step, Formula]], randomness) -> None:  # type: ignore[no-untyped-def]
    graphs = [SubtaskGraph("t", "abcde", formulas) for formulas in many]
    found = consensus(graphs)
    pairs = {pair for graph in graphs for pair in ancestors(graph)}
    most = {pair for pair in pairs if 2 * sum(pair in ancestors(graph) for graph in graphs) > len(graphs)}
    agreed = networkx.DiGraph(sorted(most))
    assert ancestors(found) <= set(networkx.transitive_closure(agreed).edges)
    if networkx.is_directed_acyclic_graph(agreed):
        assert ancestors(found) == set(networkx.transitive_closure(agreed).edges)
    mixed = consensus(randomness.sample(graphs, len(graphs)))
    assert (mixed.preconditions, mixed.evidence) == (found.preconditions, found.evidence)


def test_majorities_that_contradict_each_other() -> None:
    orders = ["abc", "bca", "cab"]
    graphs = [SubtaskGraph("t", "abc", {o[1]: step(o[0]), o[2]: step(o[1])}) for o in orders]
    assert len(ancestors(consensus(graphs))) == 3  # a < b and b < c by majority, so a < c


def test_graphs_of_other_steps_have_no_consensus() -> None:
    with pytest.raises(InputError, match="all of the same steps"):
        consensus([SubtaskGraph("t", "ab", {}), SubtaskGraph("t", "ac", {})])

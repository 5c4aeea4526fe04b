"""What several graphs of one task agree on, whatever methods they were learnt with.

An ancestor relation is in the consensus when more than half of the graphs have it. Majorities may contradict each other
(each of a<b, b<c, c<a can have one), so the clearest join first, and none that closes a circle.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msg2.errors import InputError
from msg2.graph import SubtaskGraph, all_of, step
from msg2.inference.confidence import Shares
from msg2.inference.layers import closure, reduction


def consensus(graphs: Sequence[SubtaskGraph]) -> SubtaskGraph:
    """One conjunction per step, of what most of the graphs say; the evidence has the agreement on every edge.

    >>> one, other = {"b": step("a"), "c": step("b")}, {"b": step("a")}
    >>> found = consensus([SubtaskGraph("t", "abc", formulas) for formulas in (one, other, {})])
    >>> sorted(found.edges()), found.evidence["b"]["edges"]["a"]
    ([('a', 'b')], {'agreement': 0.666667})
    """
    if not graphs or len({frozenset(graph.steps) for graph in graphs}) > 1:
        raise InputError("a consensus needs graphs, and all of the same steps")
    shares = Shares(tuple(graphs))
    steps, agreement = shares.steps, shares.ancestors
    order = np.zeros(agreement.shape, dtype=np.bool_)
    for a, b in sorted(np.argwhere(agreement > 0.5).tolist(), key=lambda pair: (-agreement[*pair], pair)):
        if not order[b, a]:
            order[a, b] = True
            order = closure(order)
    parents = {name: np.flatnonzero(column) for name, column in zip(steps, reduction(order).T, strict=True)}
    evidence = {
        name: {"edges": {steps[a]: {"agreement": round(shares.ancestor(steps[a], name), 6)} for a in found}}
        for name, found in parents.items()
        if len(found)
    }
    methods = [graph.method.get("name") for graph in graphs]
    formulas = {name: all_of(step(steps[a]) for a in found) for name, found in parents.items()}
    return SubtaskGraph(graphs[0].task, steps, formulas, {"name": "consensus", "of": methods}, evidence)

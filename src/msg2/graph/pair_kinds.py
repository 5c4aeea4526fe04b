"""What a graph says about two steps: needs, after if done, exclusive, or nothing.

The kind of the ordered pair (a, b) speaks of all runs that the graph allows:

- `needs`: every run with b has a before it;
- `after`: every run with both has a first, but b does not need a;
- `exclusive`: no run has both;
- `free`: none of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from msg2.graph.closure import Relation, necessary_steps
from msg2.graph.evidence import PairKind
from msg2.graph.formula import Formula
from msg2.task import Step

if TYPE_CHECKING:
    from msg2.graph.graph import SubtaskGraph


@dataclass(frozen=True, eq=False)
class PairKinds:
    """The kinds of all ordered pairs of N steps, as three relations of shape (N, N).

    `needs` [a, b]: b needs a. `before` [a, b]: a comes first in every run with both, needs included. `exclusive`:
    never both; such a pair is neither of the others.
    """

    steps: tuple[Step, ...]
    needs: Relation
    before: Relation
    exclusive: Relation

    def kind(self, before: Step, after: Step) -> PairKind:
        """Return the kind of an ordered pair."""
        pair = self.steps.index(before), self.steps.index(after)
        if self.exclusive[pair]:
            return "exclusive"
        return "needs" if self.needs[pair] else "after" if self.before[pair] else "free"

    def among(self, steps: Sequence[Step]) -> Relation:
        """`before` of some of the steps, in their order."""
        places = [self.steps.index(name) for name in steps]
        return self.before[np.ix_(places, places)]


def pair_kinds(graph: SubtaskGraph) -> PairKinds:
    """Derive the kind of every pair of steps from a graph."""
    different = ~np.eye(len(graph.steps), dtype=np.bool_)
    exclusive = graph.relation(pair for group in graph.exclusive for pair in permutations(group, 2))
    while exclusive.any():
        wider = _follow(graph, exclusive)
        wider = (wider | wider.T) & different
        if (wider == exclusive).all():
            break
        exclusive = wider
    required = necessary_steps(graph.steps, graph.preconditions)
    needs = graph.relation((earlier, name) for name, earlier_steps in required.items() for earlier in earlier_steps)
    always = np.array([name in graph.required for name in graph.steps], dtype=np.bool_)
    before = needs | graph.relation(graph.order)
    while True:
        # a, x, b in this order, and x is in every run with b, or in every run at all.
        wider = before | (before.astype(np.float32) @ (before & (needs | always[:, None])).astype(np.float32) > 0)
        # A step comes before an OR where it comes before, is or rules out every branch.
        wider = _follow(graph, wider | exclusive | ~different) & different & ~exclusive
        if (wider == before).all():
            return PairKinds(graph.steps, needs & ~exclusive, before, exclusive)
        before = wider


def _follow(graph: SubtaskGraph, relation: Relation) -> Relation:
    """A relation to steps, and what it says of the steps that need them: as of some of an AND, of all of an OR."""

    def column(formula: Formula) -> NDArray[np.bool_]:
        if formula.kind == "step":
            return relation[:, graph.index[formula.name]]
        if formula.kind not in ("all", "any"):
            return np.zeros(len(relation), dtype=np.bool_)
        parts = np.stack([column(operand) for operand in formula.operands])
        return np.asarray(parts.any(axis=0) if formula.kind == "all" else parts.all(axis=0))

    wider = relation.copy()
    for name, formula in graph.preconditions.items():
        wider[:, graph.index[name]] |= column(formula)
    return wider

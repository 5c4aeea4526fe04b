"""What a graph says about two steps: needs, after if done, exclusive, or nothing.

The kind of the ordered pair (a, b) speaks of all runs that the graph allows:

- `needs`: every run with b has a before it;
- `after`: every run with both has a first, but b does not need a;
- `exclusive`: no run has both;
- `free`: none of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from msg2.graph.evidence import PairKind
from msg2.graph.formula import Formula
from msg2.graph.reduction import necessary_steps
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
    needs: NDArray[np.bool_]
    before: NDArray[np.bool_]
    exclusive: NDArray[np.bool_]

    def kind(self, before: Step, after: Step) -> PairKind:
        """Return the kind of an ordered pair.

        Parameters
        ----------
        before, after : str
            Two steps.

        Returns
        -------
        PairKind
        """
        pair = self.steps.index(before), self.steps.index(after)
        if self.exclusive[pair]:
            return "exclusive"
        return "needs" if self.needs[pair] else "after" if self.before[pair] else "free"

    def among(self, steps: Sequence[Step]) -> NDArray[np.bool_]:
        """`before` of some of the steps, in their order."""
        places = [self.steps.index(name) for name in steps]
        return self.before[np.ix_(places, places)]


def pair_kinds(graph: SubtaskGraph) -> PairKinds:
    """Derive the kind of every pair of steps from a graph.

    >>> from msg2.graph import SubtaskGraph, any_of, step
    >>> coffee = {"pour": any_of([step("grind"), step("open")])}
    >>> graph = SubtaskGraph("coffee", ["grind", "open", "pour"], coffee, exclusive=[["grind", "open"]])
    >>> kinds = pair_kinds(graph)
    >>> kinds.kind("grind", "pour"), kinds.kind("grind", "open"), kinds.kind("pour", "grind")
    ('after', 'exclusive', 'free')
    """
    index = {name: place for place, name in enumerate(graph.steps)}
    size = len(index)
    needs = np.zeros((size, size), dtype=np.bool_)
    for name, needed in necessary_steps(graph.steps, graph.preconditions).items():
        needs[[index[earlier] for earlier in needed], index[name]] = True
    exclusive = _exclusive_pairs(graph, index)
    always = np.array([name in graph.required for name in graph.steps], dtype=np.bool_)
    possible = ~(exclusive | np.eye(size, dtype=np.bool_))  # of steps that are never both done, nothing follows
    before = needs.copy()
    for first, second in graph.order:
        before[index[first], index[second]] = True
    while True:
        # a, x, b in this order, and x is in every run with b, or in every run at all.
        wider = before | (before.astype(np.float32) @ (before & (needs | always[:, None])).astype(np.float32) > 0)
        for name, formula in graph.preconditions.items():
            wider[:, index[name]] |= _holds_before(formula, wider, exclusive, index)
        wider &= possible
        if (wider == before).all():
            break
        before = wider
    return PairKinds(graph.steps, needs & ~exclusive, before, exclusive)


def _holds_before(
    formula: Formula, before: NDArray[np.bool_], exclusive: NDArray[np.bool_], index: Mapping[Step, int]
) -> NDArray[np.bool_]:
    """The steps that, where they are done at all, are done when `formula` first holds, shape (N,)."""
    parts = [_holds_before(operand, before, exclusive, index) for operand in formula.operands]
    match formula.kind:
        case "step":
            place = index[formula.name]
            return np.asarray(before[:, place] | (np.arange(len(index)) == place))
        case "all":
            return np.asarray(np.logical_or.reduce(parts))
        case "any":  # by every branch, or it rules the branch out
            ruled_out = (_ruled_out(operand, exclusive, index) for operand in formula.operands)
            return np.asarray(np.logical_and.reduce([a | b for a, b in zip(parts, ruled_out, strict=True)]))
    return np.zeros(len(index), dtype=np.bool_)


def _exclusive_pairs(graph: SubtaskGraph, index: Mapping[Step, int]) -> NDArray[np.bool_]:
    """The pairs that are never both done: by the groups, and by what their steps need; shape (N, N)."""
    pairs = np.zeros((len(index), len(index)), dtype=np.bool_)
    for group in graph.exclusive:
        places = [index[name] for name in group]
        pairs[np.ix_(places, places)] = True
    np.fill_diagonal(pairs, False)
    while pairs.any():
        wider = pairs.copy()
        for name, formula in graph.preconditions.items():
            wider[:, index[name]] |= _ruled_out(formula, pairs, index)
        wider |= wider.T
        np.fill_diagonal(wider, False)
        if (wider == pairs).all():
            break
        pairs = wider
    return pairs


def _ruled_out(formula: Formula, exclusive: NDArray[np.bool_], index: Mapping[Step, int]) -> NDArray[np.bool_]:
    """The steps with which `formula` can never hold, shape (N,)."""
    parts = [_ruled_out(operand, exclusive, index) for operand in formula.operands]
    match formula.kind:
        case "step":
            return exclusive[:, index[formula.name]]
        case "all":
            return np.asarray(np.logical_or.reduce(parts))
        case "any":
            return np.asarray(np.logical_and.reduce(parts))
    return np.zeros(len(index), dtype=np.bool_)

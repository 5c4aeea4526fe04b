"""Relations between steps: transitive closure and reduction, of preconditions too, and the kind of every pair.

Reducing a precondition drops what the other conditions already imply: the reachable states stay the same, not the
function on all 2^N vectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from msg2.graph.formula import TRUE, Formula, all_of, any_of, negation
from msg2.task import Step

if TYPE_CHECKING:
    from msg2.graph.graph import SubtaskGraph

Relation: TypeAlias = NDArray[np.bool_]  # shape (steps, steps): [a, b] for a before b
_Item = TypeVar("_Item", str, int)


def transitive_closure(relation: Relation) -> Relation:
    """Transitive closure: [a, b] where a path leads from a to b."""
    reach, pairs = relation, -1
    while pairs != (pairs := int(np.count_nonzero(reach))):  # each round doubles the length of the paths
        steps = reach.astype(np.float32)
        reach = reach | (steps @ steps > 0)
    return reach


def transitive_reduction(relation: Relation) -> Relation:
    """Transitive reduction of an acyclic relation: the pairs that no longer path implies."""
    reach = transitive_closure(relation).astype(np.float32)
    return relation & ~(reach @ reach > 0)


def break_cycles(relation: Relation, support: NDArray[np.int64]) -> tuple[Relation, int]:
    """Drop pairs until no cycle is left, those of least support first; also return the largest support dropped."""
    least, kept = 0, relation.copy()
    while (on_cycle := kept & transitive_closure(kept).T).any():
        least = int(support[on_cycle].min())
        kept &= support > least
    return kept, least


def depths(relation: Relation) -> NDArray[np.int64]:
    """Longest path to every step of an acyclic relation; 0 where nothing comes before."""
    depth = np.zeros(len(relation), dtype=np.int64)
    while True:
        deeper = np.where(relation, depth[:, None] + 1, 0).max(axis=0, initial=0)
        if (deeper == depth).all():
            return depth
        depth = deeper


def clique_cover(pairs: Iterable[tuple[_Item, _Item]]) -> tuple[tuple[_Item, ...], ...]:
    """Cover all pairs with groups in which everything is paired with everything, each as large as possible."""
    linked = {frozenset(pair) for pair in pairs}
    partners: dict[_Item, set[_Item]] = {}
    for name, partner in (pair for group in linked for pair in permutations(group, 2)):
        partners.setdefault(name, set()).add(partner)
    covered: set[tuple[_Item, _Item]] = set()
    groups: list[tuple[_Item, ...]] = []
    for a, b in sorted(map(sorted, linked)):
        if (a, b) not in covered:
            group = [a, b]
            for name in sorted(partners[a] & partners[b]):
                if partners[name].issuperset(group):
                    group.append(name)
            groups.append(tuple(sorted(group)))
            covered.update(combinations(groups[-1], 2))
    return tuple(groups)


def required_steps(formula: Formula, required: Mapping[Step, frozenset[Step]]) -> frozenset[Step]:
    """Find the steps that are completed in every reachable state in which a formula holds."""
    match formula.kind:
        case "step":
            return required[formula.name] | {formula.name}
        case "all":
            return frozenset().union(*(required_steps(operand, required) for operand in formula.operands))
        case "any":
            return frozenset.intersection(*(required_steps(operand, required) for operand in formula.operands))
    return frozenset()


def drop_implied(formula: Formula, required: Mapping[Step, frozenset[Step]]) -> Formula:
    """`formula` without what already follows, in reachable states, from its other parts."""
    if formula.kind == "not":
        return negation(drop_implied(formula.operands[0], required))
    operands = [drop_implied(operand, required) for operand in formula.operands]
    if formula.kind == "all":
        needs = [required_steps(operand, required) for operand in operands]
        needed = Counter(name for names in needs for name in names)
        for i, operand in enumerate(operands):
            implied = [name for name in operand.steps if needed[name] > (name in needs[i])]
            if implied:
                operands[i] = operand.substitute(dict.fromkeys(implied, True))
                needed.subtract(needs[i])
                needs[i] = required_steps(operands[i], required)
                needed.update(needs[i])
        return all_of(operands)
    if formula.kind == "any":
        for operand in list(operands):
            others = any_of(other for other in operands if other is not operand)
            if others.substitute(dict.fromkeys(required_steps(operand, required), True)) == TRUE:
                operands = [other for other in operands if other is not operand]
        return any_of(operands)
    return formula


def reduce_order(graph: SubtaskGraph) -> tuple[tuple[Step, Step], ...]:
    """Drop pairs [a, c] of the order if every run with both has a step between them that implies the pair."""
    index, kinds = graph.index, graph.pair_kinds
    always = np.array([name in graph.required for name in graph.steps], dtype=np.bool_)
    carrier = kinds.before & (kinds.needs | always[:, None])  # [x, c]: every run with c has x, before it
    carried = kinds.needs | (kinds.before.astype(np.float32) @ carrier.astype(np.float32) > 0)
    kept = tuple(pair for pair in graph.order if not carried[index[pair[0]], index[pair[1]]])
    with_or = {name for name, formula in graph.preconditions.items() if "any" in formula.kinds}
    left = graph.relation(kept)
    for a, c in ((index[a], index[c]) for a, c in kept if c in with_or):  # the other branches may be ruled out
        left[a, c] = False
        left[a, c] = not _close_order(graph, kinds.needs, kinds.exclusive, left)[a, c]
    return tuple(pair for pair in kept if left[index[pair[0]], index[pair[1]]])


@dataclass(frozen=True, eq=False)
class PairKinds:
    """What a graph says about every ordered pair (a, b) of N steps in all runs that it allows, as (N, N) relations.

    - `needs`: every run with b has a before it;
    - `after`: every run with both has a first, but b does not need a; `before` is this or `needs`;
    - `exclusive`: no run has both;
    - `free`: none of these.
    """

    steps: tuple[Step, ...]
    needs: Relation
    before: Relation
    exclusive: Relation

    def among(self, steps: Sequence[Step]) -> Relation:
        """`before` of some of the steps, in their order."""
        places = [self.steps.index(name) for name in steps]
        return self.before[np.ix_(places, places)]


def find_pair_kinds(graph: SubtaskGraph) -> PairKinds:
    """What the graph says about every pair of steps."""
    different = ~np.eye(len(graph.steps), dtype=np.bool_)
    exclusive = graph.relation(pair for group in graph.exclusive for pair in permutations(group, 2))
    while exclusive.any():
        wider = _follow(graph, exclusive)
        wider = (wider | wider.T) & different
        if (wider == exclusive).all():
            break
        exclusive = wider
    needs = graph.relation((earlier, name) for name, needed in graph.necessary.items() for earlier in needed)
    before = _close_order(graph, needs, exclusive, graph.relation(graph.order))
    return PairKinds(graph.steps, needs & ~exclusive, before, exclusive)


def _close_order(graph: SubtaskGraph, needs: Relation, exclusive: Relation, order: Relation) -> Relation:
    """[a, b] where every run with both has a first: what `needs` and `order` say, and what follows from them."""
    different, before = ~np.eye(len(needs), dtype=np.bool_), needs | order
    always = np.array([name in graph.required for name in graph.steps], dtype=np.bool_)
    while True:
        # a, x, b in this order, and x is in every run with b, or in every run at all.
        wider = before | (before.astype(np.float32) @ (before & (needs | always[:, None])).astype(np.float32) > 0)
        # A step comes before an OR where it comes before, is or rules out every branch.
        wider = _follow(graph, wider | exclusive | ~different) & different & ~exclusive
        if (wider == before).all():
            return before
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

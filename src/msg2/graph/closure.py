"""Relations between steps as Boolean matrices: transitive closure and reduction, cycles, depths and cliques.

A relation is a matrix of shape (steps, steps) in which [a, b] is True where a comes before b.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Relation: TypeAlias = NDArray[np.bool_]
"""Shape (steps, steps): [a, b] for a before b."""
_Item = TypeVar("_Item", str, int)


def transitive_closure(relation: Relation) -> Relation:
    """Transitive closure: [a, b] where a path leads from a to b.

    >>> transitive_closure(np.eye(4, k=1, dtype=np.bool_))[0].tolist()
    [False, True, True, True]
    """
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
    """Cover all pairs with groups in which everything is paired with everything, each as large as possible.

    >>> clique_cover([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")])
    (('a', 'b', 'c'), ('c', 'd'))
    """
    linked = {frozenset(pair) for pair in pairs}
    names = sorted({name for pair in linked for name in pair})
    groups: list[tuple[_Item, ...]] = []
    for a, b in combinations(names, 2):
        if {a, b} not in linked or any(a in group and b in group for group in groups):
            continue
        group = [a, b]
        for name in names:
            if all({name, member} in linked for member in group):
                group.append(name)
        groups.append(tuple(sorted(group)))
    return tuple(groups)

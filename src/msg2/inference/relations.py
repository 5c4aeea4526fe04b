"""Relations between steps as Boolean matrices: cycles, depths, transitive closure and reduction."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Relation: TypeAlias = NDArray[np.bool_]
"""Shape (steps, steps): [a, b] for a before b."""
_Item = TypeVar("_Item", str, int)


def break_cycles(relation: NDArray[np.bool_], support: NDArray[np.int64]) -> tuple[NDArray[np.bool_], int]:
    """Drop pairs until no cycle is left, those of least support first."""
    least = 0
    kept = relation.copy()
    while (on_cycle := _on_cycle(kept)).any():
        least = int(support[kept & on_cycle].min())
        kept &= support > least
    return kept, least


def depths(relation: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Longest path to every step of an acyclic relation; 0 where nothing comes before."""
    depth = np.zeros(len(relation), dtype=np.int64)
    while True:
        deeper = np.where(relation, depth[:, None] + 1, 0).max(axis=0, initial=0)
        if (deeper == depth).all():
            return depth
        depth = deeper


def transitive_closure(relation: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Transitive closure: [a, b] when a path leads from a to b."""
    reach = relation.copy()
    for middle in range(len(reach)):  # Warshall: paths through ever more middle steps
        reach |= np.outer(reach[:, middle], reach[middle])
    return reach


def transitive_reduction(relation: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Transitive reduction of an acyclic relation: pairs that no longer path implies."""
    reach = transitive_closure(relation).astype(np.float32)
    return relation & ~(reach @ reach > 0)


def clique_cover(pairs: Iterable[tuple[_Item, _Item]]) -> tuple[tuple[_Item, ...], ...]:
    """Groups of steps that are all pairs of each other, as large as can be, which together hold every pair.

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
            if all({name, one} in linked for one in group):
                group.append(name)
        groups.append(tuple(sorted(group)))
    return tuple(groups)


def _on_cycle(relation: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The pairs (a, b) of the relation that lie on a cycle: b leads back to a."""
    result: NDArray[np.bool_] = relation & transitive_closure(relation).T
    return result

"""Layers of steps from transition purity (App. B.b, "Layer-wise Precondition Inference").

purity(n → m) = #(n before m) / (#(n before m) + #(m before n)); n is critical for m when it exceeds δ. The depth of a
step is its longest path of critical steps; a precondition may only use steps of lower depth, so no cycle can form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Layers:
    """`critical` (steps, steps): [n, m] when n is critical for m, acyclic. `depth` (steps,).

    `ignored` is 0, or the number of videos up to which the order of a pair was ignored to break cycles.
    """

    critical: NDArray[np.bool_]
    depth: NDArray[np.int64]
    ignored: int

    def direct(self, step: int) -> NDArray[np.intp]:
        """The direct critical predecessors of a step: critical, and exactly one layer below."""
        return np.flatnonzero(self.critical[:, step] & (self.depth == self.depth[step] - 1))

    def lower(self, step: int) -> NDArray[np.intp]:
        """The steps in lower layers."""
        return np.flatnonzero(self.depth < self.depth[step])


def layers(before: NDArray[np.int64], delta: float) -> Layers:
    """Layers from counts `before` (steps, steps) at threshold δ."""
    critical, ignored = acyclic(purity(before) > delta, before + before.T)
    return Layers(critical, depths(critical), ignored)


def purity(before: NDArray[np.int64]) -> NDArray[np.float64]:
    """Transition purity, shape (steps, steps); 0 for pairs that are never ordered.

    >>> purity(np.array([[0, 3], [1, 0]])).tolist()
    [[0.0, 0.75], [0.25, 0.0]]
    """
    together = before + before.T
    share = np.zeros(before.shape)
    np.divide(before, together, out=share, where=together > 0)
    return share


def acyclic(relation: NDArray[np.bool_], support: NDArray[np.int64]) -> tuple[NDArray[np.bool_], int]:
    """`relation` without its pairs of least `support` (counts), dropped until no cycle is left; and that count."""
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


def closure(relation: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Transitive closure: [a, b] when a path leads from a to b."""
    reach = relation.copy()
    for middle in range(len(reach)):  # Warshall: paths through ever more middle steps
        reach |= np.outer(reach[:, middle], reach[middle])
    return reach


def reduction(relation: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Transitive reduction of an acyclic relation: pairs that no longer path implies."""
    reach = closure(relation).astype(np.float32)
    return relation & ~(reach @ reach > 0)


def _on_cycle(relation: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The pairs (a, b) of the relation that lie on a cycle: b leads back to a."""
    result: NDArray[np.bool_] = relation & closure(relation).T
    return result


def order_notes(critical: NDArray[np.bool_], ignored: int, before: NDArray[np.int64]) -> list[str]:
    """What to tell the user about an order: cycles that were broken (`ignored` as in `Layers`), or none left at all."""
    notes = []
    if ignored:
        notes.append(f"the videos' orders run in a circle; pairs ordered in at most {ignored} videos were ignored")
    if before.any() and not critical.any():
        notes.append("no precondition was found: no step comes before another often enough (δ)")
    return notes

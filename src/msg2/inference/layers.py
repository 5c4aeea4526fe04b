"""Layers of steps from transition purity (App. B.b, "Layer-wise Precondition Inference").

purity(n → m) = #(n before m) / (#(n before m) + #(m before n)); n is critical for m when it exceeds δ. The depth of a
step is its longest path of critical steps; a precondition may only use steps of lower depth, so no cycle can form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from msg2.inference.delta import Delta, chosen_delta
from msg2.inference.relations import break_cycles, depths, transitive_closure


@dataclass(frozen=True)
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

    @cached_property
    def relatives(self) -> NDArray[np.bool_]:
        """Which steps are on one path of critical steps, shape (steps, steps)."""
        below = transitive_closure(self.critical)
        return below | below.T

    def lower(self, step: int) -> NDArray[np.intp]:
        """The steps in lower layers."""
        return np.flatnonzero(self.depth < self.depth[step])


def build_layers(before: NDArray[np.int64], delta: Delta) -> Layers:
    """Sort steps into layers.

    Parameters
    ----------
    before : array of shape (steps, steps)
        [n, m] is how often n was completed when m started.
    delta : float
        δ: n is critical for m when its purity is above this. "auto" must have been replaced by a number.

    Returns
    -------
    Layers
    """
    critical, ignored = break_cycles(purity(before) > chosen_delta(delta), before + before.T)
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


def order_notes(critical: NDArray[np.bool_], ignored: int, before: NDArray[np.int64]) -> list[str]:
    """Say what a user should know about an order: cycles that were broken, or that there is none at all.

    Parameters
    ----------
    critical : array of shape (steps, steps)
        The order.
    ignored : int
        As in `Layers`.
    before : array of shape (steps, steps)
        Counts, as in `build_layers`.

    Returns
    -------
    list of str
    """
    notes = []
    if ignored:
        notes.append(f"the videos' orders run in a circle; pairs ordered in at most {ignored} videos were ignored")
    if before.any() and not critical.any():
        notes.append("no precondition was found: no step comes before another often enough (δ)")
    return notes

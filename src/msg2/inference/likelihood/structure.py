"""Order and presence together: which of the steps that come before another one it needs.

Of a step a that comes before b where both are done, b *needs* a if a run with b implies a; else b only comes after a,
if at all. Where a is required anyway the two fit alike, and it is written as a need. A pair that is exclusive has no
order. Of the rest, alternatives of which one is enough are found by presence.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from msg2.inference.likelihood.presence import PresenceModel
from msg2.inference.likelihood.presence_disjunctions import group_alternatives
from msg2.inference.likelihood.scored_order import ScoredOrder
from msg2.inference.relations import Relation, clique_cover, transitive_closure, transitive_reduction


@dataclass(frozen=True, eq=False)
class Structure:
    """What a graph of N steps says.

    `needs` (N, N): [a, b] where b needs a, without what follows from others. `alternatives`: of each step, the groups
    of steps of which it needs one each, and the nats that each group gains. `order` (N, N): [a, b] where b comes after
    a if both are done, without what follows from others. `exclusive`: groups. `optional` (N,).
    """

    needs: Relation
    alternatives: list[dict[frozenset[int], float]]
    order: Relation
    exclusive: tuple[tuple[int, ...], ...]
    optional: NDArray[np.bool_]


def combine(order: ScoredOrder, presence: PresenceModel) -> Structure:
    """Say what each step needs and what it only comes after.

    Parameters
    ----------
    order : ScoredOrder
        Who comes before whom.
    presence : PresenceModel
        Who is there with whom.

    Returns
    -------
    Structure
    """
    before = order.relation & ~presence.exclusive
    needs = transitive_closure(before & presence.implied) & ~presence.exclusive
    required = presence.required | needs[:, presence.required].any(axis=1)
    alternatives = [_alternatives(step, before, needs, presence) for step in range(len(before))]
    # [a, c] follows from [a, x] and [x, c] where every run with a and c has x.
    carried = before.astype(np.float32) @ (before & (needs | required[:, None])).astype(np.float32) > 0
    exclusive = clique_cover((int(a), int(b)) for a, b in np.argwhere(np.triu(presence.exclusive)))
    one_of = [group for group in exclusive if _is_always_there(group, presence)]
    optional = ~required
    optional[[step for group in one_of for step in group]] = False
    return Structure(transitive_reduction(needs), alternatives, before & ~needs & ~carried, exclusive, optional)


def _alternatives(step: int, before: Relation, needs: Relation, presence: PresenceModel) -> dict[frozenset[int], float]:
    """Groups of steps before `step`, none of which it needs for itself, of which it needs one; and what they gain."""
    behind = before[:, needs[:, step]].any(axis=1)  # what a needed step comes after is that step's own affair
    parents = np.flatnonzero(before[:, step] & ~needs[:, step] & ~behind)
    # Of steps that always come together, the last one stands for all.
    last = [a for a in parents if not (before[a, parents] & presence.implied[parents, a]).any()]
    there = presence.shown[:, step]
    shown, weight = presence.shown[there], presence.weight[there]
    groups, gain = group_alternatives([int(a) for a in last], shown, weight, presence.absent_rate)
    return dict.fromkeys(groups, gain)


def _is_always_there(group: Iterable[int], presence: PresenceModel) -> bool:
    """Whether the videos lack all steps of a group about as rarely as they lack a required step."""
    lacking = int(presence.weight[~presence.shown[:, [*group]].any(axis=1)].sum())
    videos, rate = int(presence.weight.sum()), presence.absent_rate
    return bool(lacking <= videos * rate + 2 * np.sqrt(videos * rate * (1 - rate)) + 1)

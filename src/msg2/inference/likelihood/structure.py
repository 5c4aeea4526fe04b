"""Order and presence together: which of the steps that come before another one it needs.

Of a step a that comes before b where both are done, b *needs* a if a run with b implies a; else b only comes after a,
if at all. Where a is required anyway the two fit alike, and it is written as a need. A pair that is exclusive has no
order. Of the rest, alternatives of which one is enough are found by presence. ORs that the order tells are needs where
nearly every video with the step shows one of the alternatives.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from msg2.graph.closure import Relation, clique_cover, transitive_closure, transitive_reduction
from msg2.inference.likelihood.presence import PresenceModel
from msg2.inference.likelihood.presence_disjunctions import group_alternatives
from msg2.inference.likelihood.scored_order import ScoredOrder


@dataclass(frozen=True, eq=False)
class Structure:
    """What a graph of N steps says.

    `needs` (N, N): [a, b] where b needs a, without what follows from others. `alternatives`: of each step, the groups
    of steps of which it needs one each, and the nats that each gains where presence tells, None where the order does.
    `order` (N, N): [a, b] where b comes after a if both are done, without what follows from others. `exclusive`:
    groups. `optional` (N,).
    """

    needs: Relation
    alternatives: list[dict[frozenset[int], float | None]]
    order: Relation
    exclusive: tuple[tuple[int, ...], ...]
    optional: NDArray[np.bool_]

    def clauses(self, step: int) -> list[frozenset[int]]:
        """Return what a step needs: one step of each."""
        return [*(frozenset({one}) for one in np.flatnonzero(self.needs[:, step]).tolist()), *self.alternatives[step]]


def combine(order: ScoredOrder, presence: PresenceModel) -> Structure:
    """Say what each step needs and what it only comes after."""
    before = order.relation & ~presence.exclusive
    needs = transitive_closure(before & presence.implied) & ~presence.exclusive
    required = presence.required | needs[:, presence.required].any(axis=1)
    alternatives = []
    for step in range(len(before)):
        found = _order_disjunctions(step, order, presence) | _alternatives(step, before, needs, presence)
        alternatives.append(_without_needless(step, needs, found))
    # [a, c] follows from [a, x] and [x, c] where every run with a and c has x.
    carried = before.astype(np.float32) @ (before & (needs | required[:, None])).astype(np.float32) > 0
    exclusive = clique_cover((int(a), int(b)) for a, b in np.argwhere(np.triu(presence.exclusive)))
    one_of = [group for group in exclusive if _is_always_there(group, presence)]
    optional = ~required
    optional[[step for group in one_of for step in group]] = False
    direct = transitive_reduction(needs)
    for step, groups in enumerate(alternatives):  # what every alternative needs follows from the OR
        for group in groups:
            direct[:, step] &= ~needs[:, [*group]].all(axis=1)
    return Structure(direct, alternatives, before & ~needs & ~carried, exclusive, optional)


def _order_disjunctions(step: int, order: ScoredOrder, presence: PresenceModel) -> dict[frozenset[int], float | None]:
    """The ORs that the order tells of a step, where it is not done without them."""
    there = presence.shown[:, step]
    found = [group for group in order.disjunctions_of(step) if _is_always_there(group, presence, there)]
    return dict.fromkeys(found)


def _without_needless(
    step: int, needs: Relation, groups: dict[frozenset[int], float | None]
) -> dict[frozenset[int], float | None]:
    """The ORs that do not follow from what the step needs for itself, or from another one."""
    return {
        group: gain
        for group, gain in groups.items()
        if not needs[[*group], step].any() and not any(other < group for other in groups)
    }


def _alternatives(
    step: int, before: Relation, needs: Relation, presence: PresenceModel
) -> dict[frozenset[int], float | None]:
    """Groups of steps before `step`, none of which it needs for itself, of which it needs one; and what they gain."""
    behind = before[:, needs[:, step]].any(axis=1)  # what a needed step comes after is that step's own affair
    parents = np.flatnonzero(before[:, step] & ~needs[:, step] & ~behind)
    # Of steps that always come together, the last one stands for all.
    last = [a for a in parents if not (before[a, parents] & presence.implied[parents, a]).any()]
    there = presence.shown[:, step]
    shown, weight = presence.shown[there], presence.weight[there]
    groups, gain = group_alternatives([int(a) for a in last], shown, weight, presence.absent_rate)
    return dict.fromkeys(groups, gain)


def _is_always_there(
    group: Iterable[int], presence: PresenceModel, among: NDArray[np.bool_] | slice = slice(None)
) -> bool:
    """Whether videos lack all steps of a group about as rarely as they lack a required step; of some sets of steps."""
    shown, weight = presence.shown[among], presence.weight[among]
    lacking = int(weight[~shown[:, [*group]].any(axis=1)].sum())
    videos, rate = int(weight.sum()), presence.absent_rate
    return bool(lacking <= videos * rate + 2 * np.sqrt(videos * rate * (1 - rate)) + 1)

"""Order and presence together: which of the steps that come before another one it needs.

Of a step a that comes before b where both are done, b *needs* a if a run with b implies a; else b only comes after a.
Exclusive pairs have no order. Alternatives of which one is enough are found by presence. Of two parents of a step count
the videos with the step that show both, one, the other and neither; rates that are unknown are integrated out:

    needed           it is there but for what is left out everywhere, at one rate
    for itself       it is there at a rate of its own
    one is enough    neither only at the rate of what is left out; else both, only a or only b, at rates of their own
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import lgamma

import numpy as np
from numpy.typing import NDArray

from msg2.graph.closure import Relation, clique_cover, transitive_closure, transitive_reduction
from msg2.inference.likelihood.presence import PresenceModel
from msg2.inference.likelihood.score import ScoredOrder

_LEAST = 1e-6
"""Nats that an OR must gain."""


@dataclass(frozen=True, eq=False)
class Structure:
    """What a graph of N steps says."""

    needs: Relation  # [a, b] if b needs a, without what follows from others
    alternatives: list[dict[frozenset[int], float | None]]  # the ORs of each step, and the nats that presence gains
    clauses: list[list[frozenset[int]]]  # all that each step needs: one step of each clause
    order: Relation  # [a, b] if b comes after a where both are done, without what follows from others
    exclusive: tuple[tuple[int, ...], ...]
    optional: NDArray[np.bool_]


def combine(order: ScoredOrder, presence: PresenceModel) -> Structure:
    """Say what each step needs and what it only comes after."""
    before = order.relation & ~presence.exclusive
    needs = transitive_closure(before & presence.implied) & ~presence.exclusive
    required = presence.required | needs[:, presence.required].any(axis=1)
    alternatives = [_alternatives(step, order, before, needs, presence) for step in range(len(before))]
    # [a, c] follows from [a, x] and [x, c] where every run with a and c has x.
    carried = before.astype(np.float32) @ (before & (needs | required[:, None])).astype(np.float32) > 0
    exclusive = clique_cover((int(a), int(b)) for a, b in np.argwhere(np.triu(presence.exclusive)))
    one_of = [group for group in exclusive if _is_always_there(group, presence)]
    optional = ~required
    optional[[step for group in one_of for step in group]] = False
    direct, clauses = transitive_reduction(needs), []
    for step, groups in enumerate(alternatives):
        for group in groups:  # what every alternative needs follows from the OR
            direct[:, step] &= ~needs[:, [*group]].all(axis=1)
        clauses.append([*(frozenset({single}) for single in np.flatnonzero(direct[:, step]).tolist()), *groups])
    return Structure(direct, alternatives, clauses, before & ~needs & ~carried, exclusive, optional)


def _alternatives(
    step: int, order: ScoredOrder, before: Relation, needs: Relation, presence: PresenceModel
) -> dict[frozenset[int], float | None]:
    """Groups of steps before `step` of which it needs one, and what each gains where presence tells."""
    there = presence.shown[:, step]
    ors = [group for group in order.clauses(step) if len(group) > 1]
    by_order = [group for group in ors if _is_always_there(group, presence, there)]
    behind = before[:, needs[:, step]].any(axis=1)  # what a needed step comes after is that step's own affair
    parents = np.flatnonzero(before[:, step] & ~needs[:, step] & ~behind)
    # Of steps that always come together, the last one stands for all.
    last = [int(a) for a in parents if not (before[a, parents] & presence.implied[parents, a]).any()]
    by_presence, gain = group_alternatives(last, presence.shown[there], presence.weight[there], presence.absent_rate)
    groups = dict.fromkeys(by_order) | dict.fromkeys(by_presence, gain)
    return {  # without those that follow from what the step needs for itself, or from another one
        group: gained
        for group, gained in groups.items()
        if not needs[[*group], step].any() and not any(other < group for other in groups)
    }


def _is_always_there(
    group: Iterable[int], presence: PresenceModel, among: NDArray[np.bool_] | slice = slice(None)
) -> bool:
    """Whether videos lack all steps of a group about as rarely as they lack a required step; of some sets of steps."""
    shown, weight = presence.shown[among], presence.weight[among]
    lacking = int(weight[~shown[:, [*group]].any(axis=1)].sum())
    videos, rate = int(weight.sum()), presence.absent_rate
    return bool(lacking <= videos * rate + 2 * np.sqrt(videos * rate * (1 - rate)) + 1)


def group_alternatives(
    parents: Sequence[int], shown: NDArray[np.bool_], weight: NDArray[np.int64], rate: float
) -> tuple[list[frozenset[int]], float]:
    """Find groups of earlier steps of which a step needs one, by joining the best two again and again; and the gain."""
    groups: dict[frozenset[int], float] = {}
    for parent in parents:
        present = int(weight[shown[:, parent]].sum())
        groups[frozenset({parent})] = _log_dirichlet_integral(present, int(weight.sum()) - present)
    gained, best, answer = 0.0, _LEAST, list(groups)
    while len(groups) > 1:
        there = {group: np.asarray(shown[:, [*group]].any(axis=1)) for group in groups}  # (P,) each
        joined = {
            pair: _log_probability_together(there[pair[0]], there[pair[1]], weight, rate)
            for pair in combinations(groups, 2)
        }
        gains = {pair: sum(joined[pair]) - groups[pair[0]] - groups[pair[1]] for pair in joined}
        pair = max(gains, key=lambda pair: (round(gains[pair], 9), [sorted(group) for group in pair]))
        if gains[pair] == -np.inf:
            break
        gained += gains[pair]
        groups = {group: value for group, value in groups.items() if group not in pair}
        groups[pair[0] | pair[1]] = joined[pair][0]
        if gained > best:
            best, answer = gained, list(groups)
    return [group for group in answer if len(group) > 1], best


def _log_probability_together(
    one: NDArray[np.bool_], other: NDArray[np.bool_], weight: NDArray[np.int64], rate: float
) -> tuple[float, float]:
    """Compute log p that one of the two steps is there, left out at a rate, and log p of which one it is."""
    both, first, second = (int(weight[flags].sum()) for flags in (one & other, one & ~other, ~one & other))
    neither = int(weight.sum()) - both - first - second
    if both * neither >= first * second:
        return -np.inf, 0.0  # where one is there, the other is rather there too: they do not stand for each other
    enough = float((both + first + second) * np.log1p(-rate) + neither * np.log(rate))
    return enough, _log_dirichlet_integral(both, first, second)


def _log_dirichlet_integral(*counts: int) -> float:
    """log ∫ Π p_k^count_k dp over all rates p that add up to 1, uniformly."""
    return lgamma(len(counts)) + sum(lgamma(count + 1) for count in counts) - lgamma(sum(counts) + len(counts))

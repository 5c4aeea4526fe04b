"""Order and presence together: which of the steps that come before another one it needs.

Of a step a that comes before b where both are done, b *needs* a if a run with b implies a; else b only comes after a.
Exclusive pairs have no order. Alternatives of which one is enough are found by presence. Of two parents of a step count
the videos with the step that show both, one, the other and neither; rates that are unknown are integrated out:

    needed           it is there but for what is left out everywhere, at one rate
    for itself       it is there at a rate of its own
    one is enough    neither only at the rate of what is left out; else both, only a or only b, at rates of their own
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from msg2.graph.closure import Relation, clique_cover, transitive_closure, transitive_reduction
from msg2.inference.likelihood.presence import PresenceModel, log_any_rate, log_binomial, log_factorials
from msg2.inference.likelihood.score import ScoredOrder
from msg2.sequences import FloatArray, Variants

MOST_CONTRADICTING, MANY_RUNS = 0.05, 60
"""Where every label of so many runs is there, what more than this share of those that tell contradict is not stated;
fewer runs do not tell another way to do it from mistakes."""
DIVIDED = 1 / 3, 2.0
"""No order is stated that clearly more than a third of the videos contradict, by two standard deviations."""
_LEAST = 1e-6
"""Nats that an OR must gain."""


@dataclass(frozen=True, eq=False)
class Structure:
    """What a graph of N steps says."""

    needs: Relation  # [a, b] if b needs a, without what follows from others
    alternatives: list[dict[frozenset[int], float | None]]  # the ORs of each step, and the nats that presence gains
    order: Relation  # [a, b] if b comes after a where both are done, without what follows from others
    exclusive: tuple[tuple[int, ...], ...]
    optional: NDArray[np.bool_]

    def clauses(self, step: int) -> list[frozenset[int]]:
        """All that a step needs: one step of each clause."""
        singles = np.flatnonzero(self.needs[:, step]).tolist()
        return [*(frozenset({single}) for single in singles), *self.alternatives[step]]

    def with_twins(self, pairs: Iterable[tuple[int, int]]) -> Structure:
        """Say of steps that nothing tells apart the same: which of them a search took up first does not matter."""
        structure = self
        for a, b in pairs:
            swapped = np.arange(len(structure.needs))
            swapped[[a, b]] = b, a

            def rename(group: Iterable[int], names: NDArray[np.intp] = swapped) -> tuple[int, ...]:
                return tuple(sorted(int(names[step]) for step in group))

            ors = [
                own | {frozenset(rename(group)): gain for group, gain in structure.alternatives[other].items()}
                for own, other in zip(structure.alternatives, swapped.tolist(), strict=True)
            ]
            exclusive = sorted({*structure.exclusive, *map(rename, structure.exclusive)})
            structure = Structure(
                structure.needs | structure.needs[swapped][:, swapped],
                ors,
                structure.order | structure.order[swapped][:, swapped],
                tuple(exclusive),
                structure.optional | structure.optional[swapped],
            )
        return structure


def combine(order: ScoredOrder, presence: PresenceModel, variants: Variants, *, every_label: bool) -> Structure:
    """Say what each step needs and what it only comes after; `every_label`: what is absent was not done."""
    first, later = variants.before, variants.before.T
    ordered: Relation = ~variants.mostly_together & is_chance(later, first + later, *DIVIDED)
    sure = every_label and presence.weight.sum() >= MANY_RUNS
    if sure:  # what contradicts a rule is no fault of the labels
        ordered = ordered & is_chance(later, first + later)
    before = order.relation & ~presence.exclusive & ordered
    needs = transitive_closure(before & presence.implied) & ~presence.exclusive
    required = presence.required | needs[:, presence.required].any(axis=1)
    alternatives = [
        {
            group: gain
            for group, gain in _alternatives(step, order, before, needs, presence).items()
            if not sure or _comes_before(group, step, variants)
        }
        for step in range(len(before))
    ]
    # [a, c] follows from [a, x] and [x, c] where every run with a and c has x.
    carried = before.astype(np.float32) @ (before & (needs | required[:, None])).astype(np.float32) > 0
    exclusive = clique_cover((int(a), int(b)) for a, b in np.argwhere(np.triu(presence.exclusive)))
    one_of = [group for group in exclusive if _is_always_there(group, presence)]
    optional = ~required
    optional[[step for group in one_of for step in group]] = False
    direct = transitive_reduction(needs)
    for step, groups in enumerate(alternatives):
        for group in groups:  # what every alternative needs follows from the OR
            direct[:, step] &= ~needs[:, [*group]].all(axis=1)
    return Structure(direct, alternatives, before & ~needs & ~carried, exclusive, optional)


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


def _comes_before(group: frozenset[int], step: int, variants: Variants) -> bool:
    """Whether hardly any video does a step before all of a group, or without it."""
    shown, members = variants.shown[:, step], [*group]
    start, end = (times[shown] for times in (variants.start, variants.end))
    first = (end[:, members] <= start[:, [step]]).any(axis=1)
    none = (~(start[:, members] >= 0) | (start[:, members] >= end[:, [step]])).all(axis=1)
    weight = variants.weight[shown]
    return bool(is_chance(weight @ none, weight @ (first | none)))


def is_chance(
    contradicting: NDArray[np.int64], runs: NDArray[np.int64], share: float = MOST_CONTRADICTING, deviations: float = 1
) -> NDArray[np.bool_]:
    """Whether so many of some runs may contradict a rule: a share of them, and some standard deviations more."""
    return np.asarray(contradicting <= share * runs + deviations * np.sqrt(runs * share * (1 - share)))


def _is_always_there(
    group: Iterable[int], presence: PresenceModel, among: NDArray[np.bool_] | slice = slice(None)
) -> bool:
    """Whether videos lack all steps of a group about as rarely as they lack a required step; of some sets of steps."""
    shown, weight = presence.shown[among], presence.weight[among]
    lacking = weight[~shown[:, [*group]].any(axis=1)].sum()
    return bool(is_chance(lacking - 1, weight.sum(), presence.absent_rate, 2))


def group_alternatives(
    parents: Sequence[int], shown: NDArray[np.bool_], weight: NDArray[np.int64], rate: float
) -> tuple[list[frozenset[int]], float]:
    """Find groups of earlier steps of which a step needs one, by joining the best two again and again; and the gain."""
    groups, total = [frozenset({parent}) for parent in parents], int(weight.sum())
    rows, there = list(range(len(groups))), shown.T[list(parents)].astype(np.float64)  # (G, P); the row of each group
    count = (there @ weight).astype(np.intp)
    value = log_any_rate(count, total)
    rises = _joined((there * weight) @ there.T, count[:, None], count, total, rate) - value[:, None] - value
    rises[np.tri(len(groups), dtype=np.bool_)] = -np.inf
    gained, best, answer = 0.0, _LEAST, list(groups)
    while len(groups) > 1 and rises.max() > -np.inf:
        rounded = np.round(rises, 9)
        ties = np.argwhere(rounded == rounded.max()).tolist()
        a, b = max(ties, key=lambda pair: [sorted(groups[group]) for group in pair])
        gained += float(rises[a, b])
        there[rows[b]] = np.maximum(there[rows[a]], there[rows[b]])
        # The joined group comes last; only its pairs with the others are new.
        others = [group for group in range(len(groups)) if group not in (a, b)]
        groups = [*(groups[group] for group in others), groups[a] | groups[b]]
        rows = [*(rows[group] for group in others), rows[b]]
        both = there[rows] @ (there[rows[-1]] * weight)
        joined, count = int(both[-1]), np.append(count[others], both[-1].astype(np.intp))
        value = np.append(value[others], log_binomial(np.asarray(total - joined), total, rate))
        rises = np.pad(rises[np.ix_(others, others)], ((0, 1), (0, 1)), constant_values=-np.inf)
        rises[:-1, -1] = (_joined(both, count, joined, total, rate) - value - value[-1])[:-1]
        if gained > best:
            best, answer = gained, groups
    return [group for group in answer if len(group) > 1], best


def _joined(
    both: FloatArray, first: NDArray[np.intp], second: NDArray[np.intp] | int, total: int, rate: float
) -> FloatArray:
    """log p of pairs of groups if one is always there; −∞ where, if one is there, the other is rather there too."""
    together = both.astype(np.intp)
    either, only_first, only_second = first + second - together, first - together, second - together
    logs = log_factorials((total + 2).bit_length())
    which = logs[2] + logs[together] + logs[only_first] + logs[only_second] - logs[either + 2]
    apart = together * (total - either) < only_first * only_second
    return np.where(apart, log_binomial(total - either, total, rate) + which, -np.inf)

"""Moves of the search on whole preconditions: what a step waits for is found anew, ORs included.

With all other steps as they are, the score of what a step waits for is a sum over choices (`BlockingGains`). It is built
greedily: the clause that gains most, a single step or several of which one is enough, then the next one, where the step
does not wait yet; clauses that are no longer worth what they cost are dropped. An OR grows from each single step by the
alternative that gains most, up to `_LARGEST` of them. So ORs are added, joined, split and removed in one move, together
with pairs; of steps that follow, the pairs that came through this one are kept or dropped, whichever scores higher.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.arrays import FloatArray
from msg2.inference.likelihood.blocking_gains import BlockingGains, Gains
from msg2.inference.likelihood.pair_moves import MIN_GAIN
from msg2.inference.likelihood.scored_order import OrderScorer, ScoredOrder
from msg2.inference.relations import transitive_closure

Clause: TypeAlias = frozenset[int]
"""Steps of which one is enough."""

_LARGEST = 4
"""Steps in an OR, at most."""


def move_preconditions(scorer: OrderScorer, order: ScoredOrder, gains: BlockingGains) -> ScoredOrder:
    """Find anew what each step waits for, and make the moves that raise the score.

    Parameters
    ----------
    scorer : OrderScorer
        What is scored.
    order : ScoredOrder
        Where the round starts.
    gains : BlockingGains
        What keeping steps waiting gains there.

    Returns
    -------
    ScoredOrder
        `order` itself where no move helps.
    """
    start = order
    for step in range(len(order.relation)):
        search = _ClauseSearch(scorer, start, gains, step)
        current = search.current
        for clauses in dict.fromkeys((search.build(()), search.build(current))):
            if set(clauses) != set(current):
                order = max([order, *_apply(scorer, order, step, clauses)], key=lambda one: round(one.score, 6))
    return order


def _apply(scorer: OrderScorer, order: ScoredOrder, step: int, clauses: Sequence[Clause]) -> Iterator[ScoredOrder]:
    """The order with these clauses for a step; without the pairs that came through it for others, and with them."""
    singles = [one for clause in clauses if len(clause) == 1 for one in clause]
    ors = {(step, clause) for clause in clauses if len(clause) > 1}
    ors |= {(owner, group) for owner, group in order.disjunctions if owner != step}
    for kept in (order.covering_pairs(), order.relation):
        edges = kept.copy()
        edges[:, step] = False
        edges[singles, step] = True
        relation = transitive_closure(edges)
        if relation.diagonal().any():
            continue
        # An alternative that must come first anyway makes an OR needless.
        needed = frozenset((owner, group) for owner, group in ors if not relation[[*group], owner].any())
        candidate = scorer.move_to(order, relation, needed)
        if candidate.score > order.score + MIN_GAIN and not candidate.is_cyclic:
            yield candidate


@dataclass(frozen=True, eq=False)
class _ClauseSearch:
    """The search for what one step waits for."""

    scorer: OrderScorer
    order: ScoredOrder
    gains: BlockingGains
    step: int

    @cached_property
    def current(self) -> tuple[Clause, ...]:
        """What the step waits for now."""
        singles = np.flatnonzero(self.order.covering_pairs()[:, self.step]).tolist()
        return (*(frozenset({one}) for one in singles), *self.order.disjunctions_of(self.step))

    def build(self, clauses: tuple[Clause, ...]) -> tuple[Clause, ...]:
        """Add clauses that gain, then drop those that no longer do."""
        found = list(clauses)
        waiting = self._waiting(found)
        while len(found) < len(self.order.relation):
            clause, gain = self._best_clause(found, waiting)
            if gain <= MIN_GAIN:
                break
            found.append(clause)
            waiting = np.maximum(waiting, self._waits_for(clause))
        while found:
            best = max(self._variations(found), key=lambda one: round(self._value(one), 6))
            if self._value(best) <= self._value(found) + MIN_GAIN:
                break
            found = best
        return tuple(found)

    def _variations(self, clauses: Sequence[Clause]) -> Iterator[list[Clause]]:
        """The clauses without one of them, with one that lacks an alternative, and with one that has one more."""
        for clause in clauses:
            rest = [other for other in clauses if other != clause]
            yield rest
            if len(clause) > 1:
                yield from ([*rest, clause - {one}] for one in sorted(clause))
            larger = clause | self._best_alternative(clause, self._gain * (1 - self._waiting(rest)))
            if clause < larger and self._each_is_enough(larger):
                yield [*rest, larger]

    def _best_alternative(self, clause: Clause, gain: Gains) -> Clause:
        """The step that gains most as one more alternative of a clause, where gains are left."""
        steps = self._alternatives[~np.isin(self._alternatives, [*clause])]
        if len(clause) == _LARGEST or not len(steps):
            return frozenset()
        members = [*clause]
        none, never = self.gains.not_begun[members].min(axis=0), self.gains.absent[members].min(axis=0)
        rises = self.gains.not_begun[steps] @ (none * gain) - self.gains.absent[steps] @ (never * gain)
        return frozenset({int(steps[rises.argmax()])})

    # -- what is gained and what it costs ------------------------------------------------------------------------

    @property
    def _gain(self) -> Gains:
        return self.gains.gain[self.step]

    def _value(self, clauses: Sequence[Clause]) -> float:
        ors = sum(_or_cost(len(clause), len(self.order.relation)) for clause in clauses if len(clause) > 1)
        return float(self._gain @ self._waiting(clauses)) - ors - self._pair_cost(self._predecessors(clauses))

    def _waiting(self, clauses: Sequence[Clause]) -> Gains:
        """Where the step waits for one of the clauses, shape (E,)."""
        waiting = np.zeros_like(self._gain)
        for clause in clauses:
            waiting = np.maximum(waiting, self._waits_for(clause))
        return waiting

    def _waits_for(self, clause: Clause) -> Gains:
        """Where none of the alternatives is begun and one of them is to come; a single step not where it is late."""
        members = [*clause]
        if len(members) == 1:
            above = self.order.relation[:, members[0]].copy()
            above[members[0]] = True
            return np.asarray(self.gains.blocking[above].max(axis=0))
        none_begun = self.gains.not_begun[members].min(axis=0)
        return np.asarray(none_begun - self.gains.absent[members].min(axis=0))

    def _predecessors(self, clauses: Sequence[Clause]) -> NDArray[np.bool_]:
        """The steps that come before this one if it waits for these clauses."""
        before = np.zeros(len(self.order.relation), dtype=np.bool_)
        for clause in clauses:
            if len(clause) == 1:
                (one,) = clause
                before |= self.order.relation[:, one]
                before[one] = True
        return before

    def _pair_cost(self, predecessors: NDArray[np.bool_]) -> FloatArray:
        """What the prior takes for such predecessors, shape (…, N) -> (…)."""
        usual = self.scorer.prior.usual[:, self.step]
        count = (predecessors & usual).sum(axis=-1)
        against = (predecessors & ~usual).sum(axis=-1)
        return np.asarray(self.scorer.prior.cost[self.step][count] + against * np.log(len(usual)))

    # -- one more clause -----------------------------------------------------------------------------------------

    def _best_clause(self, clauses: Sequence[Clause], waiting: Gains) -> tuple[Clause, float]:
        """The clause that gains most where the step does not wait yet, and what it gains."""
        possible = self._possible
        if not len(possible):
            return frozenset(), 0.0
        gain = self._gain * (1 - waiting)
        before = self._predecessors(clauses)
        with_one = before | self.order.relation.T[possible]
        with_one[np.arange(len(possible)), possible] = True
        rises = self._single @ gain - self._pair_cost(with_one) + self._pair_cost(before)
        best = int(np.argmax(rises))
        clause, most = frozenset({int(possible[best])}), float(rises[best])
        if float(np.maximum(gain, 0).sum()) - _or_cost(2, len(self.order.relation)) <= max(most, MIN_GAIN):
            return clause, most
        for group, rise in self._growing_ors(gain):
            if rise > most + MIN_GAIN and self._each_is_enough(group):
                clause, most = group, rise
        return clause, most

    @cached_property
    def _possible(self) -> NDArray[np.intp]:
        """The steps that this one can wait for without a circle."""
        allowed = ~self.order.reachable[self.step]
        allowed[self.step] = False
        return np.flatnonzero(allowed)

    @cached_property
    def _single(self) -> Gains:
        """Where the step would wait for each of the possible ones, and what comes before that; shape (possible, E)."""
        above = self.order.relation.T | np.eye(len(self.order.relation), dtype=np.bool_)
        return (above[self._possible].astype(np.float32) @ self.gains.blocking > 0).astype(np.float32)

    @cached_property
    def _alternatives(self) -> NDArray[np.intp]:
        """The steps that are tried in ORs: begun before this one in many videos, and still to come where it gains."""
        possible, most = self._possible, self.scorer.options.alternatives
        if len(possible) <= most:
            return possible
        now, reward = np.minimum(self._gain, 0), np.maximum(self._gain, 0)
        enough = self.gains.begun[possible] @ now / min(float(now.sum()), -MIN_GAIN)
        keeps = self.gains.not_begun[possible] @ reward / max(float(reward.sum()), MIN_GAIN)
        return np.sort(possible[np.argsort(-(enough + keeps), kind="stable")[:most]])

    def _growing_ors(self, gain: Gains) -> Iterator[tuple[Clause, float]]:
        """From each alternative, the best OR of two, of three, … that holds the one before; and what it gains."""
        steps = self._alternatives
        not_begun, absent = self.gains.not_begun[steps], self.gains.absent[steps]
        member = np.eye(len(steps), dtype=np.bool_)
        none, never = not_begun * gain, absent * gain
        rows = np.arange(len(steps))
        for size in range(2, min(_LARGEST, len(steps)) + 1):
            rises = np.where(member, -np.inf, none @ not_begun.T - never @ absent.T)
            best = rises.argmax(axis=1)
            member[rows, best] = True
            cost = _or_cost(size, len(self.order.relation))
            yield from (
                (frozenset(steps[member[row]].tolist()), float(rises[row, best[row]]) - cost) for row in rows
            )
            none, never = none * not_begun[best], never * absent[best]

    def _each_is_enough(self, group: Clause) -> bool:
        """Whether each of the alternatives was enough without the others, and not once only, which may be disorder."""
        events = self.scorer.events
        now, begun = events.now[self.step], events.begun
        alone = (now & begun[one] & events.none_begun(group - {one}) for one in group)
        return all(events.count_videos(choices) >= self.scorer.options.min_alone for choices in alone)


def _or_cost(size: int, steps: int) -> float:
    """What the prior takes for an OR: see `OrderPrior.log_probability`."""
    return float(np.log(2 * comb(steps - 1, size)))

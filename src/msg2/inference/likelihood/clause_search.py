"""The search for what one step waits for, single steps and ORs, all other steps as they are.

The score of what a step waits for is then a sum over choices (`BlockingGains`). Clauses are added greedily: the one
that gains most, then the next one, where the step does not wait yet. An OR grows from each single step by the step
that gains most. Then clauses are dropped, shrunk and enlarged while that gains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.arrays import FloatArray
from msg2.inference.likelihood.blocking_gains import BlockingGains, Gains
from msg2.inference.likelihood.pair_moves import MIN_GAIN
from msg2.inference.likelihood.prior import or_cost
from msg2.inference.likelihood.scored_order import OrderScorer, ScoredOrder

Clause: TypeAlias = frozenset[int]
"""Steps of which one is enough."""

_LARGEST = 4
"""Steps in an OR, at most."""
_SEEDS = 12
"""ORs of two steps that are tried with a third one, and so on: those that gain most."""


@dataclass(frozen=True, eq=False)
class ClauseSearch:
    """The search for what one step waits for, at the E choices at which it may gain or lose by that."""

    scorer: OrderScorer
    order: ScoredOrder
    gains: BlockingGains
    step: int

    @cached_property
    def current(self) -> tuple[Clause, ...]:
        """What the step waits for now."""
        singles = np.flatnonzero(self.order.covering_pairs()[:, self.step]).tolist()
        return (*(frozenset({one}) for one in singles), *self.order.disjunctions_of(self.step))

    def proposals(self) -> list[tuple[Clause, ...]]:
        """What the step may better wait for.

        There may be more of it, or an OR in the place of a step that is not always done; and where it was begun too
        early, something else.
        """
        lost = -float(np.minimum(self._gain, 0) @ self._waiting(self.current))
        wrong = lost > or_cost(2, len(self.order.relation)) or bool(self.order.disjunctions_of(self.step))
        found = []
        if wrong or self._best_clause(self.current)[1] > MIN_GAIN or any(map(self._never_done, self.current)):
            found.append(self.build(self.current))
        if wrong:
            found.append(self.build(()))
        return [one for one in found if set(one) != set(self.current)]

    def build(self, clauses: tuple[Clause, ...]) -> tuple[Clause, ...]:
        """Add clauses that gain, then vary them while that gains more."""
        found = list(clauses)
        while len(found) < len(self.order.relation):
            clause, gain = self._best_clause(found)
            if gain <= MIN_GAIN:
                break
            found.append(clause)
        value = self._value(found, self._waiting(found))
        while found:
            most, best = max(self._variations(found), key=lambda one: round(one[0], 6))
            if most <= value + MIN_GAIN:
                break
            value, found = most, best
        return tuple(found)

    def _variations(self, clauses: Sequence[Clause]) -> Iterator[tuple[float, list[Clause]]]:
        """The clauses without one of them, or with one that has an alternative less, more or other; with values."""
        times = np.sum([self._waits_for(clause) for clause in clauses], axis=0)
        for clause in clauses:
            rest, waits = [other for other in clauses if other != clause], self._waits_for(clause)
            waiting = np.minimum(times - waits, 1)
            smaller = [clause - {one} for one in sorted(clause)] if len(clause) > 1 else []
            changed = [*smaller, *(one | {self._best_alternative(one, waiting)} for one in smaller)]
            if len(clause) < _LARGEST and (self._loses(waits) or self._never_done(clause)):
                changed.append(clause | {self._best_alternative(clause, waiting)})
            yield self._value(rest, waiting), rest
            for other in (one for one in changed if not self._says_nothing([*rest, one])):
                yield self._value([*rest, other], np.maximum(waiting, self._waits_for(other))), [*rest, other]

    def _says_nothing(self, clauses: Sequence[Clause]) -> bool:
        """Whether there is an OR of which an alternative must come first anyway."""
        before = self._predecessors(clauses)
        return any(before[[*clause]].any() for clause in clauses if len(clause) > 1)

    # -- what is gained and what it costs ------------------------------------------------------------------------

    @cached_property
    def _choices(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.gains.gain[self.step])

    @cached_property
    def _gain(self) -> Gains:
        return np.asarray(self.gains.gain[self.step, self._choices])

    @cached_property
    def _not_begun(self) -> Gains:
        return self.gains.not_begun[:, self._choices]

    @cached_property
    def _absent(self) -> Gains:
        return self.gains.absent[:, self._choices]

    @cached_property
    def _blocking_at_all(self) -> Gains:
        return self.gains.blocking_at_all[:, self._choices]

    @cached_property
    def _known(self) -> dict[Clause, Gains]:
        return {}

    def _value(self, clauses: Sequence[Clause], waiting: Gains) -> float:
        """What is gained by waiting for these clauses, less what they cost."""
        ors = sum(or_cost(len(clause), len(self.order.relation)) for clause in clauses if len(clause) > 1)
        return float(self._gain @ waiting) - ors - float(self._pair_cost(self._predecessors(clauses)))

    def _loses(self, waiting: Gains) -> bool:
        """Whether the step was ever begun where it should have waited."""
        return bool((waiting * self._gain < 0).any())

    def _never_done(self, clause: Clause) -> bool:
        """Whether none of the alternatives is ever done at some of the choices."""
        return bool(self._absent[[*clause]].min(axis=0).any())

    def _waiting(self, clauses: Sequence[Clause]) -> Gains:
        """Where the step waits for one of the clauses, shape (E,)."""
        waiting = np.zeros_like(self._gain)
        for clause in clauses:
            np.maximum(waiting, self._waits_for(clause), out=waiting)
        return waiting

    def _waits_for(self, clause: Clause) -> Gains:
        """Where none of the alternatives is begun and one of them is to come; a single step not where it is late."""
        if clause not in self._known:
            members = [*clause]
            if len(members) == 1:
                self._known[clause] = self._blocking_at_all[members[0]]
            else:
                never = self._absent[members].min(axis=0)
                self._known[clause] = np.asarray(self._not_begun[members].min(axis=0) - never)
        return self._known[clause]

    def _predecessors(self, clauses: Sequence[Clause]) -> NDArray[np.bool_]:
        """The steps that come before this one if it waits for these clauses."""
        singles = [one for clause in clauses if len(clause) == 1 for one in clause]
        before = np.asarray(self.order.relation[:, singles].any(axis=1))
        before[singles] = True
        return before

    def _pair_cost(self, predecessors: NDArray[np.bool_]) -> FloatArray:
        """What the prior takes for such predecessors, shape (…, N) -> (…)."""
        prior = self.scorer.prior
        usual = (predecessors & prior.usual[:, self.step]).sum(axis=-1)
        return prior.pair_cost(usual, predecessors.sum(axis=-1), self.step)

    # -- one more clause, one more alternative -------------------------------------------------------------------

    def _best_clause(self, clauses: Sequence[Clause]) -> tuple[Clause, float]:
        """The clause that gains most where the step does not wait yet, and what it gains."""
        possible, gain = self.possible, self._gain * (1 - self._waiting(clauses))
        reward = np.maximum(gain, 0)
        if not len(possible) or float(reward.sum()) <= MIN_GAIN:
            return frozenset(), 0.0
        before = self._predecessors(clauses)
        with_one = before | self._predecessors_through
        rises = (self._blocking_at_all @ gain)[possible] - self._pair_cost(with_one) + self._pair_cost(before)
        for group in (clause for clause in clauses if len(clause) > 1):
            rises[with_one[:, [*group]].any(axis=1)] = -np.inf  # the OR would say nothing any more
        best = int(rises.argmax())
        clause, most = frozenset({int(possible[best])}), float(rises[best])
        not_begun, least = self._alternatives_not_begun, or_cost(2, len(self.order.relation)) + max(most, MIN_GAIN)
        # An OR gains no more than two of its alternatives do where both are still to come.
        together = (not_begun * reward) @ not_begun.T
        np.fill_diagonal(together, 0)
        if float(together.max(initial=0)) <= least:
            return clause, most
        for group, rise in self._growing_ors(gain, before):
            if rise > most + MIN_GAIN:
                clause, most = group, rise
        return clause, most

    @cached_property
    def _predecessors_through(self) -> NDArray[np.bool_]:
        """Of each possible step, that step and those that come before it."""
        through = self.order.relation.T[self.possible]
        through[np.arange(len(through)), self.possible] = True
        return through

    def _best_alternative(self, clause: Clause, waiting: Gains) -> int:
        """The step that gains most as one more alternative of a clause, where the step is not `waiting` anyway."""
        members, gain = [*clause], self._gain * (1 - waiting)
        none, never = self._not_begun[members].min(axis=0), self._absent[members].min(axis=0)
        rises = self._not_begun @ (none * gain) - self._absent @ (never * gain)
        rises[members] = -np.inf
        return int(self.possible[rises[self.possible].argmax()])

    @cached_property
    def possible(self) -> NDArray[np.intp]:
        """The steps that this one can wait for without a circle."""
        allowed = ~self.order.reachable[self.step]
        allowed[self.step] = False
        return np.flatnonzero(allowed)

    @cached_property
    def _alternatives(self) -> NDArray[np.intp]:
        """The steps that are tried in ORs: begun before this one in many videos, and still to come where it gains."""
        possible, most = self.possible, self.scorer.options.alternatives
        if len(possible) <= most:
            return possible
        worth = self.gains.worth[possible, self.step]
        return np.sort(possible[np.argsort(-worth, kind="stable")[:most]])

    def _growing_ors(self, gain: Gains, before: NDArray[np.bool_]) -> Iterator[tuple[Clause, float]]:
        """The best ORs of two, of three, … that grow from each alternative by the one that gains most; and the gains.

        `gain` is what they may gain; with one of the steps that come `before` anyway they cannot.
        """
        steps = self._alternatives
        not_begun, absent = self._alternatives_not_begun, self._alternatives_absent
        barred = before[steps]
        member = np.eye(len(steps), dtype=np.bool_)[~barred]
        none, never = (not_begun * gain)[~barred], (absent * gain)[~barred]
        for size in range(2, min(_LARGEST, len(member)) + 1):
            rises = none @ not_begun.T - never @ absent.T
            rises[member | barred] = -np.inf
            best = rises.argmax(axis=1)
            most = rises[self._rows[: len(member)], best]
            kept = (-most).argsort(kind="stable")[:_SEEDS]
            member, best = member[kept], best[kept]
            member[self._rows[: len(member)], best] = True
            yield frozenset(steps[member[0]].tolist()), float(most[kept[0]]) - or_cost(size, len(before))
            none, never = none[kept] * not_begun[best], never[kept] * absent[best]

    @cached_property
    def _alternatives_not_begun(self) -> Gains:
        return self._not_begun[self._alternatives]

    @cached_property
    def _alternatives_absent(self) -> Gains:
        return self._absent[self._alternatives]

    @cached_property
    def _rows(self) -> NDArray[np.intp]:
        return np.arange(len(self._alternatives))

"""ORs: the search for what one step waits for, single steps and ORs, with all other steps as they are.

The score of a set of *clauses* (steps of which one is enough) is about a sum over choices (`BlockingGains`). They are
added greedily, an OR grows by the step that gains most; then clauses are dropped, shrunk and enlarged while that gains.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.inference.likelihood.score import MIN_GAIN, BlockingGains, Gains, OrderScorer, ScoredOrder, or_cost

Clause: TypeAlias = frozenset[int]
"""Steps of which one is enough."""

_LARGEST = 4
"""Steps in an OR, at most."""
_SEEDS = 12
"""ORs of two steps that are tried with a third one, and so on: those that gain most."""


class _ClauseRows(NamedTuple):
    """The rows of the steps of a clause, and what holds at the E choices; shape (E,) each."""

    places: list[int]
    none: Gains  # 1 where none of its steps has begun
    never: Gains  # 1 where none of them ever will either
    waits: Gains  # 1 where the step waits, since one of them is to come; for a single step not where that is late


class ClauseSearch:
    """The search for what one step waits for, at the E choices at which it may gain or lose by that."""

    def __init__(self, scorer: OrderScorer, order: ScoredOrder, gains: BlockingGains, step: int) -> None:
        self._step, self._relation, self._prior = step, order.relation, scorer.prior
        self._size, self._usual = len(order.relation), scorer.prior.usual[:, step]
        self._current = order.clauses(step)
        # The steps that this one can wait for without a circle.
        possible = ~order.reachable[step] & ~scorer.together[:, step] & (np.arange(self._size) != step)
        possible[[member for clause in self._current for member in clause]] = True
        self._possible = np.flatnonzero(possible)
        choices = gains.gain[step].nonzero()[0]
        self._gain: Gains = gains.gain[step].take(choices)
        # Of the P possible steps, shape (P, E); `_place` says which row is whose.
        self._not_begun, self._absent, self._blocking_at_all = (
            flags.take(choices, axis=1)[self._possible]
            for flags in (gains.choices.not_begun, gains.choices.absent, gains.blocking_at_all)
        )
        self._place = {step: place for place, step in enumerate(self._possible.tolist())}
        # Those that were begun before this step in many videos, and are still to come where waiting gains.
        most, places = scorer.options.alternatives, np.arange(len(self._possible))
        if len(places) > most:
            places = np.sort(np.argsort(-gains.worth[self._possible, step], kind="stable")[:most])
        self._alternatives = self._possible[places]
        self._alternatives_not_begun, self._alternatives_absent = self._not_begun[places], self._absent[places]
        # Of each possible step, that step and those that come before it.
        self._predecessors_through = order.relation.T[self._possible]
        self._predecessors_through[np.arange(len(self._possible)), self._possible] = True
        self._known_rows: dict[Clause, _ClauseRows] = {}
        self._known_predecessors: dict[frozenset[int], tuple[NDArray[np.bool_], float]] = {}

    def proposals(self) -> list[tuple[Clause, ...]]:
        """What the step may better wait for: more, an OR in the place of a step; begun too early, something else."""
        lost = -float(np.minimum(self._gain, 0) @ self._waiting(self._current))
        wrong = lost > or_cost(2, self._size) or any(len(clause) > 1 for clause in self._current)
        proposals, more = [], self._best_clause(self._current)
        if wrong or more[1] > MIN_GAIN or any(self._rows(clause).never.any() for clause in self._current):
            proposals.append(self.build(self._current, more))
        if wrong:
            proposals.append(self.build(()))
        return [clauses for clauses in proposals if set(clauses) != set(self._current)]

    def build(self, clauses: tuple[Clause, ...], more: tuple[Clause, float] | None = None) -> tuple[Clause, ...]:
        """Add clauses that gain, then vary them while that gains more."""
        built = list(clauses)
        while len(built) < self._size:
            clause, gain = self._best_clause(built) if more is None else more
            if gain <= MIN_GAIN:
                break
            built.append(clause)
            more = None
        value = self._value(built, self._waiting(built))
        while built:
            most, best = max(self._variations(built), key=lambda variation: round(variation[0], 6))
            if most <= value + MIN_GAIN:
                break
            value, built = most, best
        return tuple(built)

    def _variations(self, clauses: Sequence[Clause]) -> Iterator[tuple[float, list[Clause]]]:
        """The clauses without one of them, or with one that has an alternative less, more or other; with values."""
        times = np.sum([self._rows(clause).waits for clause in clauses], axis=0)
        for clause in clauses:
            rest, rows = [other for other in clauses if other != clause], self._rows(clause)
            waiting = np.minimum(times - rows.waits, 1)
            smaller = [clause - {member} for member in sorted(clause)] if len(clause) > 1 else []
            changed, growing, gain = [*smaller], [*smaller], self._gain * (1 - waiting)
            ever_loses = (rows.waits * self._gain < 0).any()  # it was begun where it should have waited
            if len(clause) < _LARGEST and (ever_loses or rows.never.any()):
                growing.append(clause)
            for fewer in growing:  # by the alternative that gains most, where the step is not waiting anyway
                own = self._rows(fewer)
                rises = self._not_begun @ (own.none * gain) - self._absent @ (own.never * gain)
                rises[own.places] = -np.inf
                changed.append(fewer | {int(self._possible[rises.argmax()])})
            yield self._value(rest, waiting), rest
            for other in changed:
                clauses_then = [*rest, other]
                before, _ = self._predecessors(clauses_then)
                # An OR of which an alternative must come first anyway says nothing.
                if not any(before[[*group]].any() for group in clauses_then if len(group) > 1):
                    yield self._value(clauses_then, np.maximum(waiting, self._rows(other).waits)), clauses_then

    def _value(self, clauses: Sequence[Clause], waiting: Gains) -> float:
        """What is gained by waiting for these clauses, less what they cost."""
        ors = sum(or_cost(len(clause), self._size) for clause in clauses if len(clause) > 1)
        return float(self._gain @ waiting) - ors - self._predecessors(clauses)[1]

    def _waiting(self, clauses: Sequence[Clause]) -> Gains:
        """Where the step waits for one of the clauses, shape (E,)."""
        waiting = np.zeros_like(self._gain)
        for clause in clauses:
            np.maximum(waiting, self._rows(clause).waits, out=waiting)
        return waiting

    def _rows(self, clause: Clause) -> _ClauseRows:
        """What holds of a clause at the choices, computed once."""
        if clause not in self._known_rows:
            places = [self._place[step] for step in clause]
            none, never = self._not_begun[places].min(axis=0), self._absent[places].min(axis=0)
            waits = self._blocking_at_all[places[0]] if len(places) == 1 else none - never
            self._known_rows[clause] = _ClauseRows(places, none, never, waits)
        return self._known_rows[clause]

    def _predecessors(self, clauses: Sequence[Clause]) -> tuple[NDArray[np.bool_], float]:
        """The steps that come before this one if it waits for these clauses, and what the prior takes for them."""
        singles = frozenset().union(*(clause for clause in clauses if len(clause) == 1))
        if singles not in self._known_predecessors:
            members = [*singles]
            before = np.asarray(self._relation[:, members].any(axis=1))
            before[members] = True
            cost = self._prior.pair_cost((before & self._usual).sum(), before.sum(), self._step)
            self._known_predecessors[singles] = before, float(cost)
        return self._known_predecessors[singles]

    def _best_clause(self, clauses: Sequence[Clause]) -> tuple[Clause, float]:
        """The clause that gains most where the step does not wait yet, and what it gains."""
        possible, gain = self._possible, self._gain * (1 - self._waiting(clauses))
        reward = np.maximum(gain, 0)
        if not len(possible) or float(reward.sum()) <= MIN_GAIN:
            return frozenset(), 0.0
        before, cost = self._predecessors(clauses)
        with_one = before | self._predecessors_through
        cost_with_one = self._prior.pair_cost((with_one & self._usual).sum(axis=1), with_one.sum(axis=1), self._step)
        rises = self._blocking_at_all @ gain - cost_with_one + cost
        for group in (clause for clause in clauses if len(clause) > 1):
            rises[with_one[:, [*group]].any(axis=1)] = -np.inf  # the OR would say nothing any more
        best = int(rises.argmax())
        single, most = frozenset({int(possible[best])}), float(rises[best])
        return self._best_or(gain, reward, before, (single, most))

    def _best_or(
        self, gain: Gains, reward: Gains, before: NDArray[np.bool_], single: tuple[Clause, float]
    ) -> tuple[Clause, float]:
        """The OR that gains more than a single step, or else that step; it grows by the alternative that gains most."""
        steps, not_begun, absent = self._alternatives, self._alternatives_not_begun, self._alternatives_absent
        clause, most = single
        # An OR gains no more than the second best of its alternatives does where that is still to come.
        alone = not_begun @ reward
        if len(alone) < 2 or np.partition(alone, -2)[-2] <= or_cost(2, self._size) + max(most, MIN_GAIN):
            return clause, most
        # Where the step waits anyway there is nothing to gain, and that is at most of the choices.
        live = gain.nonzero()[0]
        not_begun, absent, gain = not_begun.take(live, axis=1), absent.take(live, axis=1), gain.take(live)
        barred, all_done = before[steps], not absent.any()
        member = np.eye(len(steps), dtype=np.bool_)[~barred]
        none, never = (not_begun * gain)[~barred], (absent * gain)[~barred]
        for size in range(2, min(_LARGEST, len(member)) + 1):
            rises = none @ not_begun.T
            if not all_done:
                rises -= never @ absent.T
            rises[member | barred] = -np.inf
            best = rises.argmax(axis=1)
            gained = rises[np.arange(len(member)), best]
            kept = (-gained).argsort(kind="stable")[:_SEEDS]
            member, best = member[kept], best[kept]
            member[np.arange(len(member)), best] = True
            rise = float(gained[kept[0]]) - or_cost(size, self._size)
            if rise > most + MIN_GAIN:
                clause, most = frozenset(steps[member[0]].tolist()), rise
            none, never = none[kept] * not_begun[best], never[kept] * absent[best]
            # One more alternative can only take from what is gained where none is begun.
            if np.maximum(none, 0).sum(axis=1).max() <= or_cost(size + 1, self._size) + max(most, MIN_GAIN):
                break
        return clause, most

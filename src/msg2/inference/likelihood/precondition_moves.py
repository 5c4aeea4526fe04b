"""Moves of the search on whole preconditions: what a step waits for is found anew, ORs included.

With all other steps as they are, the score of what a step waits for is a sum over choices (`BlockingGains`). It is
built greedily: the clause that gains most, a single step or several of which one is enough, then the next one, where
the step does not wait yet. An OR grows from each single step by the alternative that gains most. Then clauses are
dropped, shrunk and enlarged while that gains. So ORs are added, joined, split and removed in one move, together with
pairs; of steps that follow, the pairs that came through this one are kept or dropped, whichever scores higher.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.arrays import FloatArray
from msg2.inference.likelihood.blocking_gains import BlockingGains, Gains
from msg2.inference.likelihood.pair_moves import MIN_GAIN
from msg2.inference.likelihood.prior import or_cost
from msg2.inference.likelihood.scored_order import OrderScorer, ScoredOrder, needed_disjunctions
from msg2.inference.relations import Relation, transitive_closure

Clause: TypeAlias = frozenset[int]
"""Steps of which one is enough."""

_LARGEST = 4
"""Steps in an OR, at most."""
_CHANGE = 0.05
"""A step is looked at again once what it gains by waiting has changed by this share."""
_MOST_LOSING = 8
"""Steps, at most, of which all is found anew where nothing else helps: those that lose most by waiting."""
_SEEDS = 12
"""ORs of two steps that are tried with a third one, and so on: those that gain most."""


@dataclass(frozen=True, eq=False)
class PreconditionMoves:
    """Rounds of finding anew what each step waits for.

    `seen` remembers what a step waited for, what it could wait for and what it gained by that, when it was last looked
    at in vain: it is not looked at again before something has changed.
    """

    seen: dict[int, tuple[tuple[Clause, ...], list[int], Gains]] = field(default_factory=dict)

    def __call__(self, scorer: OrderScorer, order: ScoredOrder, gains: BlockingGains) -> ScoredOrder:
        """Make the moves that raise the score.

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
        for step in _worth_a_look(scorer, order, gains):
            search = _ClauseSearch(scorer, start, gains, step)
            if self._was_in_vain(search):
                continue
            found = [one for clauses in search.proposals() for one in _apply(scorer, order, step, clauses)]
            if found:
                order = max(found, key=lambda one: round(one.score, 6))
            else:
                self.seen[step] = search.current, search.possible.tolist(), gains.gain[step]
        return order

    def _was_in_vain(self, search: _ClauseSearch) -> bool:
        if search.step not in self.seen:
            return False
        clauses, possible, before = self.seen[search.step]
        gain = search.gains.gain[search.step]
        same = (clauses, possible, len(before)) == (search.current, search.possible.tolist(), len(gain))
        return same and float(np.abs(gain - before).sum()) < _CHANGE * float(np.abs(gain).sum())


def rebuild_losing_steps(scorer: OrderScorer, order: ScoredOrder, gains: BlockingGains) -> ScoredOrder:
    """Find from nothing what the steps wait for that lose most where they wait: several pairs may be one too many.

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
    start, lost = order, _lost(gains)
    for step in np.argsort(-lost, kind="stable")[:_MOST_LOSING].tolist():
        if lost[step] > MIN_GAIN:
            clauses = _ClauseSearch(scorer, start, gains, step).build(())
            order = max([order, *_apply(scorer, order, step, clauses)], key=lambda one: round(one.score, 6))
    return order


def _worth_a_look(scorer: OrderScorer, order: ScoredOrder, gains: BlockingGains) -> list[int]:
    """The steps that may gain by one more pair or by an OR, or lose where they wait: what `proposals` asks, of all."""
    size = len(order.relation)
    where_free = gains.gain * gains.eligible
    rises = gains.blocking_at_all @ where_free.T + _rise_of_prior(scorer, order)
    rises[order.reachable.T | np.eye(size, dtype=np.bool_)] = -np.inf
    worth = (rises.max(axis=0, initial=0) > MIN_GAIN) | (_lost(gains) > or_cost(2, size))
    worth |= np.maximum(where_free, 0).sum(axis=1) > or_cost(2, size)
    worth[[owner for owner, _ in order.disjunctions]] = True
    return np.flatnonzero(worth).tolist()


def _lost(gains: BlockingGains) -> Gains:
    """What each step loses at the choices at which it was begun and should have waited, shape (N,)."""
    return np.asarray(-(np.minimum(gains.gain, 0) * (gains.open - gains.eligible)).sum(axis=1))


def _rise_of_prior(scorer: OrderScorer, order: ScoredOrder) -> FloatArray:
    """[a, b]: by how much log p(order) rises if b comes after a and what comes before a, shape (N, N)."""
    relation, through = (
        order.relation.astype(np.float32),
        order.relation.T | np.eye(len(order.relation), dtype=np.bool_),
    )

    def count(counted: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        now = relation * counted
        with_one = now.sum(axis=0) + through.astype(np.float32) @ (counted - now)
        return now.sum(axis=0).astype(np.intp), with_one.astype(np.intp)

    usual, every = count(scorer.prior.usual), count(np.ones_like(scorer.prior.usual))
    return scorer.prior.pair_cost(usual[0], every[0]) - scorer.prior.pair_cost(usual[1], every[1])


def _apply(scorer: OrderScorer, order: ScoredOrder, step: int, clauses: Sequence[Clause]) -> Iterator[ScoredOrder]:
    """The order with these clauses for a step, where its score is higher."""
    singles = [one for clause in clauses if len(clause) == 1 for one in clause]
    ors = {(step, clause) for clause in clauses if len(clause) > 1}
    ors |= {(owner, group) for owner, group in order.disjunctions if owner != step}
    for relation in _with_predecessors(order, step, singles):
        candidate = scorer.move_to(order, relation, needed_disjunctions(relation, ors))
        if candidate.score > order.score + MIN_GAIN and not candidate.is_cyclic:
            yield candidate


def _with_predecessors(order: ScoredOrder, step: int, singles: Sequence[int]) -> Iterator[Relation]:
    """The order in which a step comes after these only; what follows it keeps its other predecessors, or loses them."""
    above = np.asarray(order.relation[:, singles].any(axis=1))
    above[singles] = True
    if above[step] or (above & order.relation[step]).any():
        return
    kept = order.relation.copy()
    lost = kept[:, step] & ~above
    kept[:, step] = above
    kept |= np.outer(above, kept[step])
    yield kept
    if order.relation[step].any() and lost.any():
        edges = order.covering_pairs().copy()
        edges[:, step] = False
        edges[singles, step] = True
        yield transitive_closure(edges)


@dataclass(frozen=True, eq=False)
class _ClauseSearch:
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

"""Moves of the search on whole preconditions: what a step waits for is found anew, ORs included.

What one step waits for is found by `clause_search`. So ORs are added, joined, split and removed in one move, together
with pairs; of steps that follow, the pairs that came through this one are kept or dropped, whichever scores higher.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.graph.closure import Relation, transitive_closure
from msg2.inference.likelihood.blocking_gains import BlockingGains, Gains
from msg2.inference.likelihood.clause_search import Clause, ClauseSearch, current_clauses, possible_predecessors
from msg2.inference.likelihood.pair_moves import MIN_GAIN
from msg2.inference.likelihood.prior import or_cost
from msg2.inference.likelihood.scored_order import OrderScorer, ScoredOrder, needed_disjunctions
from msg2.sequences import FloatArray

_CHANGE = 0.05
"""A step is looked at again once what it gains by waiting has changed by this share."""
_MOST_LOSING = 8
"""Steps, at most, of which all is found anew where nothing else helps: those that lose most by waiting."""

_StepSituation: TypeAlias = tuple[tuple[Clause, ...], list[int], Gains]
"""What a step waited for, what it could wait for and what it gained by that, when it was looked at."""


@dataclass(frozen=True, eq=False)
class PreconditionMoves:
    """Rounds of finding anew what each step waits for.

    `seen` remembers how a step was when it was last looked at in vain: it is not looked at again before something has
    changed.
    """

    seen: dict[int, _StepSituation] = field(default_factory=dict)

    def __call__(self, scorer: OrderScorer, order: ScoredOrder, gains: BlockingGains) -> ScoredOrder:
        """Make the moves that raise the score."""
        start = order
        for step in _worth_a_look(scorer, order, gains):
            now = current_clauses(start, step), possible_predecessors(start, step).tolist(), gains.gain[step]
            if step in self.seen and _is_about_the_same(now, self.seen[step]):
                continue
            proposals = ClauseSearch(scorer, start, gains, step).proposals()
            found = [one for clauses in proposals for one in _apply(scorer, order, step, clauses)]
            if found:
                order = max(found, key=lambda one: round(one.score, 6))
            else:
                self.seen[step] = now
        return order


def _is_about_the_same(now: _StepSituation, before: _StepSituation) -> bool:
    gain, then = now[2], before[2]
    same = now[:2] == before[:2] and len(gain) == len(then)
    return same and float(np.abs(gain - then).sum()) < _CHANGE * float(np.abs(gain).sum())


def rebuild_losing_steps(scorer: OrderScorer, order: ScoredOrder, gains: BlockingGains) -> ScoredOrder:
    """Find from nothing what the steps wait for that lose most where they wait: several pairs may be one too many."""
    start, lost = order, _lost(gains)
    for step in np.argsort(-lost, kind="stable")[:_MOST_LOSING].tolist():
        if lost[step] > MIN_GAIN:
            clauses = ClauseSearch(scorer, start, gains, step).build(())
            order = max([order, *_apply(scorer, order, step, clauses)], key=lambda one: round(one.score, 6))
    return order


def _worth_a_look(scorer: OrderScorer, order: ScoredOrder, gains: BlockingGains) -> list[int]:
    """The steps that may gain by one more pair or by an OR, or lose where they wait: what `proposals` asks, of all."""
    size = len(order.relation)
    where_free = gains.gain * gains.eligible
    rises = gains.blocking_at_all @ where_free.T + _rise_of_prior(scorer, order)
    impossible = order.reachable.T | np.eye(size, dtype=np.bool_)
    rises[impossible] = -np.inf
    worth = (rises.max(axis=0, initial=0) > MIN_GAIN) | (_lost(gains) > or_cost(2, size))
    # An OR gains no more than the second best of its alternatives does where that is still to come. Where what a step
    # waits for is sometimes never done, an OR may also take its place.
    reward = np.maximum(where_free, 0)
    alone = np.where(impossible, 0, gains.choices.not_begun @ reward.T)
    second = np.sort(alone, axis=0)[-2:].min(axis=0, initial=np.inf)
    sometimes_never = (order.covering_pairs() & (gains.choices.absent @ (gains.gain != 0).T > 0)).any(axis=0)
    worth |= (reward.sum(axis=1) > or_cost(2, size)) & ((second > or_cost(2, size)) | sometimes_never)
    worth[[owner for owner, _ in order.disjunctions]] = True
    return np.flatnonzero(worth).tolist()


def _lost(gains: BlockingGains) -> Gains:
    """What each step loses at the choices at which it was begun and should have waited, shape (N,)."""
    return np.asarray(-(np.minimum(gains.gain, 0) * (gains.choices.open - gains.eligible)).sum(axis=1))


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

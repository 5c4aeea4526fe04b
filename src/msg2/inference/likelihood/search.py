"""Hill climbing to the order under which demonstrations are most probable; nothing is drawn at random.

From several starts, pairs are added, removed or reversed while the score rises. From the best ends, these moves take
turns with finding anew what a step waits for, ORs included (`ors`). Where none helps, the noise is estimated again.
A round takes O(E N²) for pairs and O(E N K²) for preconditions with K alternatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from msg2.graph.closure import Relation, break_cycles, transitive_closure
from msg2.inference.likelihood.choices import to_flags
from msg2.inference.likelihood.ors import Clause, ClauseSearch
from msg2.inference.likelihood.score import (
    MIN_GAIN,
    NO_WEIGHTS,
    BlockingGains,
    ChoiceSample,
    Gains,
    OrderScorer,
    PairMove,
    PairWeights,
    ScoredOrder,
    or_cost,
)
from msg2.inference.msg2 import purity
from msg2.progress import Progress
from msg2.sequences import Variants

if TYPE_CHECKING:
    from msg2.inference.likelihood.learner import LikelihoodOptions

Moves: TypeAlias = Callable[[OrderScorer, ScoredOrder, BlockingGains], ScoredOrder]
"""A round of moves; where none helps, it returns the order that it was given."""

_CLOSE = 1.05
"""Times the highest score (below 0): climbs by pairs that end no lower than this go on with all moves."""
_STRONG = 3.0
"""Nats by which an end must score higher to be preferred to one that fewer choices break: odds of 20 to 1."""
_ERROR = 5.0
"""Nats by which a move may turn out better than it promises."""
_PRIOR_MATTERS = 5.0
"""Nats that the prior may add to a move, about; what promises less is not looked at."""
_CHANGE = 0.05
"""A step is looked at again once what it gains by waiting has changed by this share."""
_MOST_LOSING = 8
"""Steps, at most, of which all is found anew where nothing else helps: those that lose most by waiting."""


def find_order(
    variants: Variants,
    options: LikelihoodOptions,
    weights: PairWeights = NO_WEIGHTS,
    progress: Progress | None = None,
) -> tuple[OrderScorer, ScoredOrder]:
    """Find the order with the highest score; each climb is a part of the `progress`."""
    searched = variants.sample(options.search_labels)
    scouted = searched.sample(options.scout_labels)
    scout = OrderScorer.from_variants(scouted, options, weights)
    starts = starting_orders(scouted, options)
    most = 2 * len(starts) + 1  # climbs, of which some may not be needed
    *parts, last_part = (None if progress is None else partial(progress, part, most) for part in range(most))
    climbs = [climb(scout, scout.score(start), [move_pairs], part) for start, part in zip(starts, parts, strict=False)]
    high = _CLOSE * max(end.score for end in climbs)
    close = [end for end in climbs if end.score >= high]
    looked_at = [PreconditionMoves() for _ in close]
    parts_left = zip(close, looked_at, parts[len(starts) :], strict=False)
    ends = [climb(scout, end, [move_pairs, moves], part) for end, moves, part in parts_left]
    best = _choose_end(scout, ends)
    scorer, preconditions = scout, looked_at[ends.index(best)]
    if scouted is not searched:  # what was in vain there may help here
        scorer, preconditions = OrderScorer.from_variants(searched, options, weights), PreconditionMoves()
    # Promises leave aside what follows from a pair, and late steps: what promises a small loss is tried last.
    moves: list[Moves] = [move_pairs, preconditions, partial(move_pairs, least=-_ERROR), rebuild_losing_steps]
    return scorer, climb(scorer, scorer.score(best.relation, best.disjunctions), moves, last_part)


def find_order_quickly(
    variants: Variants, options: LikelihoodOptions, weights: PairWeights = NO_WEIGHTS
) -> ScoredOrder:
    """Find an order with a high score by a single climb: for the bootstrap, whose shares are about as true then."""
    searched = variants.sample(options.scout_labels)
    scorer = OrderScorer.from_variants(searched, options, weights)
    starts = [scorer.score(start) for start in starting_orders(searched, options)]
    return climb(scorer, max(starts, key=lambda order: round(order.score, 6)), [move_pairs, PreconditionMoves()])


def starting_orders(variants: Variants, options: LikelihoodOptions) -> list[Relation]:
    """No order at all, and the orders of pairs on which all but a few videos agree."""
    before, ordered = variants.before, ~variants.mostly_together
    agreed = [
        transitive_closure(break_cycles((purity(before) > share) & ordered, before + before.T)[0])
        for share in options.starts
    ]
    return [np.zeros(before.shape, dtype=np.bool_), *agreed]


def climb(
    scorer: OrderScorer, order: ScoredOrder, moves: Sequence[Moves], tell: Callable[[str], None] | None = None
) -> ScoredOrder:
    """Climb from an order until no move raises the score, and tell of every round."""
    order, labels = scorer.refit_noise(order), len(scorer.events.step)
    choices = ChoiceSample.draw(scorer.events, scorer.options.scout_labels)
    for number in range(scorer.options.rounds):
        if tell is not None:
            tell(f"search, round {number + 1}: {np.count_nonzero(order.covering_pairs)} pairs in order")
        gains = BlockingGains.estimate(scorer, order, choices)
        least = order.score + scorer.options.tolerance
        better = next((moved for move in moves if (moved := move(scorer, order, gains)).score > least), None)
        if better is None and labels > scorer.options.scout_labels:
            every_choice = BlockingGains.estimate(scorer, order, ChoiceSample.draw(scorer.events, labels))
            better = move_pairs(scorer, order, every_choice, -_ERROR)
        if better is None or better.score <= least:
            better = scorer.refit_noise(order)
            if better.score <= least:
                break
        order = better
    return order


def _choose_end(scorer: OrderScorer, ends: Sequence[ScoredOrder]) -> ScoredOrder:
    """The highest end, or one that scores about as high, by which far fewer choices were disorderly."""
    # Rounded, so that it does not depend on the machine which of two equal ones it is.
    best, *others = sorted(ends, key=lambda order: -round(order.score, 6))
    for order in others:
        if order.score > best.score - _STRONG and 2 * scorer.count_disorderly(order) < scorer.count_disorderly(best):
            return order
    return best


def move_pairs(scorer: OrderScorer, order: ScoredOrder, gains: BlockingGains, least: float = 0.0) -> ScoredOrder:
    """Make the moves on pairs that promise to gain more than `least`, and that do raise the score."""
    moved: set[int] = set()
    for kind, before, after in _promising_moves(scorer, order, gains, least):
        possible = order.free_pairs & ~scorer.together if kind == "add" else order.covering_pairs
        # What concerns the steps of a move that was made promises something else now: it waits for the next round.
        if moved & {before, after} or not possible[before, after]:
            continue
        if better := scorer.improve(order, order.move_pairs(kind, [before], [after])[0], order.disjunctions):
            order = better
            moved |= {before, after}
    return order


def _promising_moves(
    scorer: OrderScorer, order: ScoredOrder, gains: BlockingGains, least: float
) -> list[tuple[PairMove, int, int]]:
    """The pairs of which it promises most to add, remove or reverse them, the best first."""
    # [a, b]: by how much log p rises if b waits for a as well (late steps left aside), and if it no longer does.
    added = gains.blocking @ (gains.gain * gains.eligible).T
    removed, covering = np.zeros_like(added), order.covering_pairs
    for step in np.flatnonzero(covering.any(axis=0)).tolist():
        once = again = 0  # the choices at which a step that comes before it keeps it waiting, and a second one
        for earlier in order.relation[:, step].nonzero()[0].tolist():
            again |= once & order.eligible.blocking[earlier]
            once |= order.eligible.blocking[earlier]
        parents, only = covering[:, step], to_flags([once & ~again], len(scorer.events.step))[0, gains.choices.chosen]
        removed[parents, step] = -(gains.blocking[parents] @ (gains.gain[step] * only))
    kinds: tuple[tuple[PairMove, Gains, Relation], ...] = (
        ("add", added, order.free_pairs & ~scorer.together),
        ("remove", removed, covering),
        ("reverse", removed + added.T, covering & ~scorer.together),
    )
    moves: list[tuple[float, PairMove, int, int]] = []
    for kind, gain, possible in kinds:
        promising = possible & (gain > least - _PRIOR_MATTERS)
        chosen = np.argsort(-gain[promising], kind="stable")[: scorer.options.candidates]
        if len(chosen):
            before, after = (places[chosen].tolist() for places in promising.nonzero())
            prior = scorer.prior.log_probability(order.move_pairs(kind, before, after), order.disjunctions)
            rises = (gain[promising][chosen] + prior - order.prior).tolist()
            moves += [move for move in zip(rises, repeat(kind), before, after, strict=False) if move[0] > least]
    return [(kind, before, after) for _, kind, before, after in sorted(moves, key=lambda move: -move[0])]


@dataclass(frozen=True, eq=False)
class PreconditionMoves:
    """Rounds of finding anew what each step waits for: so ORs are added, joined, split and dropped in one move."""

    # What a step waited for, what came after it and what it gained when it was last looked at in vain.
    seen: dict[int, tuple[tuple[Clause, ...], list[bool], Gains]] = field(default_factory=dict)

    def __call__(self, scorer: OrderScorer, order: ScoredOrder, gains: BlockingGains) -> ScoredOrder:
        """Make the moves that raise the score."""
        start = order
        for step in _worth_a_look(scorer, order, gains):
            now = start.clauses(step), start.reachable[step].tolist(), gains.gain[step]
            before = self.seen.get(step)
            if before is not None and now[:2] == before[:2] and len(now[2]) == len(before[2]):
                change = float(np.abs(now[2] - before[2]).sum())
                if change < _CHANGE * float(np.abs(now[2]).sum()):
                    continue
            proposals = ClauseSearch(scorer, start, gains, step).proposals()
            better = [moved for clauses in proposals for moved in _apply(scorer, order, step, clauses)]
            if better:
                order = max(better, key=lambda moved: round(moved.score, 6))
            else:
                self.seen[step] = now
        return order


def rebuild_losing_steps(scorer: OrderScorer, order: ScoredOrder, gains: BlockingGains) -> ScoredOrder:
    """Find from nothing what the steps wait for that lose most where they wait: several pairs may be one too many."""
    start, lost = order, gains.lost
    for step in np.argsort(-lost, kind="stable")[:_MOST_LOSING].tolist():
        if lost[step] > MIN_GAIN:
            clauses = ClauseSearch(scorer, start, gains, step).build(())
            order = max([order, *_apply(scorer, order, step, clauses)], key=lambda moved: round(moved.score, 6))
    return order


def _worth_a_look(scorer: OrderScorer, order: ScoredOrder, gains: BlockingGains) -> list[int]:
    """The steps that may gain by one more pair or by an OR, or lose where they wait: what `proposals` asks, of all."""
    size, prior = len(order.relation), scorer.prior
    itself = np.eye(size, dtype=np.bool_)
    # [a, b]: by how much log p(order) rises if b comes after a and what comes before a.
    relation, through = order.relation.astype(np.float32), (order.relation.T | itself).astype(np.float32)
    counted = np.stack([prior.usual, np.ones_like(prior.usual)])  # the usual predecessors, and all of them
    there = relation * counted
    now = there.sum(axis=1)
    then = now[:, None, :] + through @ (counted - there)
    rise_of_prior = prior.pair_cost(*now.astype(np.intp)) - prior.pair_cost(*then.astype(np.intp))
    where_free = gains.gain * gains.eligible
    rises = gains.blocking_at_all @ where_free.T + rise_of_prior
    impossible = order.reachable.T | itself | scorer.together
    rises[impossible] = -np.inf
    worth = (rises.max(axis=0, initial=0) > MIN_GAIN) | (gains.lost > or_cost(2, size))
    # An OR gains no more than the second best of its alternatives does where that is still to come. Where what a step
    # waits for is sometimes never done, an OR may also take its place.
    reward = np.maximum(where_free, 0)
    alone = np.where(impossible, 0, gains.choices.not_begun @ reward.T)
    second = np.sort(alone, axis=0)[-2:].min(axis=0, initial=np.inf)
    sometimes_never = (order.covering_pairs & (gains.choices.absent @ (gains.gain != 0).T > 0)).any(axis=0)
    worth |= (reward.sum(axis=1) > or_cost(2, size)) & ((second > or_cost(2, size)) | sometimes_never)
    worth[[owner for owner, _ in order.disjunctions]] = True
    return np.flatnonzero(worth).tolist()


def _apply(scorer: OrderScorer, order: ScoredOrder, step: int, clauses: Sequence[Clause]) -> Iterator[ScoredOrder]:
    """The order with these clauses for a step, where that scores higher; what came through it is kept, or dropped."""
    singles = [member for clause in clauses if len(clause) == 1 for member in clause]
    ors = {(step, clause) for clause in clauses if len(clause) > 1}
    ors |= {(owner, group) for owner, group in order.disjunctions if owner != step}
    above = np.asarray(order.relation[:, singles].any(axis=1))
    above[singles] = True
    if above[step] or (above & order.relation[step]).any():
        return
    kept = order.relation.copy()
    lost = kept[:, step] & ~above
    kept[:, step] = above
    kept |= np.outer(above, kept[step])
    relations = [kept]
    if order.relation[step].any() and lost.any():
        through = np.outer(order.relation[:, step], order.relation[step])  # pairs that may follow from others no more
        edges = order.covering_pairs | (order.relation & ~through)
        edges[:, step] = False
        edges[singles, step] = True
        relations.append(transitive_closure(edges))
    for relation in relations:
        if better := scorer.improve(order, relation, ors):
            yield better

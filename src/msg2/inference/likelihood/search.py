"""Hill climbing to the order under which demonstrations are most probable.

From several starts, moves on pairs (`pair_moves`) are made while the score rises. From the highest ends they take turns
with moves on whole preconditions and their ORs (`precondition_moves`); from the highest end of these, also with moves
that promise a little less. Where no move helps, the noise is estimated again, and the search goes on while that raises
the score. It draws nothing at random.

A round takes O(E N²) for pairs and O(E N K²) for preconditions with K alternatives, for E choices of at most
`scout_labels` labels, and every move that is tried O(E N) in bits for those of `search_labels`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from msg2.graph.closure import Relation, break_cycles, transitive_closure
from msg2.inference.likelihood.blocking_gains import BlockingGains, ChoiceSample
from msg2.inference.likelihood.likelihood_options import LikelihoodOptions
from msg2.inference.likelihood.pair_moves import move_pairs, move_promising_pairs
from msg2.inference.likelihood.precondition_moves import PreconditionMoves, rebuild_losing_steps
from msg2.inference.likelihood.run_variants import Variants
from msg2.inference.likelihood.scored_order import OrderScorer, ScoredOrder
from msg2.inference.msg2 import purity
from msg2.sequences import FloatArray

Moves: TypeAlias = Callable[[OrderScorer, ScoredOrder, BlockingGains], ScoredOrder]
"""A round of moves; where none helps, it returns the order that it was given."""

_CLOSE = 1.05
"""Times the highest score (below 0): climbs by pairs that end no lower than this go on with all moves."""
_STRONG = 3.0
"""Nats by which an end must score higher to be preferred to one that fewer choices break: odds of 20 to 1."""


def quick_moves(preconditions: PreconditionMoves) -> list[Moves]:
    """Rounds of moves that promise to help; steps that `preconditions` looked at in vain are left alone."""
    return [move_promising_pairs, preconditions]


def all_moves(preconditions: PreconditionMoves) -> list[Moves]:
    """All rounds of moves."""
    return [*quick_moves(preconditions), move_pairs, rebuild_losing_steps]


def climb(scorer: OrderScorer, order: ScoredOrder, moves: Sequence[Moves]) -> ScoredOrder:
    """Climb from an order until no move raises the score."""
    order = scorer.refit_noise(order)
    choices = ChoiceSample.draw(scorer.events, scorer.options.scout_labels)
    for _ in range(scorer.options.rounds):
        gains = BlockingGains.estimate(scorer, order, choices)
        least = order.score + scorer.options.tolerance
        tried = (move(scorer, order, gains) for move in moves)
        better = next((one for one in tried if one.score > least), None)
        if better is None and len(scorer.events) > scorer.options.scout_labels:
            every_choice = ChoiceSample.draw(scorer.events, len(scorer.events))
            better = move_pairs(scorer, order, BlockingGains.estimate(scorer, order, every_choice))
        if better is None or better.score <= least:
            better = scorer.refit_noise(order)
            if better.score <= least:
                break
        order = better
    return order


def find_order(
    variants: Variants, options: LikelihoodOptions, similarity: FloatArray | None = None
) -> tuple[OrderScorer, ScoredOrder]:
    """Find the order with the highest score."""
    searched = variants.sample(options.search_labels)
    scouted = searched.sample(options.scout_labels)
    scout = OrderScorer.from_variants(scouted, options, similarity)
    climbs = [climb(scout, scout.score(one), [move_promising_pairs]) for one in starting_orders(scouted, options)]
    high = _CLOSE * max(one.score for one in climbs)
    close = [one for one in climbs if one.score >= high]
    looked_at = [PreconditionMoves() for _ in close]
    ends = [climb(scout, one, quick_moves(moves)) for one, moves in zip(close, looked_at, strict=True)]
    best = _choose_end(scout, ends)
    preconditions = looked_at[ends.index(best)]
    scorer = scout
    if scouted is not searched:  # what was in vain there may help here
        scorer, preconditions = OrderScorer.from_variants(searched, options, similarity), PreconditionMoves()
    return scorer, climb(scorer, scorer.score(best.relation, best.disjunctions), all_moves(preconditions))


def find_order_quickly(
    variants: Variants, options: LikelihoodOptions, similarity: FloatArray | None = None
) -> ScoredOrder:
    """Find an order with a high score by a single climb, as far as moves promise to help.

    It starts from the highest of the starting orders. For the bootstrap, whose samples need not be searched as
    thoroughly: their shares are about as true, in a quarter of the time.
    """
    searched = variants.sample(options.scout_labels)
    scorer = OrderScorer.from_variants(searched, options, similarity)
    starts = [scorer.score(one) for one in starting_orders(searched, options)]
    return climb(scorer, max(starts, key=lambda order: round(order.score, 6)), quick_moves(PreconditionMoves()))


def _choose_end(scorer: OrderScorer, ends: Sequence[ScoredOrder]) -> ScoredOrder:
    """The highest end, or one that scores about as high and by which far fewer choices were disorderly.

    Few videos are explained about as well by an order that some of them break, in videos that are noisy then, as by one
    that they keep. In simulated worlds the latter is more often the true one.
    """
    # Rounded, so that it does not depend on the machine which of two equal ones it is.
    best, *others = sorted(ends, key=lambda order: -round(order.score, 6))
    for order in others:
        if order.score > best.score - _STRONG and 2 * scorer.count_disorderly(order) < scorer.count_disorderly(best):
            return order
    return best


def starting_orders(variants: Variants, options: LikelihoodOptions) -> list[Relation]:
    """No order at all, and the orders of pairs on which all but a few videos agree."""
    before = variants.before
    agreed = [
        transitive_closure(break_cycles(purity(before) > share, before + before.T)[0]) for share in options.starts
    ]
    return [np.zeros(before.shape, dtype=np.bool_), *agreed]

"""Moves of the search on pairs: one is added, removed or reversed.

In a round the pairs that promise most are tried one after the other, and every move that raises the score is made.
Promises leave aside what follows from a pair, and late steps: what promises a small loss is tried where nothing else
helps.
"""

from __future__ import annotations

from itertools import repeat

import numpy as np

from msg2.inference.likelihood.blocking_gains import BlockingGains
from msg2.inference.likelihood.scored_order import OrderScorer, ScoredOrder, needed_disjunctions

MIN_GAIN = 1e-6
"""A smaller rise of the score is none (nats)."""
_ERROR = 5.0
"""Nats by which a move may turn out better than it promises."""
_PRIOR_MATTERS = 5.0
"""Nats that the prior may add to a move, about; what promises less is not looked at."""

_MOVES = {
    "add": (ScoredOrder.free_pairs, ScoredOrder.with_pairs),
    "remove": (ScoredOrder.covering_pairs, ScoredOrder.without_pairs),
    "reverse": (ScoredOrder.covering_pairs, ScoredOrder.with_reversed_pairs),
}
"""What can be moved, and where that leads."""


def move_promising_pairs(scorer: OrderScorer, order: ScoredOrder, gains: BlockingGains) -> ScoredOrder:
    """Make the moves on pairs that promise to raise the score, and do."""
    return _move_pairs(scorer, order, gains, 0.0)


def move_pairs(scorer: OrderScorer, order: ScoredOrder, gains: BlockingGains) -> ScoredOrder:
    """Make the moves on pairs that raise the score, whether they promise to do so or a little less."""
    return _move_pairs(scorer, order, gains, -_ERROR)


def _move_pairs(scorer: OrderScorer, order: ScoredOrder, gains: BlockingGains, least: float) -> ScoredOrder:
    moved: set[int] = set()
    for kind, before, after in _promising_moves(scorer, order, gains, least):
        possible, move = _MOVES[kind]
        # What concerns the steps of a move that was made promises something else now: it waits for the next round.
        if moved & {before, after} or not possible(order)[before, after]:
            continue
        relation = move(order, [before], [after])[0]
        candidate = scorer.move_to(order, relation, needed_disjunctions(relation, order.disjunctions))
        if candidate.score > order.score + MIN_GAIN and not candidate.is_cyclic:
            order = candidate
            moved |= {before, after}
    return order


def _promising_moves(
    scorer: OrderScorer, order: ScoredOrder, gains: BlockingGains, least: float
) -> list[tuple[str, int, int]]:
    """The pairs of which it promises most to add, remove or reverse them, the best first."""
    added, removed = gains.if_added, gains.if_removed
    moves: list[tuple[float, str, int, int]] = []
    for kind, gain in (("add", added), ("remove", removed), ("reverse", removed + added.T)):
        possible, move = _MOVES[kind]
        promising = possible(order) & (gain > least - _PRIOR_MATTERS)
        chosen = np.argsort(-gain[promising], kind="stable")[: scorer.options.candidates]
        if len(chosen):
            before, after = (places[chosen].tolist() for places in promising.nonzero())
            prior = scorer.prior.log_probability(move(order, before, after), order.disjunctions)
            rises = (gain[promising][chosen] + prior - order.prior).tolist()
            moves += [one for one in zip(rises, repeat(kind), before, after, strict=False) if one[0] > least]
    return [(kind, before, after) for _, kind, before, after in sorted(moves, key=lambda one: -one[0])]

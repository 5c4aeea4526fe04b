"""Moves of the search on pairs: one is added, removed or reversed.

In a round the pairs that promise most are tried one after the other, and every move that raises the score is made.
"""

from __future__ import annotations

import numpy as np

from msg2.inference.likelihood.blocking_gains import BlockingGains
from msg2.inference.likelihood.scored_order import OrderScorer, ScoredOrder

MIN_GAIN = 1e-6
"""A smaller rise of the score is none (nats)."""

_MOVES = {
    "add": (ScoredOrder.free_pairs, ScoredOrder.with_pair),
    "remove": (ScoredOrder.covering_pairs, ScoredOrder.without_pair),
    "reverse": (ScoredOrder.covering_pairs, ScoredOrder.with_reversed_pair),
}
"""What can be moved, and where that leads."""


def move_pairs(scorer: OrderScorer, order: ScoredOrder, gains: BlockingGains) -> ScoredOrder:
    """Make the moves on pairs that raise the score.

    Parameters
    ----------
    scorer : OrderScorer
        What is scored.
    order : ScoredOrder
        Where the round starts.
    gains : BlockingGains
        What moves from there promise.

    Returns
    -------
    ScoredOrder
        `order` itself where no move helps.
    """
    moved: set[int] = set()
    for kind, before, after in _promising_moves(scorer, order, gains):
        possible, move = _MOVES[kind]
        # What concerns the steps of a move that was made promises something else now: it waits for the next round.
        if moved & {before, after} or not possible(order)[before, after]:
            continue
        candidate = scorer.move_to(order, move(order, before, after))
        if candidate.score > order.score + MIN_GAIN and not candidate.is_cyclic:
            order = candidate
            moved |= {before, after}
    return order


def _promising_moves(scorer: OrderScorer, order: ScoredOrder, gains: BlockingGains) -> list[tuple[str, int, int]]:
    """The pairs of which it promises most to add, remove or reverse them, the best first."""
    added, removed = gains.if_added, gains.if_removed(order)
    moves: list[tuple[float, str, int, int]] = []
    for kind, gain in (("add", added), ("remove", removed), ("reverse", removed + added.T)):
        possible, move = _MOVES[kind]
        pairs = possible(order)
        places = np.argwhere(pairs)
        for chosen in np.argsort(-gain[pairs], kind="stable")[: scorer.options.candidates]:
            before, after = places[chosen].tolist()
            prior = scorer.prior.log_probability(move(order, before, after), order.disjunctions)
            moves.append((float(gain[before, after]) + prior - order.prior, kind, before, after))
    return [(kind, before, after) for _, kind, before, after in sorted(moves, key=lambda one: -one[0])]

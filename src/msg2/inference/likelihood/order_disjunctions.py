"""Alternatives that the order of the steps tells: b comes after a or after c, whichever is done first.

Where videos show both, neither always precedes b, and an order of pairs must take one of them for needed and its
absence for noise. A clause "a or c" instead keeps b waiting while neither is begun and one of them is still to come. It
is taken where the choices become more likely by more than the clause costs to say: log 2 C(N − 1, k) for k of N steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TypeAlias

import numpy as np

from msg2.inference.likelihood.search import Gains, HillClimbing, ScoredOrder
from msg2.inference.relations import Relation, transitive_closure

_PAIRS = 2
"""New clauses that are tried for a step."""

DisjunctionMove: TypeAlias = tuple[int, frozenset[int], frozenset[int] | None]
"""A step, the steps that it needs one of, and the clause that these replace."""


def add_disjunctions(search: HillClimbing, order: ScoredOrder) -> ScoredOrder:
    """Add the ORs that raise the score of an order, the best first, and drop the pairs that they make needless.

    Steps that got an OR are looked at again: for another one, or for one more alternative.

    Parameters
    ----------
    search : HillClimbing
        The search that found the order.
    order : ScoredOrder
        Where the search ended.

    Returns
    -------
    ScoredOrder
    """
    steps = set(range(len(order.relation)))
    while steps:
        rises = search.blocking_gains(order, search.stride)[0]
        moves = chain.from_iterable(_candidate_moves(search, order, step, rises[step]) for step in sorted(steps))
        likely = (move for move in moves if _each_is_enough(search, move))
        tried = sorted(((_apply_move(search, order, move).score, move) for move in likely), key=lambda one: -one[0])
        steps = set()
        for _, move in tried:
            moved = _apply_move(search, order, move) if _is_possible(order, move) else order
            if moved.score > order.score + search.options.tolerance:
                order = _drop_needless_pairs(search, moved, move[0])
                steps.add(move[0])
    return order


def _each_is_enough(search: HillClimbing, move: DisjunctionMove) -> bool:
    """Whether each of the alternatives was enough without the others, and not once only, which may be disorder."""
    step, group, _ = move
    now, begun, before = search.events.now[step], search.events.begun, search.events.none_begun
    alone = (np.bitwise_count(now & begun[one] & before(group - {one})).sum() for one in group)
    return all(times >= search.options.min_alone for times in alone)


def _apply_move(search: HillClimbing, order: ScoredOrder, move: DisjunctionMove) -> ScoredOrder:
    step, group, replaced = move
    rest = order.eligible.disjunctions - {(step, replaced or frozenset())}
    return search.move_to(order, order.relation, rest | {(step, group)})


def _is_possible(order: ScoredOrder, move: DisjunctionMove) -> bool:
    """Whether the move still makes sense after others: nothing in a circle, nothing that is gone."""
    step, group, replaced = move
    moved = replaced is None or replaced in order.disjunctions(step)
    return moved and not _reachable(order)[step, [*group]].any()


def _drop_needless_pairs(search: HillClimbing, order: ScoredOrder, step: int) -> ScoredOrder:
    """Without the parents of a step that cost more than they explain."""
    for parent in np.flatnonzero(order.covering_pairs[:, step]).tolist():
        moved = search.move_to(order, order.without_pair(parent, step))
        if moved.score > order.score:
            return _drop_needless_pairs(search, moved, step)
    return order


def _reachable(order: ScoredOrder) -> Relation:
    """[a, b] where b is after a, through needed steps or alternatives."""
    edges = order.relation.copy()
    for step, group in order.eligible.disjunctions:
        edges[[*group], step] = True
    return transitive_closure(edges)


def _candidate_moves(search: HillClimbing, order: ScoredOrder, step: int, rises: Gains) -> Iterator[DisjunctionMove]:
    """The clauses for a step that promise most: new ones of two steps, and those it has with one step more."""
    others = ~_reachable(order)[step] & ~order.relation[:, step]
    others[step] = False
    free = np.flatnonzero(others)
    if not len(free):
        return
    for group in order.disjunctions(step):
        early = search.events.now[step] & search.events.none_begun(group)
        count = np.bitwise_count(search.events.begun[free] & early).sum(axis=1)
        yield step, group | {int(free[count.argmax()])}, group
    begun = search.to_dense(search.events.begun[free], search.stride)
    absent = (1 - begun) * (1 - search.to_dense(search.events.open[free], search.stride))
    # Both keep the step waiting where neither is begun, but for where neither ever is.
    promise = np.triu(((1 - begun) * rises) @ (1 - begun).T - (absent * rises) @ absent.T, k=1)
    for place in np.argsort(-promise, axis=None, kind="stable")[:_PAIRS].tolist():
        a, b = divmod(place, len(free))
        if promise[a, b] > 0:
            yield step, frozenset(free[[a, b]].tolist()), None

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
from numpy.typing import NDArray

from msg2.inference.choices import Bits, Relation
from msg2.inference.layers import closure
from msg2.inference.orders import Fit, Search, Weights

Move: TypeAlias = tuple[int, int | None, frozenset[int], frozenset[int] | None]
"""A step, the parent that it no longer needs, the steps that it needs one of, and the clause that these replace."""


def with_alternatives(search: Search, fit: Fit) -> Fit:
    """The order with the clauses that raise its score, the best first; and without the pairs they make needless."""
    while True:
        rises = search.rises(fit, search.sparse)[0]
        moves = chain.from_iterable(_moves(search, fit, step, rises[step]) for step in range(len(fit.relation)))
        tried = sorted(((_after(search, fit, move).score, move) for move in moves), key=lambda one: -one[0])
        begin = fit.score
        for _, move in tried:
            there = _after(search, fit, move) if _possible(fit, move) else fit
            if there.score > fit.score + search.options.refit:
                fit = _lighter(search, there, move[0])
        if fit.score == begin:
            return fit


def _after(search: Search, fit: Fit, move: Move) -> Fit:
    step, dropped, group, replaced = move
    relation, alternatives = fit.relation, fit.eligible.alternatives
    if dropped is not None:
        relation = fit.without(dropped, step)
    return search.moved(fit, relation, (alternatives - {(step, replaced or frozenset())}) | {(step, group)})


def _possible(fit: Fit, move: Move) -> bool:
    """Whether the move still makes sense after others: nothing in a circle, nothing that is gone."""
    step, dropped, group, replaced = move
    reach = _reach(fit)
    there = (dropped is None or fit.covers[dropped, step]) and (
        replaced is None or (step, replaced) in fit.eligible.alternatives
    )
    return bool(there and not reach[step, [*group]].any() and not fit.relation[[*(group - {dropped})], step].any())


def _lighter(search: Search, fit: Fit, step: int) -> Fit:
    """Without the parents of a step that cost more than they explain."""
    for parent in np.flatnonzero(fit.covers[:, step]).tolist():
        there = search.moved(fit, fit.without(parent, step))
        if there.score > fit.score:
            return _lighter(search, there, step)
    return fit


def _reach(fit: Fit) -> Relation:
    """[a, b] where b is after a, through needed steps or alternatives."""
    edges = fit.relation.copy()
    for step, group in fit.eligible.alternatives:
        edges[[*group], step] = True
    return closure(edges)


def _moves(search: Search, fit: Fit, step: int, rises: Weights) -> Iterator[Move]:
    """The most promising clauses for a step."""
    others = ~_reach(fit)[step] & ~fit.relation[:, step]
    others[step] = False
    free = np.flatnonzero(others)
    if not len(free):
        return
    yield from _new(search, step, free, rises)
    begun, now = search.choices.begun[free], search.choices.now[step]
    for parent in np.flatnonzero(fit.covers[:, step]).tolist():
        early = now & search.choices.waiting[parent]
        yield from ((step, parent, frozenset({parent, one}), None) for one in _explaining(early, begun, free))
    for owner, group in fit.eligible.alternatives:
        if owner == step:
            early = now & search.choices.before(group)
            yield from (
                (step, None, group | {one}, group) for one in _explaining(early, begun, free) if one not in group
            )


def _explaining(early: Bits, begun: Bits, free: NDArray[np.intp]) -> list[int]:
    """The two steps that were begun most often where a step came too early; none where that hardly happens."""
    count = np.bitwise_count(begun & early).sum(axis=1)
    best = np.argsort(-count, kind="stable")[:2]
    found: list[int] = free[best[count[best] > 1]].tolist()
    return found


def _new(search: Search, step: int, free: NDArray[np.intp], rises: Weights) -> Iterator[Move]:
    """Clauses of two steps that are not needed yet, those that promise most.

    Both keep the step waiting where neither is begun, but for where neither ever is.
    """
    begun = search.dense(search.choices.begun[free], search.sparse)
    absent = (1 - begun) * (1 - search.dense(search.choices.waiting[free], search.sparse))
    promise = np.triu(((1 - begun) * rises) @ (1 - begun).T - (absent * rises) @ absent.T, k=1)
    for place in np.argsort(-promise, axis=None, kind="stable")[:2].tolist():
        a, b = divmod(place, len(free))
        if promise[a, b] > 0:
            yield step, None, frozenset(free[[a, b]].tolist()), None

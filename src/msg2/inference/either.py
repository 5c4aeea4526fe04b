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

from msg2.inference.choices import Relation
from msg2.inference.layers import closure
from msg2.inference.orders import Fit, Search, Weights

_PAIRS = 2
"""New clauses that are tried for a step."""

Move: TypeAlias = tuple[int, frozenset[int], frozenset[int] | None]
"""A step, the steps that it needs one of, and the clause that these replace."""


def with_alternatives(search: Search, fit: Fit) -> Fit:
    """The order with the clauses that raise its score, the best first; and without the pairs they make needless.

    Steps that got a clause are looked at again: for another one, or for one more alternative.
    """
    steps = set(range(len(fit.relation)))
    while steps:
        rises = search.rises(fit, search.sparse)[0]
        moves = chain.from_iterable(_moves(search, fit, step, rises[step]) for step in sorted(steps))
        likely = (move for move in moves if _each_alone(search, move))
        tried = sorted(((_after(search, fit, move).score, move) for move in likely), key=lambda one: -one[0])
        steps = set()
        for _, move in tried:
            there = _after(search, fit, move) if _possible(fit, move) else fit
            if there.score > fit.score + search.options.refit:
                fit = _lighter(search, there, move[0])
                steps.add(move[0])
    return fit


def _each_alone(search: Search, move: Move) -> bool:
    """Whether each of the alternatives was enough without the others, and not once only, which may be disorder."""
    step, group, _ = move
    now, begun, before = search.choices.now[step], search.choices.begun, search.choices.before
    alone = (np.bitwise_count(now & begun[one] & before(group - {one})).sum() for one in group)
    return all(times >= search.options.alone for times in alone)


def _after(search: Search, fit: Fit, move: Move) -> Fit:
    step, group, replaced = move
    rest = fit.eligible.alternatives - {(step, replaced or frozenset())}
    return search.moved(fit, fit.relation, rest | {(step, group)})


def _possible(fit: Fit, move: Move) -> bool:
    """Whether the move still makes sense after others: nothing in a circle, nothing that is gone."""
    step, group, replaced = move
    there = replaced is None or replaced in fit.alternatives(step)
    return there and not _reach(fit)[step, [*group]].any()


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
    """The clauses for a step that promise most: new ones of two steps, and those it has with one step more."""
    others = ~_reach(fit)[step] & ~fit.relation[:, step]
    others[step] = False
    free = np.flatnonzero(others)
    if not len(free):
        return
    for group in fit.alternatives(step):
        early = search.choices.now[step] & search.choices.before(group)
        count = np.bitwise_count(search.choices.begun[free] & early).sum(axis=1)
        yield step, group | {int(free[count.argmax()])}, group
    begun = search.dense(search.choices.begun[free], search.sparse)
    absent = (1 - begun) * (1 - search.dense(search.choices.waiting[free], search.sparse))
    # Both keep the step waiting where neither is begun, but for where neither ever is.
    promise = np.triu(((1 - begun) * rises) @ (1 - begun).T - (absent * rises) @ absent.T, k=1)
    for place in np.argsort(-promise, axis=None, kind="stable")[:_PAIRS].tolist():
        a, b = divmod(place, len(free))
        if promise[a, b] > 0:
            yield step, frozenset(free[[a, b]].tolist()), None

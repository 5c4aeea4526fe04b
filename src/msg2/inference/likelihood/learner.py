"""`likelihood`: the partial order under which noisy demonstrations are most probable. Not in the paper.

    score = log p(choices | order, noise) + log p(order)

The first part is `msg2.inference.likelihood.model`; how noisy the videos are is learned from them, so there is no
threshold to choose. The second is `msg2.inference.likelihood.prior`.

The search (`HillClimbing`) starts from orders that most videos agree on, and adds, removes and reverses pairs while the
score rises. ORs are found last: by order (`order_disjunctions`) and by presence (`presence_disjunctions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from msg2.graph import Formula, all_of, any_of, step
from msg2.inference.layers import purity
from msg2.inference.likelihood.name_similarity import NameEncoder, name_similarity
from msg2.inference.likelihood.order_disjunctions import add_disjunctions
from msg2.inference.likelihood.presence import PresenceModel
from msg2.inference.likelihood.search import HillClimbing, LikelihoodOptions, ScoredOrder
from msg2.inference.likelihood.structure import combine
from msg2.inference.relations import Relation, break_cycles, transitive_closure
from msg2.inference.result import Candidate, LearnedPreconditions
from msg2.sequences import Sequences
from msg2.task import Step


def learn(sequences: Sequences, options: LikelihoodOptions, encoder: NameEncoder | None = None) -> LearnedPreconditions:
    """Learn for every step a conjunction of steps, or of alternatives.

    Parameters
    ----------
    sequences : Sequences
        The videos.
    options : LikelihoodOptions
        How the search goes.
    encoder : callable, optional
        Turns the names of steps into vectors: names that are alike then count.

    Returns
    -------
    LearnedPreconditions
        With the best precondition that has one step less, and what it would cost (nats).
    """
    similarity = None if encoder is None else name_similarity(sequences.steps, encoder)
    search = HillClimbing.from_sequences(sequences, options, similarity)
    subsample = _subsample(sequences, options.search_videos)
    scout = search if subsample is sequences else HillClimbing.from_sequences(subsample, options, similarity)
    climbs = (scout.climb(start) for start in _starting_orders(subsample, options))
    best = max(climbs, key=lambda order: round(order.score, 6))
    if scout is not search:
        best = search.climb(best.relation)
    best = add_disjunctions(search, best)
    presence = PresenceModel.fit(sequences, "skipped" if options.absent == "skipped" else "unknown")
    structure = combine(best, presence)
    gains = {
        (a, b): best.score - search.move_to(best, best.without_pair(a, b)).score
        for a, b in np.argwhere(structure.needs | structure.order).tolist()
    }
    preconditions, candidates, any_gains = {}, {}, {}
    for index, name in enumerate(sequences.steps):
        alone = [frozenset({parent}) for parent in np.flatnonzero(structure.needs[:, index]).tolist()]
        alternatives = structure.alternatives[index] | _disjunction_gains(search, best, index)
        groups = [*alone, *alternatives]
        preconditions[name] = _formula(groups, sequences)
        candidates[name] = [Candidate(preconditions[name], 0.0)]
        if alone:
            rise, dropped = max((-gains[parent, index], {parent}) for (parent,) in alone)
            candidates[name].append(Candidate(_formula([g for g in groups if g != dropped], sequences), rise))
        if alternatives:
            any_gains[name] = min(alternatives.values())

    def names(places: Iterable[int]) -> tuple[Step, ...]:
        return tuple(sequences.steps[place] for place in places)

    return LearnedPreconditions(
        preconditions,
        candidates,
        order=[(sequences.steps[a], sequences.steps[b]) for a, b in np.argwhere(structure.order).tolist()],
        exclusive=[names(group) for group in structure.exclusive],
        optional=names(np.flatnonzero(structure.optional).tolist()),
        repeats=_repeat_shares(sequences),
        model={
            "absent_rate": round(presence.absent_rate, 6),
            "extra_rate": round(presence.extra_rate, 6),
            "disorder": {
                "levels": list(options.levels), "shares": [round(share, 6) for share in best.noise.shares.tolist()],
            },
        },
        gains={(sequences.steps[a], sequences.steps[b]): gain for (a, b), gain in gains.items()},
        any_gains=any_gains,
        notes=_notes(sequences, bool(best.relation.any())),
    )  # fmt: skip


def _notes(sequences: Sequences, ordered: bool) -> list[str]:
    """What to tell the user: that no order was found, although there was something to find it in."""
    if ordered or not sequences.before.any():
        return []
    return ["no order was found: the videos do the steps in any order, or are too few to tell"]


def _disjunction_gains(search: HillClimbing, order: ScoredOrder, step: int) -> dict[frozenset[int], float]:
    """The ORs that the order of the steps tells, and by how much each raises the score."""
    found = {}
    for group in order.disjunctions(step):
        rest = order.eligible.disjunctions - {(step, group)}
        found[group] = order.score - search.move_to(order, order.relation, rest).score
    return found


def _repeat_shares(sequences: Sequences) -> dict[Step, float]:
    """The share of the videos with a step that show it more than once; steps that none repeats are left out."""
    videos, times = np.unique(sequences.video * len(sequences.steps) + sequences.step, return_counts=True)
    step = videos % max(len(sequences.steps), 1)
    once, again = (np.bincount(step[chosen], minlength=len(sequences.steps)) for chosen in (times > 0, times > 1))
    return {sequences.steps[n]: round(float(again[n] / once[n]), 6) for n in np.flatnonzero(again)}


def _formula(groups: Iterable[frozenset[int]], sequences: Sequences) -> Formula:
    """All groups are needed, one step of each is enough."""
    return all_of(any_of(step(sequences.steps[index]) for index in group) for group in groups)


def _subsample(sequences: Sequences, most: int) -> Sequences:
    """The sequences of at most so many videos, evenly spread: enough to find the way, not for the last of it."""
    if len(sequences.videos) <= most:
        return sequences
    return sequences.select(np.linspace(0, len(sequences.videos) - 1, most).astype(np.intp))


def _starting_orders(sequences: Sequences, options: LikelihoodOptions) -> Iterator[Relation]:
    """No order at all, and the orders of pairs of which all but a few videos agree."""
    before = sequences.first_occurrences().before
    yield np.zeros(before.shape, dtype=np.bool_)
    for agreement in options.starts:
        yield transitive_closure(break_cycles(purity(before) > agreement, before + before.T)[0])

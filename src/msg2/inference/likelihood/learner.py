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
from msg2.inference.likelihood.presence_disjunctions import group_alternatives
from msg2.inference.likelihood.search import HillClimbing, LikelihoodOptions
from msg2.inference.relations import Relation, break_cycles, transitive_closure
from msg2.inference.result import Candidate, LearnedPreconditions
from msg2.sequences import Sequences


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
    preconditions, candidates = {}, {}
    for index, name in enumerate(sequences.steps):
        parents = np.flatnonzero(best.covering_pairs[:, index]).tolist()
        groups = [*group_alternatives(parents, index, sequences), *best.disjunctions(index)]
        preconditions[name] = _formula(groups, sequences)
        candidates[name] = [Candidate(preconditions[name], 0.0)]
        fewer = [
            (search.move_to(best, best.without_pair(parent, index)).score - best.score, parent) for parent in parents
        ]
        if fewer:
            rise, dropped = max(fewer)
            rest = [group - {dropped} for group in groups if group != {dropped}]
            candidates[name].append(Candidate(_formula(rest, sequences), rise))
    return LearnedPreconditions(preconditions, candidates)


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

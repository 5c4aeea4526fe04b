"""`likelihood`: the partial order under which noisy demonstrations are most probable. Not in the paper.

    score = log p(choices | order, noise) + log p(order)

The first part is `msg2.inference.likelihood.model`; how noisy the videos are is learned from them, so there is no
threshold to choose. The second is `msg2.inference.likelihood.prior`.

The search (`msg2.inference.likelihood.search`) starts from orders that most videos agree on, and moves pairs and ORs
while the score rises. ORs that the presence of steps tells are found last (`presence_disjunctions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from msg2.graph import Formula, all_of, any_of, step
from msg2.graph.closure import depths
from msg2.inference.likelihood.likelihood_options import LikelihoodOptions
from msg2.inference.likelihood.model import Disjunction
from msg2.inference.likelihood.name_similarity import NameEncoder, name_similarity
from msg2.inference.likelihood.presence import PresenceModel
from msg2.inference.likelihood.presence_network import PresenceNetwork
from msg2.inference.likelihood.repetitions import count_repetitions
from msg2.inference.likelihood.run_variants import Variants
from msg2.inference.likelihood.scored_order import OrderScorer, ScoredOrder
from msg2.inference.likelihood.search import find_order, find_order_quickly
from msg2.inference.likelihood.structure import Structure, combine
from msg2.inference.result import Candidate, LearnedPreconditions
from msg2.sequences import FloatArray, Sequences
from msg2.task import Absent, Step


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
    variants = Variants.from_sequences(sequences)
    scorer, order = find_order(variants, options, similarity)
    presence = PresenceModel.fit(variants, _what_is_absent(options))
    structure = combine(order, presence)
    share = variants.videos / max(scorer.events.videos, 1)
    gains = {
        (a, b): share * (order.score - scorer.move_to(order, order.without_pairs([a], [b])[0]).score)
        for a, b in np.argwhere(structure.needs | structure.order).tolist()
    }
    alternatives = [
        {group: share * _disjunction_gain(scorer, order, (owner, group)) if gain is None else gain
         for group, gain in groups.items()}
        for owner, groups in enumerate(structure.alternatives)
    ]  # fmt: skip
    learned = _without_evidence(variants, presence, structure)
    return replace(
        learned,
        candidates={name: _candidates(index, learned.preconditions[name], structure, gains, sequences.steps)
                    for index, name in enumerate(sequences.steps)},
        model={
            **learned.model,
            "disorder": {
                "levels": list(options.levels), "shares": [round(share, 6) for share in order.noise.shares.tolist()],
            },
            "presence": _presence_network(presence, order, sequences.steps),
            "repetitions": count_repetitions(sequences) if variants.repeated.any() else {},
        },
        gains={(sequences.steps[a], sequences.steps[b]): gain for (a, b), gain in gains.items()},
        any_gains={
            name: min(groups.values()) for name, groups in zip(sequences.steps, alternatives, strict=True) if groups
        },
        notes=_notes(variants, order),
        relearn=partial(_relearn, options=options, similarity=similarity),
    )  # fmt: skip


def _relearn(sequences: Sequences, options: LikelihoodOptions, similarity: FloatArray | None) -> LearnedPreconditions:
    """What is learned from a sample of the videos, by a quicker search and without evidence."""
    variants = Variants.from_sequences(sequences)
    order = find_order_quickly(variants, options, similarity)
    presence = PresenceModel.fit(variants, _what_is_absent(options))
    return _without_evidence(variants, presence, combine(order, presence))


def _what_is_absent(options: LikelihoodOptions) -> Absent:
    return "skipped" if options.absent == "skipped" else "unknown"


def _without_evidence(variants: Variants, presence: PresenceModel, structure: Structure) -> LearnedPreconditions:
    """What the graph says, and the rates of labels that are missing and of those that are one too many."""

    def names(places: Iterable[int]) -> tuple[Step, ...]:
        return tuple(variants.steps[place] for place in places)

    return LearnedPreconditions(
        {name: _formula(structure.clauses(index), variants.steps) for index, name in enumerate(variants.steps)},
        order=[(variants.steps[a], variants.steps[b]) for a, b in np.argwhere(structure.order).tolist()],
        exclusive=[names(group) for group in structure.exclusive],
        optional=names(np.flatnonzero(structure.optional).tolist()),
        repeats=_repeat_shares(variants),
        model={"absent_rate": round(presence.absent_rate, 6), "extra_rate": round(presence.extra_rate, 6)},
    )


def _candidates(
    index: int, chosen: Formula, structure: Structure, gains: Mapping[tuple[int, int], float], steps: tuple[Step, ...]
) -> list[Candidate]:
    """The precondition of a step, and the best one that has a needed step less."""
    clauses = structure.clauses(index)
    less = [(-gains[parent, index], {parent}) for clause in clauses if len(clause) == 1 for parent in clause]
    if not less:
        return [Candidate(chosen, 0.0)]
    rise, dropped = max(less)
    return [Candidate(chosen, 0.0), Candidate(_formula([one for one in clauses if one != dropped], steps), rise)]


def _notes(variants: Variants, order: ScoredOrder) -> list[str]:
    """What to tell the user: that no order was found, although there was something to find it in."""
    if order.relation.any() or order.disjunctions or not variants.before.any():
        return []
    return ["no order was found: the videos do the steps in any order, or are too few to tell"]


def _disjunction_gain(scorer: OrderScorer, order: ScoredOrder, disjunction: Disjunction) -> float:
    """By how much an OR that the order of the steps tells raises the score."""
    return order.score - scorer.move_to(order, order.relation, order.disjunctions - {disjunction}).score


def _presence_network(presence: PresenceModel, order: ScoredOrder, steps: tuple[Step, ...]) -> dict[Step, object]:
    """On which others the presence of each step depends, and how often it is there."""
    by_depth = np.argsort(depths(order.relation), kind="stable").tolist()
    network = PresenceNetwork.fit(presence.shown, presence.weight, by_depth)
    return {
        name: {"given": [steps[one] for one in given], "rates": [round(rate, 6) for rate in rates.tolist()]}
        for name, given, rates in zip(steps, network.given, network.rates, strict=True)
    }


def _repeat_shares(variants: Variants) -> dict[Step, float]:
    """The share of the videos with a step that show it more than once; steps that none repeats are left out."""
    once, again = variants.weight @ variants.shown, variants.repeated
    return {variants.steps[n]: round(float(again[n] / once[n]), 6) for n in np.flatnonzero(again)}


def _formula(clauses: Iterable[frozenset[int]], steps: tuple[Step, ...]) -> Formula:
    """All clauses are needed, one step of each is enough."""
    return all_of(any_of(step(steps[index]) for index in clause) for clause in clauses)

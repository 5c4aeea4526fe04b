"""`likelihood`, the default method: the partial order under which noisy demonstrations are most probable.

Not in the paper; `docs/likelihood.md` describes it. Count the variants of the videos (`msg2.sequences`); find the order
of the highest score (`choices` is the model, `score` adds the prior, `search` and `ors` climb); tell which steps are
required, implied and exclusive (`presence`); put both together (`structure`); and how much every arrow gains.
"""

from collections.abc import Iterable
from collections.abc import Sequence as AnySequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from msg2.graph import Formula, all_of, any_of, step
from msg2.graph.closure import depths
from msg2.inference.likelihood.follow_ups import count_repetitions, find_loops, find_responses
from msg2.inference.likelihood.presence import PresenceModel, fit_presence_network
from msg2.inference.likelihood.score import NameEncoder, PairWeights, name_similarity
from msg2.inference.likelihood.search import find_order, find_order_quickly
from msg2.inference.likelihood.statements import OrderStatements, weigh
from msg2.inference.likelihood.structure import Structure, combine
from msg2.inference.result import Candidate, LearnedPreconditions
from msg2.options import Count, Positive, ShareBelowOne, options_class
from msg2.progress import Progress
from msg2.sequences import Sequences, Variants
from msg2.task import Step

_Levels = Annotated[tuple[Annotated[float, Field(ge=1e-12, lt=1)], ...], Field(min_length=1)]


@options_class
class LikelihoodOptions:
    """`likelihood`: how the search goes; none of it is a threshold of what is found."""

    absent: Literal["auto", "unknown", "skipped"] = "auto"
    """A video lacks a step: its label may be missing ("unknown"), or it was not done ("skipped", as in event logs)."""
    levels: _Levels = (0.0001, 0.02, 0.05, 0.1, 0.2, 0.4)
    """Probabilities of a disorderly choice; the share of videos at each level is learned."""
    starts: tuple[ShareBelowOne, ...] = (0.95, 0.8)
    """The search starts from the pairs that more than this share of the videos order alike, and from no order."""
    candidates: Count = 12
    """Pairs to add, to remove and to reverse whose score is computed in each round: those that promise most."""
    alternatives: Count = 24
    """Steps that are tried as alternatives in what a step needs: those that come before it most often."""
    rounds: Count = 1_000
    """Rounds of moves of one climb, at most."""
    scout_labels: Count = 8_000
    """Number of labels used in the first, quick search. Larger data is subsampled by video."""
    search_labels: Count = 20_000
    """Number of labels used in the last search. Larger data is subsampled by video; rates are estimated from all."""
    tolerance: Positive = 0.01
    """Nats that a round of moves, or a new estimate of the noise, must gain for the search to go on."""


def learn(
    sequences: Sequences,
    options: LikelihoodOptions,
    encoder: NameEncoder | None = None,
    progress: Progress | None = None,
    statements: AnySequence[OrderStatements] = (),
) -> LearnedPreconditions:
    """Learn for every step a conjunction of steps, or of alternatives.

    Parameters
    ----------
    sequences : Sequences
        The videos.
    options : LikelihoodOptions
        How the search goes.
    encoder : callable, optional
        Turns the names of steps into vectors: names that are alike then count.
    progress : Progress, optional
        Is told of every round of the search.
    statements : sequence of OrderStatements
        What texts, models or other graphs say of the order of the steps: a soft prior, believed as far as it is true.
    """
    variants = sequences.variants.in_canonical_order()
    steps = variants.steps
    similarity = None if encoder is None else name_similarity(steps, encoder)
    told = weigh(statements, steps, variants.before) if statements else None
    weights = PairWeights(similarity) if told is None else PairWeights(similarity, told.gain, told.belief)
    scorer, order = find_order(variants, options, weights, progress)
    presence = PresenceModel.fit(variants, options.absent)
    twins = variants.twins if told is None else []  # statements may tell them apart
    structure = combine(order, presence, variants, every_label=sequences.absent == "skipped").with_twins(twins)
    learned = _to_graph(variants, presence, structure)
    # How much every arrow and OR makes the videos more probable: what the score loses without it.
    share = int(variants.weight.sum()) / max(int(scorer.events.weight.sum()), 1)
    gains: dict[tuple[int, int], float] = {}
    for a, b in np.argwhere((structure.needs | structure.order) & order.relation).tolist():
        fewer = order.move_pairs("remove", [a], [b])[0]
        gains[a, b] = share * (order.score - scorer.score(fewer, order.disjunctions, order).score)
    for x, y in twins:
        other = {x: y, y: x}
        gains |= {(other.get(a, a), other.get(b, b)): gain for (a, b), gain in gains.items() if {a, b} & {x, y}} | gains
    any_gains: dict[Step, float] = {}
    candidates: dict[Step, list[Candidate]] = {}
    for index, name in enumerate(steps):
        of_groups = [
            share * (order.score - scorer.score(order.relation, order.disjunctions - {(index, group)}, order).score)
            if gain is None
            else gain
            for group, gain in structure.alternatives[index].items()
            if gain is not None or (index, group) in order.disjunctions
        ]
        if of_groups:
            any_gains[name] = min(of_groups)
        candidates[name] = [Candidate(learned.preconditions[name], 0.0)]
        clauses = structure.clauses(index)
        less = [(-gains[parent, index], parent) for clause in clauses if len(clause) == 1 for parent in clause]
        if less:  # the best precondition that has a needed step less
            rise, parent = max(less)
            dropped = {parent}
            candidates[name].append(Candidate(_formula([own for own in clauses if own != dropped], steps), rise))
    # How probable a whole video is: which steps it shows, how orderly it is, and what is done again after what.
    by_depth = np.argsort(depths(order.relation), kind="stable").tolist()
    network = fit_presence_network(presence.shown, presence.weight, by_depth)
    model: dict[str, object] = {
        **learned.model,
        "disorder": {"levels": list(options.levels), "shares": [round(share, 6) for share in order.noise.tolist()]},
        "presence": {
            name: {"given": [steps[other] for other in given], "rates": [round(rate, 6) for rate in rates.tolist()]}
            for name, (given, rates) in zip(steps, network, strict=True)
        },
        "repetitions": count_repetitions(sequences) if variants.repeated.any() else {},
    }
    if told is not None:
        model["reliability"] = {source: round(share, 6) for source, share in told.reliability.items()}
    has_order = order.relation.any() or order.disjunctions
    note = "no order was found: the videos do the steps in any order, or are too few to tell"
    return replace(
        learned,
        responses=find_responses(sequences, presence, structure, steps),
        loops=find_loops(sequences) if variants.repeated.any() else [],
        candidates=candidates,
        model=model,
        gains={(steps[a], steps[b]): gain for (a, b), gain in gains.items()},
        any_gains=any_gains,
        notes=[note] if variants.before.any() and not has_order else [],
        relearn=partial(_relearn, options=options, weights=weights),
    )


def _relearn(sequences: Sequences, options: LikelihoodOptions, weights: PairWeights) -> LearnedPreconditions:
    """Learn from a sample of the videos, by a quicker search and without evidence."""
    variants = sequences.variants.in_canonical_order()
    order = find_order_quickly(variants, options, weights)
    presence = PresenceModel.fit(variants, options.absent)
    twins = variants.twins if weights.stated is None else []
    structure = combine(order, presence, variants, every_label=sequences.absent == "skipped").with_twins(twins)
    responses = find_responses(sequences, presence, structure, variants.steps)
    return replace(_to_graph(variants, presence, structure), responses=responses)


def _to_graph(variants: Variants, presence: PresenceModel, structure: Structure) -> LearnedPreconditions:
    """Write the structure as preconditions, with the rates of missing and of surplus labels."""
    steps, once, again = variants.steps, variants.weight @ variants.shown, variants.repeated
    return LearnedPreconditions(
        {name: _formula(structure.clauses(index), steps) for index, name in enumerate(steps)},
        order=[(steps[a], steps[b]) for a, b in np.argwhere(structure.order).tolist()],
        exclusive=[tuple(steps[place] for place in group) for group in structure.exclusive],
        optional=tuple(steps[place] for place in np.flatnonzero(structure.optional).tolist()),
        repeats={steps[n]: round(float(again[n] / once[n]), 6) for n in np.flatnonzero(again)},
        model={"absent_rate": round(presence.absent_rate, 6), "extra_rate": round(presence.extra_rate, 6)},
    )


def _formula(clauses: Iterable[frozenset[int]], steps: tuple[Step, ...]) -> Formula:
    """Make the formula of clauses: all of them are needed, and one step of each is enough."""
    return all_of(any_of(step(steps[index]) for index in clause) for clause in clauses)

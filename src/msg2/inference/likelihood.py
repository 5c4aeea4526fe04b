"""`likelihood`: the partial order under which noisy demonstrations are most probable. Not in the paper.

    score = log p(choices | order, noise) + log p(order)

The first part is `msg2.inference.choices`; how noisy the videos are is learnt from them, so there is no threshold to
choose. The second says of every step b: how many of the n steps that usually precede it must do so, r, is drawn first,
all numbers alike; then which, all alike: −log C(n, r). A step mostly needs nearly everything that usually precedes it
(mix, serve) or next to nothing (chop), and both are cheap to say.

The search starts from orders that most videos agree on, and adds, removes and turns pairs while the score rises.
Alternatives are found last: by order (`msg2.inference.either`) and by presence (`msg2.inference.alternatives`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from msg2.evidence import Evidence
from msg2.graph import all_of, any_of, step
from msg2.inference.alternatives import grouped
from msg2.inference.choices import Relation
from msg2.inference.either import with_alternatives
from msg2.inference.layers import acyclic, closure, purity
from msg2.inference.learnt import Candidate, Learnt
from msg2.inference.names import Encoder, kinship
from msg2.inference.orders import Search
from msg2.options import LikelihoodOptions


def learn(evidence: Evidence, options: LikelihoodOptions, encoder: Encoder | None = None) -> Learnt:
    """For every step a conjunction of steps, or of alternatives; `encoder` tells which names are alike."""
    kin = None if encoder is None else kinship(evidence.steps, encoder)
    search = Search.on(evidence, options, kin)
    some = _some(evidence, options.videos)
    scout = search if some is evidence else Search.on(some, options, kin)
    found = max((scout.climbed(start) for start in _starts(some, options)), key=lambda fit: round(fit.score, 6))
    if scout is not search:
        found = search.climbed(found.relation)
    found = with_alternatives(search, found)
    preconditions, candidates = {}, {}
    for index, name in enumerate(evidence.steps):
        parents = np.flatnonzero(found.covers[:, index]).tolist()
        groups = [*grouped(parents, index, evidence), *found.alternatives(index)]
        preconditions[name] = all_of(any_of(step(evidence.steps[one]) for one in group) for group in groups)
        fewer = [(search.moved(found, found.without(parent, index)).score - found.score, parent) for parent in parents]
        candidates[name] = [Candidate(preconditions[name], 0.0)]
        if fewer:
            rise, dropped = max(fewer)
            left = (
                any_of(step(evidence.steps[one]) for one in group - {dropped}) for group in groups if group != {dropped}
            )
            candidates[name].append(Candidate(all_of(left), rise))
    return Learnt(preconditions, candidates)


def _some(evidence: Evidence, most: int) -> Evidence:
    """The evidence of at most so many videos, evenly spread: enough to find the way, not for the last of it."""
    if len(evidence.videos) <= most:
        return evidence
    return evidence.of_videos(np.linspace(0, len(evidence.videos) - 1, most).astype(np.intp))


def _starts(evidence: Evidence, options: LikelihoodOptions) -> Iterator[Relation]:
    """No order at all, and the orders of pairs of which all but a few videos agree."""
    before = evidence.of_first_labels().before
    yield np.zeros(before.shape, dtype=np.bool_)
    for agreement in options.starts:
        yield closure(acyclic(purity(before) > agreement, before + before.T)[0])

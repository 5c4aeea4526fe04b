"""Always-before, the baseline that every table carries: what (nearly) always comes first is a precondition.

a → b when a precedes b in every video that orders them (or with purity above δ); a step needs all its predecessors in
the transitive reduction. Not in the paper; exact on clean data, and it falls apart on noisy data.
"""

from __future__ import annotations

import numpy as np

from msg2.evidence import Evidence
from msg2.graph import all_of, step
from msg2.inference.layers import acyclic, order_notes, purity, reduction
from msg2.inference.learnt import Learnt
from msg2.options import OrderOptions


def learn(evidence: Evidence, options: OrderOptions) -> Learnt:
    """One conjunction per step."""
    if options.delta == "auto":
        raise ValueError("delta is still to be chosen: see msg2.inference.choice")
    before = evidence.before
    share = purity(before)
    relation = share == 1 if options.delta is None else share > options.delta
    kept, ignored = acyclic(relation, before + before.T)
    edges = reduction(kept)
    return Learnt(
        {
            name: all_of(step(evidence.steps[parent]) for parent in np.flatnonzero(edges[:, index]))
            for index, name in enumerate(evidence.steps)
        },
        notes=order_notes(kept, ignored, before),
    )

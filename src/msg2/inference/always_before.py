"""Always-before, the baseline that every table carries: what (nearly) always comes first is a precondition.

a → b when a precedes b in every video that orders them (or with purity above δ); a step needs all its predecessors in
the transitive reduction. Not in the paper; exact on clean data, and it falls apart on noisy data.
"""

from __future__ import annotations

import numpy as np

from msg2.graph import all_of, step
from msg2.graph.closure import break_cycles, transitive_reduction
from msg2.inference.delta import Delta, chosen_delta
from msg2.inference.msg2 import order_notes, purity
from msg2.inference.result import LearnedPreconditions
from msg2.options import options_class
from msg2.sequences import Sequences


@options_class
class AlwaysBeforeOptions:
    """`always-before`: a before b in every video that orders them, or with purity above δ."""

    delta: Delta | None = None
    """δ: a step comes before another when its transition purity is above this; none: when it does in every video."""


def learn(sequences: Sequences, options: AlwaysBeforeOptions) -> LearnedPreconditions:
    """Learn one conjunction per step: everything that comes before it, in the transitive reduction.

    Parameters
    ----------
    sequences : Sequences
        The videos.
    options : AlwaysBeforeOptions
        δ is a number or None here.

    Returns
    -------
    LearnedPreconditions
    """
    before = sequences.before
    share = purity(before)
    relation = share == 1 if options.delta is None else share > chosen_delta(options.delta)
    kept, ignored = break_cycles(relation, before + before.T)
    edges = transitive_reduction(kept)
    return LearnedPreconditions(
        {
            name: all_of(step(sequences.steps[parent]) for parent in np.flatnonzero(edges[:, index]))
            for index, name in enumerate(sequences.steps)
        },
        notes=order_notes(kept, ignored, before),
    )

"""What is likely about an order before any video was looked at.

Of every step b, how many of the n steps that usually precede it must do so, r, is drawn first, all numbers alike; then
which, all alike: log p = −log C(n, r). A step mostly needs nearly everything that usually precedes it (mix, serve) or
next to nothing (chop), and both are cheap to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import comb, inf, log

import numpy as np
from numpy.typing import NDArray

from msg2.arrays import FloatArray
from msg2.inference.likelihood.model import Disjunction
from msg2.inference.likelihood.name_similarity import log_subset_weights
from msg2.inference.relations import Relation


@dataclass(frozen=True, eq=False)
class OrderPrior:
    """The prior of partial orders of N steps.

    `usual` (N, N) is [a, b] where a precedes b in most videos that order them; `similarity` (N, N) how much the names
    speak for needing a of them; `cost` (N, N + 1) what it costs to say which r of them b needs, names left aside.
    """

    usual: NDArray[np.bool_]
    similarity: FloatArray
    cost: FloatArray

    @staticmethod
    def from_counts(before: NDArray[np.int64], similarity: FloatArray | None = None) -> OrderPrior:
        """Make the prior for N steps.

        Parameters
        ----------
        before : array of shape (N, N)
            [a, b]: the videos in which a came before b.
        similarity : array of shape (N, N), optional
            See `msg2.inference.likelihood.name_similarity`; by default the names say nothing.

        Returns
        -------
        OrderPrior
        """
        usual = before > before.T
        similarity = np.zeros(usual.shape) if similarity is None else similarity
        return OrderPrior(usual, similarity, log_subset_weights(similarity, usual))

    def log_probability(self, relation: Relation, disjunctions: frozenset[Disjunction] = frozenset()) -> float:
        """Compute log p(order).

        Parameters
        ----------
        relation : array of shape (N, N)
            The order; a pair against the usual one costs log N more.
        disjunctions : frozenset of Disjunction
            One of k steps costs `or_cost`.

        Returns
        -------
        float
            In nats, up to a constant.
        """
        size = len(relation)
        usual = relation & self.usual
        needed = usual.sum(axis=0)
        cost = float(self.cost[np.arange(size), needed].sum())
        if self._has_similarity:
            cost -= float(self.similarity[usual].sum())
        against = int(relation.sum()) - int(needed.sum())
        clauses = sum(or_cost(len(group), size) for _, group in disjunctions)
        return -(cost + against * float(np.log(max(size, 1))) + clauses)

    @cached_property
    def _has_similarity(self) -> bool:
        return bool(self.similarity.any())


@cache
def or_cost(count: int, steps: int) -> float:
    """Say what an OR costs: log 2 N C(N − 1, k), for whether there is one, which step it is of, and which k it joins.

    Parameters
    ----------
    count : int
        Alternatives, k.
    steps : int
        N.

    Returns
    -------
    float
        In nats.
    """
    return log(2 * steps * comb(steps - 1, count)) if count < steps else inf

"""What is likely about an order before any video was looked at.

Of every step b, how many of the n steps that usually precede it must do so, r, is drawn first, all numbers alike; then
which, all alike: log p = −log C(n, r). A step mostly needs nearly everything that usually precedes it (mix, serve) or
next to nothing (chop), and both are cheap to say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from math import comb, inf, log

import numpy as np
from numpy.typing import NDArray

from msg2.inference.likelihood.model import Disjunction
from msg2.inference.likelihood.name_similarity import log_subset_weights
from msg2.sequences import FloatArray


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
        """Make the prior for N steps."""
        usual = before > before.T
        similarity = np.zeros(usual.shape) if similarity is None else similarity
        return OrderPrior(usual, similarity, log_subset_weights(similarity, usual))

    def log_probability(
        self, relations: NDArray[np.bool_], disjunctions: Iterable[Disjunction] = frozenset()
    ) -> FloatArray:
        """Compute log p(order), of one order or of many."""
        size = len(self.usual)
        usual = relations & self.usual
        cost = self.pair_cost(usual.sum(axis=-2), relations.sum(axis=-2)).sum(axis=-1)
        if self._has_similarity:
            cost -= (usual * self.similarity).sum(axis=(-2, -1))
        for owner, group in disjunctions:
            cost = cost + or_cost(len(group), size) * ~relations[..., [*group], owner].any(axis=-1)
        return np.asarray(-cost)

    def pair_cost(self, usual: NDArray[np.intp], every: NDArray[np.intp], step: int | None = None) -> FloatArray:
        """Say what it costs that steps have so many predecessors, names left aside."""
        return np.asarray(self.cost[self._places if step is None else step, usual] + (every - usual) * self._unusual)

    @cached_property
    def _unusual(self) -> float:
        """What a pair against the usual order costs besides."""
        return float(np.log(max(len(self.usual), 1)))

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        return np.arange(len(self.usual))

    @cached_property
    def _has_similarity(self) -> bool:
        return bool(self.similarity.any())


@cache
def or_cost(count: int, steps: int) -> float:
    """Cost of an OR of k steps: log 2 N C(N − 1, k), for its existence, the step it belongs to and its members."""
    return log(2 * steps * comb(steps - 1, count)) if count < steps else inf

"""Alternatives among what a step needs: steps of which one is enough, told from steps that are all needed.

Order alone hardly tells them apart, since a video that takes one way leaves out the other. Presence does. Of two
parents a and b of a step, count the videos with the step that show both, only a, only b, and neither:

    needed           it is there but for what is left out everywhere, at one rate
    for itself       it is there at a rate of its own
    one is enough    neither only at the rate of what is left out; else both, only a or only b, at rates of their own

Rates that are unknown are integrated out (uniform priors): an OR is taken where it explains the counts better than
two steps that are each needed or for themselves, and so pays for its additional freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import lgamma

import numpy as np
from numpy.typing import NDArray

_LEAST = 1e-6
"""Nats that an OR must gain."""


def group_alternatives(
    parents: Sequence[int], shown: NDArray[np.bool_], weight: NDArray[np.int64], rate: float
) -> tuple[list[frozenset[int]], float]:
    """Find groups of earlier steps of which a step needs one.

    The two groups for which an OR explains most are joined, again and again; of all stages on this way the one that
    explains most is the answer. (Of three alternatives, two alone explain little.)
    """
    groups = {frozenset({parent}): _log_dirichlet_integral(*_count(shown[:, parent], weight)) for parent in parents}
    gained, best, answer = 0.0, _LEAST, list(groups)
    while len(groups) > 1:
        there = {group: np.asarray(shown[:, [*group]].any(axis=1)) for group in groups}  # (P,) each
        joined = {
            pair: _log_probability_together(there[pair[0]], there[pair[1]], weight, rate)
            for pair in combinations(groups, 2)
        }
        gains = {pair: sum(joined[pair]) - groups[pair[0]] - groups[pair[1]] for pair in joined}
        pair = max(gains, key=lambda pair: (round(gains[pair], 9), [sorted(group) for group in pair]))
        if gains[pair] == -np.inf:
            break
        gained += gains[pair]
        groups = {group: value for group, value in groups.items() if group not in pair}
        groups[pair[0] | pair[1]] = joined[pair][0]
        if gained > best:
            best, answer = gained, list(groups)
    return [group for group in answer if len(group) > 1], best


def _count(there: NDArray[np.bool_], weight: NDArray[np.int64]) -> tuple[int, int]:
    return int(weight[there].sum()), int(weight[~there].sum())


def _log_probability_together(
    one: NDArray[np.bool_], other: NDArray[np.bool_], weight: NDArray[np.int64], rate: float
) -> tuple[float, float]:
    """log p that one of the two is there, which is enough; and of who it is."""
    both, first, second = (int(weight[found].sum()) for found in (one & other, one & ~other, ~one & other))
    neither = int(weight.sum()) - both - first - second
    if both * neither >= first * second:
        return -np.inf, 0.0  # where one is there, the other is rather there too: they do not stand for each other
    enough = _log_probability_needed(both + first + second, neither, rate)
    return enough, _log_dirichlet_integral(both, first, second)


def _log_probability_needed(present: int, absent: int, rate: float) -> float:
    """log p of the presence of what is needed, and left out at a rate."""
    return float(present * np.log1p(-rate) + absent * np.log(rate))


def _log_dirichlet_integral(*counts: int) -> float:
    """log ∫ Π p_k^count_k dp over all rates p that add up to 1, uniformly."""
    return lgamma(len(counts)) + sum(lgamma(count + 1) for count in counts) - lgamma(sum(counts) + len(counts))


def log_factorials(most: int) -> NDArray[np.float64]:
    """log 0!, log 1!, … log most!

    >>> np.exp(log_factorials(4)).round().tolist()
    [1.0, 1.0, 2.0, 6.0, 24.0]
    """
    return np.cumsum(np.log(np.maximum(np.arange(most + 1), 1)))

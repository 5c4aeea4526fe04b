"""Alternatives among what a step needs: steps of which one is enough, told from steps that are all needed.

Order alone hardly tells them apart, since a video that takes one way leaves out the other. Presence does. Of two
parents a and b of a step, count the videos with the step that show both, only a, only b, and neither:

    all needed       each is there but for what is left out everywhere, at one rate
    each for itself  each is there at a rate of its own
    one is enough    neither only at the rate of what is left out; else both, only a or only b, at rates of their own

Rates that are unknown are integrated out (uniform priors): an OR is taken where it explains the counts better than
both others, and so pays for its additional freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from msg2.evidence import Evidence


def grouped(parents: Sequence[int] | NDArray[np.intp], step: int, evidence: Evidence) -> list[frozenset[int]]:
    """The parents of a step in groups, one of each of which is enough; what has no alternative is alone.

    The pair of groups for which an OR explains most is joined first; a group is there when one of its steps is.
    """
    groups = [frozenset({int(parent)}) for parent in parents]
    shown = np.isfinite(evidence.ended)
    shown = shown[shown[:, step]]
    left_out = _left_out(shown, groups)
    while len(groups) > 1:
        gains = {
            pair: _gain(_there(shown, pair[0]), _there(shown, pair[1]), left_out) for pair in combinations(groups, 2)
        }
        best = max(gains, key=lambda pair: (round(gains[pair], 9), [sorted(group) for group in pair]))
        if gains[best] <= 0:
            break
        groups = [group for group in groups if group not in best] + [best[0] | best[1]]
    return groups


def _there(shown: NDArray[np.bool_], group: frozenset[int]) -> NDArray[np.bool_]:
    """Of every video: whether it shows one of the group, shape (videos,)."""
    return np.asarray(shown[:, [*group]].any(axis=1))


def _left_out(shown: NDArray[np.bool_], groups: Sequence[frozenset[int]]) -> float:
    """The rate at which needed steps are not there: by the half of the parents that are there most often."""
    absent = sorted(1 - float(_there(shown, group).mean()) if len(shown) else 0.0 for group in groups)
    usual = absent[: max(1, len(absent) // 2)]
    missing = float(np.sum(usual)) * len(shown)
    return (missing + 1) / (len(usual) * len(shown) + 10)


def _gain(one: NDArray[np.bool_], other: NDArray[np.bool_], left_out: float) -> float:
    """log p of the counts if one of the two is enough, less that of the better of the other explanations."""
    both, first, second = (int(found.sum()) for found in (one & other, one & ~other, ~one & other))
    neither = len(one) - both - first - second
    if both * neither >= first * second:
        return -np.inf  # where one is there, the other is rather there too: they do not stand for each other
    any_there = len(one) - neither
    enough = neither * np.log(left_out) + any_there * np.log1p(-left_out) + _integrated(both, first, second)
    there = 2 * both + first + second
    needed = there * np.log1p(-left_out) + (2 * len(one) - there) * np.log(left_out)
    apart = _integrated(both + first, second + neither) + _integrated(both + second, first + neither)
    return float(enough - max(needed, apart))


def _integrated(*counts: int) -> float:
    """log ∫ Π p_k^count_k dp over all rates p that add up to 1, uniformly."""
    logs = log_factorials(sum(counts) + len(counts))
    return float(logs[len(counts) - 1] + logs[[*counts]].sum() - logs[sum(counts) + len(counts) - 1])


def log_factorials(most: int) -> NDArray[np.float64]:
    """log 0!, log 1!, … log most!

    >>> np.exp(log_factorials(4)).round().tolist()
    [1.0, 1.0, 2.0, 6.0, 24.0]
    """
    return np.cumsum(np.log(np.maximum(np.arange(most + 1), 1)))

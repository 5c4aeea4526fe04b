"""Which steps a video shows, all together: a Bayesian network of their presence.

`presence` decides by pairs what is required, implied and exclusive. How probable a whole set of steps is, it does not
say: of three steps of which two exclude the third, pairs would count the same fact twice. Here every step is there at a
rate that depends on a few steps before it:

    p(set) = Π_n p(n is there | which of its few given steps are there)

The given steps of n are added one by one, each time the one that raises the score most:

    score = log p(n in all videos | given steps) − ½ 2^k log V        (BIC: 2^k rates from V videos)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.sequences import FloatArray

_MOST_GIVEN = 3
"""Steps that the presence of another one depends on, at most."""
_PATTERNS = 4000
"""Of more different sets of steps, so many serve to choose what depends on what: those that most videos show."""

Given: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PresenceNetwork:
    """The network of N steps: of each the `given` steps, and the `rates` at which it is there.

    Rates are shape (2^k,); the given steps are the digits of a binary number, the first one the highest.
    """

    given: tuple[Given, ...]
    rates: tuple[FloatArray, ...]

    @staticmethod
    def fit(shown: NDArray[np.bool_], weight: NDArray[np.int64], order: Sequence[int]) -> PresenceNetwork:
        """Estimate the network."""
        usual = np.sort(np.argsort(-weight, kind="stable")[:_PATTERNS])
        given: dict[int, Given] = {}
        for place, step in enumerate(order):
            given[step] = _choose_given(shown[usual], weight[usual], step, list(order[:place]))
        rates = tuple(_rates(shown, weight, step, given[step]) for step in range(len(order)))
        return PresenceNetwork(tuple(given[step] for step in range(len(order))), rates)


def _choose_given(shown: NDArray[np.bool_], weight: NDArray[np.int64], step: int, possible: list[int]) -> Given:
    chosen: list[int] = []
    best = float(_score(_count(shown, weight, step, []), weight))
    while len(chosen) < min(_MOST_GIVEN, len(possible)):
        scores = _scores_with_one_more(shown, weight, step, chosen, possible)
        scores[[possible.index(one) for one in chosen]] = -np.inf
        place = int(scores.argmax())
        if scores[place] <= best + 1e-9:
            break
        best = float(scores[place])
        chosen.append(possible[place])
    return tuple(chosen)


def _scores_with_one_more(
    shown: NDArray[np.bool_], weight: NDArray[np.int64], step: int, chosen: list[int], possible: list[int]
) -> FloatArray:
    """The scores of the chosen given steps and each of the possible ones, shape (possible,)."""
    context = _context(shown, chosen)
    counts = []  # (possible,) each: with and without the step, for every context with and without the possible one
    for value in range(1 << len(chosen)):
        there = context == value
        weights = np.stack([weight[there] * shown[there, step], weight[there] * ~shown[there, step]]).astype(np.float64)
        with_one = weights @ shown[there][:, possible]
        counts += [with_one, weights.sum(axis=1, keepdims=True) - with_one]
    return _score(np.stack(counts), weight)


def _count(shown: NDArray[np.bool_], weight: NDArray[np.int64], step: int, given: Sequence[int]) -> FloatArray:
    """The videos with and without a step in each context, shape (2^k, 2)."""
    context, size = _context(shown, given), 1 << len(given)
    there = shown[:, step]
    return np.stack([np.bincount(context[flags], weight[flags], minlength=size) for flags in (there, ~there)], axis=1)


def _context(shown: NDArray[np.bool_], given: Sequence[int]) -> NDArray[np.intp]:
    """Which of the given steps a set has, as a binary number, shape (P,)."""
    context = np.zeros(len(shown), dtype=np.intp)
    for one in given:
        context = 2 * context + shown[:, one]
    return context


def _score(counts: FloatArray, weight: NDArray[np.int64]) -> FloatArray:
    """BIC from counts of shape (contexts, 2, …) -> (…)."""
    total = counts.sum(axis=1, keepdims=True)
    logs = np.log(np.maximum(counts, 1e-300) / np.maximum(total, 1e-300))
    return np.asarray((counts * logs).sum(axis=(0, 1)) - len(counts) / 2 * np.log(max(int(weight.sum()), 1)))


def _rates(shown: NDArray[np.bool_], weight: NDArray[np.int64], step: int, given: Given) -> FloatArray:
    """The rate in each context, with one video's worth of the rate in all of them."""
    counts = _count(shown, weight, step, given)
    usual = (counts[:, 0].sum() + 0.5) / (counts.sum() + 1)
    return np.asarray((counts[:, 0] + usual) / (counts.sum(axis=1) + 1))

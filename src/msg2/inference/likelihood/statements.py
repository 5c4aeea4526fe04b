"""What sources say of the order of steps, and how far each is believed: that is learned from the videos.

A source (a written procedure, a language model, another graph) says of two steps that a comes before b, that b comes
before a, neither or both. How it errs is estimated: T[t, z] is the probability that it says z where t is true: a before
b, b before a, or none. Of the truth only the videos of the pair tell, so truth and errors are estimated in turns (EM):

    p(t | pair)  ∝  share_t · p(videos of the pair | t) · T[t, z]
    T[t, z]      ∝  Σ_pairs p(t | pair) [says z] + α[t, z]

The source is believed as far as this explains the videos better than that it says the same whatever is true: with the
probability β, by BIC, where knowing something takes one number more. Then log p(order) gains, with every pair,

    weight[a, b] = β √κ (log T[a before b, z] − log T[none, z]) + γ log (share_{a before b} / share_none)

where κ is below 1 for statements that follow from each other (`_independence`), and γ = β ½ Σ_z |T[a before b, z] −
T[none, z]| says how far what the source says depends on what is true. So far, this takes the
place of counting how many steps come before each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lgamma, log, sqrt
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from msg2.sequences import FloatArray
from msg2.task import Step

_ROUNDS = 500
"""Rounds in which a source is estimated, at most."""
_ERRORS = 19.0
"""Videos break an order that is real at a rate from Beta(1, 19): one in twenty."""
_KNOWN = 10.0
"""α is as from so many pairs in order, and as many in none, of a source that errs alike in both."""
_RELIABILITIES = np.arange(0.5, 0.96, 0.05)
"""How often that source is right: what fits the videos best."""
_SHARES = np.array([5.0, 5.0, 10.0])
"""The same of the truth, as from twenty pairs: half of them are in an order."""


@dataclass(frozen=True, eq=False)
class OrderStatements:
    """What a source says of the order of some steps: the pairs (before, after), and that all others are in none.

    >>> text = OrderStatements("text", frozenset(["boil", "pour"]), frozenset([("boil", "pour")]))
    """

    source: str
    steps: frozenset[Step]
    before: frozenset[tuple[Step, Step]]


class StatementWeights(NamedTuple):
    """What all sources together add to log p(order)."""

    gain: FloatArray
    """[a, b]: of an order in which a comes before b, shape (N, N)."""
    belief: float
    """How far this takes the place of counting how many steps come before each, from 0 to 1."""
    reliability: dict[str, float]
    """Share of the ordered pairs of which each source is right, as estimated."""


def weigh(sources: Sequence[OrderStatements], steps: Sequence[Step], before: NDArray[np.int64]) -> StatementWeights:
    """Estimate how far sources are right; `before` counts the videos in which a comes before b, shape (N, N)."""
    first, second = np.triu_indices(len(steps), 1)
    gain, belief, usual, reliability = np.zeros(before.shape), 0.0, 0.0, {}
    for source in sources:
        said = np.array([[(a, b) in source.before for b in steps] for a in steps], dtype=np.bool_)
        known = np.array([name in source.steps for name in steps], dtype=np.bool_)
        asked = known[first] & known[second]
        a, b = first[asked], second[asked]
        if not len(a):
            continue
        # 0: a before b, 1: b before a, 2: neither, 3: both
        says = np.array([[2, 1], [0, 3]])[said[a, b].astype(np.intp), said[b, a].astype(np.intp)]
        opposite = np.array([1, 0, 2, 3])[says]
        videos = _log_evidence(before[a, b], before[b, a])
        starts = [_even_errors(right) for right in _RELIABILITIES.tolist()]
        start = max(starts, key=lambda start: round(_estimate_errors(videos, says, opposite, start, "known")[2], 6))
        table, shares, fit = _estimate_errors(videos, says, opposite, start, "free")
        _, _, without = _estimate_errors(videos, says, opposite, start, "nonsense")
        better = fit - without - np.log(len(says)) / 2
        believed = float(1 / (1 + np.exp(-np.clip(better, -50, 50))))
        ratio = believed * _independence(said[np.ix_(known, known)]) * (np.log(table[0]) - np.log(table[1]))
        gain[a, b] += ratio[says]
        gain[b, a] += ratio[opposite]
        informed = believed * float(np.abs(table[0] - table[1]).sum()) / 2
        if informed > belief:
            belief, usual = informed, informed * float(np.log(shares[0] / shares[2]))
        # Of the two ordered pairs of a pair of steps, one or none is in order; it says yes or no to each.
        forward, backward = table[:, [0, 3]].sum(axis=1), table[:, [1, 3]].sum(axis=1)
        in_order = (forward[0] + 1 - backward[0]) / 2
        reliability[source.source] = float((1 - shares[2]) * in_order + shares[2] * (1 - forward[1]))
    return StatementWeights(gain + usual * (gain != 0), belief, reliability)


def _independence(said: NDArray[np.bool_]) -> float:
    """How much statements count where they follow from each other: √κ of an order of N steps, else 1.

    Such an order has N! values, log N! nats, and not one bit for each of N (N − 1) / 2 pairs: κ is the ratio. κ itself
    gives away most of the help of a text beside two videos, in simulations; 1 costs up to two points beside three.
    """
    size, through = len(said), said.astype(np.float32)
    is_order = not ((through @ through > 0) & ~said).any()
    return sqrt(lgamma(size + 1) / (size * (size - 1) / 2 * log(2))) if is_order and size > 2 else 1.0


def _even_errors(right: float) -> FloatArray:
    """T of a source that is right of each ordered pair with the same probability: yes or no to each of the two."""
    wrong = 1 - right
    return np.array([
        [right * right, wrong * wrong, right * wrong, right * wrong],
        [right * wrong, right * wrong, right * right, wrong * wrong],
    ])  # fmt: skip


def _estimate_errors(
    videos: FloatArray,
    says: NDArray[np.intp],
    opposite: NDArray[np.intp],
    start: FloatArray,
    errors: Literal["free", "known", "nonsense"],
) -> tuple[FloatArray, FloatArray, float]:
    """Find T (2, 4), the shares of truths (3,) and log p of all; "nonsense" says the same whatever is true."""
    table, shares, fit = start, _SHARES / _SHARES.sum(), -np.inf
    for _ in range(_ROUNDS):
        logs = videos + np.log(np.stack([table[0, says], table[0, opposite], table[1, says]], axis=1) * shares)
        highest = logs.max(axis=1, keepdims=True)
        belief = np.exp(logs - highest)
        total = belief.sum(axis=1, keepdims=True)
        before, fit = fit, float((highest + np.log(total)).sum())
        if abs(fit - before) < 1e-6:
            break
        belief /= total
        counts, truths = _KNOWN * start, belief.sum(axis=0) + _SHARES
        np.add.at(counts[0], says, belief[:, 0])
        np.add.at(counts[0], opposite, belief[:, 1])
        np.add.at(counts[1], says, belief[:, 2])
        if errors == "nonsense":
            counts[:] = counts.sum(axis=0)
            counts[0, :2] = counts[0, :2].mean()
        counts[1, :2] = counts[1, :2].mean()  # of two steps in no order, none is the first
        truths[:2] = truths[:2].mean()
        shares = truths / truths.sum()
        if errors != "known":
            table = counts / counts.sum(axis=1, keepdims=True)
    return table, shares, fit


def _log_evidence(forward: NDArray[np.int64], backward: NDArray[np.int64]) -> FloatArray:
    """log p(videos of each pair | a before b, b before a, none), rates integrated out; shape (P, 3)."""
    from scipy.special import betaln

    ordered = (betaln(backward + 1, forward + _ERRORS), betaln(forward + 1, backward + _ERRORS))
    return np.stack([*(log - betaln(1, _ERRORS) for log in ordered), betaln(forward + 1, backward + 1)], axis=1)

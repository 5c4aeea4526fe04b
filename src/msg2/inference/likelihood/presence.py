"""The presence model: which steps a run does, and which labels are missing or one too many; see `docs/likelihood.md`.

A step is *required*, and absent at one rate ρ for the whole task; or *optional*, done at a rate θ of its own:

    required:  p(absent) = ρ            optional:  p(absent) = 1 − θ (1 − ρ) ≥ ρ

Of the n videos that show b, k lack a; of the u that show a or b, m show both; c is the rate of steps one too many:

    b implies a:   k of n at the rate ρ + c          else at any rate
    exclusive:     m of u at the rate c              else at any rate, or as if they had nothing to do with each other

Unknown rates are integrated out (uniform priors); ρ, c and the shares of what is required, implied and exclusive are
those under which the videos are most probable (expectation maximisation). How probable a whole set is, a Bayesian
network says: p(set) = Π_n p(n is there | which of its few given steps are there), chosen by BIC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.graph.closure import Relation
from msg2.sequences import FloatArray, Variants, unique_rows

_Rate: TypeAlias = FloatArray | float
"""A rate, or several in a column, shape (rates, 1): what they give then has the shape (rates, …)."""
_Counts: TypeAlias = NDArray[np.int64]
_Odds: TypeAlias = tuple[FloatArray, FloatArray]
"""Of each step or pair: the log odds of a hypothesis, and log p of what was seen, whether it is right or wrong."""

_ROUNDS = 4
"""Of estimating each number in turn, given the others."""
_CANDIDATES = 32
"""Rates that are tried for ρ, spread over those at which steps and pairs of steps are absent."""
_EXTRA_RATES = np.geomspace(1e-4, 0.1, 16)
"""Rates that are tried for c."""
_PAIRS = 4000
"""Of more pairs, so many serve to estimate the rates."""
_PRIOR_OMISSIONS = 19.0
"""β of the Beta(1, β) prior of ρ where every label is there: people leave out few of the steps that a task needs."""
_PRIOR_EXTRA = 99.0
"""β of the Beta(1, β) prior of c."""
_MOST_GIVEN = 3
"""Steps that the presence of another one depends on, at most."""
_PATTERNS = 4000
"""Of more different sets of steps, so many serve to choose what depends on what: those that most videos show."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Of the steps that are required, of the pairs that are implied, and of those that are exclusive."""

    required: float = 0.5
    implied: float = 0.5
    exclusive: float = 0.1


@dataclass(frozen=True, eq=False)
class PresenceModel:
    """What was estimated for N steps."""

    shown: NDArray[np.bool_]  # (P, N): the sets of steps that labelled videos show
    weight: NDArray[np.int64]  # (P,): the videos that show each set
    absent_rate: float  # ρ
    extra_rate: float  # c
    required: NDArray[np.bool_]  # (N,): steps of every faultless run
    implied: Relation  # (N, N): [a, b] if a run with b has a
    exclusive: Relation  # (N, N): pairs of which a run never has both
    shares: Shares = Shares()

    @staticmethod
    def fit(variants: Variants, absent: str) -> PresenceModel:
        """Estimate the model; where what is `absent` was "skipped", few omissions are expected beforehand."""
        chosen, inverse = unique_rows(variants.shown)
        shown, weight = variants.shown[chosen], np.bincount(inverse, variants.weight).astype(np.int64)
        labelled = shown.any(axis=1)
        shown, weight = shown[labelled], weight[labelled]
        dense = shown.astype(np.float64)
        both = ((dense.T * weight) @ dense).astype(np.int64)
        count, videos = both.diagonal(), int(weight.sum())
        seen = count > 0
        different = np.outer(seen, seen) & ~np.eye(len(both), dtype=np.bool_)
        absences, (a, b) = videos - count[seen], np.nonzero(different)
        pairs = PairCounts(count[a], count[b], both[a, b], videos)
        # To estimate the rates, pairs that are alike are one; of very many pairs, some that are evenly spread.
        spread = np.linspace(0, len(a) - 1, min(_PAIRS, len(a))).astype(np.intp)
        counts = np.stack([pairs.first, pairs.second, pairs.both])[:, spread]
        (first, second, together), times = np.unique(counts, axis=1, return_counts=True)
        alike = PairCounts(first, second, together, videos)
        omissions = _PRIOR_OMISSIONS if absent == "skipped" else 1.0
        # A step enters with every other step, and counts once.
        rate, extra, shares = _fit_rates(absences, alike, times, max(len(both) - 1, 1), omissions)
        required, implied, exclusive = np.zeros_like(seen), np.zeros_like(different), np.zeros_like(different)
        required[seen] = _required(absences, videos, rate, shares)[0] > 0
        exclusive[different] = pairs.exclusive(extra, shares)[0] > 0
        implied[different] = pairs.implied(rate, extra, shares)[0] > 0
        implied |= required[:, None] & different
        return PresenceModel(shown, weight, rate, extra, required, implied & ~exclusive, exclusive, shares)


def _fit_rates(
    absences: _Counts, pairs: PairCounts, times: _Counts, others: int, omissions: float
) -> tuple[float, float, Shares]:
    """ρ, c and the shares under which the videos are most probable; each pair stands for so many `times`."""
    rate, extra, shares, videos = 0.0, 0.01, Shares(), pairs.videos
    # Candidates for ρ, ascending; each step and pair is absent at one of them, or near it.
    of_pairs, of_steps = (pairs.lacking + 0.5) / (pairs.second + 1), (absences + 0.5) / (videos + 1)
    candidates = np.unique(np.concatenate([of_steps, of_pairs, [0.5 / (videos + 1)]]))
    candidates = candidates[candidates <= 0.9]
    candidates = candidates[np.linspace(0, len(candidates) - 1, min(_CANDIDATES, len(candidates))).astype(np.intp)]
    for _ in range(_ROUNDS):
        last = (rate, extra)
        fits = _required(absences, videos, candidates[:, None], shares)[1].sum(axis=-1)
        fits = fits + pairs.implied(candidates[:, None], extra, shares)[1] @ times / others
        best = float(candidates[np.argmax(fits + (omissions - 1) * np.log1p(-candidates))])
        # ρ again, from the steps that are required at that rate
        required = _sigmoid(_required(absences, videos, best, shares)[0])
        absent, chances = required @ absences, required.sum() * videos
        rate = float((absent + 0.5) / (chances + 1)) if required.sum() > 0.5 else best
        extras = _EXTRA_RATES[:, None]
        fits = pairs.implied(rate, extras, shares)[1] @ times / others
        fits = fits + pairs.exclusive(extras, shares)[1] @ times / 2
        extra = float(_EXTRA_RATES[np.argmax(fits + (_PRIOR_EXTRA - 1) * np.log1p(-_EXTRA_RATES))])
        required = _sigmoid(_required(absences, videos, rate, shares)[0])
        implied = _sigmoid(pairs.implied(rate, extra, shares)[0])
        exclusive, count = _sigmoid(pairs.exclusive(extra, shares)[0]), int(times.sum())
        shares = Shares(
            float((1 + required.sum()) / (2 + len(required))),
            float((1 + implied @ times) / (2 + count)),
            float((1 + exclusive @ times) / (10 + count)),
        )
        if last == (rate, extra):
            break
    return rate, extra, shares


def _required(absences: _Counts, videos: int, rate: _Rate, shares: Shares) -> _Odds:
    """Each step is required, else optional; so many of the videos lack it."""
    required = np.log(shares.required) + log_binomial(absences, videos, rate)
    optional = np.log1p(-shares.required) + log_rate_above(absences, videos, rate)
    odds = required - optional
    return odds, np.logaddexp(odds, 0) + optional


class PairCounts:
    """How many videos show a, b or both, for P pairs of steps a and b; shape (P,) each."""

    def __init__(self, first: _Counts, second: _Counts, both: _Counts, videos: int) -> None:
        self.first, self.second, self.both, self.videos = first, second, both, videos
        self.lacking, self.either = second - both, first + second - both  # videos with b but not a, and with a or b
        a, b = first / videos, second / videos
        self.chance = a * b / np.maximum(a + b - a * b, 1e-12)  # share of `either` that has both by chance
        by_chance = log_binomial(both, self.either, np.clip(self.chance, 1e-12, 1 - 1e-9))
        self._not_exclusive = np.logaddexp(by_chance, log_any_rate(both, self.either)) - np.log(2)

    def implied(self, rate: _Rate, extra: _Rate, shares: Shares) -> _Odds:
        """A run with b has a, else a is there at a rate of its own."""
        # Of the videos with b, those in which b is one too many lack a as often as any video does.
        spurious = extra * (self.videos - self.first) / self.second
        rates = np.clip(rate + (1 - rate) * spurious, 1e-9, 0.5)
        implied = np.log(shares.implied) + log_binomial(self.lacking, self.second, rates)
        free = np.log1p(-shares.implied) + log_rate_above(self.lacking, self.second, rate)
        odds = implied - free
        return odds, np.logaddexp(odds, 0) + free

    def exclusive(self, extra: _Rate, shares: Shares) -> _Odds:
        """The two are never both done, else together by chance, or at any rate, one as likely as the other."""
        exclusive = np.log(shares.exclusive) + log_binomial(self.both, self.either, extra)
        # What is shown together as often as by chance, or would be so rarely that nobody could tell, is not exclusive.
        rare = (self.both >= self.chance * self.either) | (self.chance < 2 * extra)
        together = np.log1p(-shares.exclusive) + self._not_exclusive
        odds = np.where(rare, -np.inf, exclusive - together)
        return odds, np.logaddexp(odds, 0) + together


def log_binomial(times: _Counts, chances: _Counts | int, rate: _Rate) -> FloatArray:
    """Compute log p of what happened so many times in so many chances, in this order, at a rate."""
    return np.asarray(times * np.log(rate) + (chances - times) * np.log1p(-np.asarray(rate)))


@cache
def log_factorials(bits: int) -> FloatArray:
    """Compute log k! of every k below 2^bits; importing scipy.special would take longer."""
    return np.cumsum(np.log(np.maximum(np.arange(1 << bits), 1)))


def log_any_rate(times: _Counts, chances: _Counts | int) -> FloatArray:
    """Compute the same at any rate, all alike: log B(k + 1, n − k + 1)."""
    logs = log_factorials(int(np.max(chances, initial=0) + 1).bit_length())
    return np.asarray(logs[times] + logs[chances - times] - logs[chances + 1])


def log_rate_above(times: _Counts, chances: _Counts | int, least: _Rate) -> FloatArray:
    """Compute the same for rates above `least`, approximated by a large deviation where it is seen less often."""
    usual = np.asarray(np.clip(times / np.maximum(chances, 1), 1e-12, 1 - 1e-12))
    rarer = log_binomial(times, chances, least) - log_binomial(times, chances, usual)
    return np.asarray(log_any_rate(times, chances) + np.where(usual < least, rarer, 0.0) - np.log1p(-np.asarray(least)))


def _sigmoid(odds: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -700, 700))))


def fit_presence_network(
    shown: NDArray[np.bool_], weight: NDArray[np.int64], order: Sequence[int]
) -> list[tuple[list[int], FloatArray]]:
    """Estimate from sets of steps (P, N) what each depends on, of those before it: the digits of its rates (2^k,)."""
    usual = np.sort(np.argsort(-weight, kind="stable")[:_PATTERNS])
    network: dict[int, tuple[list[int], FloatArray]] = {}
    for place, step in enumerate(order):
        given = _choose_given(shown[usual], weight[usual], step, list(order[:place]))
        context, there = np.zeros(len(shown), dtype=np.intp), shown[:, step]  # which of the given steps a set has
        for other in given:
            context = 2 * context + shown[:, other]
        # The videos with and without the step in each context, shape (2^k, 2).
        counts = np.stack(
            [np.bincount(context[flags], weight[flags], minlength=1 << len(given)) for flags in (there, ~there)], axis=1
        )
        # The rate in each context, with one video's worth of the rate in all of them.
        average = (counts[:, 0].sum() + 0.5) / (counts.sum() + 1)
        network[step] = given, np.asarray((counts[:, 0] + average) / (counts.sum(axis=1) + 1))
    return [network[step] for step in range(len(order))]


def _choose_given(shown: NDArray[np.bool_], weight: NDArray[np.int64], step: int, possible: list[int]) -> list[int]:
    """The possible steps that tell most about a step, added one by one while the score rises."""
    chosen, context = list[int](), np.zeros(len(shown), dtype=np.intp)
    there = shown[:, step]
    best = float(_score(np.array([[weight @ there, weight @ ~there]], dtype=np.float64), weight))
    while len(chosen) < min(_MOST_GIVEN, len(possible)):
        counts = []  # (possible,) each: with and without the step, for every context with and without the possible one
        for value in range(1 << len(chosen)):
            here = context == value
            own = np.stack([weight[here] * there[here], weight[here] * ~there[here]]).astype(np.float64)
            with_it = own @ shown[here][:, possible]
            counts += [with_it, own.sum(axis=1, keepdims=True) - with_it]
        scores = _score(np.stack(counts), weight)
        scores[[possible.index(given) for given in chosen]] = -np.inf
        place = int(scores.argmax())
        if scores[place] <= best + 1e-9:
            break
        best = float(scores[place])
        chosen.append(possible[place])
        context = 2 * context + shown[:, possible[place]]
    return chosen


def _score(counts: FloatArray, weight: NDArray[np.int64]) -> FloatArray:
    """BIC from counts of shape (contexts, 2, …) -> (…)."""
    total = counts.sum(axis=1, keepdims=True)
    logs = np.log(np.maximum(counts, 1e-300) / np.maximum(total, 1e-300))
    return np.asarray((counts * logs).sum(axis=(0, 1)) - len(counts) / 2 * np.log(max(int(weight.sum()), 1)))

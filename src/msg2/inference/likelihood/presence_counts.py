"""How probable it is that steps and pairs of steps are there as often as they are, at rates ρ and c: see `presence`.

Rates may be arrays: what they give then has their shape before its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.inference.likelihood.presence_disjunctions import log_factorials
from msg2.sequences import FloatArray

_Rate: TypeAlias = FloatArray | float
_Counts: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Shares:
    """Of the steps that are required, of the pairs that are implied, and of those that are exclusive."""

    required: float = 0.5
    implied: float = 0.5
    exclusive: float = 0.1

    @staticmethod
    def estimate(required: FloatArray, implied: FloatArray, exclusive: FloatArray, times: _Counts) -> Shares:
        """Estimate them from the log odds of each step, and of each pair."""
        pairs = int(times.sum())
        return Shares(
            float((1 + _sigmoid(required).sum()) / (2 + len(required))),
            float((1 + _sigmoid(implied) @ times) / (2 + pairs)),
            float((1 + _sigmoid(exclusive) @ times) / (10 + pairs)),
        )


@dataclass(frozen=True, eq=False)
class StepCounts:
    """Of n steps, how many of so many videos lack each: `absent` (n,)."""

    absent: _Counts
    videos: int

    @staticmethod
    def of_steps(both: _Counts, videos: int, chosen: NDArray[np.bool_]) -> StepCounts:
        """Count the chosen steps."""
        return StepCounts(videos - both.diagonal()[chosen], videos)

    def required_odds(self, rate: _Rate, shares: Shares) -> FloatArray:
        """Compute the log odds that each step is required."""
        required = np.log(shares.required) + log_binomial(self.absent, self.videos, _column(rate))
        return np.asarray(required - self._optional(rate, shares))

    def log_likelihood(self, rate: _Rate, shares: Shares) -> FloatArray:
        """Compute log p of which steps the videos show."""
        return np.asarray(_log_mixture(self.required_odds(rate, shares), self._optional(rate, shares)).sum(axis=-1))

    def refine(self, rate: float, shares: Shares) -> float:
        """Estimate ρ again from the steps that are required at about that rate."""
        required = _sigmoid(self.required_odds(rate, shares))
        absent, chances = required @ self.absent, required.sum() * self.videos
        return float((absent + 0.5) / (chances + 1)) if required.sum() > 0.5 else rate

    def _optional(self, rate: _Rate, shares: Shares) -> FloatArray:
        return np.asarray(np.log1p(-shares.required) + self._absence.log_probability_above(_column(rate)))

    @cached_property
    def _absence(self) -> AnyRate:
        return AnyRate(self.absent, np.full_like(self.absent, self.videos))


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Of P pairs of steps a and b, how many of so many videos show one of them, or both; shape (P,) each.

    `times` says how many pairs each of them stands for. `steps` is the number of steps: whether a step is there enters
    with every other step, and counts once.
    """

    first: _Counts
    second: _Counts
    both: _Counts
    times: _Counts
    videos: int
    steps: int

    @staticmethod
    def of_pairs(both: _Counts, videos: int, chosen: NDArray[np.bool_]) -> PairCounts:
        """Count the chosen pairs."""
        a, b = np.nonzero(chosen)
        count = both.diagonal()
        return PairCounts(count[a], count[b], both[a, b], np.ones_like(a), videos, len(both))

    def distinct(self, most: int) -> PairCounts:
        """Take pairs that are alike as one; at most so many pairs, evenly spread."""
        chosen = np.linspace(0, len(self.both) - 1, min(most, len(self.both))).astype(np.intp)
        counts = np.stack([self.first, self.second, self.both])[:, chosen]
        (first, second, both), times = np.unique(counts, axis=1, return_counts=True)
        return PairCounts(first, second, both, times, self.videos, self.steps)

    @cached_property
    def lacking(self) -> _Counts:
        """Videos that have b and lack a."""
        return self.second - self.both

    @cached_property
    def either(self) -> _Counts:
        """Videos that show one of them, or both."""
        return self.first + self.second - self.both

    @cached_property
    def chance(self) -> FloatArray:
        """The share of `either` that would show both, had the two nothing to do with each other."""
        one, other = self.first / self.videos, self.second / self.videos
        return np.asarray(one * other / np.maximum(one + other - one * other, 1e-12))

    def implied_odds(self, rate: _Rate, extra: _Rate, shares: Shares) -> FloatArray:
        """Compute the log odds that a run with b has a."""
        # Of the videos with b, those in which b is one too many lack a as often as any video does.
        spurious = _column(extra) * (self.videos - self.first) / self.second
        rates = np.clip(_column(rate) + (1 - _column(rate)) * spurious, 1e-9, 0.5)
        implied = np.log(shares.implied) + log_binomial(self.lacking, self.second, rates)
        return np.asarray(implied - self._free(rate, shares))

    def implied_log_likelihood(self, rate: _Rate, extra: _Rate, shares: Shares) -> FloatArray:
        """Compute log p of how often a is there where b is."""
        pairs = _log_mixture(self.implied_odds(rate, extra, shares), self._free(rate, shares))
        return np.asarray(pairs @ self.times / max(self.steps - 1, 1))

    def exclusive_odds(self, extra: _Rate, shares: Shares) -> FloatArray:
        """Compute the log odds that two steps are never both done."""
        exclusive = np.log(shares.exclusive) + log_binomial(self.both, self.either, _column(extra))
        # What is shown together as often as by chance, or would be so rarely that nobody could tell, is not exclusive.
        rare = (self.both >= self.chance * self.either) | (self.chance < 2 * _column(extra))
        return np.where(rare, -np.inf, exclusive - self._together(shares))

    def exclusive_log_likelihood(self, extra: _Rate, shares: Shares) -> FloatArray:
        """Compute log p of how often two steps are both there; every pair is counted both ways."""
        pairs = _log_mixture(self.exclusive_odds(extra, shares), self._together(shares))
        return np.asarray(pairs @ self.times / 2)

    def _free(self, rate: _Rate, shares: Shares) -> FloatArray:
        return np.asarray(np.log1p(-shares.implied) + self._lack.log_probability_above(_column(rate)))

    @cached_property
    def _lack(self) -> AnyRate:
        return AnyRate(self.lacking, self.second)

    def _together(self, shares: Shares) -> FloatArray:
        return np.asarray(np.log1p(-shares.exclusive) + self._not_exclusive)

    @cached_property
    def _not_exclusive(self) -> FloatArray:
        """log p of how often two steps are together: by chance, or at any rate, one as likely as the other."""
        chance = log_binomial(self.both, self.either, np.clip(self.chance, 1e-12, 1 - 1e-9))
        return np.asarray(np.logaddexp(chance, log_any_rate(self.both, self.either)) - np.log(2))


@dataclass(frozen=True, eq=False)
class AnyRate:
    """What happened so many `times` in so many `chances`, at a rate that is unknown."""

    times: _Counts
    chances: _Counts

    def log_probability_above(self, least: _Rate) -> FloatArray:
        """log p at any rate from `least` on, all alike; by the large deviation of what is seen less often than that."""
        at_least = log_binomial(self.times, self.chances, least)
        short = np.where(self._usual < least, at_least - self._at_usual, 0.0)
        return np.asarray(self._at_any + short - np.log1p(-np.asarray(least)))

    @cached_property
    def _usual(self) -> FloatArray:
        return np.asarray(np.clip(self.times / np.maximum(self.chances, 1), 1e-12, 1 - 1e-12))

    @cached_property
    def _at_usual(self) -> FloatArray:
        return log_binomial(self.times, self.chances, self._usual)

    @cached_property
    def _at_any(self) -> FloatArray:
        return log_any_rate(self.times, self.chances)


def log_binomial(times: _Counts, chances: _Counts | int, rate: _Rate) -> FloatArray:
    """Compute log p of what happened so many times in so many chances, in this order, at a rate."""
    return np.asarray(times * np.log(rate) + (chances - times) * np.log1p(-np.asarray(rate)))


def log_any_rate(times: _Counts, chances: _Counts) -> FloatArray:
    """Compute the same at any rate, all alike: log B(k + 1, n − k + 1)."""
    logs = log_factorials(int(chances.max(initial=0)) + 1)
    return np.asarray(logs[times] + logs[chances - times] - logs[chances + 1])


def _column(rate: _Rate) -> _Rate:
    """Rates of shape (…) as (…, 1); a single one as it is."""
    return rate[..., None] if isinstance(rate, np.ndarray) else rate


def _log_mixture(odds: FloatArray, other: FloatArray) -> FloatArray:
    """log (p + q) from log (p / q) and log q."""
    return np.asarray(np.logaddexp(odds, 0) + other)


def _sigmoid(odds: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -700, 700))))

"""The presence model: which steps a run does, and which labels are missing or one too many.

Given the set of steps that a video shows, `model` says how probable their order is. This module says how probable the
set is. A step is *required*, and absent only where it was left out or its label is missing, at one rate ρ for the whole
task; or it is *optional*, done at a rate θ of its own, and then absent at least as often:

    required:  p(absent) = ρ            optional:  p(absent) = 1 − θ (1 − ρ) ≥ ρ

Pairs are judged by how often one is there given the other (a composite likelihood: one factor a pair). Of the n videos
that show b, k lack a; of the u that show a or b, m show both. With c the rate at which a run has a step too many:

    b implies a:   k of n at the rate ρ + c          else at any rate
    exclusive:     m of u at the rate c              else at any rate, or as if they had nothing to do with each other

Rates that are unknown are integrated out (uniform priors); ρ, c and the share of the steps and pairs that are required,
implied and exclusive are those under which the videos are most probable (expectation maximisation).

What cannot be told: a required step that was left out from one whose label is missing (their rates enter as ρ only),
and "optional at one half" from "required, half of the labels missing" were there not the bound that no step is absent
less often than ρ. Since the step that is there most often is absent at a low rate, so is ρ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from msg2.arrays import FloatArray
from msg2.inference.likelihood.presence_disjunctions import log_factorials
from msg2.inference.likelihood.run_variants import Variants
from msg2.inference.relations import Relation
from msg2.task import Absent

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


@dataclass(frozen=True, eq=False)
class PresenceModel:
    """What was estimated of N steps.

    `shown` (P, N): the sets of steps that labelled videos show, `weight` (P,) the videos of each. `absent_rate` is ρ
    and `extra_rate` c. `required` (N,):
    done in every faultless run. `implied` (N, N): [a, b] where a run with b has a. `exclusive` (N, N): never both.
    """

    shown: NDArray[np.bool_]
    weight: NDArray[np.int64]
    absent_rate: float
    extra_rate: float
    required: NDArray[np.bool_]
    implied: Relation
    exclusive: Relation

    @staticmethod
    def fit(variants: Variants, absent: Absent) -> PresenceModel:
        """Estimate the model.

        Parameters
        ----------
        variants : Variants
            The videos.
        absent : "unknown" or "skipped"
            Whether labels may be missing. With "skipped", absent steps are omissions, which are few.

        Returns
        -------
        PresenceModel
        """
        shown, weight = variants.presence()
        labelled = shown.any(axis=1)
        shown, weight = shown[labelled], weight[labelled]
        counts = _PresenceCounts(shown, weight)
        omissions = _PRIOR_OMISSIONS if absent == "skipped" else 1.0
        rate, extra, shares = 0.0, 0.01, _Shares()
        for _ in range(_ROUNDS):
            last = (rate, extra)
            fits = [counts.log_likelihood(one, extra, shares) + _belief(one, omissions) for one in counts.rates]
            rate = counts.refine(counts.rates[int(np.argmax(fits))], shares)
            fits = [counts.log_likelihood(rate, one, shares) + _belief(one, _PRIOR_EXTRA) for one in _EXTRA_RATES]
            extra = float(_EXTRA_RATES[int(np.argmax(fits))])
            shares = counts.shares(rate, extra, shares)
            if last == (rate, extra):
                break
        required = counts.required_odds(rate, shares) > 0
        exclusive = counts.exclusive_odds(extra, shares) > 0
        implied = (counts.implied_odds(rate, extra, shares) > 0) | (required[:, None] & counts.seen)
        implied &= ~exclusive & ~np.eye(len(implied), dtype=np.bool_)
        return PresenceModel(shown, weight, rate, extra, required, implied, exclusive)


@dataclass(frozen=True, slots=True)
class _Shares:
    """Of the steps that are required, of the pairs that are implied, and of those that are exclusive."""

    required: float = 0.5
    implied: float = 0.5
    exclusive: float = 0.1


@dataclass(frozen=True, eq=False)
class _PresenceCounts:
    """How often steps and pairs of steps are there, and how probable that is at given rates."""

    shown: NDArray[np.bool_]
    weight: NDArray[np.int64]

    @cached_property
    def videos(self) -> int:
        """How many there are."""
        return int(self.weight.sum())

    @cached_property
    def both(self) -> NDArray[np.int64]:
        """Videos that show both, shape (N, N)."""
        dense = self.shown.astype(np.float64)
        return np.asarray(((dense.T * self.weight) @ dense).astype(np.int64))

    @cached_property
    def count(self) -> NDArray[np.int64]:
        """Videos with each step, shape (N,)."""
        return np.asarray(self.both.diagonal())

    @property
    def seen(self) -> NDArray[np.bool_]:
        return self.count > 0

    @cached_property
    def lacking(self) -> NDArray[np.int64]:
        """[a, b]: videos with b that lack a, shape (N, N)."""
        return np.asarray(self.count - self.both)

    @cached_property
    def either(self) -> NDArray[np.int64]:
        """Videos that show one or both, shape (N, N)."""
        return np.asarray(self.count[:, None] + self.count - self.both)

    @cached_property
    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Ordered pairs of different steps that occur, as two arrays of indices; at most `_PAIRS`, evenly spread."""
        first, second = np.nonzero(np.outer(self.seen, self.seen) & ~np.eye(len(self.count), dtype=np.bool_))
        chosen = np.linspace(0, len(first) - 1, min(_PAIRS, len(first))).astype(np.intp)
        return first[chosen], second[chosen]

    @cached_property
    def rates(self) -> list[float]:
        """Candidates for ρ, ascending; each step and pair is absent at one of them, or near it."""
        videos = self.videos
        steps = (videos - self.count[self.seen] + 0.5) / (videos + 1)
        pairs = (self.lacking[self.pairs] + 0.5) / (self.count[self.pairs[1]] + 1)
        rates = np.unique(np.concatenate([steps, pairs, [0.5 / (videos + 1)]]))
        rates = rates[rates <= 0.9]
        spread = np.linspace(0, len(rates) - 1, min(_CANDIDATES, len(rates))).astype(np.intp)
        return [float(rate) for rate in rates[spread]]

    def refine(self, rate: float, shares: _Shares) -> float:
        """Estimate ρ again from the steps that are required at about that rate."""
        required = _sigmoid(self.required_odds(rate, shares))
        absent, chances = required @ (self.videos - self.count), required.sum() * self.videos
        return float((absent + 0.5) / (chances + 1)) if required.sum() > 0.5 else rate

    def log_likelihood(self, rate: float, extra: float, shares: _Shares) -> float:
        """log p of what the videos show, at rates ρ and c: one factor for each step and each pair.

        Whether a step is there enters with every other step; so implied pairs count as one step's worth each row.
        """
        total = _log_mixture(self.required_odds(rate, shares), self._optional(rate, shares))[self.seen].sum()
        implied = _log_mixture(self.implied_odds(rate, extra, shares), self._free_presence(rate, shares))
        total += implied[self.pairs].sum() / max(len(self.count) - 1, 1)
        total += _log_mixture(self.exclusive_odds(extra, shares), self._together(shares))[self.pairs].sum() / 2
        return float(total)

    def shares(self, rate: float, extra: float, shares: _Shares) -> _Shares:
        """Estimate the shares again, from how probable each step and pair is what."""
        required = _sigmoid(self.required_odds(rate, shares))[self.seen]
        implied = _sigmoid(self.implied_odds(rate, extra, shares))[self.pairs]
        exclusive = _sigmoid(self.exclusive_odds(extra, shares))[self.pairs]
        return _Shares(
            float((1 + required.sum()) / (2 + len(required))),
            float((1 + implied.sum()) / (2 + len(implied))),
            float((1 + exclusive.sum()) / (10 + len(exclusive))),
        )

    def required_odds(self, rate: float, shares: _Shares) -> FloatArray:
        """log odds that a step is required, shape (N,)."""
        absent = self.videos - self.count
        required = np.log(shares.required) + _log_binomial(absent, self.videos, rate)
        return np.where(self.seen, required - self._optional(rate, shares), -np.inf)

    def implied_odds(self, rate: float, extra: float, shares: _Shares) -> FloatArray:
        """log odds that a run with b has a, shape (N, N)."""
        # Of the videos with b, those in which b is one too many lack a as often as any video does.
        spurious = extra * (self.videos - self.count)[:, None] / np.maximum(self.count, 1)
        rates = np.clip(rate + (1 - rate) * spurious, 1e-9, 0.5)
        implied = np.log(shares.implied) + _log_binomial(self.lacking, self.count, rates)
        return np.where(np.outer(self.seen, self.seen), implied - self._free_presence(rate, shares), -np.inf)

    def exclusive_odds(self, extra: float, shares: _Shares) -> FloatArray:
        """log odds that two steps are never both done, shape (N, N)."""
        exclusive = np.log(shares.exclusive) + _log_binomial(self.both, self.either, extra)
        # What is shown together as often as by chance, or would be so rarely that nobody could tell, is not exclusive.
        rare = (self.both >= self._chance * self.either) | (self._chance < 2 * extra)
        possible = np.outer(self.seen, self.seen) & ~rare
        return np.where(possible, exclusive - self._together(shares), -np.inf)

    def _optional(self, rate: float, shares: _Shares) -> FloatArray:
        return np.asarray(np.log1p(-shares.required) + self._absence.log_probability_above(rate))

    def _free_presence(self, rate: float, shares: _Shares) -> FloatArray:
        return np.asarray(np.log1p(-shares.implied) + self._lack.log_probability_above(rate))

    @cached_property
    def _absence(self) -> _AnyRate:
        return _AnyRate(self.videos - self.count, np.full_like(self.count, self.videos))

    @cached_property
    def _lack(self) -> _AnyRate:
        return _AnyRate(self.lacking, np.broadcast_to(self.count, self.lacking.shape))

    def _together(self, shares: _Shares) -> FloatArray:
        return np.asarray(np.log1p(-shares.exclusive) + self._not_exclusive)

    @cached_property
    def _not_exclusive(self) -> FloatArray:
        """log p of how often two steps are together: by chance, or at any rate, one as likely as the other."""
        chance = _log_binomial(self.both, self.either, np.clip(self._chance, 1e-12, 1 - 1e-9))
        return np.asarray(np.logaddexp(chance, _log_any_rate(self.both, self.either)) - np.log(2))

    @cached_property
    def _chance(self) -> FloatArray:
        """Of the videos with one or both, the share with both, had they nothing to do with each other, shape (N, N)."""
        one = self.count / max(self.videos, 1)
        product = np.outer(one, one)
        return np.asarray(product / np.maximum(one[:, None] + one - product, 1e-12))


@dataclass(frozen=True, eq=False)
class _AnyRate:
    """What happened so many `times` in so many `chances`, at a rate that is unknown."""

    times: NDArray[np.int64]
    chances: NDArray[np.int64]

    def log_probability_above(self, least: float) -> FloatArray:
        """log p at any rate from `least` on, all alike; by the large deviation of what is seen less often than that."""
        short = np.where(self._usual < least, _log_binomial(self.times, self.chances, least) - self._at_usual, 0.0)
        return np.asarray(self._at_any + short - np.log1p(-least))

    @cached_property
    def _usual(self) -> FloatArray:
        return np.asarray(np.clip(self.times / np.maximum(self.chances, 1), 1e-12, 1 - 1e-12))

    @cached_property
    def _at_usual(self) -> FloatArray:
        return _log_binomial(self.times, self.chances, self._usual)

    @cached_property
    def _at_any(self) -> FloatArray:
        return _log_any_rate(self.times, self.chances)


def _log_mixture(odds: FloatArray, other: FloatArray) -> FloatArray:
    """log (p + q) from log (p / q) and log q."""
    return np.asarray(np.logaddexp(odds, 0) + other)


def _log_binomial(times: NDArray[np.int64], chances: NDArray[np.int64] | int, rate: FloatArray | float) -> FloatArray:
    """log p of what happened so many times in so many chances, in this order, at a rate."""
    return np.asarray(times * np.log(rate) + (chances - times) * np.log1p(-np.asarray(rate)))


def _log_any_rate(times: NDArray[np.int64], chances: NDArray[np.int64]) -> FloatArray:
    """The same at any rate, all alike: log B(k + 1, n − k + 1)."""
    logs = log_factorials(int(chances.max(initial=0)) + 1)
    return np.asarray(logs[times] + logs[chances - times] - logs[chances + 1])


def _belief(rate: float, weight: float) -> float:
    """log of the Beta(1, weight) density of a rate, up to a constant."""
    return float((weight - 1) * np.log1p(-rate))


def _sigmoid(odds: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -700, 700))))

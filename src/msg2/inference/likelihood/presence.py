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

import numpy as np
from numpy.typing import NDArray

from msg2.graph.closure import Relation
from msg2.inference.likelihood.presence_counts import PairCounts, Shares, StepCounts
from msg2.inference.likelihood.run_variants import Variants
from msg2.sequences import FloatArray
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
    and `extra_rate` c. `required` (N,): done in every faultless run. `implied` (N, N): [a, b] where a run with b has a.
    `exclusive` (N, N): never both.
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
        """Estimate the model."""
        shown, weight = variants.presence()
        labelled = shown.any(axis=1)
        shown, weight = shown[labelled], weight[labelled]
        dense = shown.astype(np.float64)
        both = ((dense.T * weight) @ dense).astype(np.int64)
        seen, videos = both.diagonal() > 0, int(weight.sum())
        different = np.outer(seen, seen) & ~np.eye(len(both), dtype=np.bool_)
        steps, pairs = StepCounts.of_steps(both, videos, seen), PairCounts.of_pairs(both, videos, different)
        rate, extra, shares = _fit_rates(
            steps, pairs.distinct(_PAIRS), 1.0 if absent == "unknown" else _PRIOR_OMISSIONS
        )
        required, implied, exclusive = np.zeros_like(seen), np.zeros_like(different), np.zeros_like(different)
        required[seen] = steps.required_odds(rate, shares) > 0
        exclusive[different] = pairs.exclusive_odds(extra, shares) > 0
        implied[different] = pairs.implied_odds(rate, extra, shares) > 0
        implied |= required[:, None] & different
        return PresenceModel(shown, weight, rate, extra, required, implied & ~exclusive, exclusive)


def _fit_rates(steps: StepCounts, pairs: PairCounts, omissions: float) -> tuple[float, float, Shares]:
    """ρ, c and the shares under which the videos are most probable, each in turn given the others."""
    rate, extra, shares = 0.0, 0.01, Shares()
    candidates = _candidate_rates(steps, pairs)
    for _ in range(_ROUNDS):
        last = (rate, extra)
        fits = steps.log_likelihood(candidates, shares) + pairs.implied_log_likelihood(candidates, extra, shares)
        rate = steps.refine(float(candidates[np.argmax(fits + _belief(candidates, omissions))]), shares)
        fits = pairs.implied_log_likelihood(rate, _EXTRA_RATES, shares)
        fits += pairs.exclusive_log_likelihood(_EXTRA_RATES, shares)
        extra = float(_EXTRA_RATES[np.argmax(fits + _belief(_EXTRA_RATES, _PRIOR_EXTRA))])
        shares = Shares.estimate(
            steps.required_odds(rate, shares), pairs.implied_odds(rate, extra, shares),
            pairs.exclusive_odds(extra, shares), pairs.times,
        )  # fmt: skip
        if last == (rate, extra):
            break
    return rate, extra, shares


def _candidate_rates(steps: StepCounts, pairs: PairCounts) -> FloatArray:
    """Candidates for ρ, ascending; each step and pair is absent at one of them, or near it."""
    of_pairs = (pairs.lacking + 0.5) / (pairs.second + 1)
    of_steps = (steps.absent + 0.5) / (steps.videos + 1)
    rates = np.unique(np.concatenate([of_steps, of_pairs, [0.5 / (steps.videos + 1)]]))
    rates = rates[rates <= 0.9]
    return rates[np.linspace(0, len(rates) - 1, min(_CANDIDATES, len(rates))).astype(np.intp)]


def _belief(rates: FloatArray, weight: float) -> FloatArray:
    """log of the Beta(1, weight) density of rates, up to a constant."""
    return np.asarray((weight - 1) * np.log1p(-rates))

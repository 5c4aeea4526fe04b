"""The noise model: how orderly the videos are.

Every video has its own ε, drawn from a few levels whose shares are learned: one chaotic video costs little, and nobody
has to say how noisy the labels are.

    log p(video) = log Σ_j share_j · Π_choices p(choice | ε_j)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from msg2.sequences import FloatArray


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """`levels` of ε, shape (J,), and the share of videos at each of them, shape (J,)."""

    levels: FloatArray
    shares: FloatArray

    @staticmethod
    def uniform(levels: tuple[float, ...]) -> NoiseModel:
        """Make the model before any video was looked at: all levels alike."""
        return NoiseModel(np.array(levels), np.full(len(levels), 1 / len(levels)))

    @cached_property
    def prior(self) -> float:
        """log p of the shares, up to a constant: Dirichlet, worth one video in all."""
        return float(np.log(self.shares).sum() / len(self.shares))

    def log_likelihood(self, video_log_likelihoods: FloatArray, weight: NDArray[np.int64]) -> float:
        """Compute Σ_v weight_v · log Σ_j share_j · p_j(v), and the prior of the shares."""
        return float(weight @ _log_sum_exp(video_log_likelihoods + np.log(self.shares))) + self.prior

    def posterior(self, video_log_likelihoods: FloatArray) -> FloatArray:
        """Compute p(level | variant), shape (V, J)."""
        weighed = video_log_likelihoods + np.log(self.shares)
        return np.asarray(np.exp(weighed - _log_sum_exp(weighed)[:, None]))

    def fit(self, video_log_likelihoods: FloatArray, weight: NDArray[np.int64], rounds: int = 50) -> NoiseModel:
        """Estimate the shares that are most probable given the videos (EM); `log_likelihood` never falls."""
        likelihoods = np.exp(video_log_likelihoods - video_log_likelihoods.max(axis=1, initial=-np.inf, keepdims=True))
        shares, before = self.shares, -np.inf
        for _ in range(rounds):
            of_video = likelihoods @ shares
            total = float(weight @ np.log(of_video) + np.log(shares).sum() / len(shares))
            if total - before < 1e-4:
                break
            counts = shares * ((weight / of_video) @ likelihoods) + 1 / len(shares)
            shares, before = counts / counts.sum(), total
        return NoiseModel(self.levels, shares)


def choice_log_probabilities(levels: FloatArray, most: int) -> FloatArray:
    """Tabulate log p of a choice by the number of open and of eligible steps."""
    number = np.maximum(np.arange(most + 1), 1)
    by_rule = np.where(np.arange(most + 1) > 0, 1 / number, 0.0)
    return np.asarray(np.log(by_rule[None, :, None] * (1 - levels) + levels / number[:, None, None]))


def _log_sum_exp(logs: FloatArray) -> FloatArray:
    """log Σ exp of every row, shape (rows, J) -> (rows,); scipy's own takes longer than all the rest of a score."""
    highest = logs.max(axis=1, initial=-np.inf)
    return np.asarray(highest + np.log(np.exp(logs - highest[:, None]).sum(axis=1)))

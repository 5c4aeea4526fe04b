"""How orderly the videos are. Every video has its own ε, drawn from a few levels whose shares are learnt: one chaotic
video costs little, and nobody has to say how noisy the labels are.

    log p(video) = log Σ_j share_j · Π_choices p(choice | ε_j)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Noise:
    """`levels` of ε, shape (J,), and the share of videos at each of them, shape (J,)."""

    levels: Numbers
    shares: Numbers

    @staticmethod
    def unknown(levels: tuple[float, ...]) -> Noise:
        """Before any video was looked at: all levels alike."""
        return Noise(np.array(levels), np.full(len(levels), 1 / len(levels)))

    @cached_property
    def prior(self) -> float:
        """log p of the shares, up to a constant: Dirichlet, worth one video in all."""
        return float(np.log(self.shares).mean())

    def total(self, of_videos: Numbers) -> float:
        """Σ_v log Σ_j share_j · p_j(v), and the prior of the shares; `of_videos` (V, J) are log p_j(v)."""
        return float(_log_of_sums(of_videos + np.log(self.shares)).sum()) + self.prior

    def posterior(self, of_videos: Numbers) -> Numbers:
        """p(level | video), shape (V, J)."""
        weighed = of_videos + np.log(self.shares)
        return np.asarray(np.exp(weighed - _log_of_sums(weighed)[:, None]))

    def refitted(self, of_videos: Numbers, rounds: int = 50) -> Noise:
        """With the shares that are most probable given the videos (EM); `total` never falls."""
        noise, total = self, self.total(of_videos)
        for _ in range(rounds):
            counts = noise.posterior(of_videos).sum(axis=0) + 1 / len(self.levels)
            noise, before = Noise(self.levels, counts / counts.sum()), total
            total = noise.total(of_videos)
            if total - before < 1e-6:
                break
        return noise


def log_chances(levels: Numbers, most: int) -> Numbers:
    """log p of a choice, shape (most + 1, most + 1, J): [o, k] for o open, k eligible steps; [o, 0] against the rule.

    >>> np.exp(log_chances(np.array([0.1]), 2)[2, :, 0]).round(3).tolist()
    [0.05, 0.95, 0.5]
    """
    number = np.maximum(np.arange(most + 1), 1)
    by_rule = np.where(np.arange(most + 1) > 0, 1 / number, 0.0)
    return np.asarray(np.log(by_rule[None, :, None] * (1 - levels) + levels / number[:, None, None]))


def _log_of_sums(logs: Numbers) -> Numbers:
    """log Σ exp of every row, shape (rows, J) -> (rows,); scipy's own takes longer than all the rest of a score."""
    highest = logs.max(axis=1, initial=-np.inf)
    return np.asarray(highest + np.log(np.exp(logs - highest[:, None]).sum(axis=1)))

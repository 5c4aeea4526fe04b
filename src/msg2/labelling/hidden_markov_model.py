"""A hidden Markov model of a video: a background, interrupted by steps, each of which depends on the one before.

States are the N steps, N backgrounds that remember the last step, and the background before the first one. A step s
ends with probability 1/d_s; then the next step follows at once with probability g, else the background of s, which
ends with probability h. The next step is r with probability O[s, r]. The evidence of a step in a bin is its
log-likelihood ratio to the background.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from msg2.arrays import FloatArray

_LIMIT = 20.0
"""No single bin says more, in nats."""


@dataclass(frozen=True, slots=True, eq=False)
class Transitions:
    """How steps follow each other; N steps, and N + 1 backgrounds of which the last is that before the first step."""

    order: FloatArray
    """O: the next step after each background, shape (N + 1, N)."""
    durations: FloatArray
    """d: mean length of the steps in bins, shape (N,)."""
    pauses: FloatArray
    """1/h: mean length of the backgrounds in bins, shape (N + 1,)."""
    adjacent: float = 0.0
    """g: share of the steps that follow the one before at once."""

    def matrix(self) -> FloatArray:
        """Probabilities of the 2N + 1 states at the next bin: steps, their backgrounds, the first background."""
        steps = self.order.shape[1]
        matrix = np.zeros((2 * steps + 1, 2 * steps + 1))
        end = 1 / np.maximum(self.durations, 1.0)
        matrix[range(steps), range(steps)] = 1 - end
        matrix[range(steps), range(steps, 2 * steps)] = end * (1 - self.adjacent)
        matrix[:steps, :steps] += (end * self.adjacent)[:, None] * self.order[:-1]
        leave = 1 / np.maximum(self.pauses, 1.0)
        backgrounds = np.arange(steps, 2 * steps + 1)
        matrix[backgrounds, backgrounds] = 1 - leave
        matrix[steps:, :steps] = leave[:, None] * self.order
        return matrix


@dataclass(frozen=True, slots=True, eq=False)
class StatePosterior:
    """What the evidence says about the states."""

    steps: FloatArray
    """Probability of each step in each bin, shape (V, T, N); 0 outside of the videos."""
    entries: FloatArray
    """Expected number of times each step begins after each background, shape (V, N + 1, N)."""
    log_likelihood: FloatArray
    """Ratio to a video of nothing but background, in nats, shape (V,)."""


def forward_backward(evidence: FloatArray, bins: NDArray[np.intp], transitions: Transitions) -> StatePosterior:
    """Compute the posterior of the states of all videos.

    Parameters
    ----------
    evidence : array of shape (V, T, N)
        Log-likelihood ratios of steps to the background.
    bins : array of shape (V,)
        Length of every video.
    transitions : Transitions

    Returns
    -------
    StatePosterior
    """
    longest_first = np.argsort(-bins, kind="stable")
    lengths, (V, T, N) = bins[longest_first], evidence.shape
    active = np.searchsorted(-lengths, -np.arange(T), side="left")  # videos that are longer than t come first
    matrix = transitions.matrix()
    clipped = np.clip(evidence[longest_first], -_LIMIT, _LIMIT)
    forward, scale = np.zeros((V, T, 2 * N + 1)), np.ones((V, T))
    start = np.zeros((V, 2 * N + 1))
    start[:, -1] = 1
    begin = matrix[:N, :N] * (1 - np.eye(N))  # a step that goes on does not begin
    for t in range(T):
        n = active[t]
        before = start[:n] if t == 0 else forward[:n, t - 1] @ matrix
        before[:, :N] *= np.exp(clipped[:n, t])
        scale[:n, t] = before.sum(axis=1)
        forward[:n, t] = before / scale[:n, t, None]
    backward = np.ones((V, 2 * N + 1))
    entries, steps = np.zeros((V, N + 1, N)), np.zeros((V, T, N))
    for t in range(T - 1, -1, -1):
        n = active[t]
        steps[:n, t] = forward[:n, t, :N] * backward[:n, :N]
        backward[:n, :N] *= np.exp(clipped[:n, t])
        backward[:n] /= scale[:n, t, None]
        before = start[:n] if t == 0 else forward[:n, t - 1]
        if t > 0:
            entries[:n] += before[:, N:, None] * matrix[N:, :N] * backward[:n, None, :N]
            entries[:n, :N] += before[:, :N, None] * begin * backward[:n, None, :N]
            backward[:n] = backward[:n] @ matrix.T
    back = np.argsort(longest_first, kind="stable")
    return StatePosterior(steps[back], entries[back], np.log(scale).sum(axis=1)[back])

"""Baselines of drafts: no knowledge, the order of the list, the window nearest to a name, logistic regression."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d
from scipy.optimize import minimize

from experiments.bootstrap_intervals import Numbers
from msg2.labelling.narration_grid import NarrationGrid

_PENALTY = 1.0
_ROUNDS = 60
_SMOOTHING = 2.0


def uniform_hits(inside: NDArray[np.bool_], bins: NDArray[np.intp]) -> Numbers:
    """Expected hits of a time at random.

    Parameters
    ----------
    inside : array of shape (V, T, N)
        Whether a bin lies in a segment of a step.
    bins : array of shape (V,)
        Length of every video.

    Returns
    -------
    array of shape (V, N)
    """
    return np.asarray(inside.sum(axis=1) / bins[:, None])


def spread_times(grid: NarrationGrid, ranks: Sequence[int]) -> NDArray[np.intp]:
    """Times of steps that follow each other evenly in the order of the list; shape (V, N).

    Parameters
    ----------
    grid : NarrationGrid
    ranks : sequence of int
        The place of every step in the list.

    Returns
    -------
    array of shape (V, N)
    """
    return np.asarray((np.asarray(ranks) + 0.5) / len(ranks) * grid.bins[:, None], np.intp)


def nearest_times(grid: NarrationGrid, names: Numbers) -> NDArray[np.intp]:
    """Times of the windows of three cues that are most similar to the names of the steps.

    Parameters
    ----------
    grid : NarrationGrid
    names : array of shape (N, width)

    Returns
    -------
    array of shape (V, N)
    """
    width = names.shape[1]
    cosines = grid.vectors[:, width : 2 * width] @ np.asarray(names, float).T
    return _best_times(grid, cosines, silence=-2.0, smoothing=0.0)


def logistic_times(grid: NarrationGrid, inside: NDArray[np.bool_], fold: NDArray[np.intp]) -> NDArray[np.intp]:
    """Times by multinomial logistic regression on the window of three cues and the position, learned on other folds.

    Parameters
    ----------
    grid : NarrationGrid
    inside : array of shape (V, T, N)
    fold : array of shape (V,)

    Returns
    -------
    array of shape (V, N)
    """
    width = grid.vectors.shape[1] // 3
    place = grid.collect(np.where(grid.is_inside, grid.relative_time, 0.0)[:, :, None])
    bumps = 0.3 * np.exp(-0.5 * ((place - np.linspace(0, 1, 9)) / 0.1) ** 2)
    features = np.hstack([grid.vectors[:, width : 2 * width], bumps])
    steps = (grid.collect(inside.astype(float)) >= 0.5).astype(float)
    steps /= np.maximum(steps.sum(axis=1, keepdims=True), 1)
    truth = np.hstack([steps, 1 - steps.sum(axis=1, keepdims=True)])
    times = np.zeros((len(inside), inside.shape[2]), np.intp)
    cue_fold = np.repeat(fold, [len(video.sentences) for video in grid.videos])
    for number in range(fold.max() + 1):
        training = cue_fold != number
        weights = _fit_multinomial(features[training], truth[training])
        odds = np.hstack([features, np.ones((len(features), 1))]) @ weights.T
        scores = odds - np.logaddexp.reduce(odds, axis=1, keepdims=True)
        chosen = _best_times(grid, scores[:, :-1], silence=float(np.quantile(scores, 0.1)), smoothing=_SMOOTHING)
        times[fold == number] = chosen[fold == number]
    return times


def _best_times(grid: NarrationGrid, scores: Numbers, silence: float, smoothing: float) -> NDArray[np.intp]:
    spread = grid.spread(scores, np.full(scores.shape[1], silence))
    smooth = gaussian_filter1d(spread, smoothing, axis=1, mode="nearest") if smoothing else spread
    return np.asarray(np.where(grid.is_inside[:, :, None], smooth, -np.inf).argmax(axis=1))


def _fit_multinomial(features: Numbers, truth: Numbers) -> Numbers:
    """Weights with an L2 penalty and, last, intercepts; shape (classes, d + 1)."""
    shape = (truth.shape[1], features.shape[1] + 1)
    wide = np.hstack([features, np.ones((len(features), 1))])

    def loss(flat: Numbers) -> tuple[float, Numbers]:
        weights = flat.reshape(shape)
        odds = wide @ weights.T
        logs = odds - np.logaddexp.reduce(odds, axis=1, keepdims=True)
        pull = (np.exp(logs) - truth).T @ wide
        pull[:, :-1] += _PENALTY * weights[:, :-1]
        value = -(truth * logs).sum() + _PENALTY / 2 * (weights[:, :-1] ** 2).sum()
        return float(value), pull.ravel()

    start = np.zeros(shape[0] * shape[1])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _ROUNDS})
    return np.asarray(found.x.reshape(shape))

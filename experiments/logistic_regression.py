"""Logistic regression with an L2 penalty chosen by cross-validation over videos.

    minimise over w, c:   Σ_i log(1 + exp(-y_i (w·x_i + c))) + λ/2 |w|²,   y_i = ±1

Features are standardised first; the intercept c is not penalised. A few groups of rows (one per step) are fitted apart
and share λ, which has the least log-loss on held-out videos, summed over the groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from msg2.errors import require


@dataclass(frozen=True, slots=True)
class BaselineOptions:
    """The regressions that a state predictor is measured against."""

    draws: int = 10
    """How often steps of each training video are hidden, as they will be in the test videos."""
    penalties: tuple[float, ...] = (1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3)
    """L2 penalties to choose from, the strongest first."""
    folds: int = 4
    """Of the training videos, for that choice."""
    sharpness: float = 20.0
    """How strongly the most similar sentences outweigh the others: weights are exp(sharpness · cosine)."""

    def __post_init__(self) -> None:
        require(self.draws >= 1, f"draws is {self.draws}, it must be 1 or more")
        require(self.folds >= 2, f"folds is {self.folds}, it must be 2 or more")


Numbers: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class RegressionData:
    """Examples: `features` of shape (n, d), what was the case, and the number of the video, both of shape (n,)."""

    features: Numbers
    truth: NDArray[np.bool_]
    video: NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class LogisticRegression:
    """Standardisation and weights, each of shape (d,), and the intercept."""

    mean: Numbers
    scale: Numbers
    weights: Numbers
    intercept: float

    def log_odds(self, features: Numbers) -> Numbers:
        """Of each row of `features`, shape (n, d)."""
        return (features - self.mean) / self.scale @ self.weights + self.intercept


@dataclass(frozen=True, slots=True, eq=False)
class CrossValidatedFit:
    """A regression per group under the penalty that was chosen, and the log-odds of every row when held out."""

    penalty: float
    regressions: tuple[LogisticRegression, ...]
    held_out: tuple[Numbers, ...]


def fit_weights(features: Numbers, truth: NDArray[np.bool_], penalty: float, start: Numbers | None = None) -> Numbers:
    """Weights and, last, the intercept; shape (d + 1,). `start` is where the search begins, by default at zero.

    Parameters
    ----------
    features : Numbers
        Shape (n, d).
    truth : NDArray[np.bool_]
        Shape (n,).
    penalty : float
        λ.
    start : Numbers or None
        Where the search begins, shape (d + 1,); None: at zero.

    Returns
    -------
    Numbers
        Weights and, last, the intercept; shape (d + 1,).

    >>> fit_weights(np.array([[-1.0], [1.0]]), np.array([False, True]), penalty=1.0).round(3).tolist()
    [0.675, 0.0]
    """
    sign = np.where(truth, 1.0, -1.0)

    def loss(weights: Numbers) -> tuple[float, Numbers]:
        margin = sign * (features @ weights[:-1] + weights[-1])
        pull = -sign * expit(-margin)
        slope = np.append(features.T @ pull + penalty * weights[:-1], pull.sum())
        return float(np.logaddexp(0, -margin).sum() + penalty / 2 * weights[:-1] @ weights[:-1]), slope

    begin = np.zeros(features.shape[1] + 1) if start is None else start
    found = minimize(loss, begin, jac=True, method="L-BFGS-B", options={"maxiter": 1000})
    return np.asarray(found.x, dtype=np.float64)


def fit_cross_validated(groups: Sequence[RegressionData], options: BaselineOptions) -> CrossValidatedFit:
    """The regressions of all `groups` under the one penalty that is best for held-out videos (the strongest of equals).

    A group without rows gets log-odds of 0.

    Parameters
    ----------
    groups : sequence
        The data of each regression.
    options : BaselineOptions
        What can be set.

    Returns
    -------
    CrossValidatedFit
        The penalty, a regression per group, and held-out log-odds.
    """
    scales = [standardisation(rows.features) for rows in groups]
    standard = [
        RegressionData((rows.features - mean) / scale, rows.truth, rows.video)
        for rows, (mean, scale) in zip(groups, scales, strict=True)
    ]
    held_out = [_held_out_log_odds(rows, options) for rows in standard]  # each of shape (penalties, n)
    losses = np.zeros(len(options.penalties))
    for rows, odds in zip(standard, held_out, strict=True):
        losses += np.logaddexp(0, np.where(rows.truth, -odds, odds)).sum(axis=1)
    best = int(np.argmin(losses))
    weights = [fit_weights(rows.features, rows.truth, options.penalties[best]) for rows in standard]
    regressions = (LogisticRegression(*scale, w[:-1], float(w[-1])) for scale, w in zip(scales, weights, strict=True))
    return CrossValidatedFit(options.penalties[best], tuple(regressions), tuple(odds[best] for odds in held_out))


def standardisation(features: Numbers) -> tuple[Numbers, Numbers]:
    """Mean and standard deviation of each feature; one that never changes keeps its scale."""
    if not len(features):
        return np.zeros(features.shape[1]), np.ones(features.shape[1])
    deviation = features.std(axis=0)
    return features.mean(axis=0), np.where(deviation > 1e-9, deviation, 1.0)


def _held_out_log_odds(rows: RegressionData, options: BaselineOptions) -> Numbers:
    """Log-odds of every row, from regressions without the rows of its fold of videos; shape (penalties, n)."""
    odds = np.zeros((len(options.penalties), len(rows.truth)))
    fold = rows.video % options.folds
    for number in range(options.folds):
        inside, weights = fold == number, None
        if not inside.any():
            continue
        for place, penalty in enumerate(options.penalties):  # each starts where the stronger penalty ended
            weights = fit_weights(rows.features[~inside], rows.truth[~inside], penalty, weights)
            odds[place, inside] = rows.features[inside] @ weights[:-1] + weights[-1]
    return odds

"""Which of several candidates is chosen: a softmax over those that are open (conditional logistic regression).

    u[n] = Σ_k x[k] T[k, n] + Σ_f φ[n, f] w[f],        p[n] = exp u[n] / Σ_{m open} exp u[m]
    minimise over T, w:   −Σ log p[came] + λ_T/2 |T|² + λ_w/2 |w − w₀|²

The terms T are each candidate's own answer to the context x; the weights w are shared by all candidates, which differ
in their features φ. λ_T and λ_w have the highest likelihood on held-out videos.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.float64]

_TIE = 1e-6
"""Likelihoods per choice that are no further apart are equal: then the stronger penalty is taken."""


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Before n choices among N candidates: `context` x (n, K), `features` φ (n, N, F), and who is `open` (n, N)."""

    context: Numbers
    features: Numbers
    open: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """Moments, and the candidate that `came` (n,)."""

    moments: Moments
    came: NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """`terms` T of shape (K, N) and `weights` w of shape (F,)."""

    terms: Numbers
    weights: Numbers

    def log_probabilities(self, moments: Moments) -> Numbers:
        """log p, shape (n, N); −∞ for candidates that are not open."""
        utility = moments.context @ self.terms + moments.features @ self.weights
        utility = np.where(moments.open, utility, -np.inf)
        utility -= utility.max(axis=1, keepdims=True)
        return np.asarray(utility - np.log(np.exp(utility).sum(axis=1, keepdims=True)))

    def log_likelihood(self, choices: Choices) -> float:
        """Σ log p[came]."""
        rows = np.arange(len(choices.came))
        return float(self.log_probabilities(choices.moments)[rows, choices.came].sum())


@dataclass(frozen=True, slots=True)
class Penalty:
    """λ_T and λ_w."""

    terms: float
    weights: float


def fitted(choices: Choices, penalty: Penalty, prior: Numbers, start: Model | None = None) -> Model:
    """The model with the least penalised loss; `prior` is w₀, `start` where the search begins.

    >>> two = Moments(np.ones((4, 1)), np.zeros((4, 2, 0)), np.ones((4, 2), dtype=bool))
    >>> choices = Choices(two, np.array([0, 0, 0, 1]))
    >>> model = fitted(choices, Penalty(1e-9, 1.0), np.zeros(0))
    >>> np.exp(model.log_probabilities(two))[0].round(3).tolist()
    [0.75, 0.25]
    """
    from scipy.optimize import minimize  # takes as long to import as the rest of the package

    moments, rows = choices.moments, np.arange(len(choices.came))
    shape = (moments.context.shape[1], moments.open.shape[1])
    size = shape[0] * shape[1]

    def loss(values: Numbers) -> tuple[float, Numbers]:
        model = Model(values[:size].reshape(shape), values[size:])
        logs = model.log_probabilities(moments)
        off = np.exp(logs)
        off[rows, choices.came] -= 1
        away = model.weights - prior
        slopes = (
            moments.context.T @ off + penalty.terms * model.terms,
            np.einsum("nc,ncf->f", off, moments.features) + penalty.weights * away,
        )
        cost = penalty.terms / 2 * float((model.terms**2).sum()) + penalty.weights / 2 * float(away @ away)
        return cost - float(logs[rows, choices.came].sum()), np.concatenate([part.ravel() for part in slopes])

    start = start or Model(np.zeros(shape), prior)
    found = minimize(
        loss,
        np.concatenate([start.terms.ravel(), start.weights]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 500, "ftol": 1e-10, "gtol": 1e-5},
    )
    return Model(found.x[:size].reshape(shape), found.x[size:])


def best_penalty(trials: Iterable[tuple[Choices, Choices]], prior: Numbers, grid: Sequence[Penalty]) -> Penalty:
    """The penalty of `grid`, from strong to weak, with the highest likelihood over pairs (training, held-out choices).

    Without any trial it is the strongest.
    """
    if len(grid) == 1:
        return grid[0]
    likelihood, held = np.zeros(len(grid)), 0
    for training, held_out in trials:
        held += len(held_out.came)
        model = None
        for place, penalty in enumerate(grid):  # each search starts where the stronger penalty's ended
            model = fitted(training, penalty, prior, model)
            likelihood[place] += model.log_likelihood(held_out)
    near = likelihood >= likelihood.max() - _TIE * held
    return grid[int(np.argmax(near))]


def joined(parts: Sequence[Choices]) -> Choices:
    """All choices, one after the other."""
    moments = [part.moments for part in parts]
    together = (np.concatenate([getattr(m, name) for m in moments]) for name in ("context", "features", "open"))
    return Choices(Moments(*together), np.concatenate([part.came for part in parts]))


def penalties(terms: Sequence[float], weights: Sequence[float]) -> list[Penalty]:
    """All pairs, from strong to weak.

    >>> penalties([1, 10], [2])
    [Penalty(terms=10, weights=2), Penalty(terms=1, weights=2)]
    """
    pairs = product(sorted(terms, reverse=True), sorted(weights, reverse=True))
    return [Penalty(*pair) for pair in pairs]

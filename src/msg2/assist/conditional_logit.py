"""Conditional logit: which of several candidates is chosen, as a softmax over those that are available.

    u[n] = Σ_k x[k] T[k, n] + Σ_f φ[n, f] w[f],        p[n] = exp u[n] / Σ_{m available} exp u[m]
    minimise over T, w:   −Σ log p[chosen] + λ_T/2 |T|² + λ_w/2 |w − w₀|²

The terms T are each candidate's own coefficients of the context x; the weights w are shared by all candidates, which
differ in their features φ. λ_T and λ_w have the highest likelihood on held-out videos.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from msg2.sequences import FloatArray

_TIE = 1e-6
"""Likelihoods per choice that are no further apart are equal: then the stronger penalty is taken."""

_ENOUGH_CHOICES = 400
"""Held out, from which on no other trial is needed to tell penalties apart."""
_DECIMALS = 5
"""Of coefficients: more would only make a model longer to write down."""
_TRIAL_TOLERANCE = 1e-6
"""Of the searches that only compare penalties."""


@dataclass(frozen=True, slots=True, eq=False)
class ChoiceSets:
    """What is known before each of n choices among N candidates, with K numbers of context and F features."""

    context: FloatArray  # x, shape (n, K)
    features: FloatArray  # φ, shape (n, N, F)
    available: NDArray[np.bool_]  # which candidates can be chosen, shape (n, N)


@dataclass(frozen=True, slots=True, eq=False)
class ObservedChoices:
    """Choice sets, and the candidate that was `chosen` from each, shape (n,)."""

    choice_sets: ChoiceSets
    chosen: NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class ConditionalLogit:
    """A fitted model: `terms` T of shape (K, N) and `weights` w of shape (F,)."""

    terms: FloatArray
    weights: FloatArray

    def log_probabilities(self, choice_sets: ChoiceSets) -> FloatArray:
        """log p, shape (n, N); −∞ for candidates that are not available."""
        utility = self._utility(choice_sets)
        return np.asarray(utility - np.log(np.exp(utility).sum(axis=1, keepdims=True)))

    def loss(self, choices: ObservedChoices) -> tuple[float, FloatArray]:
        """−Σ log p[chosen], and p less 1 for what was chosen, shape (n, N)."""
        rows = np.arange(len(choices.chosen))
        utility = self._utility(choices.choice_sets)
        chosen = utility[rows, choices.chosen]
        probabilities = np.exp(utility, out=utility)
        total = probabilities.sum(axis=1)
        probabilities /= total[:, None]
        probabilities[rows, choices.chosen] -= 1
        return float((np.log(total) - chosen).sum()), probabilities

    def _utility(self, choice_sets: ChoiceSets) -> FloatArray:
        """Utilities, of which the highest in each row is 0."""
        utility = choice_sets.context @ self.terms
        utility += choice_sets.features @ self.weights
        utility[~choice_sets.available] = -np.inf
        utility -= utility.max(axis=1, keepdims=True)
        return np.asarray(utility)

    def log_likelihood(self, choices: ObservedChoices) -> float:
        """Σ log p[chosen], in nats."""
        return -self.loss(choices)[0]


@dataclass(frozen=True, slots=True)
class Penalty:
    """λ_T and λ_w."""

    terms: float
    weights: float


def fit_conditional_logit(
    choices: ObservedChoices,
    penalty: Penalty,
    prior: FloatArray,
    start: ConditionalLogit | None = None,
    tolerance: float = 1e-10,
) -> ConditionalLogit:
    """Minimise the penalised loss of a conditional logit."""
    choice_sets = choices.choice_sets
    shape = (choice_sets.context.shape[1], choice_sets.available.shape[1])
    size, of_all = shape[0] * shape[1], choice_sets.features.reshape(choice_sets.available.size, len(prior))

    def loss_and_gradient(values: FloatArray) -> tuple[float, FloatArray]:
        model = ConditionalLogit(values[:size].reshape(shape), values[size:])
        loss, residuals = model.loss(choices)
        away = model.weights - prior
        gradients = (
            choice_sets.context.T @ residuals + penalty.terms * model.terms,
            residuals.ravel() @ of_all + penalty.weights * away,
        )
        cost = penalty.terms / 2 * float((model.terms**2).sum()) + penalty.weights / 2 * float(away @ away)
        return cost + loss, np.concatenate([part.ravel() for part in gradients])

    start = start or ConditionalLogit(np.zeros(shape), prior)
    minimum = minimize_lbfgs(loss_and_gradient, np.concatenate([start.terms.ravel(), start.weights]), tolerance)
    coefficients = minimum.round(_DECIMALS) + 0.0  # no −0
    return ConditionalLogit(coefficients[:size].reshape(shape), coefficients[size:])


def minimize_lbfgs(
    loss_and_gradient: Callable[[FloatArray], tuple[float, FloatArray]], start: FloatArray, tolerance: float
) -> FloatArray:
    """Minimise a smooth function by SciPy's L-BFGS-B, which is imported only where something is fitted."""
    from scipy.optimize import minimize
    from threadpoolctl import threadpool_limits

    options = {"ftol": tolerance, "gtol": 1e-5, "maxiter": 500}
    # On matrices this small several threads only wait for each other (scipy/scipy#22438).
    with threadpool_limits(1, user_api="blas"):
        return np.asarray(minimize(loss_and_gradient, start, jac=True, method="L-BFGS-B", options=options).x)


def best_penalty(
    trials: Iterable[tuple[ObservedChoices, ObservedChoices]], prior: FloatArray, grid: Sequence[Penalty]
) -> tuple[Penalty, ConditionalLogit | None]:
    """Choose the penalty with the highest held-out likelihood; with a model of it, from which a search may start."""
    likelihood, held_out_size = np.zeros(len(grid)), 0
    models: list[ConditionalLogit | None] = [None] * len(grid)
    for training, held_out in trials if len(grid) > 1 else ():
        held_out_size += len(held_out.chosen)
        model = None
        for number, penalty in enumerate(grid):  # each search starts where the stronger penalty's ended
            model = models[number] or model
            model = models[number] = fit_conditional_logit(training, penalty, prior, model, _TRIAL_TOLERANCE)
            likelihood[number] += model.log_likelihood(held_out)
        if held_out_size >= _ENOUGH_CHOICES:  # asked here, before another trial is prepared
            break
    near = likelihood >= likelihood.max() - _TIE * held_out_size
    chosen = int(np.argmax(near))
    return grid[chosen], models[chosen]


def concatenate_choices(parts: Sequence[ObservedChoices]) -> ObservedChoices:
    """All choices, one after the other."""
    sets = [part.choice_sets for part in parts]
    together = (
        np.concatenate([getattr(choice_sets, name) for choice_sets in sets])
        for name in ("context", "features", "available")
    )
    return ObservedChoices(ChoiceSets(*together), np.concatenate([part.chosen for part in parts]))

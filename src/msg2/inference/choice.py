"""Choosing δ from the data: the value under which held-out videos are most likely.

For every δ of a grid, graphs are learnt from training folds; each label of a held-out video is then predicted as

p(n | c) = (1 − ε) · eligible_n / |eligible| + ε / |open|

over the steps that are still open; ε is the share of training labels that violate the graph. A δ too low demands orders
that held-out videos break, a δ too high demands none and predicts nothing. Ties go to the larger δ: fewer demands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from msg2.evidence import Evidence
from msg2.graph import Formula
from msg2.inference.learnt import SAME
from msg2.options import DeltaOptions
from msg2.task import Step

Learner = Callable[[Evidence, float], Mapping[Step, Formula]]
"""Preconditions learnt from evidence at a given δ."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One δ of the grid with its `fit`: mean log-likelihood (nats) of a held-out label."""

    delta: float
    fit: float


def trials(evidence: Evidence, learner: Learner, options: DeltaOptions, seed: int) -> list[Trial]:
    """The fit of every δ of the grid; none where fewer than two videos have labels, so that none can be held out."""
    if len(np.unique(evidence.video)) < 2:
        return []
    folds: list[tuple[Evidence, Evidence]] = []
    for training, held_out in evidence.folds(min(options.folds, len(evidence.videos)), seed):
        left = options.held_out - sum(len(other.videos) for _, other in folds)
        if left > 0:
            folds.append((evidence.of_videos(training[: options.training]), evidence.of_videos(held_out[:left])))
    result = []
    for delta in options.grid:
        likelihoods = [log_likelihoods(learner(training, delta), training, held_out) for training, held_out in folds]
        result.append(Trial(delta, float(np.concatenate(likelihoods).mean())))
    return result


def best(tried: list[Trial]) -> Trial:
    """The trial of highest fit; of equal ones the largest δ."""
    highest = max(trial.fit for trial in tried)
    return max((trial for trial in tried if trial.fit >= highest - SAME), key=lambda trial: trial.delta)


def held_share(formulas: Mapping[Step, Formula], evidence: Evidence) -> float:
    """Share of the labels whose precondition held when they started; 1 where there are no labels."""
    labels = len(evidence.step)
    return (labels - evidence.violations(formulas)) / labels if labels else 1.0


def log_likelihoods(formulas: Mapping[Step, Formula], training: Evidence, held_out: Evidence) -> NDArray[np.float64]:
    """log p(n | c) of every label of the held-out videos, shape (labels,)."""
    epsilon = (training.violations(formulas) + 1) / (len(training.step) + 2)  # never 0 or 1 (Laplace)
    completed, itself = held_out.completed(), (np.arange(len(held_out.step)), held_out.step)
    open_steps = ~completed
    open_steps[itself] = True  # a repeated label is open too
    possible = open_steps.copy()
    for column, name in enumerate(held_out.steps):
        if name in formulas:
            possible[:, column] &= formulas[name].evaluate_rows(completed, held_out.steps)
    count, hit = possible.sum(axis=1), possible[itself]
    anything = 1 / open_steps.sum(axis=1)
    by_graph = np.where(count > 0, hit / np.maximum(count, 1), anything)
    likelihoods: NDArray[np.float64] = np.log((1 - epsilon) * by_graph + epsilon * anything)
    return likelihoods

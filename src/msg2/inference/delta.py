"""Choosing δ from the data: the value of a grid under which held-out videos are most likely; ties go to the larger δ.

Each label is predicted as p(n | c) = (1 − ε) · eligible_n / |eligible| + ε / |open| over the steps that are still open;
ε is the share of training labels that violate the graph.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.graph import Formula
from msg2.inference.result import TIE_TOLERANCE
from msg2.metrics.graph_scores import count_violations
from msg2.options import Probability
from msg2.progress import Progress, no_progress
from msg2.sequences import Sequences
from msg2.task import Step

Delta: TypeAlias = Probability | Literal["auto"]
"""A method is only called after "auto" has been replaced by the best number."""
Learner: TypeAlias = Callable[[Sequences, float], Mapping[Step, Formula]]
"""Preconditions learned from sequences at a given δ."""

GRID = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.96, 0.99)
"""The δ that are tried."""
FOLDS = 5
MAX_HELD_OUT = 200
"""Folds are scored until this many held-out videos have been: many videos need fewer folds."""
MAX_TRAINING = 1000
"""Training videos per fold, at most. Both bounds keep the time of the choice near that of learning the graph."""


def evaluate_grid(
    sequences: Sequences, learner: Learner, seed: int, progress: Progress = no_progress
) -> dict[float, float]:
    """Find the fit of every δ of the grid: the mean log-likelihood (nats) of a held-out label; of one video, none."""
    if sequences.weight @ sequences.shown.any(axis=1) < 2:
        return {}
    folds: list[tuple[Sequences, Sequences]] = []
    for training, held_out in sequences.folds(min(FOLDS, len(sequences.videos)), seed):
        left = MAX_HELD_OUT - sum(len(other.videos) for _, other in folds)
        if left > 0:
            folds.append((sequences.select(training[:MAX_TRAINING]), sequences.select(held_out[:left])))
    fits = {}
    for number, delta in enumerate(GRID):
        progress(number, len(GRID), f"trying δ = {delta:g}")
        likelihoods = [log_likelihoods(learner(training, delta), training, held_out) for training, held_out in folds]
        fits[delta] = float(np.concatenate(likelihoods).mean())
    return fits


def best_delta(fits: Mapping[float, float]) -> float:
    """Return the δ of highest fit, and the largest one of equals; without any fits, the strictest δ of the grid."""
    highest = max(fits.values(), default=0.0)
    return max((delta for delta, fit in fits.items() if fit >= highest - TIE_TOLERANCE), default=max(GRID))


def log_likelihoods(formulas: Mapping[Step, Formula], training: Sequences, held_out: Sequences) -> NDArray[np.float64]:
    """Compute log p(n | c) of every label of the held-out videos."""
    epsilon = (count_violations(formulas, training) + 1) / (training.labels + 2)  # never 0 or 1 (Laplace)
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
    return np.repeat(likelihoods, held_out.weight[held_out.run])


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One δ: edges of the graph learned from all videos, share of labels that obey it, fit to held-out ones (nats)."""

    delta: float
    edges: int
    held: float
    fit: float
    chosen: bool


def sweep_delta(
    sequences: Sequences, learner: Learner, seed: int, progress: Progress = no_progress
) -> list[SweepPoint]:
    """Learn a graph at every δ of the grid, and mark the one that "auto" would choose."""
    fits, points = evaluate_grid(sequences, learner, seed, progress), []
    for delta, fit in fits.items():
        formulas = learner(sequences, delta)
        edges = sum(len(formula.steps) for formula in formulas.values())
        held = (sequences.labels - count_violations(formulas, sequences)) / sequences.labels
        points.append(SweepPoint(delta, edges, held, fit, delta == best_delta(fits)))
    return points

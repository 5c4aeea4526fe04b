"""Features of the next step: what has been done as numbers (the context), and features of every candidate step.

A context is what has been done, in order. All arrays have a row per context and a column per step of the task, in one
fixed order; counts come from videos that the context is not part of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.arrays import FloatArray
from msg2.assist.run_state import RunStateTracker
from msg2.graph import SubtaskGraph
from msg2.graph.formula import unmet_clauses

StepIndices: TypeAlias = tuple[int, ...]
"""Steps done, in order, as their indices among the steps of the task."""

COUNT_FEATURES = ("after last", "after second last", "share", "after done", "before left", "position")
"""The features that `count_features` gives, in order."""
SIMILARITY_DECAY = 0.3
"""κ: what a past context weighs per difference from the present one, among similar contexts."""
_BACK_OFF = 2.0
"""Observations that the share of videos with a step is worth."""
_PAIRS_AT_ONCE = 4_000_000
"""Pairs of contexts that are compared at once: memory stays bounded."""


@dataclass(frozen=True, slots=True, eq=False)
class Contexts:
    """n contexts among N steps."""

    prefixes: Sequence[StepIndices]
    """What was done in each."""
    done: FloatArray
    """1 for every step done, shape (n, N)."""
    last: FloatArray
    """The last step, one-hot, shape (n, N + 1); the last column is for "none yet"."""
    second: FloatArray
    """The step before the last one, likewise."""
    recency: FloatArray
    """2^−(steps since) of every step done, shape (n, N)."""

    @property
    def length(self) -> FloatArray:
        """Number of steps done, shape (n,)."""
        return np.asarray(self.done.sum(axis=1))

    @property
    def left(self) -> NDArray[np.bool_]:
        """Steps that are not done, shape (n, N)."""
        return np.asarray(self.done == 0)

    @property
    def context(self) -> FloatArray:
        """What each step has coefficients of its own for: 1, done, last and recency; shape (n, 3N + 2)."""
        return np.hstack([np.ones((len(self.done), 1)), self.done, self.last, self.recency])


def encode_contexts(prefixes: Sequence[StepIndices], size: int) -> Contexts:
    """Encode what was done as arrays.

    Parameters
    ----------
    prefixes : sequence of StepIndices
        The steps done in each of n contexts.
    size : int
        N, the number of steps of the task.

    Returns
    -------
    Contexts

    >>> encode_contexts([(), (1, 0)], 2).recency.tolist()
    [[0.0, 0.0], [1.0, 0.5]]
    """
    arrays = [np.zeros((len(prefixes), width)) for width in (size, size + 1, size + 1, size)]
    done, last, second, recency = arrays
    for row, prefix in enumerate(prefixes):
        done[row, list(prefix)] = 1
        recency[row, list(prefix)] = 0.5 ** np.arange(len(prefix) - 1, -1, -1)
        last[row, prefix[-1] if prefix else size] = 1
        second[row, prefix[-2] if len(prefix) > 1 else size] = 1
    return Contexts(prefixes, *arrays)


@dataclass(frozen=True, slots=True, eq=False)
class TransitionCounts:
    """Counts over videos of a task with N steps; those of other tasks have a number of videos per step."""

    videos: float | FloatArray
    shown: FloatArray
    """Videos that show a step, shape (N,)."""
    positions: FloatArray
    """Sum of the relative positions of a step, 0 … 1, over the videos that show it, shape (N,)."""
    after: FloatArray
    """How often one step comes directly after another, shape (N + 1, N); the last row is for the start of a video."""
    second: FloatArray
    """How often one step comes after another with one in between, likewise."""
    before: FloatArray
    """How often one step comes any time before another, shape (N, N)."""

    def __add__(self, other: TransitionCounts) -> TransitionCounts:
        return TransitionCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def count_transitions(sequences: Sequence[StepIndices], size: int) -> TransitionCounts:
    """Count steps, positions and pairs of steps.

    Parameters
    ----------
    sequences : sequence of StepIndices
        The steps of each video.
    size : int
        N, the number of steps of the task.

    Returns
    -------
    TransitionCounts

    >>> count_transitions([(0, 1)], 2).after.tolist()
    [[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]
    """
    shown, positions = np.zeros(size), np.zeros(size)
    after, second, before = np.zeros((size + 1, size)), np.zeros((size + 1, size)), np.zeros((size, size))
    for sequence in sequences:
        for place, step in enumerate(sequence):
            shown[step] += 1
            positions[step] += (place + 0.5) / len(sequence)
            after[sequence[place - 1] if place else size, step] += 1
            if place:
                second[sequence[place - 2] if place > 1 else size, step] += 1
            before[list(sequence[:place]), step] += 1
    return TransitionCounts(float(len(sequences)), shown, positions, after, second, before)


def count_features(contexts: Contexts, counts: TransitionCounts) -> FloatArray:
    """Features from counts; 0 for steps that are done.

    log p(n | last) and log p(n | second last), among the steps left, smoothed by the share of videos with n; the log of
    that share; how surely n comes after what is done, and before what is left (mean log purities); and how far its
    usual position is from here.

    Parameters
    ----------
    contexts : Contexts
        n contexts among N steps.
    counts : TransitionCounts
        Of the same steps, from other videos.

    Returns
    -------
    array of shape (n, N, 6)
        In the order of `COUNT_FEATURES`.
    """
    left = contexts.left
    share = (counts.shown + 0.5) / (counts.videos + 1)
    back_off = _normalize_rows(share * left)
    first = (counts.before + 0.5) / (counts.before + counts.before.T + 1)  # [a, b]: a comes before b
    purity = np.log(first)
    np.fill_diagonal(purity, 0.0)
    length = contexts.length
    here = (length + 0.5) / max(float(share.sum()), 0.5)
    usual = (counts.positions + 0.5) / (counts.shown + 1)
    columns = [
        np.log(_normalize_rows(contexts.last @ counts.after * left + _BACK_OFF * back_off) + ~left),
        np.log(_normalize_rows(contexts.second @ counts.second * left + _BACK_OFF * back_off) + ~left),
        np.broadcast_to(np.log(share), left.shape),
        contexts.done @ purity / np.maximum(length, 1)[:, None],
        (share * left) @ purity.T / np.maximum((share * left).sum(axis=1), 0.5)[:, None],
        -np.abs(here[:, None] - usual),
    ]
    return np.asarray(np.stack(columns, axis=2) * left[..., None])


def similarity_features(
    contexts: Contexts, past: Contexts, chosen: NDArray[np.intp], decay: float = SIMILARITY_DECAY
) -> FloatArray:
    """log p of what came in past contexts, weighted by their similarity to this one.

    A past context weighs κ per step that only one of the two has done, and κ if their last steps differ.

    Parameters
    ----------
    contexts : Contexts
        n contexts among N steps.
    past : Contexts
        m contexts of other videos.
    chosen : array of shape (m,)
        The step that came in each of these.
    decay : float
        κ.

    Returns
    -------
    array of shape (n, N, 1)
    """
    size = contexts.done.shape[1]
    outcome = np.eye(size)[chosen]
    share = (outcome.sum(axis=0) + 0.5) / (len(chosen) + 0.5 * size)
    weights = np.zeros(contexts.done.shape)
    for rows in np.array_split(np.arange(len(weights)), 1 + len(weights) * len(chosen) // _PAIRS_AT_ONCE):
        common = contexts.done[rows] @ past.done.T
        differences = contexts.length[rows][:, None] + past.length - 2 * common + 1 - contexts.last[rows] @ past.last.T
        weights[rows] = decay**differences @ outcome
    weights = _normalize_rows((weights + share) * contexts.left)
    return np.asarray(np.log(weights + ~contexts.left)[..., None])


def graph_features(contexts: Contexts, graph: SubtaskGraph, rho: float) -> FloatArray:
    """Features from the graph; 0 for steps that are done.

    Parameters
    ----------
    contexts : Contexts
        n contexts among N steps.
    graph : SubtaskGraph
        Of the same steps, in the same order.
    rho : float
        ρ, the discount per step since a step became eligible.

    Returns
    -------
    array of shape (n, N, 3)
        Whether a step is eligible, ρ^Δ since then (0: not eligible), and the number of its unmet clauses.
    """
    if not graph.preconditions:  # everything is equally eligible: nothing to tell steps apart
        return np.zeros((*contexts.done.shape, 3))
    tracker = RunStateTracker(graph)
    by_prefix: dict[StepIndices, FloatArray] = {}
    for prefix in contexts.prefixes:
        if prefix in by_prefix:
            continue
        state = tracker.state_after(graph.steps[index] for index in prefix)
        unmet = [len(unmet_clauses(graph.precondition(name), state.completed)) for name in graph.steps]
        fresh = [rho ** state.waited[name] if name in state.eligible else 0.0 for name in graph.steps]
        by_prefix[prefix] = np.array([[count == 0 for count in unmet], fresh, unmet], dtype=np.float64).T
    stacked = np.array([by_prefix[prefix] for prefix in contexts.prefixes]).reshape(*contexts.done.shape, 3)
    return np.asarray(stacked * contexts.left[..., None])


def _normalize_rows(weights: FloatArray) -> FloatArray:
    """Rows with the sum 1; a row of zeros stays one."""
    total = weights.sum(axis=1, keepdims=True)
    return np.asarray(weights / np.where(total > 0, total, 1.0))

"""MSGI and MSGI+ (App. B.a): a decision tree on eligibility for every step, layer by layer.

A binary tree with Gini splits separates the completion vectors in which the step is eligible from the others; its
positive paths, simplified, are the precondition. MSGI knows only vectors with e = 1, so nothing separates and every
precondition is null. MSGI+ assumes e = 0 at every moment before the step starts.

Layers are those of MSGI: a step joins the first layer whose lower steps separate its vectors exactly. Vectors that no
choice of steps separates (noise) give the null precondition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from msg2.evidence import Evidence
from msg2.graph import FALSE, TRUE, Formula, all_of, any_of, negation, step
from msg2.inference.learnt import Learnt
from msg2.options import DecisionOptions
from msg2.task import Step


@dataclass(frozen=True, slots=True)
class Examples:
    """Distinct completion vectors `completed` (rows, steps) with how often each was eligible and ineligible (rows,)."""

    completed: NDArray[np.bool_]
    eligible: NDArray[np.int64]
    ineligible: NDArray[np.int64]

    @staticmethod
    def of(completed: NDArray[np.bool_], eligible: NDArray[np.bool_]) -> Examples:
        """Examples of vectors (rows, steps) with labels (rows,)."""
        distinct, which = _distinct(completed)
        return Examples(distinct, np.bincount(which[eligible], minlength=len(distinct)),
                        np.bincount(which[~eligible], minlength=len(distinct)))  # fmt: skip

    def on(self, columns: NDArray[np.intp]) -> Examples:
        """The examples seen through some of the steps only."""
        distinct, which = _distinct(self.completed[:, columns])
        return Examples(distinct, np.bincount(which, self.eligible, len(distinct)).astype(np.int64),
                        np.bincount(which, self.ineligible, len(distinct)).astype(np.int64))  # fmt: skip

    @property
    def separable(self) -> bool:
        """Whether no vector is both eligible and ineligible."""
        return not bool((self.eligible * self.ineligible).any())


def learn_msgi(evidence: Evidence, options: DecisionOptions) -> Learnt:
    """MSGI on demonstrations: only e = 1 is ever observed."""
    examples = [Examples.of(rows.completed, np.ones(len(rows.video), dtype=np.bool_))
                for rows in map(evidence.rows, range(len(evidence.steps)))]  # fmt: skip
    return Learnt(decide(evidence.steps, examples))


def learn_msgi_plus(evidence: Evidence, options: DecisionOptions) -> Learnt:
    """MSGI+ on demonstrations: every moment before a step's first start counts as ineligible, in every video."""
    which, completed = evidence.all_rows()
    first = np.full(evidence.ended.shape, np.inf)
    np.minimum.at(first, (evidence.video, evidence.step), evidence.start)
    started = first[evidence.video] < evidence.start[:, None]
    examples = []
    for index in range(len(evidence.steps)):
        here = which == index
        moments = ~started[:, index] & ((first[evidence.video, index] > evidence.start) | here)
        examples.append(Examples.of(completed[moments], here[moments]))
    return Learnt(decide(evidence.steps, examples))


def decide(steps: tuple[Step, ...], examples: list[Examples]) -> dict[Step, Formula]:
    """Preconditions from the examples of each step, layer by layer."""
    everything = np.arange(len(steps))
    open_steps = [
        index
        for index, seen in enumerate(examples)
        if seen.ineligible.any() and seen.eligible.any() and seen.on(np.delete(everything, index)).separable
    ]
    formulas: dict[Step, Formula] = {}
    while True:
        lower = np.setdiff1d(everything, open_steps)
        layer = [index for index in open_steps if examples[index].on(lower).separable]
        if not layer:
            return formulas
        for index in layer:
            formulas[steps[index]] = tree([steps[column] for column in lower], examples[index].on(lower)).simplified()
        open_steps = [index for index in open_steps if index not in layer]


def tree(steps: list[Step], examples: Examples) -> Formula:
    """The decision tree of `examples` as a formula: both branches of every split are kept, pure leaves included."""
    if not examples.ineligible.any():
        return TRUE
    if not examples.eligible.any():
        return FALSE
    impurity = _split_impurity(examples)
    best = impurity.min(initial=np.inf)
    if not np.isfinite(best):  # nothing left to split on: the majority decides
        return TRUE if examples.eligible.sum() > examples.ineligible.sum() else FALSE
    column = min(np.flatnonzero(impurity <= best + 1e-9), key=lambda c: steps[c])
    chosen = examples.completed[:, column]
    with_it, without_it = (tree(steps, _subset(examples, side)) for side in (chosen, ~chosen))
    here = step(steps[column])
    return any_of([all_of([here, with_it]), all_of([negation(here), without_it])])


def _split_impurity(examples: Examples) -> NDArray[np.float64]:
    """Weighted Gini impurity after splitting on each step, shape (steps,); infinite where a split separates nothing."""
    yes, no = examples.eligible @ examples.completed, examples.ineligible @ examples.completed
    impurity = np.zeros(examples.completed.shape[1])
    for positive, negative in ((yes, no), (examples.eligible.sum() - yes, examples.ineligible.sum() - no)):
        size = positive + negative
        impurity += np.where(size > 0, 2 * positive * negative / np.maximum(size, 1), 0)
        impurity[size == 0] = np.inf
    return impurity


def _subset(examples: Examples, rows: NDArray[np.bool_]) -> Examples:
    return Examples(examples.completed[rows], examples.eligible[rows], examples.ineligible[rows])


def _distinct(vectors: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Distinct rows, and for every row which of them it is; compared as packed bytes."""
    if vectors.shape[1] == 0:
        return vectors[:1], np.zeros(len(vectors), dtype=np.intp)
    packed = np.ascontiguousarray(np.packbits(vectors, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return vectors[first], which

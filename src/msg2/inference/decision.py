"""MSGI and MSGI+ (App. B.a): a decision tree on eligibility for every step, layer by layer.

A binary tree with Gini splits separates the completion vectors in which the step is eligible from the others; its
positive paths, simplified, are the precondition. MSGI knows only vectors with e = 1, so nothing separates and every
precondition is null. MSGI+ assumes e = 0 at every moment before the step starts.

Layers are those of MSGI: a step joins the first layer whose lower steps separate its vectors exactly. Vectors that no
choice of steps separates (noise) give the null precondition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.evidence import Evidence
from msg2.graph import FALSE, TRUE, Formula, all_of, any_of, negation, simplified, step
from msg2.inference.learnt import SAME, Learnt
from msg2.options import DecisionOptions
from msg2.task import Step


@dataclass(frozen=True, slots=True)
class Examples:
    """Completion vectors `completed` (rows, steps) with how often each was eligible and ineligible (rows,)."""

    completed: NDArray[np.bool_]
    eligible: NDArray[np.int64]
    ineligible: NDArray[np.int64]

    def separable(self) -> bool:
        """Whether no vector is both eligible and ineligible; the vectors must be distinct."""
        return not bool(((self.eligible > 0) & (self.ineligible > 0)).any())


Labels: TypeAlias = Callable[[int], tuple[NDArray[np.int64], NDArray[np.int64]]]
"""For the step with this index: how often each vector was eligible and ineligible, shapes (rows,)."""


def learn_msgi(evidence: Evidence, options: DecisionOptions) -> Learnt:
    """MSGI on demonstrations: only e = 1 is ever observed."""
    never = np.zeros(len(evidence.step), dtype=np.int64)

    def labels(index: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return (evidence.step == index).astype(np.int64), never

    return Learnt(decide(evidence.steps, evidence.completed(), labels))


def learn_msgi_plus(evidence: Evidence, options: DecisionOptions) -> Learnt:
    """MSGI+ on demonstrations: every moment before a step's first start counts as ineligible, in every video."""
    first = np.full(evidence.ended.shape, np.inf)
    np.minimum.at(first, (evidence.video, evidence.step), evidence.start)

    def labels(index: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        first_start = first[evidence.video, index]
        eligible = (evidence.step == index) & (evidence.start == first_start)
        return eligible.astype(np.int64), (evidence.start < first_start).astype(np.int64)

    return Learnt(decide(evidence.steps, evidence.completed(), labels))


def decide(steps: tuple[Step, ...], completed: NDArray[np.bool_], labels: Labels) -> dict[Step, Formula]:
    """Preconditions from completion vectors (rows, steps) and the labels of each step, layer by layer."""
    everything = np.arange(len(steps))
    seen = _seen_through(everything, completed, labels)

    def separable_by_others(index: int) -> bool:
        examples = seen(index)
        if not (examples.separable() and examples.eligible.any() and examples.ineligible.any()):
            return False
        own = examples.completed[:, index] & (examples.eligible + examples.ineligible > 0)
        return not own.any() or _seen_through(np.delete(everything, index), completed, labels)(index).separable()

    open_steps = [index for index in range(len(steps)) if separable_by_others(index)]
    formulas: dict[Step, Formula] = {}
    while open_steps:
        lower = np.setdiff1d(everything, open_steps)
        seen = _seen_through(lower, completed, labels)
        layer = [index for index in open_steps if seen(index).separable()]
        if not layer:  # what is left needs each other
            break
        for index in layer:
            formulas[steps[index]] = simplified(tree([steps[column] for column in lower], seen(index)))
        open_steps = [index for index in open_steps if index not in layer]
    return formulas


def _seen_through(columns: NDArray[np.intp], completed: NDArray[np.bool_], labels: Labels) -> Callable[[int], Examples]:
    """The examples of a step as far as some of the steps tell them apart."""
    distinct, which = _distinct(completed[:, columns])

    def examples(index: int) -> Examples:
        yes, no = (np.bincount(which, counts, len(distinct)).astype(np.int64) for counts in labels(index))
        return Examples(distinct, yes, no)

    return examples


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
    column = min(np.flatnonzero(impurity <= best + SAME), key=lambda c: steps[c])
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

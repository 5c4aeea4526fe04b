"""The methods that every table compares with: MSGI, MSGI+ (App. B.a) and always-before.

MSGI fits a decision tree (Gini) on eligibility for every step, layer by layer, and simplifies its positive paths. It
only ever sees e = 1, so every precondition is null; MSGI+ assumes e = 0 before the step starts. Always-before is not in
the paper: a → b if a precedes b in every video that orders them (or with purity above δ).
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.graph import FALSE, TRUE, Formula, all_of, any_of, negation, simplify, step
from msg2.graph.closure import break_cycles, transitive_reduction
from msg2.inference.delta import Delta
from msg2.inference.msg2 import order_notes, purity
from msg2.inference.result import TIE_TOLERANCE, LearnedPreconditions
from msg2.options import options_class
from msg2.sequences import Sequences, unique_rows
from msg2.task import Step


@options_class
class AlwaysBeforeOptions:
    """`always-before`: a before b in every video that orders them, or with purity above δ."""

    delta: Delta | None = None
    """δ: a step comes before another when its transition purity is above this; none: when it does in every video."""


def learn_always_before(sequences: Sequences, options: AlwaysBeforeOptions) -> LearnedPreconditions:
    """Learn one conjunction per step: everything that comes before it, in the transitive reduction."""
    before = sequences.before
    share = purity(before)
    relation = share == 1 if options.delta is None else share > float(options.delta)
    kept, ignored = break_cycles(relation, before + before.T)
    edges = transitive_reduction(kept)
    formulas = {
        name: all_of(step(sequences.steps[parent]) for parent in np.flatnonzero(edges[:, index]))
        for index, name in enumerate(sequences.steps)
    }
    return LearnedPreconditions(formulas, notes=order_notes(kept, ignored, before))


@options_class
class MsgiOptions:
    """Decision trees on eligibility (`msgi` and `msgi+`): nothing to choose."""


EligibilityCounts: TypeAlias = Callable[[int], tuple[NDArray[np.int64], NDArray[np.int64]]]
"""For the step with this index: how often each vector was eligible and ineligible, shapes (rows,)."""


class EligibilityExamples(NamedTuple):
    """Completion vectors `completed` (rows, steps) with how often each was eligible and ineligible (rows,)."""

    completed: NDArray[np.bool_]
    eligible: NDArray[np.int64]
    ineligible: NDArray[np.int64]

    def separable(self) -> bool:
        """Whether no vector is both eligible and ineligible; the vectors must be distinct."""
        return not bool(((self.eligible > 0) & (self.ineligible > 0)).any())


def learn_msgi(sequences: Sequences, options: MsgiOptions) -> LearnedPreconditions:
    """Learn by MSGI: only e = 1 is ever observed, so there is nothing that a tree could tell apart."""
    return LearnedPreconditions({})


def learn_msgi_plus(sequences: Sequences, options: MsgiOptions) -> LearnedPreconditions:
    """Learn by MSGI+: every moment before a step's first start counts as ineligible, in every video."""
    first = np.full(sequences.ended.shape, np.inf)
    np.minimum.at(first, (sequences.run, sequences.step), sequences.start)
    weight = sequences.weight[sequences.run]

    def labels(index: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        first_start = first[sequences.run, index]
        eligible = (sequences.step == index) & (sequences.start == first_start)
        return eligible * weight, (sequences.start < first_start) * weight

    return LearnedPreconditions(fit_trees(sequences.steps, sequences.completed(), labels))


def fit_trees(steps: tuple[Step, ...], completed: NDArray[np.bool_], labels: EligibilityCounts) -> dict[Step, Formula]:
    """Fit a decision tree for every step, layer by layer."""
    everything = np.arange(len(steps))
    seen = _examples_by_columns(everything, completed, labels)

    def separable_by_others(index: int) -> bool:
        examples = seen(index)
        if not (examples.separable() and examples.eligible.any() and examples.ineligible.any()):
            return False
        own = examples.completed[:, index] & (examples.eligible + examples.ineligible > 0)
        return not own.any() or _examples_by_columns(np.delete(everything, index), completed, labels)(index).separable()

    open_steps = [index for index in range(len(steps)) if separable_by_others(index)]
    formulas: dict[Step, Formula] = {}
    while open_steps:
        lower = np.setdiff1d(everything, open_steps)
        seen = _examples_by_columns(lower, completed, labels)
        layer = [index for index in open_steps if seen(index).separable()]
        if not layer:  # what is left needs each other
            break
        for index in layer:
            formulas[steps[index]] = simplify(fit_tree([steps[column] for column in lower], seen(index)))
        open_steps = [index for index in open_steps if index not in layer]
    return formulas


def _examples_by_columns(
    columns: NDArray[np.intp], completed: NDArray[np.bool_], labels: EligibilityCounts
) -> Callable[[int], EligibilityExamples]:
    """The examples of a step as far as some of the steps tell them apart."""
    vectors = completed[:, columns]
    first, which = unique_rows(vectors)

    def examples(index: int) -> EligibilityExamples:
        yes, no = (np.bincount(which, counts, len(first)).astype(np.int64) for counts in labels(index))
        return EligibilityExamples(vectors[first], yes, no)

    return examples


def fit_tree(steps: list[Step], examples: EligibilityExamples) -> Formula:
    """Fit one decision tree: both branches of every split are kept, pure leaves included."""
    if not examples.ineligible.any():
        return TRUE
    if not examples.eligible.any():
        return FALSE
    # Weighted Gini impurity after splitting on each step, shape (steps,); infinite where a split separates nothing.
    yes, no = examples.eligible @ examples.completed, examples.ineligible @ examples.completed
    impurity = np.zeros(examples.completed.shape[1])
    for positive, negative in ((yes, no), (examples.eligible.sum() - yes, examples.ineligible.sum() - no)):
        size = positive + negative
        impurity += np.where(size > 0, 2 * positive * negative / np.maximum(size, 1), 0)
        impurity[size == 0] = np.inf
    best = impurity.min(initial=np.inf)
    if not np.isfinite(best):  # nothing left to split on: the majority decides
        return TRUE if examples.eligible.sum() > examples.ineligible.sum() else FALSE
    column = min(np.flatnonzero(impurity <= best + TIE_TOLERANCE), key=lambda c: steps[c])
    chosen = examples.completed[:, column]
    with_it, without_it = (
        fit_tree(steps, EligibilityExamples._make(values[rows] for values in examples)) for rows in (chosen, ~chosen)
    )
    here = step(steps[column])
    return any_of([all_of([here, with_it]), all_of([negation(here), without_it])])

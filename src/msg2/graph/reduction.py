"""The transitive reduction of preconditions: what the other conditions already imply is dropped.

It keeps the reachable states (what can be done in which order), not the function on all 2^N vectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from msg2.graph.formula import TRUE, Formula, all_of, any_of, negation
from msg2.task import Step

if TYPE_CHECKING:
    from msg2.graph.graph import SubtaskGraph


def transitive_reduction(steps: Iterable[Step], preconditions: Mapping[Step, Formula]) -> dict[Step, Formula]:
    """Drop from preconditions what already follows from the rest of them."""
    required = necessary_steps(steps, preconditions)
    return {name: _drop_implied(formula, required) for name, formula in preconditions.items()}


def necessary_steps(steps: Iterable[Step], preconditions: Mapping[Step, Formula]) -> dict[Step, frozenset[Step]]:
    """Find for every step those that must come first, whichever way is taken."""
    required: dict[Step, frozenset[Step]] = {}
    for name in steps:
        required[name] = required_steps(preconditions.get(name, TRUE), required)
    return required


def required_steps(formula: Formula, required: Mapping[Step, frozenset[Step]]) -> frozenset[Step]:
    """Find the steps that are completed in every reachable state in which a formula holds."""
    match formula.kind:
        case "step":
            return required[formula.name] | {formula.name}
        case "all":
            return frozenset().union(*(required_steps(operand, required) for operand in formula.operands))
        case "any":
            return frozenset.intersection(*(required_steps(operand, required) for operand in formula.operands))
    return frozenset()


def _drop_implied(formula: Formula, required: Mapping[Step, frozenset[Step]]) -> Formula:
    """`formula` without what already follows, in reachable states, from its other parts."""
    if formula.kind == "not":
        return negation(_drop_implied(formula.operands[0], required))
    operands = [_drop_implied(operand, required) for operand in formula.operands]
    if formula.kind == "all":
        needs = [required_steps(operand, required) for operand in operands]
        needed = Counter(name for names in needs for name in names)
        for i, operand in enumerate(operands):
            implied = [name for name in operand.steps if needed[name] > (name in needs[i])]
            if implied:
                operands[i] = operand.substitute(dict.fromkeys(implied, True))
                needed.subtract(needs[i])
                needs[i] = required_steps(operands[i], required)
                needed.update(needs[i])
        return all_of(operands)
    if formula.kind == "any":
        for operand in list(operands):
            others = any_of(other for other in operands if other is not operand)
            if others.substitute(dict.fromkeys(required_steps(operand, required), True)) == TRUE:
                operands = [other for other in operands if other is not operand]
        return any_of(operands)
    return formula


def reduce_order(graph: SubtaskGraph) -> tuple[tuple[Step, Step], ...]:
    """Drop the pairs of the order that already follow from the rest of the graph.

    A pair [a, c] follows only where every run with a and c has a step between them that implies it.

    >>> from msg2.graph import SubtaskGraph
    >>> order = [("a", "b"), ("b", "c"), ("a", "c")]
    >>> reduce_order(SubtaskGraph("t", "abc", {}, order=order))
    (('a', 'b'), ('b', 'c'))
    >>> reduce_order(SubtaskGraph("t", "abc", {}, order=order, optional="b"))
    (('a', 'b'), ('a', 'c'), ('b', 'c'))
    """
    index = {name: place for place, name in enumerate(graph.steps)}
    kinds = graph.pair_kinds
    always = np.array([name in graph.required for name in graph.steps], dtype=np.bool_)
    carrier = kinds.before & (kinds.needs | always[:, None])  # [x, c]: every run with c has x, before it
    carried = kinds.needs | (kinds.before.astype(np.float32) @ carrier.astype(np.float32) > 0)
    kept = tuple(pair for pair in graph.order if not carried[index[pair[0]], index[pair[1]]])
    with_or = {name for name, formula in graph.preconditions.items() if "any" in formula.kinds}
    for pair in kept if with_or else ():  # the other branches of an OR may be ruled out
        fewer = tuple(other for other in kept if other != pair)
        if replace(graph, order=fewer).kind(*pair) != "free":
            kept = fewer
    return kept

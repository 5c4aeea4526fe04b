"""The transitive reduction of preconditions: what the other conditions already imply is dropped.

It keeps the reachable states (what can be done in which order), not the function on all 2^N vectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msg2.graph.formula import TRUE, Formula, all_of, any_of, negation
from msg2.task import Step


def reduced(steps: Iterable[Step], preconditions: Mapping[Step, Formula]) -> dict[Step, Formula]:
    """`preconditions` without what already follows; `steps` come after all that they need."""
    required: dict[Step, frozenset[Step]] = {}
    for name in steps:
        required[name] = _required(preconditions.get(name, TRUE), required)
    return {name: _without_implied(formula, required) for name, formula in preconditions.items()}


def _required(formula: Formula, required: Mapping[Step, frozenset[Step]]) -> frozenset[Step]:
    """The steps that are completed in every reachable state in which `formula` holds."""
    match formula.kind:
        case "step":
            return required[formula.name] | {formula.name}
        case "all":
            return frozenset().union(*(_required(operand, required) for operand in formula.operands))
        case "any":
            return frozenset.intersection(*(_required(operand, required) for operand in formula.operands))
    return frozenset()


def _without_implied(formula: Formula, required: Mapping[Step, frozenset[Step]]) -> Formula:
    """`formula` without what already follows, in reachable states, from its other parts."""
    if formula.kind == "not":
        return negation(_without_implied(formula.operands[0], required))
    operands = [_without_implied(operand, required) for operand in formula.operands]
    if formula.kind == "all":
        needs = [_required(operand, required) for operand in operands]
        needed = Counter(name for names in needs for name in names)
        for i, operand in enumerate(operands):
            implied = [name for name in operand.support if needed[name] > (name in needs[i])]
            if implied:
                operands[i] = operand.given(dict.fromkeys(implied, True))
                needed.subtract(needs[i])
                needs[i] = _required(operands[i], required)
                needed.update(needs[i])
        return all_of(operands)
    if formula.kind == "any":
        for operand in list(operands):
            others = any_of(other for other in operands if other is not operand)
            if others.given(dict.fromkeys(_required(operand, required), True)) == TRUE:
                operands = [other for other in operands if other is not operand]
        return any_of(operands)
    return formula

"""How often formulas hold and agree, uniformly over all 2^N completion vectors: exactly, and without enumerating them.

Operands without common steps are independent, so their probabilities multiply; a step that is shared is expanded
(Shannon): P(f) = (P(f | s) + P(f | ¬s)) / 2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

from msg2.graph.formula import Formula, all_of, any_of


def probability(formula: Formula) -> Fraction:
    """E_c[f(c)], the denominator of Eq. ilp-new.

    >>> from msg2.graph.formula import step
    >>> probability(all_of([step("a"), any_of([step("b"), step("c")])]))
    Fraction(3, 8)
    """
    return _probability(formula, {})


def agreement(f: Formula, g: Formula) -> Fraction:
    """P_c[f(c) = g(c)], uniform over all completion vectors c (Eq. accuracy, one step).

    Parameters
    ----------
    f, g : Formula
        The formulas to compare.

    Returns
    -------
    Fraction
        The exact share, 0 … 1.
    """
    if f == g:
        return Fraction(1)
    return 1 - probability(f) - probability(g) + 2 * probability(all_of([f, g]))


def are_equivalent(f: Formula, g: Formula) -> bool:
    """Whether two formulas agree on every completion vector.

    Parameters
    ----------
    f, g : Formula
        The formulas to compare.

    Returns
    -------
    bool
        True where they are logically equal, however they are written.

    >>> from msg2.graph.formula import step
    >>> a, b, c = step("a"), step("b"), step("c")
    >>> are_equivalent(all_of([a, any_of([b, c])]), any_of([all_of([a, b]), all_of([a, c])]))
    True
    """
    return agreement(f, g) == 1


def _probability(formula: Formula, memo: dict[Formula, Fraction]) -> Fraction:
    match formula.kind:
        case "true":
            return Fraction(1)
        case "step":
            return Fraction(1, 2)
        case "not":
            return 1 - _probability(formula.operands[0], memo)
    if formula not in memo:
        groups = list(_independent_groups(formula.operands))
        memo[formula] = (
            _shannon_expansion(formula, memo) if len(groups) == 1 else _product_of_groups(formula, groups, memo)
        )
    return memo[formula]


def _product_of_groups(
    formula: Formula, groups: Sequence[Sequence[Formula]], memo: dict[Formula, Fraction]
) -> Fraction:
    """An AND holds where all its independent groups do, an OR fails where all of them do."""
    result = Fraction(1)
    for group in groups:
        result *= _probability(all_of(group), memo) if formula.kind == "all" else 1 - _probability(any_of(group), memo)
    return result if formula.kind == "all" else 1 - result


def _shannon_expansion(formula: Formula, memo: dict[Formula, Fraction]) -> Fraction:
    shared = Counter(name for operand in formula.operands for name in operand.steps)
    pivot = min(shared, key=lambda name: (-shared[name], name))
    return sum((_probability(formula.substitute({pivot: value}), memo) for value in (True, False)), Fraction(0)) / 2


def _independent_groups(operands: Sequence[Formula]) -> Iterator[list[Formula]]:
    """Operands grouped so that different groups have no step in common."""
    rest = list(operands)
    while rest:
        group = [rest.pop(0)]
        steps = set(group[0].steps)
        grown = True
        while grown:
            connected = [operand for operand in rest if operand.steps & steps]
            grown = bool(connected)
            for operand in connected:
                rest.remove(operand)
                group.append(operand)
                steps |= operand.steps
        yield group

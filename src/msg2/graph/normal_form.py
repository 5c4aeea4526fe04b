"""Formulas in disjunctive normal form, and simplified through it: exact, without enumerating the 2^N vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from msg2.graph.formula import Formula, all_of, any_of, negation, step
from msg2.task import Step

Term: TypeAlias = frozenset[tuple[Step, bool]]
"""A conjunction of literals: (step, must be completed) pairs."""


def disjunctive_normal_form(formula: Formula) -> tuple[Term, ...]:
    """An irredundant disjunctive normal form, its terms sorted.

    No literal of a term and no term can be dropped. TRUE has one empty term, FALSE has none.

    >>> formula = any_of([step("a"), all_of([negation(step("a")), step("b")])])
    >>> [sorted(term) for term in disjunctive_normal_form(formula)]
    [[('a', True)], [('b', True)]]
    """
    terms = [_drop_redundant_literals(term, formula) for term in _terms(formula)]
    irredundant = list(dict.fromkeys(sorted(terms, key=_term_key)))
    for term in sorted(irredundant, key=_term_key, reverse=True):
        others = [other for other in irredundant if other != term]
        if is_tautology(_disjunction(others).substitute(dict(term))):
            irredundant = others
    return tuple(irredundant)


def simplify(formula: Formula) -> Formula:
    """An equivalent formula without redundant literals, common factors taken out; never a longer one.

    >>> a, b, c = step("a"), step("b"), step("c")
    >>> str(simplify(any_of([all_of([b, a]), all_of([b, negation(a), c])])))
    'b & (a | c)'
    """
    candidate = _factor(disjunctive_normal_form(formula))
    return candidate if candidate.literal_count < formula.literal_count else formula


def _term_key(term: Term) -> tuple[int, list[tuple[Step, bool]]]:
    return (len(term), sorted(term))


def _conjunction(term: Iterable[tuple[Step, bool]]) -> Formula:
    return all_of(step(name) if value else negation(step(name)) for name, value in term)


def _disjunction(terms: Iterable[Term]) -> Formula:
    return any_of(_conjunction(term) for term in terms)


def _terms(formula: Formula, value: bool = True) -> list[Term]:
    """Terms whose disjunction is `formula` (or its complement, for value False)."""
    match formula.kind:
        case "true":
            return [frozenset()] if value else []
        case "step":
            return [frozenset({(formula.name, value)})]
        case "not":
            return _terms(formula.operands[0], not value)
    operand_terms = [_terms(operand, value) for operand in formula.operands]
    if (formula.kind == "any") == value:
        return [term for terms in operand_terms for term in terms]
    product: list[Term] = [frozenset()]
    for terms in operand_terms:
        conjunctions = {left | right for left in product for right in terms}
        consistent = [t for t in conjunctions if not any((name, not positive) in t for name, positive in t)]
        product = [t for t in consistent if not any(other < t for other in consistent)]
    return sorted(product, key=_term_key)


def _drop_redundant_literals(term: Term, formula: Formula) -> Term:
    """`term` without the literals that it does not need in order to imply `formula`."""
    for literal in sorted(term, key=lambda item: (item[1], item[0])):
        if is_tautology(formula.substitute(dict(term - {literal}))):
            term -= {literal}
    return term


def is_tautology(formula: Formula) -> bool:
    """Whether the formula is a tautology; ends at the first vector that it does not hold for."""
    match formula.kind:
        case "true":
            return True
        case "step":
            return False
        case "all":
            return all(is_tautology(operand) for operand in formula.operands)
        case "not":  # De Morgan; a negated step or TRUE is no tautology
            inner = formula.operands[0]
            join = any_of if inner.kind == "all" else all_of
            return bool(inner.operands) and is_tautology(join(negation(operand) for operand in inner.operands))
    counts = Counter(name for operand in formula.operands for name in operand.steps)
    pivot = min(counts, key=lambda name: (-counts[name], name))
    return counts[pivot] > 1 and all(is_tautology(formula.substitute({pivot: value})) for value in (False, True))


def _factor(terms: Sequence[Term]) -> Formula:
    """The disjunction of `terms` with the most frequent common literal taken out, recursively."""
    counts = Counter(literal for term in terms for literal in term)
    common = min(counts, key=lambda literal: (-counts[literal], not literal[1], literal[0]), default=None)
    if common is None or counts[common] < 2:
        return _disjunction(terms)
    inside = _factor([term - {common} for term in terms if common in term])
    outside = _factor([term for term in terms if common not in term])
    return any_of([all_of([_conjunction([common]), inside]), outside])

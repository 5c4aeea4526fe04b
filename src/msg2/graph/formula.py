"""Boolean preconditions over the completion of steps: true, a step, all(...), any(...), not(...).

Formulas are immutable and canonical: the builders `all_of`, `any_of` and `negation` flatten, sort and deduplicate
operands and apply the constant, complement and absorption laws. Nothing enumerates the 2^N completion vectors:
`probability` and `agreement` are exact, because operands without common steps are independent and a shared step is
expanded (Shannon): P(f) = (P(f | s) + P(f | ¬s)) / 2.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from msg2.errors import InputError
from msg2.task import Step
from msg2.text import short_repr

FormulaJson: TypeAlias = "bool | str | int | list[FormulaJson] | dict[str, FormulaJson]"
"""A formula in a graph file: true, a name, {"all": [...]}, {"any": [...]} or {"not": F}."""
FormulaKind: TypeAlias = Literal["true", "step", "all", "any", "not"]
_RANK: dict[FormulaKind, int] = {"true": 0, "step": 1, "not": 2, "all": 3, "any": 4}


@dataclass(frozen=True, eq=True)
class Formula:
    """One node of a formula; build it with `TRUE`, `step`, `all_of`, `any_of` and `negation`.

    >>> f = all_of([step("boil water"), any_of([step("grind beans"), step("open coffee")])])
    >>> str(f), f.evaluate({"boil water", "grind beans"})
    ('boil water & (grind beans | open coffee)', True)
    """

    kind: FormulaKind
    name: Step = ""
    operands: tuple[Formula, ...] = ()

    @cached_property
    def steps(self) -> frozenset[Step]:
        """The steps that occur in the formula."""
        if self.kind == "step":
            return frozenset({self.name})
        return frozenset().union(*(operand.steps for operand in self.operands))

    @cached_property
    def literal_count(self) -> int:
        """Number of occurrences of steps."""
        return 1 if self.kind == "step" else sum(operand.literal_count for operand in self.operands)

    @cached_property
    def kinds(self) -> frozenset[FormulaKind]:
        """The kinds of the formula and of all formulas inside it."""
        return frozenset({self.kind}).union(*(operand.kinds for operand in self.operands))

    @cached_property
    def _key(self) -> tuple[object, ...]:
        return (_RANK[self.kind], self.name, tuple(operand._key for operand in self.operands))

    def evaluate(self, completed: Set[Step]) -> bool:
        """f(c) where exactly the steps in `completed` are completed."""
        if self.kind == "step":
            return self.name in completed
        values = (operand.evaluate(completed) for operand in self.operands)
        if self.kind == "not":
            return not next(values)
        return any(values) if self.kind == "any" else all(values)  # TRUE is "all" of nothing

    def evaluate_rows(self, completed: NDArray[np.bool_], steps: Sequence[Step]) -> NDArray[np.bool_]:
        """Evaluate f(c) for many completion vectors at once.

        Parameters
        ----------
        completed : array of bool, shape (rows, steps)
            One completion vector per row.
        steps : sequence of str
            The step of each column.

        Returns
        -------
        array of bool, shape (rows,)
            Where the formula holds.
        """
        if self.kind == "step":
            return completed[:, steps.index(self.name)]
        values = [operand.evaluate_rows(completed, steps) for operand in self.operands]
        if self.kind == "not":
            return ~values[0]
        joined = np.stack(values or [np.ones(len(completed), dtype=np.bool_)])
        return np.asarray(joined.any(axis=0) if self.kind == "any" else joined.all(axis=0))

    def substitute(self, values: Mapping[Step, bool]) -> Formula:
        """Fix some steps to truth values and simplify.

        >>> str(any_of([all_of([step("a"), step("b")]), step("c")]).substitute({"a": True, "c": False}))
        'b'
        """
        if self.steps.isdisjoint(values):
            return self
        if self.kind == "step":
            return TRUE if values[self.name] else FALSE
        operands = [operand.substitute(values) for operand in self.operands]
        if self.kind == "not":
            return negation(operands[0])
        return all_of(operands) if self.kind == "all" else any_of(operands)

    def clauses(self) -> tuple[Formula, ...]:
        """The top-level conjuncts: all of them must hold. The null precondition has none."""
        return () if self == TRUE else self.operands if self.kind == "all" else (self,)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Formula {self.text()}>"

    def text(
        self, and_: str = " & ", or_: str = " | ", not_: str = "¬", name: Callable[[Step], str] = lambda step: step
    ) -> str:
        """Write the formula with infix operators.

        Parameters
        ----------
        and_, or_, not_ : str
            The operators, with the spaces around them.
        name : callable
            How a step is written.

        Returns
        -------
        str
            The text, with parentheses around inner conjunctions and disjunctions.

        >>> any_of([step("a"), step("b")]).text(or_=" or ", name=str.upper)
        'A or B'
        """
        if not self.operands:
            return name(self.name) if self.kind == "step" else "true"
        parts = []
        for operand in self.operands:
            text = operand.text(and_, or_, not_, name)
            parts.append(f"({text})" if operand.kind in ("all", "any") else text)
        return not_ + parts[0] if self.kind == "not" else (and_ if self.kind == "all" else or_).join(parts)

    def to_english(self) -> str:
        """Write the formula in English.

        >>> all_of([step("boil water"), step("grind beans")]).to_english()
        "'boil water' and 'grind beans'"
        """
        return self.text(" and ", " or ", "not ", lambda step: f"'{step}'")

    def to_json(self, name: Callable[[Step], str | int] = str) -> FormulaJson:
        """The JSON value of the graph file: true, a name, {"all": [...]}, {"any": [...]} or {"not": F}."""
        if self.kind == "step":
            return name(self.name)
        inner = [operand.to_json(name) for operand in self.operands]
        return {self.kind: inner[0] if self.kind == "not" else inner} if inner else True

    @classmethod
    def __get_pydantic_core_schema__(cls, _: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Let pydantic read formulas as `formula_from_json` does, and describe them in a JSON Schema."""
        from msg2.graph.graph_file import FormulaValue

        return core_schema.no_info_plain_validator_function(
            formula_from_json, json_schema_input_schema=handler.generate_schema(FormulaValue)
        )


TRUE = Formula("true")
"""The null precondition: always satisfied."""
FALSE = Formula("not", operands=(TRUE,))
"""Never satisfied."""


def step(name: Step) -> Formula:
    """The formula that holds when the step is completed."""
    return Formula("step", name)


def negation(formula: Formula) -> Formula:
    """not(formula); two negations cancel."""
    return formula.operands[0] if formula.kind == "not" else Formula("not", operands=(formula,))


def all_of(formulas: Iterable[Formula]) -> Formula:
    """The conjunction of `formulas`; of none, TRUE."""
    return _combine("all", formulas, neutral=TRUE, absorbing=FALSE)


def any_of(formulas: Iterable[Formula]) -> Formula:
    """The disjunction of `formulas`; of none, FALSE."""
    return _combine("any", formulas, neutral=FALSE, absorbing=TRUE)


def _combine(kind: FormulaKind, formulas: Iterable[Formula], neutral: Formula, absorbing: Formula) -> Formula:
    flat = {part for formula in formulas for part in (formula.operands if formula.kind == kind else (formula,))}
    flat.discard(neutral)
    opposites = map(negation, flat)  # flattened like their neighbours
    if absorbing in flat or any(flat.issuperset(f.operands if f.kind == kind else (f,)) for f in opposites):
        return absorbing
    dual: FormulaKind = "any" if kind == "all" else "all"
    # Absorption: a & (a | b) = a, and (a | b) & (a | b | c) = a | b.
    parts = {operand: frozenset(operand.operands if operand.kind == dual else (operand,)) for operand in flat}
    by_size = sorted(flat, key=lambda operand: len(parts[operand]))
    minimal: list[Formula] = []
    for operand in by_size:
        if not any(parts[shorter] <= parts[operand] for shorter in minimal):
            minimal.append(operand)
    if not minimal:
        return neutral
    return minimal[0] if len(minimal) == 1 else Formula(kind, operands=tuple(sorted(minimal, key=lambda f: f._key)))


def formula_from_json(value: object, path: str = "$", steps: Set[Step] | None = None) -> Formula:
    """Read the formula of a JSON value.

    Parameters
    ----------
    value : object
        ``True``, a step name, ``{"all": [...]}``, ``{"any": [...]}`` or ``{"not": F}``.
    path : str
        Where the value stands in its document, for error messages.
    steps : set of str, optional
        The allowed names; by default all.

    Returns
    -------
    Formula
        In canonical form.

    Raises
    ------
    InputError
        Where it is no formula, or holds a step that is not allowed.

    >>> str(formula_from_json({"any": ["grind beans", "open coffee"]}))
    'grind beans | open coffee'
    """
    if value is True:
        return TRUE
    if isinstance(value, str):
        if steps is not None and value not in steps:
            raise InputError(f"{short_repr(value)} is not among the steps of the graph", where=path)
        return step(value)
    if isinstance(value, dict) and len(value) == 1:
        (kind, inner), *_ = value.items()
        if kind == "not":
            return negation(formula_from_json(inner, f"{path}.not", steps))
        if kind in ("all", "any"):
            if not isinstance(inner, list) or not inner:
                raise InputError("must be a list with at least one formula", where=f"{path}.{kind}")
            operands = [formula_from_json(item, f"{path}.{kind}[{i}]", steps) for i, item in enumerate(inner)]
            return all_of(operands) if kind == "all" else any_of(operands)
    hint = 'a formula is true, a step, {"all": [...]}, {"any": [...]} or {"not": F}'
    raise InputError("is not a formula", where=path, hint=hint)


def unmet_clauses(formula: Formula, completed: Set[Step]) -> tuple[Formula, ...]:
    """Find the top-level conjuncts of a precondition that do not hold."""
    return tuple(clause for clause in formula.clauses() if not clause.evaluate(completed))


Term: TypeAlias = frozenset[tuple[Step, bool]]
"""A conjunction of literals: (step, must be completed) pairs."""


def disjunctive_normal_form(formula: Formula) -> tuple[Term, ...]:
    """An irredundant disjunctive normal form, its terms sorted.

    No literal of a term and no term can be dropped. TRUE has one empty term, FALSE has none.

    >>> formula = any_of([step("a"), all_of([negation(step("a")), step("b")])])
    >>> [sorted(term) for term in disjunctive_normal_form(formula)]
    [[('a', True)], [('b', True)]]
    """
    terms: set[Term] = set()
    for term in _terms(formula):
        for literal in sorted(term, key=lambda item: (item[1], item[0])):
            if is_tautology(formula.substitute(dict(term - {literal}))):  # the others imply the formula already
                term -= {literal}
        terms.add(term)
    irredundant = sorted(terms, key=_term_key)
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


def is_tautology(formula: Formula) -> bool:
    """Whether the formula holds for every completion vector."""
    return probability(formula) == 1


def _factor(terms: Sequence[Term]) -> Formula:
    """The disjunction of `terms` with the most frequent common literal taken out, recursively."""
    counts = Counter(literal for term in terms for literal in term)
    common = min(counts, key=lambda literal: (-counts[literal], not literal[1], literal[0]), default=None)
    if common is None or counts[common] < 2:
        return _disjunction(terms)
    inside = _factor([term - {common} for term in terms if common in term])
    outside = _factor([term for term in terms if common not in term])
    return any_of([all_of([_conjunction([common]), inside]), outside])


@lru_cache(maxsize=10_000)
def probability(formula: Formula) -> Fraction:
    """E_c[f(c)], the denominator of Eq. ilp-new.

    >>> from msg2.graph.formula import step
    >>> probability(all_of([step("a"), any_of([step("b"), step("c")])]))
    Fraction(3, 8)
    """
    match formula.kind:
        case "true":
            return Fraction(1)
        case "step":
            return Fraction(1, 2)
        case "not":
            return 1 - probability(formula.operands[0])
    groups: list[list[Formula]] = []  # operands of different groups have no step in common
    for operand in formula.operands:
        linked = [group for group in groups if any(operand.steps & other.steps for other in group)]
        groups = [group for group in groups if group not in linked] + [[operand, *chain.from_iterable(linked)]]
    if len(groups) == 1:
        shared = Counter(name for operand in formula.operands for name in operand.steps)
        pivot = min(shared, key=lambda name: (-shared[name], name))
        return sum(probability(formula.substitute({pivot: value})) for value in (True, False)) * Fraction(1, 2)
    if formula.kind == "all":
        return math.prod((probability(all_of(group)) for group in groups), start=Fraction(1))
    # An OR fails where all its independent groups do.
    return 1 - math.prod((1 - probability(any_of(group)) for group in groups), start=Fraction(1))


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

"""Boolean preconditions over the completion of steps: true, a step, all(...), any(...), not(...).

Formulas are immutable and canonical: the builders `all_of`, `any_of` and `negation` flatten nesting, sort and
deduplicate operands and apply the constant, complement and absorption laws, so formulas that differ only in these
compare and print equal. `equivalent` decides logical equality exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, shortened
from msg2.task import Step

Kind: TypeAlias = Literal["true", "step", "all", "any", "not"]
_RANK: dict[Kind, int] = {"true": 0, "step": 1, "not": 2, "all": 3, "any": 4}


@dataclass(frozen=True, eq=True)
class Formula:
    """One node of a formula; build it with `TRUE`, `step`, `all_of`, `any_of` and `negation`.

    >>> f = all_of([step("boil water"), any_of([step("grind beans"), step("open coffee")])])
    >>> str(f), f.evaluate({"boil water", "grind beans"}), f.probability()
    ('boil water & (grind beans | open coffee)', True, 0.375)
    """

    kind: Kind
    name: Step = ""
    operands: tuple[Formula, ...] = ()

    # -- structure ----------------------------------------------------------------------------------------------

    @cached_property
    def support(self) -> frozenset[Step]:
        """The steps that occur in the formula."""
        if self.kind == "step":
            return frozenset({self.name})
        return frozenset().union(*(operand.support for operand in self.operands))

    @cached_property
    def literals(self) -> int:
        """Number of occurrences of steps."""
        return 1 if self.kind == "step" else sum(operand.literals for operand in self.operands)

    @property
    def complexity(self) -> int:
        """C(f): the number of Boolean operations, literals − 1; the null precondition costs nothing (Eq. jours)."""
        return max(0, self.literals - 1)

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return (_RANK[self.kind], self.name, tuple(operand._key for operand in self.operands))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.kind, self.name, self.operands))

    # -- value --------------------------------------------------------------------------------------------------

    def evaluate(self, completed: Set[Step]) -> bool:
        """f(c) where exactly the steps in `completed` are completed."""
        match self.kind:
            case "true":
                return True
            case "step":
                return self.name in completed
            case "not":
                return not self.operands[0].evaluate(completed)
            case "all":
                return all(operand.evaluate(completed) for operand in self.operands)
            case "any":
                return any(operand.evaluate(completed) for operand in self.operands)

    def evaluate_rows(self, completed: NDArray[np.bool_], steps: Sequence[Step]) -> NDArray[np.bool_]:
        """f(c) for every row of `completed`, shape (rows, steps); returns shape (rows,)."""
        index = {name: column for column, name in enumerate(steps)}
        return self._rows(completed, index)

    def _rows(self, completed: NDArray[np.bool_], index: Mapping[Step, int]) -> NDArray[np.bool_]:
        match self.kind:
            case "true":
                return np.ones(len(completed), dtype=np.bool_)
            case "step":
                return completed[:, index[self.name]]
            case "not":
                return ~self.operands[0]._rows(completed, index)
            case _:
                values = np.stack([operand._rows(completed, index) for operand in self.operands])
                joined: NDArray[np.bool_] = np.all(values, axis=0) if self.kind == "all" else np.any(values, axis=0)
                return joined

    def probability(self) -> float:
        """E_c[f(c)], uniform over all completion vectors (the denominator of Eq. ilp-new), exactly.

        Operands without common steps are independent, so their probabilities multiply; a step that is shared is
        expanded (Shannon): P(f) = (P(f | s) + P(f | ¬s)) / 2. The 2^N vectors are never enumerated.
        """
        return float(_probability(self, {}))

    def given(self, name: Step, value: bool) -> Formula:
        """The formula with one step fixed to a truth value."""
        if name not in self.support:
            return self
        match self.kind:
            case "step":
                return TRUE if value else FALSE
            case "not":
                return negation(self.operands[0].given(name, value))
            case "all":
                return all_of(operand.given(name, value) for operand in self.operands)
            case _:
                return any_of(operand.given(name, value) for operand in self.operands)

    # -- forms --------------------------------------------------------------------------------------------------

    def clauses(self) -> tuple[Formula, ...]:
        """The top-level conjuncts: all of them must hold. The null precondition has none."""
        return () if self == TRUE else self.operands if self.kind == "all" else (self,)

    def dnf(self) -> tuple[frozenset[tuple[Step, bool]], ...]:
        """An irredundant disjunctive normal form: terms of (step, must be completed) pairs, sorted.

        No literal of a term and no term can be dropped. TRUE has one empty term, FALSE has none.

        >>> [sorted(term) for term in any_of([step("a"), all_of([negation(step("a")), step("b")])]).dnf()]
        [[('a', True)], [('b', True)]]
        """
        terms = [_expanded(term, self) for term in _terms(self)]
        kept = list(dict.fromkeys(sorted(terms, key=_term_key)))
        for term in sorted(kept, key=_term_key, reverse=True):
            others = [other for other in kept if other != term]
            if _always(_given(_from_terms(others), term)):
                kept = others
        return tuple(kept)

    def simplified(self) -> Formula:
        """An equivalent formula without redundant literals, common factors taken out; never a longer one.

        >>> a, b, c = step("a"), step("b"), step("c")
        >>> str(any_of([all_of([b, a]), all_of([b, negation(a), c])]).simplified())
        'b & (a | c)'
        """
        candidate = _factored([dict(term) for term in self.dnf()])
        return candidate if candidate.literals < self.literals else self

    # -- text and JSON ------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Formula {self.text()}>"

    def text(self, and_: str = " & ", or_: str = " | ", not_: str = "¬") -> str:
        """The formula as people write it; `words` gives it in English."""
        match self.kind:
            case "true":
                return "true"
            case "step":
                return self.name
            case "not":
                inner = self.operands[0]
                text = inner.text(and_, or_, not_)
                return f"{not_}({text})" if inner.operands else f"{not_}{text}"
        joined = and_ if self.kind == "all" else or_
        parts = [o.text(and_, or_, not_) for o in self.operands]
        return joined.join(
            f"({part})" if o.kind in ("all", "any") else part for o, part in zip(self.operands, parts, strict=True)
        )

    def words(self) -> str:
        """The formula in English.

        >>> all_of([step("boil water"), step("grind beans")]).words()
        "'boil water' and 'grind beans'"
        """
        return self._quoted().text(" and ", " or ", "not ")

    def _quoted(self) -> Formula:
        if self.kind == "step":
            return Formula("step", f"'{self.name}'")
        return Formula(self.kind, self.name, tuple(operand._quoted() for operand in self.operands))

    def to_json(self) -> Any:
        """The JSON value of the graph file: true, a name, {"all": [...]}, {"any": [...]} or {"not": F}."""
        match self.kind:
            case "true":
                return True
            case "step":
                return self.name
            case "not":
                return {"not": self.operands[0].to_json()}
            case _:
                return {self.kind: [operand.to_json() for operand in self.operands]}


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
    return _joined("all", formulas, neutral=TRUE, absorbing=FALSE)


def any_of(formulas: Iterable[Formula]) -> Formula:
    """The disjunction of `formulas`; of none, FALSE."""
    return _joined("any", formulas, neutral=FALSE, absorbing=TRUE)


def _joined(kind: Kind, formulas: Iterable[Formula], neutral: Formula, absorbing: Formula) -> Formula:
    flat: set[Formula] = set()
    for formula in formulas:
        flat.update(formula.operands if formula.kind == kind else (formula,))
    flat.discard(neutral)
    if absorbing in flat or any(_denied(operand, kind) <= flat for operand in flat):
        return absorbing
    dual: Kind = "any" if kind == "all" else "all"
    # Absorption: a & (a | b) = a, and (a | b) & (a | b | c) = a | b.
    parts = {operand: frozenset(operand.operands if operand.kind == dual else (operand,)) for operand in flat}
    by_size = sorted(flat, key=lambda operand: len(parts[operand]))
    kept: list[Formula] = []
    for operand in by_size:
        if not any(parts[other] <= parts[operand] for other in kept):
            kept.append(operand)
    if not kept:
        return neutral
    return kept[0] if len(kept) == 1 else Formula(kind, operands=tuple(sorted(kept, key=lambda f: f._key)))


def _denied(operand: Formula, kind: Kind) -> frozenset[Formula]:
    """The operands that contradict `operand` where they stand together, flattened like their neighbours."""
    opposite = negation(operand)
    return frozenset(opposite.operands if opposite.kind == kind else (opposite,))


def equivalent(one: Formula, other: Formula) -> bool:
    """Whether two formulas agree on every completion vector.

    >>> a, b, c = step("a"), step("b"), step("c")
    >>> equivalent(all_of([a, any_of([b, c])]), any_of([all_of([a, b]), all_of([a, c])]))
    True
    """
    return one == other or agreement(one, other) == 1


def agreement(one: Formula, other: Formula) -> Fraction:
    """P_c[one(c) = other(c)], uniform over all vectors, as an exact fraction (Eq. accuracy, one step)."""
    both = _probability(all_of([one, other]), {})
    return 1 - _probability(one, {}) - _probability(other, {}) + 2 * both


def from_json(value: object, path: str = "$", steps: Set[Step] | None = None) -> Formula:
    """The formula of a JSON value; `path` names the place in error messages, `steps` are the allowed names."""
    if value is True:
        return TRUE
    if isinstance(value, str):
        if steps is not None and value not in steps:
            raise InputError(f"{shortened(value)} is not among the steps of the graph", where=path)
        return step(value)
    if isinstance(value, dict) and len(value) == 1:
        (kind, inner), *_ = value.items()
        if kind == "not":
            return negation(from_json(inner, f"{path}.not", steps))
        if kind in ("all", "any"):
            if not isinstance(inner, list) or not inner:
                raise InputError("must be a list with at least one formula", where=f"{path}.{kind}")
            operands = [from_json(item, f"{path}.{kind}[{i}]", steps) for i, item in enumerate(inner)]
            return all_of(operands) if kind == "all" else any_of(operands)
    raise InputError(
        "is not a formula",
        where=path,
        hint='a formula is true, a step, {"all": [...]}, {"any": [...]} or {"not": F}',
    )


# -- exact probability --------------------------------------------------------------------------------------------


def _probability(formula: Formula, memo: dict[Formula, Fraction]) -> Fraction:
    match formula.kind:
        case "true":
            return Fraction(1)
        case "step":
            return Fraction(1, 2)
        case "not":
            return 1 - _probability(formula.operands[0], memo)
    if formula not in memo:
        memo[formula] = _conjunction_or_disjunction(formula, memo)
    return memo[formula]


def _conjunction_or_disjunction(formula: Formula, memo: dict[Formula, Fraction]) -> Fraction:
    groups = list(_independent_groups(formula.operands))
    if len(groups) > 1:
        result = Fraction(1)
        join = all_of if formula.kind == "all" else any_of
        for group in groups:
            p = _probability(join(group), memo)
            result *= p if formula.kind == "all" else 1 - p
        return result if formula.kind == "all" else 1 - result
    shared = Counter(name for operand in formula.operands for name in operand.support)
    pivot = min(shared, key=lambda name: (-shared[name], name))
    halves = (_probability(formula.given(pivot, value), memo) for value in (True, False))
    return sum(halves, Fraction(0)) / 2


def _independent_groups(operands: Sequence[Formula]) -> Iterator[list[Formula]]:
    """Operands grouped so that different groups have no step in common."""
    rest = list(operands)
    while rest:
        group = [rest.pop(0)]
        support = set(group[0].support)
        grown = True
        while grown:
            joined = [operand for operand in rest if operand.support & support]
            grown = bool(joined)
            for operand in joined:
                rest.remove(operand)
                group.append(operand)
                support |= operand.support
        yield group


# -- normal forms -------------------------------------------------------------------------------------------------

_Term: TypeAlias = frozenset[tuple[Step, bool]]


def _term_key(term: _Term) -> tuple[int, list[tuple[Step, bool]]]:
    return (len(term), sorted(term))


def _conjunction(term: Iterable[tuple[Step, bool]]) -> Formula:
    return all_of(step(name) if value else negation(step(name)) for name, value in term)


def _from_terms(terms: Iterable[_Term]) -> Formula:
    return any_of(_conjunction(term) for term in terms)


def _terms(formula: Formula, value: bool = True) -> list[_Term]:
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
    product: list[_Term] = [frozenset()]
    for terms in operand_terms:
        joined = {one | other for one in product for other in terms}
        consistent = [t for t in joined if not any((name, not positive) in t for name, positive in t)]
        product = [t for t in consistent if not any(other < t for other in consistent)]
    return sorted(product, key=_term_key)


def _expanded(term: _Term, formula: Formula) -> _Term:
    """`term` without the literals that it does not need in order to imply `formula`."""
    for literal in sorted(term, key=lambda item: (item[1], item[0])):
        if _always(_given(formula, term - {literal})):
            term -= {literal}
    return term


def _given(formula: Formula, term: _Term) -> Formula:
    for name, value in sorted(term):
        formula = formula.given(name, value)
    return formula


def _always(formula: Formula) -> bool:
    """Whether the formula is a tautology; ends at the first vector that it does not hold for."""
    match formula.kind:
        case "true":
            return True
        case "step":
            return False
        case "all":
            return all(_always(operand) for operand in formula.operands)
        case "not":  # De Morgan; a negated step or TRUE is no tautology
            inner = formula.operands[0]
            join = any_of if inner.kind == "all" else all_of
            return bool(inner.operands) and _always(join(negation(operand) for operand in inner.operands))
    counts = Counter(name for operand in formula.operands for name in operand.support)
    pivot = min(counts, key=lambda name: (-counts[name], name))
    return counts[pivot] > 1 and all(_always(formula.given(pivot, value)) for value in (False, True))


def _factored(terms: list[dict[Step, bool]]) -> Formula:
    """The disjunction of `terms` with the most frequent common literal taken out, recursively."""
    counts = Counter(item for term in terms for item in term.items())
    if len(terms) < 2 or not counts:
        return _from_terms(frozenset(term.items()) for term in terms)
    literal = min(counts, key=lambda item: (-counts[item], not item[1], item[0]))
    if counts[literal] < 2:
        return _from_terms(frozenset(term.items()) for term in terms)
    name, value = literal
    inside = [{n: v for n, v in term.items() if n != name} for term in terms if term.get(name) == value]
    outside = [term for term in terms if term.get(name) != value]
    factor = all_of([_conjunction([literal]), _factored(inside)])
    return any_of([factor, _factored(outside)]) if outside else factor

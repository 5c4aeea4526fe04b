"""Boolean preconditions over the completion of steps: true, a step, all(...), any(...), not(...).

Formulas are immutable and canonical: the builders `all_of`, `any_of` and `negation` flatten nesting, sort and
deduplicate operands and apply the constant, complement and absorption laws, so formulas that differ only in these
compare and print equal; `msg2.graph.are_equivalent` decides logical equality.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError
from msg2.task import Step
from msg2.text import short_repr

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

    # -- structure ----------------------------------------------------------------------------------------------

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
        index = {name: column for column, name in enumerate(steps)}
        return self._evaluate_columns(completed, index)

    def _evaluate_columns(self, completed: NDArray[np.bool_], index: Mapping[Step, int]) -> NDArray[np.bool_]:
        match self.kind:
            case "true":
                return np.ones(len(completed), dtype=np.bool_)
            case "step":
                return completed[:, index[self.name]]
            case "not":
                return ~self.operands[0]._evaluate_columns(completed, index)
            case _:
                values = np.stack([operand._evaluate_columns(completed, index) for operand in self.operands])
                result: NDArray[np.bool_] = np.all(values, axis=0) if self.kind == "all" else np.any(values, axis=0)
                return result

    def substitute(self, values: Mapping[Step, bool]) -> Formula:
        """Fix some steps to truth values and simplify.

        >>> str(any_of([all_of([step("a"), step("b")]), step("c")]).substitute({"a": True, "c": False}))
        'b'
        """
        formula = self
        for name in sorted(self.steps & values.keys()):
            formula = formula._substitute_one(name, values[name])
        return formula

    def _substitute_one(self, name: Step, value: bool) -> Formula:
        if name not in self.steps:
            return self
        match self.kind:
            case "step":
                return TRUE if value else FALSE
            case "not":
                return negation(self.operands[0]._substitute_one(name, value))
            case "all":
                return all_of(operand._substitute_one(name, value) for operand in self.operands)
            case _:
                return any_of(operand._substitute_one(name, value) for operand in self.operands)

    def clauses(self) -> tuple[Formula, ...]:
        """The top-level conjuncts: all of them must hold. The null precondition has none."""
        return () if self == TRUE else self.operands if self.kind == "all" else (self,)

    # -- text and JSON ------------------------------------------------------------------------------------------

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
        match self.kind:
            case "true":
                return "true"
            case "step":
                return name(self.name)
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
    return _combine("all", formulas, neutral=TRUE, absorbing=FALSE)


def any_of(formulas: Iterable[Formula]) -> Formula:
    """The disjunction of `formulas`; of none, FALSE."""
    return _combine("any", formulas, neutral=FALSE, absorbing=TRUE)


def _combine(kind: FormulaKind, formulas: Iterable[Formula], neutral: Formula, absorbing: Formula) -> Formula:
    flat: set[Formula] = set()
    for formula in formulas:
        flat.update(formula.operands if formula.kind == kind else (formula,))
    flat.discard(neutral)
    if absorbing in flat or any(_contradicting(operand, kind) <= flat for operand in flat):
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


def _contradicting(operand: Formula, kind: FormulaKind) -> frozenset[Formula]:
    """The operands that contradict `operand` where they stand together, flattened like their neighbours."""
    opposite = negation(operand)
    return frozenset(opposite.operands if opposite.kind == kind else (opposite,))


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
    raise InputError(
        "is not a formula", where=path, hint='a formula is true, a step, {"all": [...]}, {"any": [...]} or {"not": F}'
    )


def unmet_clauses(formula: Formula, completed: Set[Step]) -> tuple[Formula, ...]:
    """Find the top-level conjuncts of a precondition that do not hold.

    Parameters
    ----------
    formula : Formula
        A precondition.
    completed : set of Step
        What is done.

    Returns
    -------
    tuple of Formula
        Empty where the precondition is satisfied.

    >>> unmet_clauses(all_of([step("a"), step("b")]), {"a"})
    (<Formula b>,)
    """
    return tuple(clause for clause in formula.clauses() if not clause.evaluate(completed))

"""Boolean preconditions over the completion of steps: true, a step, all(...), any(...), not(...).

Formulas are immutable and canonical: the builders `all_of`, `any_of` and `negation` flatten nesting, sort and
deduplicate operands and apply the constant, complement and absorption laws, so formulas that differ only in these
compare and print equal; `msg2.graph.equivalent` decides logical equality.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
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
    >>> str(f), f.evaluate({"boil water", "grind beans"})
    ('boil water & (grind beans | open coffee)', True)
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

    @cached_property
    def kinds(self) -> frozenset[Kind]:
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

    def given(self, values: Mapping[Step, bool]) -> Formula:
        """The formula with some steps fixed to truth values.

        >>> str(any_of([all_of([step("a"), step("b")]), step("c")]).given({"a": True, "c": False}))
        'b'
        """
        formula = self
        for name in sorted(self.support & values.keys()):
            formula = formula._with(name, values[name])
        return formula

    def _with(self, name: Step, value: bool) -> Formula:
        if name not in self.support:
            return self
        match self.kind:
            case "step":
                return TRUE if value else FALSE
            case "not":
                return negation(self.operands[0]._with(name, value))
            case "all":
                return all_of(operand._with(name, value) for operand in self.operands)
            case _:
                return any_of(operand._with(name, value) for operand in self.operands)

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
        """The formula as people write it, or with other operators and with the steps named by `name`."""
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

    def words(self) -> str:
        """The formula in English.

        >>> all_of([step("boil water"), step("grind beans")]).words()
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

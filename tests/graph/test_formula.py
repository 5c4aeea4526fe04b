"""Formulas against their truth tables."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.graph import (
    FALSE,
    TRUE,
    Formula,
    agreement,
    all_of,
    any_of,
    are_equivalent,
    disjunctive_normal_form,
    formula_from_json,
    negation,
    simplify,
    step,
)
from msg2.graph.formula import probability

NAMES = "abcde"
A, B, C, D, E = map(step, NAMES)


def joined(inner: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
    operands = st.lists(inner, min_size=1, max_size=3)
    return operands.map(all_of) | operands.map(any_of)


FORMULAS = st.recursive(
    st.sampled_from([A, B, C, D, E, TRUE]), lambda inner: joined(inner) | inner.map(negation), max_leaves=8
)
LITERALS = st.sampled_from([A, B, C, D, E, *map(negation, (A, B, C, D, E))])

STATES = [frozenset(n for n, bit in zip(NAMES, bits, strict=True) if bit) for bits in product([0, 1], repeat=5)]


def truth_table(formula: Formula) -> list[bool]:
    return [formula.evaluate(state) for state in STATES]


@given(st.lists(FORMULAS, min_size=1, max_size=4))
def test_builders_mean_what_they_say(operands: list[Formula]) -> None:
    tables = [truth_table(operand) for operand in operands]
    assert truth_table(all_of(operands)) == [all(row) for row in zip(*tables, strict=True)]
    assert truth_table(any_of(operands)) == [any(row) for row in zip(*tables, strict=True)]
    assert truth_table(negation(operands[0])) == [not value for value in tables[0]]


@given(st.lists(FORMULAS, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_order_and_repetition_do_not_matter(operands: list[Formula], randomness: random.Random) -> None:
    shuffled = randomness.sample([*operands, operands[0]], len(operands) + 1)
    for join in (all_of, any_of):
        assert join(shuffled) == join(operands)
        assert str(join(shuffled)) == str(join(operands))
        assert hash(join(shuffled)) == hash(join(operands))


@given(st.lists(st.recursive(LITERALS, joined, max_leaves=6), min_size=2, max_size=4))
def test_nesting_does_not_matter(operands: list[Formula]) -> None:
    for join in (all_of, any_of):
        assert join([join(operands[:2]), join(operands[2:])]) == join(operands)


@given(FORMULAS)
def test_constant_and_complement_laws(formula: Formula) -> None:
    assert negation(negation(formula)) == formula
    assert all_of([formula, TRUE]) == formula == any_of([formula, FALSE])
    assert all_of([formula, FALSE]) == FALSE == all_of([formula, negation(formula)])
    assert any_of([formula, TRUE]) == TRUE == any_of([formula, negation(formula)])


def test_absorption() -> None:
    assert all_of([A, any_of([A, B])]) == A == any_of([A, all_of([A, B])])
    assert all_of([any_of([A, B]), any_of([A, B, C])]) == any_of([A, B])
    assert all_of([]) == TRUE
    assert any_of([]) == FALSE


@given(FORMULAS)
def test_rows_agree_with_single_evaluation(formula: Formula) -> None:
    rows = np.array([[name in state for name in NAMES] for state in STATES])
    assert formula.evaluate_rows(rows, NAMES).tolist() == truth_table(formula)


@given(FORMULAS, FORMULAS)
def test_probability_and_agreement_are_exact(one: Formula, other: Formula) -> None:
    table, other_table = truth_table(one), truth_table(other)
    same = sum(a == b for a, b in zip(table, other_table, strict=True))
    assert probability(one) == Fraction(sum(table), 32)
    assert agreement(one, other) == Fraction(same, 32)
    assert are_equivalent(one, other) == (same == 32)


def test_probability_of_many_steps_is_not_enumerated() -> None:
    pairs = [any_of([step(f"x{i}"), step(f"y{i}")]) for i in range(100)]
    assert probability(all_of(pairs)) == pytest.approx(0.75**100)
    assert probability(all_of([*pairs, step("x0")])) == pytest.approx(0.75**99 / 2)


@given(FORMULAS, st.dictionaries(st.sampled_from(NAMES), st.booleans()))
def test_given_fixes_steps(formula: Formula, values: dict[str, bool]) -> None:
    fixed = formula.substitute(values)
    assert not fixed.steps & values.keys()
    for state in STATES:
        forced = (state - values.keys()) | {name for name, value in values.items() if value}
        assert fixed.evaluate(state) == formula.evaluate(forced)


@given(FORMULAS)
def test_simplified_is_equivalent_and_no_longer(formula: Formula) -> None:
    simple = simplify(formula)
    assert truth_table(simple) == truth_table(formula)
    assert simple.literal_count <= formula.literal_count


def covered(terms: list[frozenset[tuple[str, bool]]]) -> list[bool]:
    return [any(all((name in state) == value for name, value in term) for term in terms) for state in STATES]


@given(FORMULAS)
def test_dnf_is_irredundant(formula: Formula) -> None:
    terms, table = list(disjunctive_normal_form(formula)), truth_table(formula)
    assert covered(terms) == table
    for i, term in enumerate(terms):
        others = terms[:i] + terms[i + 1 :]
        assert covered(others) != table
        for literal in term:
            assert covered([*others, term - {literal}]) != table


def test_dnf_of_constants() -> None:
    assert disjunctive_normal_form(TRUE) == (frozenset(),)
    assert disjunctive_normal_form(FALSE) == ()


@given(FORMULAS)
def test_clauses_hold_together_exactly_when_the_formula_does(formula: Formula) -> None:
    for state in STATES:
        assert all(clause.evaluate(state) for clause in formula.clauses()) == formula.evaluate(state)


@given(FORMULAS)
def test_json_round_trip(formula: Formula) -> None:
    assert formula_from_json(json.loads(json.dumps(formula.to_json()))) == formula


@given(FORMULAS)
def test_what_occurs_in_a_formula_occurs_in_its_text(formula: Formula) -> None:
    names = str(formula).replace("true", "")
    assert formula.literal_count == sum(names.count(name) for name in NAMES)
    assert formula.steps == {name for name in NAMES if name in names}
    text = str(formula)
    for kind, mark in (("all", "&"), ("any", "|"), ("not", "¬"), ("true", "true")):
        assert (kind in formula.kinds) == (mark in text)
    assert ("step" in formula.kinds) == bool(formula.steps)


def test_text_and_words() -> None:
    formula = all_of([A, negation(any_of([B, C]))])
    assert str(formula) == "a & ¬(b | c)"
    assert formula.to_english() == "'a' and not ('b' or 'c')"
    assert str(any_of([all_of([A, B]), negation(C)])) == "¬c | (a & b)"


@pytest.mark.parametrize(
    ("value", "place", "what"),
    [
        (False, "$", "is not a formula"),
        (None, "$", "is not a formula"),
        (3, "$", "is not a formula"),
        ({}, "$", "is not a formula"),
        ({"all": ["a"], "any": ["b"]}, "$", "is not a formula"),
        ({"xor": ["a", "b"]}, "$", "is not a formula"),
        ({"all": []}, "$.all", "at least one formula"),
        ({"any": "a"}, "$.any", "at least one formula"),
        ({"all": ["a", {"any": ["b", "z"]}]}, "$.all[1].any[1]", "'z' is not among the steps"),
        ({"not": {"not": 1}}, "$.not.not", "is not a formula"),
    ],
)
def test_malformed_json_is_named_by_its_path(value: object, place: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        formula_from_json(value, steps=set(NAMES))
    assert caught.value.where == place
    assert what in caught.value.what

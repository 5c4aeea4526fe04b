"""Alternatives by presence: what an OR gains against its formula, and when it is found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln

from msg2.inference.likelihood.structure import group_alternatives

RATE = 0.02


def alternatives(parents: list[int], table: np.ndarray, rate: float) -> tuple[list[frozenset[int]], float]:
    return group_alternatives(parents, table, np.ones(len(table), dtype=np.int64), rate)


def shown(*rows: str, names: str = "abc") -> np.ndarray:
    return np.array([[name in row for name in names] for row in rows], dtype=bool).reshape(-1, len(names))


def log_integral(*counts: int) -> float:
    """log ∫ Π p_k^count_k, uniformly over all rates that add up to one."""
    return float(gammaln(len(counts)) + gammaln(np.array(counts) + 1).sum() - gammaln(sum(counts) + len(counts)))


def gain_by_hand(rows: Sequence[str]) -> float:
    """Of "a or b" against each for itself."""
    both, only_a, only_b = (sum(set(row) & set("ab") == set(kind) for row in rows) for kind in ("ab", "a", "b"))
    n = len(rows)
    neither = n - both - only_a - only_b
    if both * neither >= only_a * only_b:
        return -np.inf
    enough = (n - neither) * np.log1p(-RATE) + neither * np.log(RATE) + log_integral(both, only_a, only_b)
    return float(
        enough - log_integral(both + only_a, n - both - only_a) - log_integral(both + only_b, n - both - only_b)
    )


@given(st.lists(st.sampled_from(["a", "b", "ab", ""]), max_size=40))
def test_an_or_is_found_where_it_explains_more_than_each_for_itself(rows: list[str]) -> None:
    groups, gain = alternatives([0, 1], shown(*rows), RATE)
    expected = gain_by_hand(rows)
    if expected > 1e-6:
        assert groups == [frozenset({0, 1})]
        assert gain == pytest.approx(expected)
    else:
        assert groups == []


def test_three_alternatives_of_which_two_alone_explain_little() -> None:
    assert alternatives([0, 1, 2], shown(*["a", "b", "c"] * 12), RATE)[0] == [frozenset({0, 1, 2})]


def test_two_pairs_of_alternatives() -> None:
    rows = [first + second for first in "ab" for second in "cd"] * 10
    groups, gain = alternatives([0, 1, 2, 3], shown(*rows, names="abcd"), RATE)
    assert set(groups) == {frozenset({0, 1}), frozenset({2, 3})}
    alone = alternatives([0, 1], shown(*rows, names="abcd"), RATE)[1]
    assert gain == pytest.approx(2 * alone)


@pytest.mark.parametrize("rows", [["ab", ""] * 10, ["ab"] * 20, [], ["a"] * 20])
def test_what_comes_together_or_says_nothing_is_no_alternative(rows: list[str]) -> None:
    assert alternatives([0, 1], shown(*rows), RATE)[0] == []
    assert alternatives([0], shown(*rows), RATE)[0] == []
    assert alternatives([], shown(*rows), RATE)[0] == []


@given(st.lists(st.sets(st.sampled_from("abc")), max_size=30), st.permutations(range(3)))
def test_another_order_of_the_steps_only_relabels(rows: list[set[str]], order: list[int]) -> None:
    table = shown(*map("".join, map(sorted, rows)))
    groups, gain = alternatives([0, 1, 2], table, RATE)
    again, other = alternatives([0, 1, 2], table[:, order], RATE)
    assert other == pytest.approx(gain, abs=1e-6)
    assert len(again) == len(groups)

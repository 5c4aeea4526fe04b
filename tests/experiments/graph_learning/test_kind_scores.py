"""Scores of kinds counted by hand, and rules that count."""

from __future__ import annotations

import pytest

from experiments.graph_learning.kind_scores import FOUND, always_free, counted_kinds, score_kinds
from experiments.graph_learning.kind_suite import DEVELOPMENT, tree_log
from msg2.graph import PairKind
from tests.experiments.graph_learning.test_process_trees import kinds_by_definition


def kinds(steps: str, **given: PairKind) -> dict[tuple[str, str], PairKind]:
    """All free, but for those given as `ab="needs"`; exclusive pairs are so in both directions."""
    found = always_free(steps)
    for (a, b), kind in given.items():
        found[a, b] = kind
        if kind == "exclusive":
            found[b, a] = kind
    return found


def test_a_pair_is_right_with_its_kind_and_its_direction() -> None:
    truth = kinds("abcd", ab="needs", ac="after", ad="exclusive")
    score = score_kinds(kinds("abcd", ab="after", ca="after", ad="exclusive", dc="needs"), truth, "abcd")
    assert (score.pairs, score.right) == (6, 3)
    assert score.confusion == {
        "needs": {"after": 1},
        "after": {"reversed": 1},
        "exclusive": {"exclusive": 1},
        "free": {"free": 2, "needs": 1},
    }
    assert score_kinds(truth, truth, "dcba").right == 6
    assert score_kinds(truth, truth, "ab").pairs == 1
    assert {name for row in score.confusion.values() for name in row} <= set(FOUND)


@pytest.mark.parametrize("seed", DEVELOPMENT.trees[:5])
def test_counting_without_exceptions_is_the_definition(seed: int) -> None:
    log = tree_log(seed, 50, 0.1)
    assert counted_kinds(log.traces, log.seen, 0.0) == kinds_by_definition(set(log.traces), log.seen)


def test_counting_forgives_a_share_of_exceptions() -> None:
    traces = [("a", "b")] * 97 + [("b", "a")] * 3 + [("c",)] * 100 + [("a", "c", "b")]
    exact, tolerant = counted_kinds(traces, "abc", 0.0), counted_kinds(traces, "abc", 0.05)
    assert (exact["a", "b"], exact["a", "c"]) == ("free", "after")
    assert (tolerant["a", "b"], tolerant["a", "c"], tolerant["c", "a"]) == ("needs", "exclusive", "exclusive")

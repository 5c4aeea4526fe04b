"""The area under the ROC curve, against scikit-learn and all pairs."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.metrics.detection import roc_auc


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), max_size=40))
def test_auc_over_all_pairs_and_that_of_scikit_learn(pairs: list[tuple[int, bool]]) -> None:
    scores, positive = [score for score, _ in pairs], [label for _, label in pairs]
    if len(set(positive)) < 2:
        assert roc_auc(scores, positive) is None
        return
    ones, zeros = ([score for score, label in pairs if label is kind] for kind in (True, False))
    won = sum((one > zero) + (one == zero) / 2 for one, zero in product(ones, zeros))
    assert roc_auc(scores, positive) == won / (len(ones) * len(zeros))
    sklearn = pytest.importorskip("sklearn.metrics")
    assert roc_auc(scores, positive) == pytest.approx(sklearn.roc_auc_score(positive, scores))

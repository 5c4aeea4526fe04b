"""Scores of mistake detection against counting by hand and over all pairs."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.metrics.detection import DetectionScores, ScoredStep, detection_auc, detection_scores

JUDGED = st.lists(st.builds(ScoredStep, st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0]), st.booleans()), max_size=12)


def test_scores_by_hand() -> None:
    scores = DetectionScores(true_positives=3, false_positives=1, false_negatives=2, true_negatives=4)
    assert scores.precision == pytest.approx(3 / 4)
    assert scores.recall == pytest.approx(3 / 5)
    assert scores.f1_mistake == pytest.approx(2 / (4 / 3 + 5 / 3))
    assert scores.f1_correct == pytest.approx(2 / (5 / 4 + 6 / 4))  # precision 4 of 5 passed, recall 4 of 6 correct
    assert scores.macro_f1 == pytest.approx((2 / 3 + 8 / 11) / 2)


def test_nothing_to_find_and_nothing_found() -> None:
    nothing = DetectionScores(0, 0, 0, 5)
    assert (nothing.precision, nothing.recall, nothing.f1_mistake, nothing.macro_f1) == (None, None, None, None)
    assert nothing.f1_correct == 1
    assert DetectionScores(0, 0, 3, 5).f1_mistake == 0


@given(JUDGED, st.sampled_from([0.1, 0.5, 0.9]))
def test_every_step_is_in_one_cell(steps: list[ScoredStep], threshold: float) -> None:
    scores = detection_scores(steps, threshold)
    assert scores.true_positives + scores.false_positives + scores.false_negatives + scores.true_negatives == len(steps)
    assert scores.true_positives + scores.false_negatives == sum(step.mistake for step in steps)
    assert scores.true_positives + scores.false_positives == sum(step.probability >= threshold for step in steps)
    assert scores.true_positives == sum(step.probability >= threshold and step.mistake for step in steps)


@given(JUDGED)
def test_auc_over_all_pairs(steps: list[ScoredStep]) -> None:
    pairs = list(product([s.probability for s in steps if s.mistake], [s.probability for s in steps if not s.mistake]))
    if pairs:
        assert detection_auc(steps) == pytest.approx(sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs))
    else:
        assert detection_auc(steps) is None

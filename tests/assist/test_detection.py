"""Scores of mistake detection against counting by hand and over all pairs."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.assist.detection import Detection, Judged, auc, detection, until_first_mistake

JUDGED = st.lists(st.builds(Judged, st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0]), st.booleans()), max_size=12)


def test_scores_by_hand() -> None:
    scores = Detection(found=3, alarms=1, missed=2, passed=4)
    assert scores.precision == pytest.approx(3 / 4)
    assert scores.recall == pytest.approx(3 / 5)
    assert scores.f1_mistake == pytest.approx(2 / (4 / 3 + 5 / 3))
    assert scores.f1_correct == pytest.approx(2 / (5 / 4 + 6 / 4))  # precision 4 of 5 passed, recall 4 of 6 correct
    assert scores.f1_mean == pytest.approx((2 / 3 + 8 / 11) / 2)


def test_nothing_to_find_and_nothing_found() -> None:
    nothing = Detection(0, 0, 0, 5)
    assert (nothing.precision, nothing.recall, nothing.f1_mistake, nothing.f1_mean) == (None, None, None, None)
    assert nothing.f1_correct == 1
    assert Detection(0, 0, 3, 5).f1_mistake == 0


@given(JUDGED, st.sampled_from([0.1, 0.5, 0.9]))
def test_every_step_is_in_one_cell(steps: list[Judged], threshold: float) -> None:
    scores = detection(steps, threshold)
    assert scores.found + scores.alarms + scores.missed + scores.passed == len(steps)
    assert scores.found + scores.missed == sum(step.mistake for step in steps)
    assert scores.found + scores.alarms == sum(step.probability >= threshold for step in steps)
    assert scores.found == sum(step.probability >= threshold and step.mistake for step in steps)


@given(JUDGED)
def test_auc_over_all_pairs(steps: list[Judged]) -> None:
    pairs = list(product([s.probability for s in steps if s.mistake], [s.probability for s in steps if not s.mistake]))
    if pairs:
        assert auc(steps) == pytest.approx(sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs))
    else:
        assert auc(steps) is None


@given(JUDGED)
def test_the_cut_ends_with_the_first_mistake(steps: list[Judged]) -> None:
    cut = until_first_mistake(steps)
    assert list(cut) == steps[: len(cut)]
    assert not any(step.mistake for step in cut[:-1])
    assert len(cut) == len(steps) or cut[-1].mistake

"""Average precision against scikit-learn's, recall at a rate of false alarms against its ROC curve."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_curve

from experiments.bootstrap_intervals import ScoredItems
from experiments.mistake_detection.alarm_metrics import average_precision, recall_at_rate


def items_at_random(seed: int, number: int = 40, levels: int = 6) -> ScoredItems:
    rng = np.random.default_rng(seed)
    truth = rng.random(number) < 0.3
    truth[0] = True
    return ScoredItems(np.sort(rng.integers(0, 5, number)), truth, rng.integers(0, levels, number) / levels)


@given(st.integers(0, 1000))
def test_average_precision_is_scikit_learns(seed: int) -> None:
    items = items_at_random(seed)
    drawn = np.random.default_rng(seed).integers(1, 4, (3, 5))[:, items.video].astype(float)
    found = average_precision(items, drawn)
    theirs = [average_precision_score(items.truth, items.score, sample_weight=weights) for weights in drawn]
    assert found == pytest.approx(theirs)


def test_without_anything_true_there_is_no_average() -> None:
    items = items_at_random(0)
    none = ScoredItems(items.video, np.zeros_like(items.truth), items.score)
    assert np.isnan(average_precision(none, np.ones(len(none.truth))))
    assert np.isnan(recall_at_rate(np.ones(5), 1.0)(none, np.ones(len(none.truth))))


@given(st.integers(0, 1000), st.floats(0, 8))
def test_recall_is_read_off_the_roc_curve(seed: int, rate: float) -> None:
    """Scikit-learn's curve, straight between distinct scores, at the share of negatives that may be false alarms."""
    items = items_at_random(seed)
    drawn = np.random.default_rng(seed).integers(1, 4, 5).astype(float)
    minutes = np.array([1.0, 2.0, 0.5, 4.0, 1.0])
    weights = drawn[items.video]
    false, found, _ = roc_curve(items.truth, items.score, sample_weight=weights, drop_intermediate=False)
    shown = np.unique(items.video)
    allowed = rate * (drawn * minutes)[shown].sum() / weights[~items.truth].sum()
    expected = np.interp(allowed, false, found)
    reached = found[false <= allowed + 1e-12].max()  # where the curve is vertical, its upper end
    assert float(recall_at_rate(minutes, rate)(items, weights)) == pytest.approx(max(expected, reached))


def test_recall_where_no_scores_are_equal() -> None:
    truth = np.array([True, False, True, False, True])
    items = ScoredItems(np.array([0, 0, 1, 1, 1]), truth, np.array([0.9, 0.8, 0.7, 0.6, 0.5]))
    for rate, expected in ((0.0, 1 / 3), (0.5, 2 / 3), (1.0, 1.0), (9.0, 1.0)):
        assert float(recall_at_rate(np.array([1.0, 1.0]), rate)(items, np.ones(5))) == pytest.approx(expected)


def test_a_video_that_is_drawn_twice_has_twice_the_minutes() -> None:
    items = items_at_random(3)
    minutes = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    metric = recall_at_rate(minutes, 0.3)
    once = metric(items, np.ones(len(items.truth)))
    assert metric(items, np.full(len(items.truth), 2.0)) == pytest.approx(once)
    without = np.where(items.video == 4, 0.0, 1.0)
    rest = items.video != 4
    kept = ScoredItems(items.video[rest], items.truth[rest], items.score[rest])
    assert metric(items, without) == pytest.approx(metric(kept, np.ones(rest.sum())))

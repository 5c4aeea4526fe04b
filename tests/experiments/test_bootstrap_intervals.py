"""Metrics against scikit-learn and brute force; intervals against a plain loop and a known standard error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, roc_auc_score

from experiments.bootstrap_intervals import (
    ScoredItems,
    auc_within_videos,
    bootstrap_interval,
    ratio_interval,
    weighted_accuracy,
    weighted_auc,
)


def items_at_random(seed: int, videos: int = 12, most: int = 9, signal: float = 1.0) -> ScoredItems:
    rng = np.random.default_rng(seed)
    video = np.repeat(np.arange(videos), rng.integers(1, most, videos))
    truth = rng.random(len(video)) < 0.4
    score = np.round(rng.normal(0.5 + signal * truth, 1.0), 1)  # with ties
    return ScoredItems(video, truth, score)


@given(seed=st.integers(0, 1000))
def test_auc_and_accuracy_are_those_of_scikit_learn(seed: int) -> None:
    items = items_at_random(seed)
    weights = np.random.default_rng(seed).integers(0, 3, len(items.video)).astype(float)
    for truth in (True, False):
        if not weights[items.truth == truth].sum():
            assert np.isnan(weighted_auc(items, weights))
            return
    expected = roc_auc_score(items.truth, items.score, sample_weight=weights)
    assert weighted_auc(items, weights) == pytest.approx(expected)
    right = accuracy_score(items.truth, items.score >= 0.5, sample_weight=weights)
    assert weighted_accuracy(items, weights) == pytest.approx(right)


@given(seed=st.integers(0, 1000))
def test_auc_within_videos_counts_pairs_of_one_video(seed: int) -> None:
    items = items_at_random(seed)
    counts = np.random.default_rng(seed).integers(0, 3, 12).astype(float)
    wins = pairs = 0.0
    for i in np.flatnonzero(items.truth):
        for j in np.flatnonzero(~items.truth & (items.video == items.video[i])):
            weight = counts[items.video[i]]
            pairs += weight
            wins += weight * (
                1.0 if items.score[i] > items.score[j] else 0.5 if items.score[i] == items.score[j] else 0
            )
    assert auc_within_videos(items, counts[items.video]) == pytest.approx(
        wins / pairs if pairs else np.nan, nan_ok=True
    )


def test_many_weights_at_once_are_each_alone() -> None:
    items = items_at_random(3)
    weights = np.random.default_rng(1).integers(0, 3, (5, len(items.video))).astype(float)
    for measure in (weighted_auc, auc_within_videos, weighted_accuracy):
        assert measure(items, weights).tolist() == pytest.approx([float(measure(items, one)) for one in weights])


def test_interval_resamples_whole_videos_and_pairs_the_predictors() -> None:
    items = items_at_random(5, videos=40)
    worse = ScoredItems(items.video, items.truth, np.random.default_rng(6).permutation(items.score))
    found = bootstrap_interval(weighted_auc, items, worse, resamples=400)
    rng, differences = np.random.default_rng(9), []
    for _ in range(400):
        rows = np.concatenate([np.flatnonzero(items.video == v) for v in rng.integers(0, 40, 40)])
        ours, theirs = (roc_auc_score(one.truth[rows], one.score[rows]) for one in (items, worse))
        differences.append(ours - theirs)
    assert found.value == pytest.approx(
        roc_auc_score(items.truth, items.score) - roc_auc_score(worse.truth, worse.score)
    )
    assert [found.low, found.high] == pytest.approx(np.quantile(differences, [0.025, 0.975]), abs=0.03)


def test_a_predictor_does_not_differ_from_itself() -> None:
    items = items_at_random(7)
    same = bootstrap_interval(weighted_auc, items, items)
    assert (same.value, same.low, same.high) == (0, 0, 0)


def test_other_questions_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="same questions"):
        bootstrap_interval(weighted_auc, items_at_random(1), items_at_random(2))


def test_the_interval_of_a_ratio_is_that_of_its_mean_where_all_weigh_the_same() -> None:
    part = np.random.default_rng(0).normal(1.0, 2.0, 400)
    found = ratio_interval(np.append(part, 99.0), np.append(np.ones(400), 0.0), resamples=4000)
    assert found.value == pytest.approx(part.mean())
    error = part.std() / 20
    assert found.low == pytest.approx(part.mean() - 1.96 * error, abs=0.15 * error)
    assert found.high == pytest.approx(part.mean() + 1.96 * error, abs=0.15 * error)

"""Drafts count for the graph only where they make held-out labels more probable."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from msg2.labelling.drafts import CONFIDENCES, NO_DRAFTS, _is_positive, choose_confidence
from msg2.task import DRAFT, Segment, Task, Video

STEPS = tuple("abcdefgh")


def _video(name: str, order: str, *, confidence: float | None = None) -> Video:
    source = None if confidence is None else DRAFT
    return Video(name, [Segment(step, i, i + 1, confidence, source) for i, step in enumerate(order)])


def _orders(count: int, rng: np.random.Generator) -> list[str]:
    """The first four steps in any order, then the other four in any order."""
    return ["".join([*rng.permutation(list("abcd")), *rng.permutation(list("efgh"))]) for _ in range(count)]


def _parts(*, are_drafts_right: bool, confidence: float = 0.6) -> list[tuple[Task, list[Video]]]:
    rng = np.random.default_rng(0)
    parts = []
    for fold in range(3):
        labelled = [_video(f"l{n}", order) for n, order in enumerate(_orders(2, rng))]
        drafts = [
            _video(f"d{n}", order if are_drafts_right else order[::-1], confidence=confidence)
            for n, order in enumerate(_orders(60, rng))
        ]
        held_out = [_video(f"h{fold}{n}", order) for n, order in enumerate(_orders(8, rng))]
        parts.append((Task("t", STEPS, [*labelled, *drafts]), held_out))
    return parts


def test_drafts_that_are_right_count_and_wrong_ones_do_not() -> None:
    assert choose_confidence(_parts(are_drafts_right=True)) in CONFIDENCES
    assert choose_confidence(_parts(are_drafts_right=False)) == NO_DRAFTS


def test_drafts_below_every_confidence_do_not_count() -> None:
    assert choose_confidence(_parts(are_drafts_right=True, confidence=0.2)) == NO_DRAFTS


@pytest.mark.parametrize("seed", range(5))
def test_the_test_is_that_of_scipy(seed: int) -> None:
    differences = np.random.default_rng(seed).normal(0.4, 1, 12)
    expected = stats.ttest_1samp(differences, 0, alternative="greater").pvalue < 0.05
    assert _is_positive(differences) == expected

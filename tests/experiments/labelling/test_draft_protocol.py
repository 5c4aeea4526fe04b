"""CrossTask's protocol by hand: seconds that a segment touches, one time per step and video."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.labelling.draft_baselines import uniform_hits
from experiments.labelling.draft_protocol import DraftTruth, recall_interval
from experiments.labelling.labelling_study import RANGES, drawn_constants
from msg2.labelling.narration_grid import narration_grid
from msg2.task import Segment, Sentence, Task, Video
from msg2.text_encoders import text_encoder

STEPS = ("a", "b")


def _truth() -> DraftTruth:
    first = Video("v", [Segment("a", 1.2, 3.4), Segment("b", 6.0, 8.0)], [Sentence("so", 0, 10)])
    second = Video("w", [Segment("b", 2.5, 2.6)], [Sentence("well", 0, 4)])
    return DraftTruth.of(narration_grid(Task("t", STEPS, [first, second]), text_encoder("words")), STEPS)


def test_seconds_that_a_segment_touches_are_hits() -> None:
    truth = _truth()
    assert np.flatnonzero(truth.inside[0, :, 0]).tolist() == [1, 2, 3]  # 1.2 to 3.4: floor and ceiling
    assert np.flatnonzero(truth.inside[0, :, 1]).tolist() == [6, 7]
    assert np.flatnonzero(truth.inside[1, :, 1]).tolist() == [2]
    assert truth.annotated.tolist() == [[True, True], [False, True]]
    assert truth.hits(np.array([[1, 8], [0, 2]])).tolist() == [[True, False], [False, True]]


def test_recall_counts_annotated_steps_only() -> None:
    truth = _truth()
    found = recall_interval(truth.hits(np.array([[1, 8], [0, 2]])).astype(float), truth.annotated)
    assert found.value == pytest.approx(2 / 3)
    assert found.low <= found.value <= found.high


def test_a_guess_hits_by_the_share_of_seconds() -> None:
    truth = _truth()
    assert uniform_hits(truth.inside, np.array([10, 4])).tolist() == [[0.3, 0.2], [0.0, 0.25]]


def test_constants_are_drawn_from_their_ranges() -> None:
    for options in drawn_constants(8):
        for name, (low, high) in RANGES.items():
            assert low <= getattr(options, name) <= high

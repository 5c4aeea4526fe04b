"""Scores of a state model: against counts made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from msg2.errors import InputError
from msg2.metrics.detection import completion
from msg2.states.dataset import COMPLETED, END, IN_PROGRESS, NOT_STARTED, START
from msg2.states.label_filling import StatePrediction
from msg2.states.task_models import hidden_completion, true_completion
from msg2.task import Segment, Task, Video

STEPS = ("boil", "milk", "pour")
PREDICTION = StatePrediction(
    "v",
    np.array([START, END, START, END]),
    np.array([0.0, 4.0, 6.0, 9.0]),
    np.array([0, 0, 2, 2]),
    np.array([[0.0, -2.0, -2.0], [1.5, 0.5, -1.0], [2.0, 1.0, 0.0], [2.0, 3.0, 1.0]]),
    np.array([[IN_PROGRESS, NOT_STARTED, NOT_STARTED], [COMPLETED, COMPLETED, NOT_STARTED],
              [COMPLETED, COMPLETED, IN_PROGRESS], [COMPLETED, COMPLETED, COMPLETED]]),
    np.array([True, True, True]),
    None,
    None,
    np.array([False, True, False]),
)  # fmt: skip


def test_hidden_steps_are_asked_for_at_the_borders_of_the_others() -> None:
    found = hidden_completion([PREDICTION, PREDICTION], threshold=1.0)
    assert found.asked == 8
    assert found.accuracy == 0.75  # of milk: -2 and 1 and 3 are right, 0.5 is not
    assert found.auc == 1.0
    assert hidden_completion([], 1.0) == completion([], [], 1.0)
    assert completion([], [], 1.0).accuracy is None


def test_against_the_truth_all_steps_count_from_their_first_end_on() -> None:
    performed = [Segment("boil", 0, 4), Segment("boil", 7, 8), Segment("pour", 6, 9)]
    truth = Task("tea", STEPS, [Video("v", performed)])
    found = true_completion([PREDICTION], STEPS, truth, threshold=1.0)
    expected = np.array([[0, 0, 0], [1, 0, 0], [1, 0, 0], [1, 0, 1]], dtype=bool)
    assert found.asked == 12
    assert found.accuracy == pytest.approx(((PREDICTION.scores >= 1) == expected).mean())
    with pytest.raises(InputError, match="what was performed in video 'v'"):
        true_completion([PREDICTION], STEPS, Task("tea", STEPS, []), 1.0)

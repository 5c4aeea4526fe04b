"""Scores of a state predictor: against scikit-learn where it has them, and against counts made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

from msg2.errors import InputError
from msg2.states.fill import PREDICTED
from msg2.states.reading import Reading
from msg2.states.sampling import COMPLETED, END, IN_PROGRESS, NOT_STARTED, START
from msg2.states.scoring import Additions, additions, auc, completion, hidden_completion, true_completion
from msg2.task import Segment, Task, Video

STEPS = ("boil", "milk", "pour")
READING = Reading(
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


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=40))
def test_auc_is_that_of_scikit_learn_ties_included(pairs: list[tuple[int, bool]]) -> None:
    measured = pytest.importorskip("sklearn.metrics")
    scores, positive = zip(*pairs, strict=True)
    if len(set(positive)) == 1:
        assert auc(scores, positive) is None
    else:
        assert auc(scores, positive) == pytest.approx(measured.roc_auc_score(positive, scores))


def test_hidden_steps_are_asked_for_at_the_borders_of_the_others() -> None:
    found = hidden_completion([READING, READING], threshold=1.0)
    assert found.asked == 8
    assert found.accuracy == 0.75  # of milk: -2 and 1 and 3 are right, 0.5 is not
    assert found.auc == 1.0
    assert hidden_completion([], 1.0) == completion([], [], 1.0)
    assert completion([], [], 1.0).accuracy is None


def test_against_the_truth_all_steps_count_from_their_first_end_on() -> None:
    performed = [Segment("boil", 0, 4), Segment("boil", 7, 8), Segment("pour", 6, 9)]
    truth = Task("tea", STEPS, [Video("v", performed)])
    found = true_completion([READING], STEPS, truth, threshold=1.0)
    expected = np.array([[0, 0, 0], [1, 0, 0], [1, 0, 0], [1, 0, 1]], dtype=bool)
    assert found.asked == 12
    assert found.accuracy == pytest.approx(((READING.scores >= 1) == expected).mean())
    with pytest.raises(InputError, match="what was performed in video 'v'"):
        true_completion([READING], STEPS, Task("tea", STEPS, []), 1.0)


def test_added_labels_are_counted_once_per_video_and_step() -> None:
    one = Video(
        "1", [Segment("boil", 0, 4), Segment("milk", 4, 5, 0.9, PREDICTED), Segment("pour", 5, 6, 0.6, PREDICTED)]
    )
    two = Video("2", [Segment("pour", 0, 1, None, "annotator")])
    truth = Task("tea", STEPS, [Video("1", [Segment("boil", 0, 4), Segment("milk", 1, 2), Segment("milk", 3, 4)]),
                                Video("2", [Segment("boil", 0, 1), Segment("pour", 0, 1)])])  # fmt: skip
    found = additions([one, two], truth)
    assert found == Additions(added=2, right=1, missing=2)
    assert (found.precision, found.recall) == (0.5, 0.5)
    nothing = additions([], truth)
    assert (nothing.precision, nothing.recall) == (None, None)

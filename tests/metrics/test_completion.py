"""Scores of predicted completion and of added labels: against counts made by hand."""

from __future__ import annotations

from msg2.metrics.detection import Additions, additions, completion
from msg2.task import PREDICTED, Segment, Task, Video

STEPS = ("boil", "milk", "pour")


def test_completion_counts_both_kinds_of_answers() -> None:
    found = completion([1.0, 0.99, -3.0, 2.0], [True, True, False, False], threshold=1.0)
    assert (found.asked, found.accuracy, found.auc) == (4, 0.5, 0.5)
    assert completion([], [], 1.0).to_json() == {"asked": 0, "accuracy": None, "auc": None}


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

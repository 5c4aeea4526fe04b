"""Segments from scores of frames: the scores by hand and by brute force, and a small run."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.experiment_options import ExperimentOptions
from experiments.mistake_detection import grounding
from experiments.mistake_detection.grounding import BigramForecaster, count_scores, edit_score, segments_of, smoothed
from experiments.mistake_detection.live import LiveOptions
from experiments.mistake_detection.simulated_recogniser import frame_labels
from msg2.task import Segment, Video
from tests.experiments.mistake_detection.test_online_mistakes import folder  # noqa: F401
from tests.experiments.progress_recorder import ProgressRecorder

LISTS = st.lists(st.integers(0, 2), max_size=4)


def common(first: list[int], second: list[int]) -> set[int]:
    """Lengths of alignments, by trying: each keeps some places of the first list and as many of the second."""
    if not first or not second:
        return {max(len(first), len(second))}
    (a, *rest), (b, *others) = first, second
    return {
        *((a != b) + edits for edits in common(rest, others)),
        *(1 + edits for edits in common(rest, second)),
        *(1 + edits for edits in common(first, others)),
    }


@given(LISTS, LISTS)
def test_the_edit_score_takes_the_fewest_edits(true: list[int], found: list[int]) -> None:
    fewest = min(common(true, found))
    assert edit_score(true, found) == pytest.approx(100 * (1 - fewest / max(len(true), len(found), 1)))


def test_scores_by_hand() -> None:
    true = np.repeat([0, 2, 1, 2], [10, 5, 10, 5])  # 2 is nothing
    assert segments_of(true, 2) == [(0, 0, 10), (1, 15, 25)]
    perfect = count_scores(true, true, 2)
    assert (perfect["right"], perfect["edit"], perfect["hits"], perfect["found"]) == (30, 100, 2, 2)
    broken = np.repeat([0, 2, 0, 2, 1, 2], [4, 2, 4, 5, 4, 11])  # twice a bit less than half, and 4 of 10
    counts = count_scores(true, broken, 2)
    assert (counts["right"], counts["hits"], counts["found"]) == (4 + 4 + 5 + 4 + 5, 0, 3)
    assert counts["edit"] == pytest.approx(100 * 2 / 3)
    assert count_scores(true, np.full(30, 2), 2)["edit"] == 0


def test_frames_are_those_of_the_segments() -> None:
    video = Video("v", [Segment("b", 1.0, 2.0), Segment("a", 0.0, 1.4)])
    assert frame_labels(video, ["a", "b"]).tolist() == [0] * 5 + [1] * 5 + [2]


def test_a_moving_average_looks_to_both_sides() -> None:
    one = np.zeros((21, 2))
    one[:, 0], one[8:13] = 1, (0, 1)
    for frames in permutations(range(8, 13), 2):
        assert smoothed(one, 0.0)[list(frames)].tolist() == [1, 1]
    assert smoothed(one, 1.6).tolist() == [0] * 8 + [1] * 5 + [0] * 8
    assert smoothed(one, 4.0).tolist() == [0] * 21


def test_a_bigram_knows_the_last_step_only() -> None:
    forecaster = BigramForecaster(np.array([[0.1, 0.9], [0.8, 0.2], [0.5, 0.5]]))
    assert forecaster.after([(), (0,), (1, 0)]).tolist() == [[0.5, 0.5], [0.1, 0.9], [0.1, 0.9]]


def test_the_table_of_a_small_run(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr(LiveOptions, "quick", staticmethod(lambda: LiveOptions(recordings=1)))
    monkeypatch.setattr(grounding, "TUNED", 1)
    reported = ProgressRecorder()
    options = ExperimentOptions(quick=True, folder=tmp_path / "out")
    result = grounding.run(folder, options, reported)
    (table,) = result.tables
    assert len(reported) == 3
    assert [row[:2] for row in table.rows[:2]] == [["90 %", grounding.OURS], ["90 %", grounding.BIGRAM]]
    assert [len(row) for row in table.rows] == [6] * 12
    scores = np.array([row[2:5] for row in table.rows], dtype=float)
    assert ((scores >= 0) & (scores <= 100)).all()
    assert (scores[0] > scores[3])[1:].all()  # with a good recogniser, better segments than by single frames
    again = ProgressRecorder()
    assert grounding.run(folder, options, again).to_json() == result.to_json()
    assert again == []
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["experiment"] == "grounding"

"""Confidences against a planted truth: who was done is known here, and the calibration is not told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from msg2.errors import InputError
from msg2.states.fill_calibration import FillCalibration, HeldOutScores, fit_calibration, read_calibration


def planted(
    videos: int, apart: float, seed: int, *, missing: float = 0.25, left_out: float = 0.05
) -> tuple[HeldOutScores, np.ndarray, float]:
    """Ten steps in every video; scores of what was done are higher by `apart`. Which unlabelled ones were done."""
    rng = np.random.default_rng(seed)
    video = np.repeat(np.arange(videos), 10)
    required = np.tile(np.arange(10) < 7, videos)
    done = rng.random(len(video)) < np.where(required, 1 - left_out, 0.4)
    labelled = done & (rng.random(len(video)) >= missing)
    scores = rng.normal(apart * done, 1)
    return HeldOutScores(scores, video, labelled), done[~labelled], 1 - labelled[required].mean()


def error(confidence: np.ndarray, done: np.ndarray) -> float:
    places = np.minimum((10 * confidence).astype(int), 9)
    return sum(abs((confidence - done)[places == place].sum()) for place in range(10)) / len(done)


@pytest.mark.parametrize(
    "apart", [pytest.param(1.0, marks=pytest.mark.slow), 2.0, pytest.param(3.0, marks=pytest.mark.slow)]
)
def test_confidences_are_true(apart: float) -> None:
    """Over five simulations the error is below 5 percent, though nothing tells which unlabelled steps were done."""
    every = []
    for seed in range(5):
        held_out, done, absent_rate = planted(60, apart, seed)
        calibration = fit_calibration(held_out, absent_rate)
        assert calibration.note is None
        every.append((calibration.confidence(held_out.unlabelled), done))
        assert calibration.error is not None
        assert calibration.error < 0.2
    confidence, done = (np.concatenate(part) for part in zip(*every, strict=True))
    assert error(confidence, done) < 0.05
    sure = confidence >= 0.9
    assert not sure.any() or done[sure].mean() > 0.85
    assert error(expit(np.concatenate([planted(60, apart, seed)[0].unlabelled for seed in range(5)])), done) > 0.1


def test_confidences_rise_with_the_score_and_stay_below_one() -> None:
    held_out, _, absent_rate = planted(40, 2.0, 0)
    confidence = fit_calibration(held_out, absent_rate).confidence(np.linspace(-99, 99, 999))
    assert (np.diff(confidence) >= 0).all()
    assert 0 < confidence[0] < confidence[-1] < 1


def test_scores_that_tell_nothing_add_nothing() -> None:
    notes = [
        fit_calibration(held_out, rate).note for held_out, _, rate in (planted(60, 0.0, seed) for seed in range(4))
    ]
    assert sum(note is not None for note in notes) >= 3
    assert {note for note in notes if note} == {"no labels are added: the scores do not tell which steps were done"}


@pytest.mark.parametrize(("labels", "videos", "few"), [(250, 30, False), (249, 99, True), (999, 29, True)])
def test_few_labels_or_videos_add_nothing(labels: int, videos: int, few: bool) -> None:
    note = FillCalibration((0.0,), (0.5,), labels, videos, 0.0, informative=True).note
    assert (note is not None) is few
    assert note is None or note.endswith(f"there are {labels} of {videos}")
    held_out, _, absent_rate = planted(20, 3.0, 0)
    found = fit_calibration(held_out, absent_rate)
    assert (found.labels, found.videos) == (len(held_out.hidden), 20)


def test_complete_labels_leave_nothing_to_add() -> None:
    """All that is without a label was not done, whatever its score."""
    held_out, _, _ = planted(60, 2.0, 0, missing=0.0, left_out=0.0)
    confidence = fit_calibration(held_out, 0.001).confidence(held_out.unlabelled)
    assert confidence.max() < 0.5
    assert fit_calibration(held_out.select(held_out.is_hidden), 0.001).error is None


def test_the_order_of_the_items_does_not_matter() -> None:
    held_out, _, rate = planted(40, 2.0, 1)
    back = HeldOutScores(*(array[::-1] for array in held_out))
    one, other = fit_calibration(held_out, rate), fit_calibration(back, rate)
    np.testing.assert_allclose(one.confidences, other.confidences, atol=1e-9)
    assert one.error == pytest.approx(other.error)


def test_it_is_kept_in_a_file(tmp_path: Path) -> None:
    held_out, _, rate = planted(40, 2.0, 2)
    calibration = fit_calibration(held_out, rate)
    calibration.save(tmp_path)
    assert read_calibration(tmp_path) == calibration
    assert read_calibration(tmp_path / "none") is None
    (tmp_path / "calibration.json").write_text('{"scores": "x"}')
    with pytest.raises(InputError, match=r"is damaged"):
        read_calibration(tmp_path)


def test_what_it_says() -> None:
    assert str(FillCalibration((0.0,), (0.0,), 300, 40, 0.031, informative=True)) == (
        "confidences from 300 hidden labels, calibration error 3.1%"
    )


def test_a_calibration_that_is_nested_deeply_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "calibration.json").write_text('{"scores": ' + "[" * 200_000)
    with pytest.raises(InputError, match=r"calibration.json: is damaged"):
        read_calibration(tmp_path)

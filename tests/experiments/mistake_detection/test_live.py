"""Runs followed live: what is true and what is counted by hand, the recogniser's accuracy, and a small run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from experiments.experiment_options import ExperimentOptions
from experiments.mistake_detection import live
from experiments.mistake_detection.live import LiveOptions, LiveTruth, calibration_error, follow
from experiments.mistake_detection.live_followers import BigramFilter, FixedOrder, SmoothedFrames
from experiments.mistake_detection.simulated_recogniser import PAUSES, Recogniser, Report
from msg2.graph import SubtaskGraph, step
from msg2.task import Segment, Task, Video
from tests.experiments.mistake_detection.test_online_mistakes import folder  # noqa: F401
from tests.experiments.progress_recorder import ProgressRecorder

STEPS = ("boil", "pour", "sip")
CHAIN = SubtaskGraph("tea", STEPS, {"pour": step("boil"), "sip": step("pour")})


def timed(names: Sequence[str], id: str = "v1") -> Video:
    """Steps that start every ten seconds and take five."""
    return Video(id, [Segment(name, 10.0 * place, 10.0 * place + 5) for place, name in enumerate(names)])


def seen(name: str | None, at: float) -> Report:
    return Report(at, np.array([*(float(name == one) for one in STEPS), float(name is None)]))


class Scripted:
    """Raises alarms at these reports, and always expects the same step."""

    def __init__(self, alarms: Sequence[int], expected: str) -> None:
        self.alarms, self.expected, self.told = alarms, expected, 0

    def tell(self, report: Report) -> bool:
        self.told += 1
        return self.told - 1 in self.alarms

    def expects(self) -> str:
        return self.expected


# -- truth and counts -------------------------------------------------------------------------------------------------


def test_truth_by_hand() -> None:
    assert LiveTruth.of(timed(["boil", "pour", "sip"]), CHAIN).early == set()
    swapped = LiveTruth.of(timed(["sip", "boil", "pour"]), CHAIN)
    assert (swapped.early, swapped.late, swapped.overdue) == ({"sip"}, {"pour"}, {"boil", "pour"})
    lacking = LiveTruth.of(timed(["pour", "sip"]), CHAIN)
    assert (lacking.early, lacking.late) == ({"pour"}, set())
    overlapping = Video("v", [Segment("pour", 0.0, 9.0), Segment("boil", 3.0, 5.0)])
    assert LiveTruth.of(overlapping, CHAIN).early == set()


@pytest.mark.parametrize(("alarm", "caught"), [(0, 1), (2, 1), (3, 0)])
def test_an_alarm_counts_up_to_two_events_late(alarm: int, caught: int) -> None:
    video = timed(["pour", "boil", "sip", "sip"])
    reports = [seen(segment.step, segment.end or 0.0) for segment in video.segments]
    counts = follow(video, LiveTruth.of(video, CHAIN), Scripted([alarm], "boil"), reports, framed=False)
    assert (counts["violations"], counts["caught"], counts["alarms"]) == (1, caught, 1)
    # boil comes late: whether that is told again does not matter. An alarm at the end is a false one.
    assert (counts.get("hit", 0), counts.get("missed", 0)) == (caught, 1 - caught)
    assert counts.get("false alarm", 0) == 1 - caught
    assert (counts["asked"], counts["next"], counts["repeated"]) == (3, 1, 1)


def test_in_frames_an_alarm_counts_until_twenty_seconds_after_the_step() -> None:
    video = timed(["pour", "boil"])
    reports = [seen(None, float(second)) for second in range(40)]
    truth = LiveTruth.of(video, CHAIN)
    caught = [follow(video, truth, Scripted([at], "boil"), reports, framed=True)["caught"] for at in (0, 25, 26)]
    assert caught == [1, 1, 0]


def test_calibration_by_hand() -> None:
    judged = [(0.0, False)] * 5 + [(0.2, True)] + [(0.2, False)] * 4
    error, bins = calibration_error(judged, bins=2)
    assert error == pytest.approx(0.0)
    assert bins == [[5, 0, 0], [5, pytest.approx(0.2), pytest.approx(0.2)]]
    assert calibration_error([], bins=2) == (0, [])


# -- followers and the recogniser -------------------------------------------------------------------------------------


def test_a_list_waits_for_what_is_above() -> None:
    known = Task("tea", STEPS, [timed(["boil", "pour", "sip"], "a"), timed(["boil", "pour"], "b")])
    order = FixedOrder.of(known, STEPS)
    assert list(order.order) == ["boil", "pour", "sip"]
    told = [order.tell(seen(name, 0.0)) for name in ("boil", "sip", None, "sip", "pour")]
    assert told == [False, True, False, False, False]
    assert order.expects() is None


def test_a_bigram_filter_goes_by_the_last_step() -> None:
    bigram = BigramFilter.of(Task("tea", STEPS, [timed(["boil", "pour", "sip"])]), STEPS)
    expected = []
    for name in STEPS:
        expected.append(bigram.expects())
        assert not bigram.tell(seen(name, 0.0))
        assert bigram.belief.sum() == pytest.approx(1.0)
    assert expected == list(STEPS)


def test_short_leads_are_no_segments() -> None:
    told: list[str] = []

    class Listening(Scripted):
        def tell(self, report: Report) -> bool:
            told.append(STEPS[int(report.probabilities.argmax())])
            return True

    smoothed = SmoothedFrames(Listening([], "boil"))
    shown = [None] * 50 + ["boil"] * 100 + [None] * 100 + ["sip"] * 5 + [None] * 100
    alarms = [smoothed.tell(seen(name, number / 5)) for number, name in enumerate(shown)]
    assert told == ["boil"]
    assert sum(alarms) == 1
    assert 150 < alarms.index(True) < 200


@pytest.mark.parametrize("accuracy", [0.9, 0.6])
def test_a_recogniser_is_right_as_often_as_asked(accuracy: float) -> None:
    steps = ["cut bread", "cut onion", "boil water", "pour water", "stir"]
    recogniser = Recogniser.with_accuracy(steps, accuracy)
    rng = np.random.default_rng(7)
    drawn = [int(rng.integers(5)) if rng.random() < 1 / (1 + PAUSES) else 5 for _ in range(3000)]
    said = [recogniser.probabilities(true, rng.normal(size=6)) for true in drawn]
    right = [int(of_one.argmax()) == true for of_one, true in zip(said, drawn, strict=True)]
    assert np.mean(right) == pytest.approx(accuracy, abs=0.04)
    assert np.mean([of_one.max() for of_one in said]) == pytest.approx(accuracy, abs=0.1)  # and as sure as it is right
    assert recogniser.missed == pytest.approx((1 - accuracy) / 2)


# -- the experiment ---------------------------------------------------------------------------------------------------


def test_tables_of_a_small_run(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    small = LiveOptions(recordings=2, seeds=1, worlds=1, taught=10)
    monkeypatch.setattr(live.LiveOptions, "quick", staticmethod(lambda: small))
    monkeypatch.setattr(live, "engine_fingerprint", lambda: "this version")
    reported = ProgressRecorder()
    options = ExperimentOptions(quick=True, folder=tmp_path / "out")
    result = live.run(folder, options, reported)
    assert len(reported) == len(live.SOURCES) + 1
    scores, trade_off, calibration = result.tables
    assert [len(row) for row in scores.rows] == [len(scores.columns)] * (3 + 3 * 4 + 2 * 4)
    assert [row[1] for row in scores.rows[:3]] == ["msg2", "fixed order of a list", "bigram filter"]
    told = scores.rows[0]
    assert told[2:4] == [0.0, 0.0]  # nobody faultless is accused
    assert len(trade_off.rows) == 4 * len(live.THRESHOLDS)
    assert [row[0] for row in calibration.rows] == [*(source.title for source in live.SOURCES[:4]), "simulated"]
    assert (tmp_path / "out" / "live-trade-off.svg").exists()
    # What was measured is there the next time, and the numbers are the same.
    again = ProgressRecorder()
    assert live.run(folder, options, again).to_json() == result.to_json()
    assert again == []
    monkeypatch.setattr(live, "engine_fingerprint", lambda: "another version")
    live.run(folder, options, again)
    assert again == reported
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["experiment"] == "live"

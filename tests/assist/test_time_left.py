"""Time left: weighted quantiles against a loop, a planted duration, and intervals that hold what they promise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.assist import Assistant
from msg2.assist.time_left import TimeLeft, _weighted_quantiles, fit_time_left, times_unknown
from msg2.formats import read_all
from msg2.formats.source import Source
from msg2.graph import SubtaskGraph
from msg2.task import Segment, Task, Video

GRAPH = SubtaskGraph("t", "abcd", {})


def simulate(videos: int, seed: int, pace_spread: float = 0.0) -> list[Video]:
    """Steps of random lengths, one after the other; some videos leave out c; each has its own pace."""
    rng, found = np.random.default_rng(seed), []
    for number in range(videos):
        pace, now, segments = float(np.exp(pace_spread * rng.standard_normal())), 0.0, []
        for name in "abcd" if rng.random() < 0.5 else "abd":
            length = pace * float(rng.gamma(4.0, 5.0))
            segments.append(Segment(name, now, now + length))
            now += length
        found.append(Video(f"v{number}", segments))
    return found


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), min_size=1, max_size=8),
    st.sampled_from([0.1, 0.25, 0.5, 0.9]),
)
def test_weighted_quantiles_by_a_loop(pairs: list[tuple[int, int]], level: float) -> None:
    values, weights = (np.array([[float(pair[place]) for pair in pairs]]) for place in (0, 1))
    repeated = sorted(value for value, weight in pairs for _ in range(weight))
    expected = next(v for v in repeated if sum(other <= v for other in repeated) >= level * len(repeated) - 1e-9)
    assert _weighted_quantiles(values, weights, level, values.argsort(axis=1))[0] == expected


def test_what_always_lasts_as_long_is_known() -> None:
    videos = [Video(f"v{n}", [Segment("a", n, n + 2), Segment("b", n + 5, n + 9)]) for n in range(5)]
    model = fit_time_left(GRAPH, Task("t", "abcd", videos))
    assert model is not None
    assert model([]) == TimeLeft(9.0, 9.0, 9.0, 5)
    assert model(["a"]) == TimeLeft(7.0, 7.0, 7.0, 5)
    assert model(["a", "b"]).high == 0
    assert model(["a"]).after(3).median == 4
    assert model(["a"]).after(30).low == 0


def test_four_runs_in_five_end_in_the_interval_and_half_before_the_median() -> None:
    model = fit_time_left(GRAPH, Task("t", "abcd", simulate(200, seed=1, pace_spread=0.3)))
    assert model is not None
    inside, before = [], []
    for video in simulate(400, seed=2, pace_spread=0.3):
        ends = [segment.end or 0.0 for segment in video.segments]
        for place in range(len(ends) - 1):
            left = model([s.step for s in video.segments[: place + 1]], ends[place] - ends[0])
            inside.append(left.low <= ends[-1] - ends[place] <= left.high)
            before.append(ends[-1] - ends[place] <= left.median)
    assert np.mean(inside) == pytest.approx(0.8, abs=0.06)
    assert np.mean(before) == pytest.approx(0.5, abs=0.07)


def test_a_slow_run_takes_longer() -> None:
    model = fit_time_left(GRAPH, Task("t", "abcd", simulate(200, seed=3, pace_spread=0.8)))
    assert model is not None
    assert model.constants.pace > 0
    slow, fast = model(["a", "b"], 100.0), model(["a", "b"], 5.0)
    assert slow.median > 2 * fast.median
    assert model(["a", "b"]).median == pytest.approx(model(["a", "b"], 0.0).median)


def test_without_times_there_is_no_model() -> None:
    untimed = [Video(f"v{n}", [Segment("a"), Segment("b")]) for n in range(5)]
    assert fit_time_left(GRAPH, Task("t", "abcd", untimed)) is None
    assert fit_time_left(GRAPH, Task("t", "abcd", simulate(1, seed=0))) is None


# -- edited videos ----------------------------------------------------------------------------------------------------


def spread(gap: float) -> list[Video]:
    """Steps of 6 seconds, with so many seconds between them in which nothing has a label; c lasts as long as all."""
    spans = [("a", 0.0, 6.0), ("b", 6 + gap, 12 + gap), ("d", 12 + 2 * gap, 18 + 2 * gap)]
    return [Video(f"v{n}", [Segment(*span) for span in spans]) for n in range(5)]


def test_edited_videos_do_not_tell_how_long_the_work_takes() -> None:
    """18 of 18 + 2 · gap seconds have labels: with gaps of 5 seconds 64 %, with gaps of 4 seconds 69 %."""
    edited, whole = (Task("t", "abcd", spread(gap)) for gap in (5.0, 4.0))
    assistant = Assistant(GRAPH, edited)
    why = "labels fill 64 % of the videos, as in edited ones, which do not tell how long the work takes"
    assert assistant.limitations() == {"time_left": why}
    assistant.did("a", at=0)
    assert assistant.time_left() is None
    assert {following.seconds for following in assistant.next()} == {None}
    log = Task("t", "abcd", edited.videos, "skipped")
    learned = replace(GRAPH, method={"options": {"absent": "skipped"}})
    for graph, task in ((GRAPH, whole), (GRAPH, log), (learned, edited)):
        assistant = Assistant(graph, task)
        assert assistant.limitations() == {}
        assert assistant.time_left() is not None
        assert assistant.next(1)[0].seconds is not None


def test_labels_that_overlap_fill_no_time_twice() -> None:
    twice = [[Segment("a", 0, 60), Segment("b", 0, 60), Segment("c", 10, 20), Segment("d", 95, 100)]] * 2
    task = Task("t", "abcd", [Video(f"v{n}", segments) for n, segments in enumerate(twice)])
    assert str(times_unknown(task, GRAPH)).startswith("labels fill 65 % of the videos")


def test_real_videos_that_are_edited_are_told_from_those_that_are_not(data: Path) -> None:
    """No CrossTask task tells working times, and all recipes of CaptainCook4D but one do."""
    edited = read_all(data / "crosstask" / "crosstask_release")
    recordings = data / "captaincook4d" / "complete_step_annotations.json"
    whole = read_all(Source.at(recordings), order="time")
    assert [task.name for task in edited if times_unknown(task, GRAPH) is None] == []
    assert [task.name for task in whole if times_unknown(task, GRAPH)] == ["Tomato Mozzarella Salad"]

"""Further ahead than the next step, against sums over all paths."""

from __future__ import annotations

import json
import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msg2.assist.forecasting import fit_end_probability, look_ahead
from msg2.assist.learned_forecaster import fit_forecaster
from msg2.assist.time_left import fit_waiting_times
from msg2.errors import InputError
from msg2.task import Segment, Task, Video
from tests.assist.forecast_examples import DONE, GRAPH, NAMES, SEQUENCES, task_of


@settings(max_examples=10)
@given(SEQUENCES, DONE, st.integers(1, 3))
def test_within_is_the_sum_over_all_paths(sequences: list[str], done: list[str], horizon: int) -> None:
    task = task_of(sequences)
    ranker, ends = fit_forecaster(GRAPH, task), fit_end_probability(GRAPH, task)
    found = look_ahead(ranker, done, horizon, ends)
    left = [name for name in NAMES if name not in done]
    most = min(horizon, len(left))
    expected, goes_on = dict.fromkeys(left, 0.0), 0.0
    for size in range(1, most + 1):
        for path in permutations(left, size):
            chance = 1.0
            for place, name in enumerate(path):
                seen = [*done, *path[:place]]
                chance *= (1 - ends(seen)) * ranker(seen)[name]
            expected[path[-1]] += chance
            goes_on += chance if size == most else 0.0
    assert found.within == pytest.approx(expected)
    assert found.end_probability == pytest.approx(1 - goes_on)
    assert list(found.within.values()) == sorted(found.within.values(), reverse=True)
    assert len(found.path) == most


def test_a_narrow_beam_keeps_the_total(monkeypatch: pytest.MonkeyPatch) -> None:
    ranker = fit_forecaster(GRAPH, task_of(["abcd", "bacd", "dabc"]))
    monkeypatch.setattr("msg2.assist.forecasting.BEAM_WIDTH", 1)
    narrow = look_ahead(ranker, [], 2)
    assert sum(narrow.within.values()) == pytest.approx(2)
    assert narrow.end_probability == pytest.approx(0)
    with pytest.raises(InputError, match="horizon is 0"):
        look_ahead(ranker, [], 0)


def test_endings() -> None:
    ends = fit_end_probability(GRAPH, task_of(["abc"] * 20 + ["abd"] * 20))
    assert ends([]) == 0
    assert ends("a") < 0.2 and ends("ab") < 0.2  # noqa: PT018
    assert ends("abc") > 0.8
    nothing = fit_end_probability(GRAPH, task_of([]))
    assert (nothing("ab"), nothing.to_json()["terms"]) == (0, None)


def test_endings_can_be_written_down() -> None:
    """The logistic of the coefficients of 1, of what is done, of the last step and of 2^−(steps since)."""
    ends = fit_end_probability(GRAPH, task_of(["abc", "bad", "dab", "ab"]))
    value = json.loads(json.dumps(ends.to_json()))
    steps = value["steps"]
    names = ["1", *(f"{n} done" for n in steps), *(f"{n} last" for n in [*steps, "none"]), *(f"{n} ago" for n in steps)]
    for done in ("a", "ba", "abd"):
        x = {"1": 1.0, f"{done[-1]} last": 1.0}
        for ago, name in enumerate(reversed(done)):
            x |= {f"{name} done": 1.0, f"{name} ago": 0.5**ago}
        terms = zip(names, value["terms"], strict=True)
        utility = sum(x.get(name, 0.0) * (end - goes_on) for name, (goes_on, end) in terms)
        assert ends(done) == pytest.approx(1 / (1 + math.exp(-utility)))


def test_waiting_backs_off_where_pairs_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msg2.assist.time_left.MIN_GAPS", 5)

    def video(number: int, first: str, gap: float) -> Video:
        return Video(f"{number:02}", [Segment("a", 2, 4), Segment(first, 4 + gap, 6 + gap), Segment(first, 90, 91)])

    task = Task("t", NAMES, [video(n, "b", n) for n in range(5)] + [video(9, "c", 10.0)])
    wait = fit_waiting_times(task)
    often, rare = wait("a", "b"), wait("a", "c")
    assert often is not None
    assert rare is not None
    assert (often.median, often.low, often.high, often.gaps) == pytest.approx((2, 0, 4, 5))
    assert (rare.median, rare.gaps) == (2.5, 6)  # 0, 1, 2, 3, 4 and 10: all gaps after a
    elsewhere = wait("d", "a")
    assert elsewhere is not None
    assert elsewhere.gaps == 12
    assert fit_waiting_times(task_of(["ab"]))("a", "b") is None
    overlapping = Task("t", "ab", [Video("v", [Segment("a", 0, 9), Segment("b", 5, 9)])])
    monkeypatch.setattr("msg2.assist.time_left.MIN_GAPS", 1)
    assert fit_waiting_times(overlapping)("a", "b").median == 0  # type: ignore[union-attr]


def test_four_gaps_in_five_are_in_the_interval() -> None:
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(400):
        *gaps, following = rng.exponential(10, 10).tolist()
        seen = [Video(str(n), [Segment("a", 0, 1), Segment("b", 1 + gap, 99)]) for n, gap in enumerate(gaps)]
        wait = fit_waiting_times(Task("t", "ab", seen))("a", "b")
        assert wait is not None
        inside.append(wait.low <= following <= wait.high)
    assert np.mean(inside) == pytest.approx(0.8, abs=0.05)

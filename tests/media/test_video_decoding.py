"""The clock of a video: frames get their times, whatever stamps the file gives them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.media import video_decoding


def clock(
    monkeypatch: pytest.MonkeyPatch, stamps: Sequence[int | None], seconds: float | None, hold: float
) -> list[float]:
    """When pictures with these stamps (milliseconds) appear in a file of that length, and when the last one goes."""
    pictures = [SimpleNamespace(pts=stamp, dts=None, duration=40) for stamp in stamps]
    container = SimpleNamespace(start_time=0, duration=None if seconds is None else int(seconds * 1e6))
    stream = SimpleNamespace(time_base=Fraction(1, 1000), average_rate=Fraction(25), guessed_rate=None)
    monkeypatch.setattr(video_decoding, "decode_stream", lambda *_: iter(pictures))
    monkeypatch.setattr(video_decoding, "LONGEST_FRAME", hold)
    frames = video_decoding.decode_frames(Path("a.mp4"), container, stream)  # type: ignore[arg-type]
    return [round(at, 3) for at, _ in frames]


@pytest.mark.parametrize(
    ("stamps", "expected"),
    [
        ([0, 40, 900, 120, 160], [0, 0.04, 0.9, 0.9, 0.9, 0.94]),  # a little too early: in the place of the one before
        ([0, 40, 80_000, 120, 160], [0, 0.04, 0.08, 0.12, 0.16, 0.2]),  # one wild time moves nothing
        ([0, 40, 8000, 8040], [0, 0.04, 8, 8.04, 8.08]),  # a picture that stays, as the file is long enough
        ([5000, 5040, 0, 40], [5, 5.04, 5.08, 5.12, 5.16]),  # set back
        ([None, None, 80, None], [0, 0.04, 0.08, 0.12, 0.16]),
        ([0, 0, 0, 0], [0, 0.04, 0.08, 0.12, 0.16]),  # a clock that stands still is none
        ([-500, 0, 40], [0, 0, 0.04, 0.08]),
        ([], []),
    ],
)
def test_rules_for_broken_clocks(
    monkeypatch: pytest.MonkeyPatch, stamps: list[int | None], expected: list[float]
) -> None:  # fmt: skip
    assert clock(monkeypatch, stamps, seconds=10.0, hold=3600.0) == expected


@given(
    stamps=st.lists(st.none() | st.integers(-(10**9), 10**9) | st.integers(0, 9000), min_size=1),
    seconds=st.none() | st.floats(0.1, 100),
)
def test_whatever_the_clock_does(stamps: list[int | None], seconds: float | None) -> None:
    with pytest.MonkeyPatch.context() as patch:
        times = clock(patch, stamps, seconds, hold=20.0)
    gaps = np.diff(times)
    assert len(times) == len(stamps) + 1
    assert (gaps >= 0).all()
    assert (gaps <= 20.001).all()
    if seconds is not None:
        assert times[-1] <= seconds + 1 + 1.1 * len(stamps)


@given(st.lists(st.integers(1, 19_000), max_size=50))
def test_a_clock_that_is_right_is_kept(gaps: list[int]) -> None:
    stamps = [0, *np.cumsum(gaps).tolist()]
    with pytest.MonkeyPatch.context() as patch:
        assert clock(patch, stamps, 2000.0, hold=20.0)[:-1] == [stamp / 1000 for stamp in stamps]

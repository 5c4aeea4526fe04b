"""The completion figure: a bar per completed step, from its completion to the end, in the colour of its source."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from msg2.drawing import plots as module
from msg2.drawing.plots import order_by_completion, timeline
from msg2.errors import InputError, MissingExtraError
from msg2.task import Segment, Video

STEPS = ["boil $5", "<b>milk</b>", "pour" * 40, "写真", "never"]
VIDEO = Video("v & 1", [
    Segment(STEPS[0], 2, 5), Segment(STEPS[0], 20, 21), Segment(STEPS[1], 7, 7),
    Segment(STEPS[2], 5, 12, 0.875, "predicted"), Segment(STEPS[3], 25, 29, 0.5, "predicted"),
])  # fmt: skip


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float, float, str]]:
    """(row, from, to, colour) of every bar that is drawn."""
    axes = pytest.importorskip("matplotlib.axes").Axes
    drawn: list[tuple[int, float, float, str]] = []
    barh = axes.barh

    def recorded(self: Any, row: int, width: float, *, left: float, color: str, **settings: Any) -> Any:
        drawn.append((row, left, left + width, color))
        return barh(self, row, width, left=left, color=color, **settings)

    monkeypatch.setattr(axes, "barh", recorded)
    return drawn


def test_bars_go_from_the_first_completion_to_the_end(bars: list[tuple[int, float, float, str]]) -> None:
    timeline(VIDEO, STEPS, 30)
    completed = {row: (start, end, colour) for row, start, end, colour in bars if colour != module._SEGMENT}
    assert completed == {
        0: (5, 30, module._LABELLED_BAR), 1: (7, 30, module._LABELLED_BAR),
        2: (12, 30, module._INFERRED_BAR), 3: (29, 30, module._INFERRED_BAR),
    }  # fmt: skip
    segments = [(row, start, end) for row, start, end, colour in bars if colour == module._SEGMENT]
    assert segments == [(0, 2, 5), (0, 20, 21), (1, 7, pytest.approx(7 + 30 / 400))]


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_the_same_video_gives_the_same_bytes(suffix: str) -> None:
    pytest.importorskip("matplotlib")
    drawn = timeline(VIDEO, STEPS, 30, suffix=suffix)
    assert drawn == timeline(VIDEO, STEPS, 30, suffix=suffix)
    assert b"dc:date" not in drawn
    assert drawn.startswith(b"\x89PNG") or ET.fromstring(drawn).tag.endswith("svg")


def test_names_are_text_and_long_ones_are_cut() -> None:
    pytest.importorskip("matplotlib")
    words = [
        element.text for element in ET.fromstring(timeline(VIDEO, STEPS, 30)).iter() if element.tag.endswith("text")
    ]
    assert {"boil $5", "<b>milk</b>", "写真", "never", "v & 1"} <= set(words)
    assert [len(word) for word in words if word and word.startswith("pourpour")] == [40]
    assert [word.strip() for word in words if word and "%" in word] == ["88 %", "50 %"]


def test_the_picture_of_an_empty_video() -> None:
    pytest.importorskip("matplotlib")
    assert timeline(Video("v", []), [], 0.5)


def test_steps_in_the_order_of_completion() -> None:
    assert order_by_completion(VIDEO, sorted(STEPS)) == [STEPS[0], STEPS[1], STEPS[2], STEPS[3], "never"]


def test_what_cannot_be_drawn() -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(InputError, match="has no times"):
        timeline(Video("v", [Segment("boil")]), ["boil"], 1)
    with pytest.raises(InputError, match="no format for a timeline"):
        timeline(VIDEO, STEPS, 30, suffix=".gif")


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'msg2\[plot\]'"):
        timeline(VIDEO, STEPS, 30)

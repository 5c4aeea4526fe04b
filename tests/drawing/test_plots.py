from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import pytest

from msg2.drawing.plots import sweep_plot
from msg2.errors import MissingExtraError
from msg2.inference.delta import SweepPoint

ONE = [SweepPoint(0.5, 9, 0.5, -1.5, False), SweepPoint(0.7, 6, 0.75, -1.0, True), SweepPoint(0.9, 3, 1, -2.0, False)]
TWO = [SweepPoint(0.5, 5, 0.5, -0.5, True), SweepPoint(0.7, 4, 0.75, -2.0, False), SweepPoint(0.9, 1, 1, -3.0, False)]


@pytest.mark.parametrize("tasks", [[ONE], [ONE, TWO]], ids=["one", "two"])
def test_the_same_points_give_the_same_bytes(tasks: list[list[SweepPoint]]) -> None:
    pytest.importorskip("matplotlib")
    svg = sweep_plot(tasks, "sweep of $5 <b>")
    assert svg == sweep_plot(tasks, "sweep of $5 <b>")
    assert ET.fromstring(svg).tag.endswith("svg")
    assert b"dc:date" not in svg


def test_several_tasks_are_thin_lines_under_their_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    axes = pytest.importorskip("matplotlib.axes").Axes
    drawn: list[tuple[list[float], float]] = []
    plot = axes.plot

    def recorded(self: Any, x: Any, y: Any, *args: Any, **settings: Any) -> Any:
        drawn.append((list(y), settings["linewidth"]))
        return plot(self, x, y, *args, **settings)

    monkeypatch.setattr(axes, "plot", recorded)
    sweep_plot([ONE, TWO], "two tasks")
    assert len(drawn) == 6
    assert [values for values, width in drawn if width > 2] == [[7, 5, 2], [-1.0, -1.5, -2.5]]


@pytest.mark.parametrize(("chosen", "side"), [(0, "left"), (2, "right")])
def test_the_chosen_delta_of_one_task_is_written_inside_the_frame(
    chosen: int, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = pytest.importorskip("matplotlib.figure")
    drawn = []
    save = figures.Figure.savefig

    def recorded(self: Any, *args: Any, **settings: Any) -> None:
        save(self, *args, **settings)
        drawn.append(self)

    monkeypatch.setattr(figures.Figure, "savefig", recorded)
    sweep_plot([[replace(point, chosen=number == chosen) for number, point in enumerate(ONE)]], "one task")
    axes = drawn[0].axes[0]
    (label,) = axes.texts
    assert (label.get_text().strip(), label.get_ha()) == (f"δ = {ONE[chosen].delta:g}", side)
    frame, text = axes.get_window_extent(), label.get_window_extent()
    assert frame.x0 <= text.x0 < text.x1 <= frame.x1
    assert frame.y0 <= text.y0 < text.y1 <= frame.y1


def test_the_chosen_deltas_of_several_tasks_are_lines_without_text() -> None:
    pytest.importorskip("matplotlib")
    assert b"<!--  \xce\xb4 = 0.7  -->" in sweep_plot([ONE], "one")
    assert b"\xce\xb4 = " not in sweep_plot([ONE, TWO], "two")


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'msg2\[plot\]'"):
        sweep_plot([ONE], "x")

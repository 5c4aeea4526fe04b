from __future__ import annotations

import builtins
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import pytest

from msg2.drawing.plots import dots_plot, sweep_plot
from msg2.errors import MissingExtraError
from msg2.inference import SweepPoint

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
    real = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'msg2\[plot\]'"):
        sweep_plot([ONE], "x")


PANELS: dict[str, dict[str, tuple[float, float | None, float | None, float | None]]] = {
    "accuracy": {"a $5 <b>": (80.0, 78.0, 82.0, None), "c": (60.0, None, None, 70.0)},
    "seconds": {"c": (0.01, None, None, None), "d": (5.0, None, None, None)},
    "unknown": {},
}


def test_a_chart_has_a_line_per_row_a_whisker_and_a_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = pytest.importorskip("matplotlib.figure")
    drawn = []
    save = figures.Figure.savefig

    def recorded(self: Any, *args: Any, **settings: Any) -> None:
        save(self, *args, **settings)
        drawn.append(self)

    monkeypatch.setattr(figures.Figure, "savefig", recorded)
    svg = dots_plot(PANELS, "a chart")
    assert svg == dots_plot(PANELS, "a chart")
    left, right = drawn[0].axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["a $5 <b>", "c", "d"]
    points = [(line.get_xdata().tolist() if hasattr(line.get_xdata(), "tolist") else list(line.get_xdata()),
               list(line.get_ydata())) for line in left.lines]  # fmt: skip
    assert points == [([78.0, 82.0], [0, 0]), ([80.0], [0]), ([70.0], [1]), ([60.0], [1])]
    assert (left.get_xscale(), right.get_xscale()) == ("log", "log")  # hundredfold values go on a logarithmic scale
    assert "0.1" in [label.get_text() for label in right.get_xticklabels()]
    assert [text.get_text() for text in drawn[0].legends[0].get_texts()] == ["here", "the paper"]
    dots_plot({"accuracy": {"c": (60.0, None, None, None)}}, "without the paper")
    assert not drawn[-1].legends
    assert drawn[-1].axes[0].get_xscale() == "linear"

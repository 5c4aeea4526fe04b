"""The plot of methods side by side: what is drawn."""

from __future__ import annotations

from typing import Any

import pytest

from msg2.drawing.plots import dot_plot

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
    svg = dot_plot(PANELS, "a chart")
    assert svg == dot_plot(PANELS, "a chart")
    left, right = drawn[0].axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["a $5 <b>", "c", "d"]
    points = [(line.get_xdata().tolist() if hasattr(line.get_xdata(), "tolist") else list(line.get_xdata()),
               list(line.get_ydata())) for line in left.lines]  # fmt: skip
    assert points == [([78.0, 82.0], [0, 0]), ([80.0], [0]), ([70.0], [1]), ([60.0], [1])]
    assert (left.get_xscale(), right.get_xscale()) == ("log", "log")  # hundredfold values go on a logarithmic scale
    assert "0.1" in [label.get_text() for label in right.get_xticklabels()]
    assert [text.get_text() for text in drawn[0].legends[0].get_texts()] == ["here", "the paper"]
    dot_plot({"accuracy": {"c": (60.0, None, None, None)}}, "without the paper")
    assert not drawn[-1].legends
    assert drawn[-1].axes[0].get_xscale() == "linear"

from __future__ import annotations

import builtins
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from msg2.drawing.plots import sweep_plot
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


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'msg2\[plot\]'"):
        sweep_plot([ONE], "x")

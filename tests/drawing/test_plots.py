from __future__ import annotations

import builtins
import math
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from msg2.drawing.plots import Curve, sweep_plot
from msg2.errors import MissingExtraError

GRID = (0.5, 0.7, 0.9)
ONE = Curve("toast", GRID, (9, 6, 3), (0.5, 0.75, math.nan), chosen=0.7)
TWO = Curve("$x$ <b>", GRID, (5, 4, 1), (0.25, 0.5, math.nan))


@pytest.mark.parametrize("curves", [[], [ONE], [ONE, TWO]], ids=["none", "one", "two"])
def test_the_same_curves_give_the_same_bytes(curves: list[Curve]) -> None:
    pytest.importorskip("matplotlib")
    svg = sweep_plot(curves, "sweep of $5 <b>")
    assert svg == sweep_plot(curves, "sweep of $5 <b>")
    assert ET.fromstring(svg).tag.endswith("svg")
    assert b"dc:date" not in svg
    assert sweep_plot(curves, "x", "png").startswith(b"\x89PNG")


def test_several_tasks_are_thin_lines_under_their_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    axes = pytest.importorskip("matplotlib.axes").Axes
    drawn: list[tuple[list[float], float]] = []
    plot = axes.plot

    def recorded(self: Any, x: Any, y: Any, *args: Any, **settings: Any) -> Any:
        drawn.append((list(y), settings["linewidth"]))
        return plot(self, x, y, *args, **settings)

    monkeypatch.setattr(axes, "plot", recorded)
    sweep_plot([ONE, TWO], "two tasks")
    thick = [values for values, width in drawn if width > 2]
    assert len(drawn) == 6
    assert thick[0] == [7, 5, 2]
    assert thick[1][:2] == [0.375, 0.625]
    assert math.isnan(thick[1][2])


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'msg2\[plot\]'"):
        sweep_plot([ONE], "x")

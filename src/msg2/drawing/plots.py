"""Curves beside the pictures: how many edges a graph has, and how well it fits, against the threshold δ."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from msg2.drawing import style
from msg2.drawing.text import cut, one_line
from msg2.errors import MissingExtraError

_EDGES, _FIT = style.ARROW["redundant"], "#b3540a"


@dataclass(frozen=True, slots=True)
class Curve:
    """One task over a grid of δ: `edges` and `fit` have one value per δ; `chosen` is the δ that was taken, if any.

    Of `fit`, higher is better; NaN where it is not defined.
    """

    task: str
    deltas: Sequence[float]
    edges: Sequence[float]
    fit: Sequence[float]
    chosen: float | None = None


def sweep_plot(curves: Sequence[Curve], title: str, kind: Literal["svg", "png"] = "svg") -> bytes:
    """Edges (left axis) and fit (right axis) against δ, as the content of an SVG or PNG file.

    Several tasks (with the same grid) are thin lines under their mean. The same curves give the same bytes.
    """
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("drawing the sweep", "plot") from error

    # `parse_math` off: a name such as "cut $5 cheese" is text, not a formula.
    settings: dict[Any, Any] = {
        "svg.hashsalt": "msg2",
        "text.parse_math": False,
        "font.family": "sans-serif",
        "font.size": 10,
    }
    with mpl.rc_context(settings):
        figure = Figure(figsize=(7.2, 4.2), layout="constrained")
        FigureCanvasAgg(figure)
        left = figure.subplots()
        right = left.twinx()
        for axis, values, colour, dashes in ((left, "edges", _EDGES, "-"), (right, "fit", _FIT, "--")):
            for curve in curves if len(curves) > 1 else ():
                axis.plot(curve.deltas, getattr(curve, values), dashes, color=colour, linewidth=0.8, alpha=0.3)
            if curves:
                mean = [_mean(column) for column in zip(*(getattr(curve, values) for curve in curves), strict=True)]
                axis.plot(curves[0].deltas, mean, dashes, color=colour, linewidth=2.2, marker="o", markersize=4)
            axis.tick_params(axis="y", colors=colour)
        for delta in sorted({curve.chosen for curve in curves if curve.chosen is not None}):
            left.axvline(delta, color=style.INK, linewidth=1, linestyle=":")
            left.annotate(f" δ = {delta:g}", (delta, 1), xycoords=("data", "axes fraction"), va="top", color=style.INK)
        many = " (mean, and each task)" if len(curves) > 1 else ""
        left.set_xlabel("δ")
        left.set_ylabel(f"edges ──{many}", color=_EDGES)
        right.set_ylabel(f"fit ╌╌{many}", color=_FIT)
        left.set_ylim(bottom=0)
        left.grid(axis="y", alpha=0.25)
        left.set_title(cut(one_line(title), 80))
        stream = io.BytesIO()
        figure.savefig(stream, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else {"Software": None})
    return stream.getvalue()


def _mean(values: Sequence[float]) -> float:
    """The mean of what is defined; NaN where nothing is."""
    defined = [value for value in values if not math.isnan(value)]
    return sum(defined) / len(defined) if defined else float("nan")

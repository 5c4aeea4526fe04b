"""Curves of graphs against the threshold δ."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from msg2.drawing import style
from msg2.drawing.figure import new_figure
from msg2.inference import SweepPoint
from msg2.text import one_line, truncate

_EDGES, _FIT = style.ARROW["redundant"], "#b3540a"


def sweep_plot(tasks: Sequence[Sequence[SweepPoint]], title: str) -> bytes:
    """Plot edges (left axis) and fit (right axis) against δ.

    Dotted lines are the chosen δ. Several tasks are thin lines under their mean.

    Parameters
    ----------
    tasks : sequence of sequences of SweepPoint
        Per task, its points; all with the same values of δ.
    title : str
        The title.

    Returns
    -------
    bytes
        The content of an SVG file; the same points give the same bytes.
    """
    with new_figure("drawing the sweep", (7.2, 4.2)) as (figure, stream):
        left = figure.subplots()
        right = left.twinx()
        for axis, value, colour, dashes in ((left, "edges", _EDGES, "-"), (right, "fit", _FIT, "--")):
            curves = [[getattr(point, value) for point in points] for points in tasks]
            for points, curve in zip(tasks, curves, strict=True) if len(tasks) > 1 else ():
                axis.plot([p.delta for p in points], curve, dashes, color=colour, linewidth=0.8, alpha=0.3)
            mean = [fmean(column) for column in zip(*curves, strict=True)]
            axis.plot([p.delta for p in tasks[0]], mean, dashes, color=colour, linewidth=2.2, marker="o", markersize=4)
            axis.tick_params(axis="y", colors=colour)
        chosen = sorted({point.delta for points in tasks for point in points if point.chosen})
        for delta in chosen:
            left.axvline(delta, color=style.INK, linewidth=1 if len(tasks) == 1 else 0.6, linestyle=":")
        for delta in chosen if len(tasks) == 1 else ():
            side = "right" if delta > fmean(left.get_xlim()) else "left"  # the text stays inside the frame
            left.annotate(
                f" δ = {delta:g} ",
                (delta, 0.98),
                xycoords=("data", "axes fraction"),
                ha=side,
                va="top",
                color=style.INK,
            )
        many = " (mean, and each task)" if len(tasks) > 1 else ""
        left.set_xlabel("δ")
        left.set_ylabel(f"edges ──{many}", color=_EDGES)
        right.set_ylabel(f"fit ╌╌{many}", color=_FIT)
        left.set_ylim(bottom=0)
        left.grid(axis="y", alpha=0.25)
        left.set_title(truncate(one_line(title), 80))
    return stream.getvalue()

"""Figures by matplotlib, the same bytes on every run: methods side by side, the sweep over δ, completion in a video."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import fmean
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.drawing import style
from msg2.errors import optional_dependency, require
from msg2.inference.delta import SweepPoint
from msg2.task import PREDICTED, Step, Video
from msg2.text import one_line, short_repr, truncate

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_METADATA = {".svg": {"Date": None}, ".png": {"Software": None}}
"""What matplotlib would write about the day and itself, left out."""
FIGURE_SUFFIXES = tuple(_METADATA)  # the formats of figures


@contextmanager
def new_figure(
    doing: str,
    inches: tuple[float, float],
    *,
    suffix: str = ".svg",
    settings: Mapping[str, Any] | None = None,
    dots_per_inch: float | None = None,
) -> Iterator[tuple[Figure, io.BytesIO]]:
    """Open a figure to draw on; it is written when the ``with`` block ends."""
    with optional_dependency(doing, "plot"):
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    # `parse_math` off: a name such as "cut $5 cheese" is text, not a formula.
    shared = {"svg.hashsalt": "msg2", "text.parse_math": False, "font.family": "sans-serif", "font.size": 10}
    chosen: dict[Any, Any] = {**shared, **(settings or {})}
    with mpl.rc_context(chosen), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # of a script that the font lacks: drawn as boxes
        figure, stream = Figure(figsize=inches, layout="constrained"), io.BytesIO()
        FigureCanvasAgg(figure)
        yield figure, stream
        figure.savefig(stream, format=suffix[1:], dpi=dots_per_inch or "figure", metadata=_METADATA[suffix])


_EDGES, _FIT = style.ARROW["redundant"], "#b3540a"


def dot_plot(
    panels: Mapping[str, Mapping[str, tuple[float, float | None, float | None, float | None]]],
    title: str,
    suffix: str = ".svg",
) -> bytes:
    """Draw the values of rows side by side: {panel: {row: (value, low, high, the paper's)}}; one of them is not empty.

    A whisker goes from low to high, where they are known; what the paper prints is a ring.
    """
    panels = {name: panel for name, panel in panels.items() if panel}
    rows = list(dict.fromkeys(row for panel in panels.values() for row in panel))
    values = [value for panel in panels.values() for value, *_ in panel.values()]
    wide = min(values) > 0 and max(values) > 100 * min(values)
    down = -(-len(panels) // 4)
    across = -(-len(panels) // down)
    inches = (2.4 + 2.3 * across, 0.9 + down * (0.9 + 0.24 * len(rows)))
    with new_figure("drawing the chart", inches, suffix=suffix) as (figure, stream):
        grid = figure.subplots(down, across, sharex=wide, sharey=True, squeeze=False)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        for axes, (name, panel) in zip(grid.flat, panels.items(), strict=False):
            for row, (value, low, high, printed) in panel.items():
                place = rows.index(row)
                if low is not None and high is not None:
                    axes.plot([low, high], [place, place], color=_EDGES, linewidth=1.6)
                if printed is not None:
                    axes.plot(printed, place, "o", markersize=7, markerfacecolor="none", color=_FIT, label="the paper")
                axes.plot(value, place, "o", markersize=5, color=_EDGES, label="here")
            axes.set_title("\n".join(wrap(one_line(name), 30)), fontsize=9)
            axes.grid(axis="x", alpha=0.25)
            axes.tick_params(axis="y", length=0, labelsize=8)
            axes.margins(x=0.1)
            if wide:
                axes.set_xscale("log")
                axes.xaxis.set_major_formatter("{x:g}")
                axes.xaxis.set_minor_formatter("")
        grid[0][0].set_yticks(range(len(rows)), [truncate(one_line(row), 40) for row in rows])
        grid[0][0].set_ylim(len(rows) - 0.5, -0.5)
        marks = (zip(*axes.get_legend_handles_labels(), strict=True) for axes in grid.flat)
        drawn = {label: mark for of_panel in marks for mark, label in of_panel}
        if "the paper" in drawn:
            figure.legend(drawn.values(), drawn, loc="outside lower center", ncols=2, frameon=False)
        figure.suptitle(truncate(one_line(title), 40 + 20 * across))
    return stream.getvalue()


def sweep_plot(tasks: Sequence[Sequence[SweepPoint]], title: str) -> bytes:
    """Plot edges (left) and fit (right) against δ, the chosen one dotted; several tasks are thin under their mean."""
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
            at = ("data", "axes fraction")
            left.annotate(f" δ = {delta:g} ", (delta, 0.98), xycoords=at, ha=side, va="top", color=style.INK)
        many = " (mean, and each task)" if len(tasks) > 1 else ""
        left.set_xlabel("δ")
        left.set_ylabel(f"edges ──{many}", color=_EDGES)
        right.set_ylabel(f"fit ╌╌{many}", color=_FIT)
        left.set_ylim(bottom=0)
        left.grid(axis="y", alpha=0.25)
        left.set_title(truncate(one_line(title), 80))
    return stream.getvalue()


_LABELLED_BAR, _INFERRED_BAR, _SEGMENT, _ABSENT = "#b9dcd8", "#ee8f7b", "#00786c", "#9aa1ab"
_TRUTH: dict[str, Any] = {"color": style.INK, "linewidth": 1.3, "marker": "o", "markersize": 3.5}
_LONGEST_NAME = 40
_WIDTH, _ROW, _FRAMES = 9.0, 0.27, 0.95
"""Inches: of the figure, of a step, of the row of frames."""

TimedImage: TypeAlias = tuple[float, NDArray[np.uint8]]
"""A moment in seconds, and what is seen then: shape (height, width, 3)."""


def timeline(
    video: Video,
    steps: Sequence[Step],
    seconds: float,
    *,
    performed: Video | None = None,
    frames: Sequence[TimedImage] = (),
    suffix: str = ".svg",
) -> bytes:
    """Draw when one video completes each step: labelled steps in green, inferred ones in red; above them, frames."""
    hint = f"use {' or '.join(FIGURE_SUFFIXES)}"
    require(suffix in FIGURE_SUFFIXES, f"the suffix {suffix!r} is no format for a timeline", hint=hint)
    hint = "a timeline needs start and end of its labels"
    require(video.is_timed, f"video {short_repr(video.id)} has no times", hint=hint)
    rows, above = _ROW * max(1, len(steps)), _FRAMES if frames else 0.0
    inches = (_WIDTH, rows + above + 1.15)
    settings = {"svg.fonttype": "none", "font.size": 9}
    with new_figure("drawing a timeline", inches, suffix=suffix, settings=settings, dots_per_inch=150) as new:
        figure, stream = new
        if frames:
            frame_axes, axes = figure.subplots(2, 1, sharex=True, height_ratios=(above, rows))
            _draw_frames(frame_axes, frames, seconds)
        else:
            axes = figure.subplots()
        _draw_bars(axes, video, steps, seconds)
        ends = {} if performed is None else _completion_times(performed)
        for row, step in enumerate(steps):
            if step in ends:
                axes.plot([ends[step], seconds], [row + 0.43] * 2, **_TRUTH, markevery=[0], clip_on=False)
        _draw_legend(figure, video, performed is not None)
        figure.suptitle(truncate(one_line(video.id), 80), fontsize=11)
    return stream.getvalue()


def _draw_frames(axes: Axes, frames: Sequence[TimedImage], seconds: float) -> None:
    """Draw the images side by side in the order of time, each with a line to its moment."""
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    axes.set(xlim=(0, seconds), ylim=(0, 1))
    axes.set_axis_off()
    room = 0.6 * _WIDTH / len(frames)  # inches; names and margins take the rest
    for place, (moment, image) in enumerate(sorted(frames, key=lambda frame: frame[0])):
        height, width = image.shape[:2]
        zoom = 72 * min(room / width, 0.7 * _FRAMES / height)  # points per pixel
        middle = (place + 0.5) / len(frames) * seconds
        axes.plot([middle, moment], [0.22, 0], color=_ABSENT, linewidth=0.8, clip_on=False)
        axes.add_artist(AnnotationBbox(OffsetImage(image, zoom=zoom), (middle, 0.6), frameon=False, pad=0))


def _draw_bars(axes: Axes, video: Video, steps: Sequence[Step], seconds: float) -> None:
    for row, step in enumerate(steps):
        for number, segment in enumerate(segment for segment in video.segments if segment.step == step):
            start, end = segment.start or 0.0, segment.end or 0.0
            if number == 0:
                colour = _INFERRED_BAR if segment.source == PREDICTED else _LABELLED_BAR
                axes.barh(row, seconds - end, left=end, height=0.72, color=colour, linewidth=0)
            if segment.source != PREDICTED:
                shown = max(end - start, seconds / 400)  # what lasts no time can be seen as well
                axes.barh(row, shown, left=start, height=0.72, color=_SEGMENT, linewidth=0)
            elif segment.confidence is not None:  # written inside the bar where there is room, else before it
                side, colour = ("left", style.INK) if seconds - end > seconds / 12 else ("right", style.MARK_INK)
                percent = f" {100 * segment.confidence:.0f} % "
                axes.text(end, row, percent, ha=side, va="center", fontsize=7.5, color=colour)
    axes.set_yticks(range(len(steps)), [truncate(one_line(step), _LONGEST_NAME) for step in steps])
    seen = {segment.step: segment.source for segment in video.segments}
    for label, step in zip(axes.get_yticklabels(), steps, strict=True):
        label.set_color(_ABSENT if step not in seen else style.MARK_INK if seen[step] == PREDICTED else style.INK)
    axes.set(xlim=(0, seconds), ylim=(max(len(steps), 1) - 0.5, -0.5), xlabel="seconds")
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", alpha=0.25)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _draw_legend(figure: Figure, video: Video, true: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    sources = {segment.source == PREDICTED for segment in video.segments}
    entries = [(_SEGMENT, "labelled"), (_LABELLED_BAR, "completed")] if False in sources else []
    entries += [(_INFERRED_BAR, "completed, inferred (confidence)")] if True in sources else []
    handles: list[Artist] = [Patch(facecolor=colour, label=words) for colour, words in entries]
    handles += [Line2D([], [], **_TRUTH, label="really completed")] if true else []
    if handles:
        figure.legend(handles=handles, loc="outside lower right", ncols=len(handles), frameon=False, fontsize=8)


def _completion_times(video: Video) -> dict[Step, float]:
    """Where the first segment of each step ends."""
    return {segment.step: segment.end or 0.0 for segment in reversed(video.segments)}


def order_by_completion(video: Video, steps: Sequence[Step]) -> list[Step]:
    """Sort steps by when a video completes them."""
    ends = _completion_times(video)
    return sorted(steps, key=lambda step: ends.get(step, float("inf")))

"""Plots of the experiments: calibration, learning curves, grids of curves, the search."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle

from experiments.paper_figures.search_trace import RoundOutcome, SearchRound
from msg2.drawing import style
from msg2.drawing.plots import new_figure
from msg2.text import one_line, truncate

_BAR_COLOURS: Mapping[RoundOutcome, str] = {"found": "#00786c", "goes on": "#b9dcd8", "no better": "#e1e4e8"}


_OUTCOME_TEXTS: Mapping[RoundOutcome, str] = {
    "found": "found",
    "goes on": "the search goes on",
    "no better": "nothing better",
}


_LONGEST_FORMULA = 80


def reliability_plot(curves: Mapping[str, Sequence[tuple[float, float, int]]], title: str) -> bytes:
    """How often what was said to be probable is true, as the content of an SVG file.

    A curve is (predicted probability, share that is true, how many) for every bin; many make a large dot. On the dotted
    line the two are equal, below it the predictions are too sure.

    Parameters
    ----------
    curves : mapping
        By name: (predicted probability, share that is true, how many) per bin.
    title : str
        Above the plot.

    Returns
    -------
    bytes
        The content of an SVG file.
    """
    with new_figure("drawing the calibration", (5.2, 5.2)) as (figure, stream):
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], ":", color=style.INK, linewidth=1)
        for (name, bins), marker in zip(curves.items(), cycle("osD^v")):
            (line,) = axes.plot([b[0] for b in bins], [b[1] for b in bins], linewidth=1.6, label=name)
            sizes = [8 + 6 * math.log1p(b[2]) for b in bins]
            axes.scatter([b[0] for b in bins], [b[1] for b in bins], sizes, color=line.get_color(), marker=marker)
        axes.set_xlabel("probability by the bootstrap")
        axes.set_ylabel("share that is true")
        axes.set_aspect("equal")
        axes.grid(alpha=0.25)
        axes.legend(loc="upper left")
        axes.set_title(truncate(one_line(title), 60))
    return stream.getvalue()


def learning_curve_plot(curves: Mapping[str, Sequence[tuple[float, float]]], shown: str, title: str) -> bytes:
    """What more videos bring, as the content of an SVG file.

    A curve is (number of videos, value) for every size; `shown` says what the value is. The scale of videos is
    logarithmic.

    Parameters
    ----------
    curves : mapping
        By name: (videos, value).
    shown : str
        What the values are.
    title : str
        Above the plot.

    Returns
    -------
    bytes
        The content of an SVG file.
    """
    with new_figure("drawing the learning curve", (6.2, 4.2)) as (figure, stream):
        axes = figure.subplots()
        for (name, points), marker in zip(curves.items(), cycle("osD^v")):
            axes.plot([p[0] for p in points], [p[1] for p in points], linewidth=1.8, marker=marker, label=name)
        axes.set_xscale("log")
        sizes = sorted({point[0] for points in curves.values() for point in points})
        axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
        axes.minorticks_off()
        axes.set_xlabel("training videos")
        axes.set_ylabel(shown)
        axes.grid(alpha=0.25)
        axes.legend(loc="lower right")
        axes.set_title(truncate(one_line(title), 70))
    return stream.getvalue()


def grid_plot(
    curves: Mapping[tuple[str, str], Mapping[str, Sequence[tuple[float, float]]]],
    title: str,
    *,
    across: str = "times the usual noise",
    logarithmic: bool = False,
) -> bytes:
    """Small plots side by side, as the content of an SVG file: {(row, column): {name: points}}, one legend for all.

    Parameters
    ----------
    curves : mapping
        By (row, column) and name: (x, y). A name has the same colour everywhere.
    title : str
        Above the plot.
    across : str
        What x is.
    logarithmic : bool
        Whether the scale of x is, with a tick at each value.

    Returns
    -------
    bytes
        The content of an SVG file.
    """
    rows, columns = (list(dict.fromkeys(key[place] for key in curves)) for place in (0, 1))
    names = list(dict.fromkeys(name for lines in curves.values() for name in lines))
    colours = {name: f"C{number % 10}" for number, name in enumerate(names)}
    markers = dict(zip(names, cycle("osD^vPX<>")))
    handles = {}
    with new_figure("drawing the curves", (2.6 * len(columns) + 0.6, 2.3 * len(rows) + 1.0)) as (figure, stream):
        grid = figure.subplots(len(rows), len(columns), sharex=True, sharey="row", squeeze=False)
        for (row, column), lines in curves.items():
            axes = grid[rows.index(row)][columns.index(column)]
            for name, points in lines.items():
                (handles[name],) = axes.plot(
                    *zip(*points, strict=True),
                    linewidth=1.4, marker=markers[name], markersize=4, color=colours[name],
                )  # fmt: skip
            if logarithmic:
                sizes = sorted({point[0] for points in lines.values() for point in points})
                axes.set_xscale("log")
                axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
                axes.minorticks_off()
            axes.grid(alpha=0.25)
        for axes, column in zip(grid[0], columns, strict=True):
            axes.set_title(column, fontsize=10)
        for axes, row in zip(grid[:, 0], rows, strict=True):
            axes.set_ylabel(f"{row}, percent")
        for axes in grid[-1]:
            axes.set_xlabel(across)
        figure.legend(handles.values(), handles, loc="outside lower center", ncols=3, frameon=False)
        figure.suptitle(truncate(one_line(title), 70))
    return stream.getvalue()


def search_plot(rounds: Sequence[SearchRound], title: str) -> bytes:
    """The search for a precondition, round by round, as the content of an SVG file: candidates with their scores.

    The bar of a candidate that the search went on from is green, and what it found in the end is dark. The dotted line
    is the best of the rounds before.

    Parameters
    ----------
    rounds : sequence
        Of the search.
    title : str
        Above the plot.

    Returns
    -------
    bytes
        The content of an SVG file.
    """
    rows = sum(1.5 + len(one.candidates) for one in rounds)
    scores = [candidate.score for one in rounds for candidate in one.candidates]
    best, down, names = -math.inf, 0.0, {}
    with new_figure("drawing the search", (9.0, 0.22 * rows + 0.9)) as (figure, stream):
        axes = figure.subplots()
        for one in rounds:
            axes.text(0, down + 0.45, _round_title(one), va="center", fontsize=9, fontweight="bold")
            down += 1.0
            if math.isfinite(best):
                axes.plot([best] * 2, [down, down + len(one.candidates)], ":", color=style.INK, linewidth=1, zorder=3)
            for candidate in one.candidates:
                colour = _BAR_COLOURS[one.outcome] if candidate is one.candidates[0] else _BAR_COLOURS["no better"]
                axes.barh(down + 0.5, candidate.score, height=0.76, color=colour, linewidth=0)
                axes.text(max(candidate.score, 0), down + 0.5, f" {candidate.score:.2f}", va="center", fontsize=8)
                names[down + 0.5] = truncate(one_line(candidate.formula.to_english()), _LONGEST_FORMULA)
                down += 1.0
            best, down = max(best, one.candidates[0].score), down + 0.5
        axes.set_yticks(list(names), list(names.values()), fontsize=8)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(down, 0)
        axes.set_xlim(min(0.0, *scores), 1.08 * max(scores))
        axes.set_xlabel("score")
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        figure.suptitle(truncate(one_line(title), 90))
    return stream.getvalue()


def _round_title(one: SearchRound) -> str:
    literals = one.candidates[0].formula.literal_count
    size = "Nothing needed" if literals == 0 else "One step" if literals == 1 else f"{literals} steps"
    return f"{size}: {_OUTCOME_TEXTS[one.outcome]}"

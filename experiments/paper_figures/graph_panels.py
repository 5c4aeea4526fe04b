"""Several graphs of one task on one sheet, as in the paper: the true one, and below it what each method learnt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from msg2.drawing import style
from msg2.drawing.diagram import build_diagram
from msg2.drawing.dot import render_svg, to_dot
from msg2.drawing.style import EdgeStatus
from msg2.graph import SubtaskGraph
from msg2.text import one_line

_SIZE = re.compile(r'\A<svg width="(\d+)pt" height="(\d+)pt"')
_ID = re.compile(r' id="[^"]*"')
_MARGIN, _HEADING, _GAP = 16, 24, 18
"""Points: around the sheet, of the line above a graph, below a graph."""
_LEGEND: tuple[tuple[EdgeStatus, int], ...] = (("common", 0), ("redundant", 90), ("missing", 310))
"""What the colours mean, and where that stands: points from the left."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A graph and the line above it: a title, and a note in a few words."""

    title: str
    note: str
    graph: SubtaskGraph


def graph_panels(truth: Panel, learnt: Sequence[Panel]) -> str:
    """The true graph, and below it the learnt ones (of the same steps), as one `<svg>` element.

    Redundant arrows are blue, missing ones red and dashed. The same panels give the same bytes.

    Parameters
    ----------
    truth : Panel
        The true graph.
    learnt : sequence
        The learned graphs.

    Returns
    -------
    str
        An `<svg>` element.

    >>> from msg2.graph import step
    >>> true, null = (SubtaskGraph("t", "ab", needs) for needs in ({"b": step("a")}, {}))
    >>> text = graph_panels(Panel("truth", "", true), [Panel("learnt", "1 missing", null)])
    >>> text.count("<svg"), text.count("edge missing"), "1 missing" in text
    (3, 1, True)
    """
    parts: list[str] = []
    width, down = 640, _MARGIN
    for panel in (truth, *learnt):
        svg = _graph_svg(panel.graph, None if panel is truth else truth.graph)
        size = _SIZE.search(svg)
        assert size is not None
        across, height = int(size[1]), int(size[2])
        place = f'<svg x="{_MARGIN}" y="{down + _HEADING}" width="{across}" height="{height}"'
        parts += [_heading(panel, down), place + svg[size.end() :].rstrip()]
        width, down = max(width, across), down + _HEADING + height + _GAP
    parts.append(_legend(down))
    width, down = width + 2 * _MARGIN, down + _HEADING
    return (
        f'<svg width="{width}pt" height="{down}pt" viewBox="0 0 {width} {down}" xmlns="http://www.w3.org/2000/svg" '
        f'xmlns:xlink="http://www.w3.org/1999/xlink" font-family="sans-serif" font-size="12" fill="{style.INK}">\n'
        f'<rect width="100%" height="100%" fill="{style.PAPER}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _graph_svg(graph: SubtaskGraph, truth: SubtaskGraph | None) -> str:
    """Without a legend of its own, and without ids: those of several graphs would clash on one sheet."""
    return _ID.sub("", render_svg(to_dot(replace(build_diagram(graph, truth), compared=False))))


def _heading(panel: Panel, down: int) -> str:
    return (
        f'<text x="{_MARGIN}" y="{down + 14}" font-size="14" font-weight="600">{escape(one_line(panel.title))}'
        f'<tspan dx="10" font-size="12" font-weight="400" fill="{style.STEP_LINE}">{escape(panel.note)}</tspan></text>'
    )


def _legend(down: int) -> str:
    entries = []
    for status, left in _LEGEND:
        dashes = ' stroke-dasharray="5 3"' if status == "missing" else ""
        left += _MARGIN
        entries.append(
            f'<path d="M{left} {down}h24" stroke="{style.ARROW[status]}" stroke-width="2"{dashes}/>'
            f'<text x="{left + 30}" y="{down + 4}">{style.STATUS_WORDS[status]}</text>'
        )
    return "\n".join(entries)

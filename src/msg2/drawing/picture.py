"""A graph as a picture in a file: laid out to the width that was asked for, and rendered as SVG, PNG, PDF or DOT."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from msg2.drawing.diagram import Diagram
from msg2.drawing.dot import to_dot
from msg2.drawing.graphviz_renderer import render_pdf, render_png, render_svg, width_scale
from msg2.drawing.mermaid import to_mermaid
from msg2.drawing.picture_options import PictureOptions

_NARROWER_LABELS = (14, 10)
"""Characters per line that are tried before a picture is made smaller."""
_SMALLEST_PRINT = 6.0
"""Points below which print is hard to read."""

_log = logging.getLogger("msg2")


def render(build: Callable[[int | None], Diagram], suffix: str, options: PictureOptions) -> str | bytes:
    """Draw a diagram.

    Parameters
    ----------
    build : callable
        Makes the diagram with labels of so many characters per line, None for the usual.
    suffix : str
        The format, one of `PICTURE_SUFFIXES`.
    options : PictureOptions
        Direction, size and legend.

    Returns
    -------
    str or bytes
        The content of the file.
    """
    if suffix == ".mmd":
        return to_mermaid(build(None), options.direction)
    return DOT_RENDERERS[suffix](fitting_dot(build, options), options)


def fitting_dot(build: Callable[[int | None], Diagram], options: PictureOptions) -> str:
    """Make the DOT text of a diagram that keeps to a width, its labels as wide as they can be.

    Parameters
    ----------
    build : callable
        As for `render`.
    options : PictureOptions
        Direction, size and legend.

    Returns
    -------
    str
    """
    dot = to_dot(build(None), options)
    if options.inches is None or width_scale(dot) == 1:
        return dot
    candidates = [dot, *(to_dot(build(columns), options) for columns in _NARROWER_LABELS)]
    scales = [width_scale(candidate) for candidate in candidates]
    largest = max(scales)
    if largest * options.font_size < _SMALLEST_PRINT:
        hint = "another direction, a larger width or font_size makes it larger"
        _log.warning("the text of the picture is %.1f points high: %s", largest * options.font_size, hint)
    return candidates[scales.index(largest)]


DOT_RENDERERS: Mapping[str, Callable[[str, PictureOptions], str | bytes]] = {
    ".svg": lambda dot, _: render_svg(dot),
    ".png": lambda dot, options: render_png(dot, options.dpi),
    ".pdf": lambda dot, _: render_pdf(dot),
    ".dot": lambda dot, _: dot,
}
"""Suffix of a file -> what makes its content of DOT text."""
PICTURE_SUFFIXES = (*DOT_RENDERERS, ".mmd")
"""The formats of pictures, by the suffix of the file."""
OPTION_SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "direction": (".html", *PICTURE_SUFFIXES),
    "font_size": tuple(DOT_RENDERERS),
    "width": tuple(DOT_RENDERERS),
    "legend": tuple(DOT_RENDERERS),
    "dpi": (".png",),
}
"""Field of `PictureOptions` -> the formats that it means something to."""

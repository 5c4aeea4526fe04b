"""Matplotlib figures as the content of a file: no display, and the same bytes on every run."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msg2.extras import optional_dependency

_METADATA = {".svg": {"Date": None}, ".png": {"Software": None}}
"""What matplotlib would write about the day and itself, left out."""
FIGURE_SUFFIXES = tuple(_METADATA)
"""The formats of figures."""


@contextmanager
def new_figure(
    doing: str,
    inches: tuple[float, float],
    *,
    suffix: str = ".svg",
    settings: Mapping[str, Any] | None = None,
    dots_per_inch: float | None = None,
) -> Iterator[tuple[Any, io.BytesIO]]:
    """Open a figure to draw on; it is written when the ``with`` block ends.

    Parameters
    ----------
    doing : str
        What is drawn, for the error where matplotlib is missing: "drawing the sweep".
    inches : pair of float
        Width and height.
    suffix : str
        ".svg" or ".png".
    settings : mapping, optional
        Values of matplotlib's rcParams beside those that all figures share.
    dots_per_inch : float, optional
        The resolution; by default matplotlib's.

    Yields
    ------
    tuple of (matplotlib.figure.Figure, io.BytesIO)
        The figure, and what holds the file's content after the block.

    Raises
    ------
    MissingExtraError
        Where matplotlib is not installed.
    """
    with optional_dependency(doing, "plot"):
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    # `parse_math` off: a name such as "cut $5 cheese" is text, not a formula.
    shared = {"svg.hashsalt": "msg2", "text.parse_math": False, "font.family": "sans-serif", "font.size": 10}
    chosen: dict[Any, Any] = shared | dict(settings or {})
    with mpl.rc_context(chosen), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # of a script that the font lacks: drawn as boxes
        figure, stream = Figure(figsize=inches, layout="constrained"), io.BytesIO()
        FigureCanvasAgg(figure)
        yield figure, stream
        figure.savefig(stream, format=suffix[1:], dpi=dots_per_inch or "figure", metadata=_METADATA[suffix])

"""A graph as a picture in a file: laid out to the width that was asked for, and rendered as SVG, PNG, PDF or DOT.

Graphviz lays it out in this process: the pygraphviz wheels carry it inside, no `dot` program is run.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import struct
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping

from msg2.drawing.diagram import Diagram
from msg2.drawing.dot import to_dot
from msg2.drawing.mermaid import to_mermaid
from msg2.drawing.style import PictureOptions

_debug_log = logging.getLogger(__name__)
_one_at_a_time = threading.Lock()  # Graphviz keeps its state in globals

_PNG_HEAD = 33  # bytes of a PNG before the first chunk that may be another one: its signature and its header
_PDF_DATE = re.compile(rb"/CreationDate \([^)]*\)")
_HEAD = re.compile(r"\A.*?(?=<svg)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_TITLED_LINK = re.compile(r'(?:<title>[^<]*</title>\n)?<g id="a_[^"]*"><a xlink:title="([^"]*)">')


def render_svg(dot: str) -> str:
    """The diagram of `dot` as one `<svg>` element, without version, date and comments: the same bytes every time."""
    text = _render(dot, "svg").decode("utf-8")
    text = _COMMENT.sub("", _HEAD.sub("", text, count=1))
    return _TITLED_LINK.sub(r"<title>\1</title>\n<g><a>", text).strip() + "\n"


def render_png(dot: str, dpi: int) -> bytes:
    """The diagram of a DOT text as a PNG that says how large it is in print."""
    content = _render(dot, "png", dpi=str(dpi))
    per_metre = round(dpi / 0.0254)
    chunk = b"pHYs" + struct.pack(">IIB", per_metre, per_metre, 1)
    size = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return content[:_PNG_HEAD] + size + content[_PNG_HEAD:]


def render_pdf(dot: str) -> bytes:
    """The diagram of `dot` as a PDF of one page of its size, without a date: the same graph gives the same bytes."""
    # What stands at which byte is listed in the file, so that nothing may move.
    return _PDF_DATE.sub(lambda date: b" " * len(date[0]), _render(dot, "pdf", margin="0"))


def width_scale(dot: str) -> float:
    """By how much the diagram of `dot` is made smaller to keep to its limits: 1 where it need not be."""
    return float(_render(dot, "plain").split(maxsplit=2)[1])


def _render(dot: str, kind: str, **attributes: str) -> bytes:
    import pygraphviz

    with _one_at_a_time, _native_stderr_logged():
        layout = pygraphviz.AGraph(string=dot)
        try:
            layout.graph_attr.update(attributes)
            return bytes(layout.draw(format=kind, prog="dot"))
        finally:
            layout.close()


@contextlib.contextmanager
def _native_stderr_logged() -> Iterator[None]:
    """Send what C libraries write on standard error (mostly about the system's font files) to the log instead."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as captured:
        original = os.dup(2)
        os.dup2(captured.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(original, 2)
            os.close(original)
            captured.seek(0)
            for line in captured.read().decode("utf-8", "replace").splitlines():
                _debug_log.debug("graphviz: %s", line)


_NARROWER_LABELS = (14, 10)  # characters per line that are tried before a picture is made smaller
_SMALLEST_PRINT = 6.0  # points below which print is hard to read

_log = logging.getLogger("msg2")


def render(build: Callable[[int | None], Diagram], suffix: str, options: PictureOptions) -> str | bytes:
    """Draw a diagram."""
    if suffix == ".mmd":
        return to_mermaid(build(None), options.direction)
    return DOT_RENDERERS[suffix](fitting_dot(build, options), options)


def fitting_dot(build: Callable[[int | None], Diagram], options: PictureOptions) -> str:
    """Make the DOT text of a diagram that keeps to a width, its labels as wide as they can be."""
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
PICTURE_SUFFIXES = (*DOT_RENDERERS, ".mmd")  # the formats of pictures, by the suffix of the file
OPTION_SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "direction": (".html", *PICTURE_SUFFIXES),
    "font_size": tuple(DOT_RENDERERS),
    "width": tuple(DOT_RENDERERS),
    "legend": tuple(DOT_RENDERERS),
    "dpi": (".png",),
}
"""Field of `PictureOptions` -> the formats that it means something to."""

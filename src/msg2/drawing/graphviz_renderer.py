"""DOT text laid out and drawn in process: the pygraphviz wheels carry Graphviz inside, no `dot` program is run."""

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
from collections.abc import Iterator

_log = logging.getLogger(__name__)
_one_at_a_time = threading.Lock()  # Graphviz keeps its state in globals

_PNG_HEAD = 33
"""Bytes of a PNG before the first chunk that may be another one: its signature and its header."""
_PDF_DATE = re.compile(rb"/CreationDate \([^)]*\)")
_HEAD = re.compile(r"\A.*?(?=<svg)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_TITLED_LINK = re.compile(r'(?:<title>[^<]*</title>\n)?<g id="a_[^"]*"><a xlink:title="([^"]*)">')


def render_svg(dot: str) -> str:
    """The diagram of `dot` as one `<svg>` element: no declaration, no comments, full names as `<title>`.

    The file names neither the Graphviz version nor any date: the same graph gives the same bytes.
    """
    text = _render(dot, "svg").decode("utf-8")
    text = _COMMENT.sub("", _HEAD.sub("", text, count=1))
    return _TITLED_LINK.sub(r"<title>\1</title>\n<g><a>", text).strip() + "\n"


def render_png(dot: str, dpi: int) -> bytes:
    """The diagram of a DOT text as a PNG that says how large it is in print.

    Parameters
    ----------
    dot : str
        The text.
    dpi : int
        Dots per inch.

    Returns
    -------
    bytes
    """
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

    with _one_at_a_time, _log_native_stderr():
        layout = pygraphviz.AGraph(string=dot)
        try:
            layout.graph_attr.update(attributes)
            return bytes(layout.draw(format=kind, prog="dot"))
        finally:
            layout.close()


@contextlib.contextmanager
def _log_native_stderr() -> Iterator[None]:
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
                _log.debug("graphviz: %s", line)

"""DOT text laid out and drawn in process: the pygraphviz wheels carry Graphviz inside, no `dot` program is run."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator

_log = logging.getLogger(__name__)
_one_at_a_time = threading.Lock()  # Graphviz keeps its state in globals

_PNG_DOTS_PER_INCH = 144
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


def render_png(dot: str) -> bytes:
    """The diagram of `dot` as a PNG, one and a half times the size on a screen."""
    return _render(dot, "png")


def _render(dot: str, kind: str) -> bytes:
    import pygraphviz

    with _one_at_a_time, _log_native_stderr():
        layout = pygraphviz.AGraph(string=dot)
        try:
            if kind == "png":
                layout.graph_attr["dpi"] = str(_PNG_DOTS_PER_INCH)
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

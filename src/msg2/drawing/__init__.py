"""A subtask graph as pictures and files: one writer per format, each a function that returns the file's content.

Pictures (.html .svg .png .dot .mmd) show the transitive reduction by default; the other files hold the graph as it
stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from msg2.drawing.dot import to_dot
from msg2.drawing.graphml import to_graphml
from msg2.drawing.graphviz import to_png, to_svg
from msg2.drawing.mermaid import to_mermaid
from msg2.drawing.page import to_html
from msg2.drawing.pddl import to_pddl
from msg2.drawing.picture import Picture, picture
from msg2.errors import InputError
from msg2.files import write_whole
from msg2.graph import SubtaskGraph
from msg2.options import DrawOptions
from msg2.task import Step

__all__ = ["SUFFIXES", "page", "show", "svg"]

_PICTURES: dict[str, Callable[[SubtaskGraph, Picture], str | bytes]] = {
    ".html": lambda graph, drawn: to_html(graph, drawn, to_svg(to_dot(drawn))),
    ".svg": lambda _, drawn: to_svg(to_dot(drawn)),
    ".png": lambda _, drawn: to_png(to_dot(drawn)),
    ".dot": lambda _, drawn: to_dot(drawn),
    ".mmd": lambda _, drawn: to_mermaid(drawn),
}
_FILES: dict[str, Callable[[SubtaskGraph], str]] = {
    ".graphml": to_graphml,
    ".pddl": to_pddl,
    ".json": SubtaskGraph.dumps,
}
SUFFIXES = (*_PICTURES, *_FILES)
"""The formats, by the suffix of the file."""


def show(
    graph: SubtaskGraph,
    path: Path,
    *,
    compare: SubtaskGraph | None = None,
    marks: Mapping[Step, str] | None = None,
    options: DrawOptions | None = None,
) -> Path:
    """Write `graph` to `path` in the format of its suffix, and return the path.

    Beside `compare`, the true graph (with the same step names), redundant edges are blue and missing ones red.
    `marks` are short notes on steps, such as "12 of 50 out of order"; these steps are drawn in red.
    """
    suffix = path.suffix.lower()
    if suffix in _PICTURES:
        content = _PICTURES[suffix](graph, picture(graph, compare, marks, options))
    elif suffix not in _FILES:
        found = f"the suffix {suffix!r} is" if suffix else "a name without a suffix is"
        raise InputError(f"{found} no format msg2 can write", where=path, hint=f"use one of {' '.join(SUFFIXES)}")
    elif compare is not None or marks:
        pictures = " ".join(_PICTURES)
        raise InputError(
            "is no picture, it cannot show a comparison or marks", where=path, hint=f"use one of {pictures}"
        )
    else:
        content = _FILES[suffix](graph)
    write_whole(path, content)
    return path


def page(graph: SubtaskGraph, sections: str) -> str:
    """The page of `graph` as HTML, with more `sections` below, see `msg2.drawing.sections`."""
    drawn = picture(graph)
    return to_html(graph, drawn, to_svg(to_dot(drawn)), sections)


def svg(
    graph: SubtaskGraph,
    *,
    compare: SubtaskGraph | None = None,
    marks: Mapping[Step, str] | None = None,
    options: DrawOptions | None = None,
) -> str:
    """The picture of `graph` as an `<svg>` element; the arguments are those of `show`.

    >>> from msg2.graph import step
    >>> svg(SubtaskGraph("tea", ["boil", "pour"], {"pour": step("boil")}))[:10]
    '<svg width'
    """
    return to_svg(to_dot(picture(graph, compare, marks, options)))

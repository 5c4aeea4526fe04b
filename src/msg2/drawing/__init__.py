"""A subtask graph as pictures and files: one writer per format, each a function that returns the file's content.

Pictures (.html .svg .png .dot .mmd) show the transitive reduction by default; the other files hold the graph as it
stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from msg2.drawing.dot import to_dot
from msg2.drawing.films import films
from msg2.drawing.graphml import to_graphml
from msg2.drawing.graphviz import to_png, to_svg
from msg2.drawing.mermaid import to_mermaid
from msg2.drawing.page import to_html
from msg2.drawing.pddl import problem_file, to_pddl, to_pddl_problem
from msg2.drawing.picture import Picture, picture
from msg2.errors import InputError
from msg2.files import write_together
from msg2.graph import SubtaskGraph
from msg2.options import DrawOptions
from msg2.task import Step, Task

__all__ = ["SUFFIXES", "films", "page", "show", "svg"]

_PAGE = ".html"
_PICTURES: dict[str, Callable[[Picture], str | bytes]] = {
    ".svg": lambda drawn: to_svg(to_dot(drawn)),
    ".png": lambda drawn: to_png(to_dot(drawn)),
    ".dot": to_dot,
    ".mmd": to_mermaid,
}
_FILES: dict[str, Callable[[SubtaskGraph], str]] = {
    ".graphml": to_graphml,
    ".pddl": to_pddl,
    ".json": SubtaskGraph.dumps,
}
SUFFIXES = (_PAGE, *_PICTURES, *_FILES)
"""The formats, by the suffix of the file."""


def show(
    graph: SubtaskGraph,
    path: Path,
    *,
    videos: Task | None = None,
    compare: SubtaskGraph | None = None,
    marks: Mapping[Step, str] | None = None,
    media: Mapping[str, str] | None = None,
    options: DrawOptions | None = None,
) -> Path:
    """Write `graph` to `path` in the format of its suffix, and return the path.

    Beside `compare`, the true graph (with the same step names), redundant edges are blue and missing ones red.
    `marks` are short notes on steps, such as "12 of 50 out of order"; these steps are drawn in red. `videos` and
    `media` are for a page: see `page`.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        found = f"the suffix {suffix!r} is" if suffix else "a name without a suffix is"
        raise InputError(f"{found} no format msg2 can write", where=path, hint=f"use one of {' '.join(SUFFIXES)}")
    if suffix in _FILES and (compare is not None or marks):
        pictures = " ".join((_PAGE, *_PICTURES))
        raise InputError(
            "is no picture, it cannot show a comparison or marks", where=path, hint=f"use one of {pictures}"
        )
    if suffix != _PAGE and videos is not None:
        raise InputError("is no page, it cannot show videos", where=path, hint=f"use {_PAGE}")
    content: str | bytes
    if suffix == _PAGE:
        content = page(graph, videos, compare=compare, marks=marks, media=media, options=options)
    elif suffix in _PICTURES:
        content = _PICTURES[suffix](picture(graph, compare, marks, options))
    else:
        content = _FILES[suffix](graph)
    beside = {problem_file(path): to_pddl_problem(graph)} if suffix == ".pddl" else {}
    write_together({path: content, **beside})
    return path


def page(
    graph: SubtaskGraph,
    videos: Task | None = None,
    *,
    compare: SubtaskGraph | None = None,
    marks: Mapping[Step, str] | None = None,
    media: Mapping[str, str] | None = None,
    sections: str = "",
    options: DrawOptions | None = None,
) -> str:
    """The interactive page of `graph` as HTML, in one piece; `compare`, `marks` and `options` are those of `show`.

    The labels of `videos` (of steps of the graph) can be played on it, and with their files, where `media` has the
    address of one, relative to the page, by the id of its video. `sections` are HTML that follows below, see
    `msg2.drawing.sections`.

    >>> from msg2.graph import step
    >>> page(SubtaskGraph("tea", ["boil", "pour"], {"pour": step("boil")}))[:15]
    '<!DOCTYPE html>'
    """
    drawn = picture(graph, compare, marks, options)
    svg = to_svg(to_dot(drawn))
    return to_html(graph, drawn, svg, videos=videos, compare=compare, media=media, sections=sections)


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

"""A subtask graph as diagrams and files: one writer per format, each a function that returns the file's content.

Diagrams (.html .svg .png .dot .mmd) show the transitive reduction by default; the other files hold the graph as it
stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from msg2.drawing.diagram import Diagram, build_diagram
from msg2.drawing.dot import to_dot
from msg2.drawing.graph_page import render_page
from msg2.drawing.graphviz_renderer import render_png, render_svg
from msg2.drawing.mermaid import to_mermaid
from msg2.drawing.video_links import find_video_links
from msg2.errors import InputError
from msg2.files import write_together
from msg2.formats.graphml import to_graphml
from msg2.formats.pddl import problem_path, to_pddl, to_pddl_problem
from msg2.graph import SubtaskGraph
from msg2.task import Step, Task

__all__ = ["SUFFIXES", "find_video_links", "html_page", "show", "svg"]

_PAGE = ".html"
_DIAGRAMS: dict[str, Callable[[Diagram], str | bytes]] = {
    ".svg": lambda diagram: render_svg(to_dot(diagram)),
    ".png": lambda diagram: render_png(to_dot(diagram)),
    ".dot": to_dot,
    ".mmd": to_mermaid,
}
_FILES: dict[str, Callable[[SubtaskGraph], str]] = {
    ".graphml": to_graphml,
    ".pddl": to_pddl,
    ".json": SubtaskGraph.dumps,
}
SUFFIXES = (_PAGE, *_DIAGRAMS, *_FILES)
"""The formats, by the suffix of the file."""


def show(
    graph: SubtaskGraph,
    path: Path,
    *,
    videos: Task | None = None,
    compare: SubtaskGraph | None = None,
    marks: Mapping[Step, str] | None = None,
    media: Mapping[str, str] | None = None,
    reduce: bool = True,
) -> Path:
    """Write a graph to a file in the format of its suffix.

    Parameters
    ----------
    graph : SubtaskGraph
        The graph.
    path : Path
        The file to write; see `SUFFIXES`.
    videos, media : optional
        For a page only; see `html_page`.
    compare : SubtaskGraph, optional
        The true graph, with the same step names; redundant edges are blue and missing ones red.
    marks : mapping from str to str, optional
        Short notes on steps, such as "12 of 50 out of order"; these steps are drawn in red.
    reduce : bool
        Whether diagrams show the transitive reduction, which reads more easily, or the graph as it stands.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        Where the format does not exist or cannot show what is asked for, or the file cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        subject = f"the suffix {suffix!r} is" if suffix else "a name without a suffix is"
        raise InputError(f"{subject} no format msg2 can write", where=path, hint=f"use one of {' '.join(SUFFIXES)}")
    if suffix in _FILES and (compare is not None or marks):
        diagrams = " ".join((_PAGE, *_DIAGRAMS))
        raise InputError(
            "is no diagram, it cannot show a comparison or marks", where=path, hint=f"use one of {diagrams}"
        )
    if suffix != _PAGE and videos is not None:
        raise InputError("is no page, it cannot show videos", where=path, hint=f"use {_PAGE}")
    content: str | bytes
    if suffix == _PAGE:
        content = html_page(graph, videos, compare=compare, marks=marks, media=media, reduce=reduce)
    elif suffix in _DIAGRAMS:
        content = _DIAGRAMS[suffix](build_diagram(graph, compare, marks, reduce))
    else:
        content = _FILES[suffix](graph)
    beside = {problem_path(path): to_pddl_problem(graph)} if suffix == ".pddl" else {}
    write_together({path: content, **beside})
    return path


def html_page(
    graph: SubtaskGraph,
    videos: Task | None = None,
    *,
    compare: SubtaskGraph | None = None,
    marks: Mapping[Step, str] | None = None,
    media: Mapping[str, str] | None = None,
    sections: str = "",
    reduce: bool = True,
) -> str:
    """The interactive page of a graph as HTML, in one piece.

    Parameters
    ----------
    graph : SubtaskGraph
        The graph.
    videos : Task, optional
        Labels that can be played on the page, of steps of the graph.
    compare, marks, reduce : optional
        As for `show`.
    media : mapping from str to str, optional
        By the id of a video, the address of its file, relative to the page.
    sections : str
        HTML that follows below; see `msg2.drawing.page_sections`.

    Returns
    -------
    str
        The HTML document.

    >>> from msg2.graph import step
    >>> html_page(SubtaskGraph("tea", ["boil", "pour"], {"pour": step("boil")}))[:15]
    '<!DOCTYPE html>'
    """
    diagram = build_diagram(graph, compare, marks, reduce)
    svg = render_svg(to_dot(diagram))
    return render_page(graph, diagram, svg, videos=videos, compare=compare, media=media, sections=sections)


def svg(
    graph: SubtaskGraph,
    *,
    compare: SubtaskGraph | None = None,
    marks: Mapping[Step, str] | None = None,
    reduce: bool = True,
    top_down: bool = False,
) -> str:
    """The diagram of a graph as an `<svg>` element.

    Parameters
    ----------
    graph : SubtaskGraph
        The graph.
    compare, marks, reduce : optional
        As for `show`.
    top_down : bool
        Whether steps go down, or left to right.

    Returns
    -------
    str
        One element, without a declaration.

    >>> from msg2.graph import step
    >>> svg(SubtaskGraph("tea", ["boil", "pour"], {"pour": step("boil")}))[:10]
    '<svg width'
    """
    return render_svg(to_dot(build_diagram(graph, compare, marks, reduce), top_down))

"""A subtask graph as diagrams and files. Diagrams show the transitive reduction by default, other files all of it."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path

from msg2.drawing.diagram import build_diagram
from msg2.drawing.dot import DOT_RENDERERS, directly_follows_dot, fitting_dot, render_svg
from msg2.drawing.graph_page import find_video_links, html_page
from msg2.drawing.mermaid import to_mermaid
from msg2.drawing.procedure import PROCEDURE_SUFFIXES, make_procedure, write_procedure
from msg2.drawing.style import PictureOptions
from msg2.errors import InputError, require
from msg2.files import write_together
from msg2.formats.graph_reader import problem_path, to_graphml, to_pddl, to_pddl_problem
from msg2.formats.process_blocks import to_powl
from msg2.formats.process_models import to_bpmn, to_pnml
from msg2.graph import SubtaskGraph
from msg2.task import Step, Task

__all__ = [
    "PROCEDURE_SUFFIXES", "SUFFIXES", "PictureOptions", "find_video_links", "html_page", "make_procedure", "show",
    "show_directly_follows", "svg", "write_procedure",
]  # fmt: skip

_PAGE = ".html"
_PICTURES = (*DOT_RENDERERS, ".mmd")
_FORMATS_OF_OPTIONS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("font_size", "width", "legend"), tuple(DOT_RENDERERS)),
    "direction": (_PAGE, *_PICTURES),
    "dpi": (".png",),
}
"""Field of `PictureOptions` -> the formats that it means something to."""
_FILES: dict[str, Callable[[SubtaskGraph], str]] = {
    ".graphml": to_graphml,
    ".bpmn": to_bpmn,
    ".pnml": to_pnml,
    ".powl": to_powl,
    ".pddl": to_pddl,
    ".json": SubtaskGraph.dumps,
}
SUFFIXES = (_PAGE, *_PICTURES, *_FILES)  # the formats, by the suffix of the file


def show(
    graph: SubtaskGraph,
    path: Path,
    *,
    videos: Task | None = None,
    compare: SubtaskGraph | None = None,
    marks: Mapping[Step, str] | None = None,
    media: Mapping[str, str] | None = None,
    reduce: bool = True,
    picture: PictureOptions | None = None,
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
    picture : PictureOptions, optional
        The look of a diagram: direction, size, legend.

    Returns
    -------
    Path
        The file that was written.

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
        what = "is no diagram, it cannot show a comparison or marks"
        raise InputError(what, where=path, hint=f"use one of {' '.join((_PAGE, *_PICTURES))}")
    require(suffix == _PAGE or videos is None, "is no page, it cannot show videos", where=path, hint=f"use {_PAGE}")
    options = picture or PictureOptions()
    _refuse_other_options(options, path)
    content: str | bytes
    if suffix == _PAGE:
        content = html_page(graph, videos, compare=compare, marks=marks, media=media, reduce=reduce, picture=options)
    elif suffix in _FILES:
        content = _FILES[suffix](graph)
    elif suffix == ".mmd":
        content = to_mermaid(build_diagram(graph, compare, marks, reduce), options.direction)
    else:
        dot = fitting_dot(build_diagram(graph, compare, marks, reduce), options)
        content = DOT_RENDERERS[suffix](dot, options)
    beside = {problem_path(path): to_pddl_problem(graph)} if suffix == ".pddl" else {}
    write_together({path: content, **beside})
    return path


def show_directly_follows(task: Task, path: Path, picture: PictureOptions | None = None) -> Path:
    """Draw how often one step of the data came right after another; see `msg2.drawing.dot`.

    Parameters
    ----------
    task : Task
        The labels.
    path : Path
        The file to write: .svg, .png, .pdf or .dot.
    picture : PictureOptions, optional
        Direction and size.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        Where the format cannot show it, or the file cannot be written.
    """
    suffix, options = path.suffix.lower(), picture or PictureOptions()
    if suffix not in DOT_RENDERERS:
        raise InputError("cannot show what directly follows what", where=path, hint=f"use {' '.join(DOT_RENDERERS)}")
    _refuse_other_options(options, path)
    write_together({path: DOT_RENDERERS[suffix](directly_follows_dot(task, options), options)})
    return path


def _refuse_other_options(options: PictureOptions, path: Path) -> None:
    """Refuse what was chosen but means nothing in the format of the file."""
    for field in fields(options):
        formats = _FORMATS_OF_OPTIONS[field.name]
        if getattr(options, field.name) != field.default and path.suffix.lower() not in formats:
            hint = f"only these do: {' '.join(formats)}"
            raise InputError(f"takes no {field.name.replace('_', ' ')}", where=path, hint=hint)


def svg(
    graph: SubtaskGraph,
    *,
    compare: SubtaskGraph | None = None,
    marks: Mapping[Step, str] | None = None,
    reduce: bool = True,
    picture: PictureOptions | None = None,
) -> str:
    """The diagram of a graph as an `<svg>` element.

    Parameters
    ----------
    graph : SubtaskGraph
        The graph.
    compare, marks, reduce : optional
        As for `show`.
    picture : PictureOptions, optional
        Direction, size and legend.

    Returns
    -------
    str
        One element, without a declaration.

    >>> from msg2.graph import step
    >>> svg(SubtaskGraph("tea", ["boil", "pour"], {"pour": step("boil")}))[:10]
    '<svg width'
    """
    return render_svg(fitting_dot(build_diagram(graph, compare, marks, reduce), picture or PictureOptions()))

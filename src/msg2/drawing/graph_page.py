"""One self-contained page: the graph to explore, the videos under it, and what they say about every step.

It asks for nothing from outside. Without its script it is still there to be read: the diagram and the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from string import Template

from msg2.drawing import style
from msg2.drawing.diagram import KIND_WORDS, OPERATOR_NAMES, DrawnKind, build_diagram
from msg2.drawing.dot import to_dot
from msg2.drawing.page_data import MOST_VIDEOS, page_data, steps_in_diagram
from msg2.drawing.page_parts import asset, document, escape_name, evidence_table, inline_svg, scores_section
from msg2.drawing.picture import render_svg
from msg2.drawing.style import PictureOptions
from msg2.graph import SubtaskGraph
from msg2.graph.formula import TRUE
from msg2.metrics import score_graph
from msg2.task import Step, Task
from msg2.text import one_line, truncate

_LONGEST_LABEL = 400


def html_page(
    graph: SubtaskGraph,
    videos: Task | None = None,
    *,
    compare: SubtaskGraph | None = None,
    marks: Mapping[Step, str] | None = None,
    media: Mapping[str, str] | None = None,
    sections: str = "",
    reduce: bool = True,
    picture: PictureOptions | None = None,
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
        HTML that follows below; see `msg2.drawing.page_parts`.
    picture : PictureOptions, optional
        Of these, the page takes the direction.

    Returns
    -------
    str
        The HTML document.

    >>> from msg2.graph import step
    >>> html_page(SubtaskGraph("tea", ["boil", "pour"], {"pour": step("boil")}))[:15]
    '<!DOCTYPE html>'
    """
    diagram, options = build_diagram(graph, compare, marks, reduce), picture or PictureOptions()
    sample = None if videos is None else videos.sample(MOST_VIDEOS)
    steps, omitted = steps_in_diagram(diagram), diagram.omitted_edges
    labels = [_accessible_label(graph, step) for step in steps]
    body = Template(asset("page.html")).substitute(
        summary=_summary(graph, len(sample or ()), len(videos or ())),
        picture=inline_svg(render_svg(to_dot(diagram, options)), labels),
        kinds="".join(f"<li>{_KIND_SAMPLES[kind]}{KIND_WORDS[kind]}</li>\n" for kind in diagram.drawn_kinds),
        legend=_COMPARISON_LEGEND if diagram.compared else "",
        omitted_edges=f" Arrows that follow from others are left out ({omitted})." if omitted else "",
        compared="" if compare is None else scores_section(score_graph(graph, compare)),
        table=evidence_table(graph, steps),
        sections=sections,
    )
    return document(graph.task, body, page_data(graph, diagram, sample, media) | {"direction": options.direction})


_COMPARISON_LEGEND = """<li><span class="line common"></span>in both graphs</li>
<li><span class="line missing"></span>missing: only in the true graph</li>
<li><span class="line redundant"></span>redundant: not in the true graph</li>
"""
_LINE = '<svg class="sample {kind}" width="30" height="10" aria-hidden="true"><path d="{path}"/></svg>'
_ARROW = "M1 5H20M20 1.5 28 5 20 8.5Z"
_CIRCLE = '<span class="key operator {kind}">{name}</span>'
_KIND_SAMPLES: dict[DrawnKind, str] = {
    "needs": _LINE.format(kind="needs", path=_ARROW),
    "alternative": _CIRCLE.format(kind="any", name=OPERATOR_NAMES["any"]),
    "after": _LINE.format(kind="after", path=_ARROW),
    "exclusive": _LINE.format(kind="exclusive", path="M2 1V9M2 5H26M26 1V9"),
    "optional": '<span class="key optional"></span>',
    "repeats": f'<span class="key repeats">{style.REPEATS_SYMBOL}</span>',
    "start": '<span class="key start"></span>',
    "all": _CIRCLE.format(kind="all", name=OPERATOR_NAMES["all"]),
    "not": _CIRCLE.format(kind="not", name=OPERATOR_NAMES["not"]),
    "share": '<span class="line strong"></span>',
    "weak": '<span class="line weak"></span>',
}
"""How each kind is drawn, for the legend."""


def _summary(graph: SubtaskGraph, shown: int, given: int) -> str:
    """What the graph is about; and how many of the videos that were given the page shows, where these are not all."""
    videos = graph.method.get("videos")
    method = graph.method.get("name")
    parts = [f"{len(graph.steps)} steps"]
    parts += [f"{len(videos)} videos"] if isinstance(videos, list) else []
    parts += [f"learnt with {escape_name(method)}"] if isinstance(method, str) else []
    parts += [f"{shown:,} of {given:,} videos can be played here, evenly spread"] if shown < given else []
    return " · ".join(parts)


def _accessible_label(graph: SubtaskGraph, step: Step) -> str:
    """A step for those who hear the page."""
    formula = graph.precondition(step)
    needs = "nothing before it" if formula == TRUE else formula.text(" and ", " or ", "not ", one_line)
    sentences = [f"{one_line(step)}. Needs {needs}."]
    if before := graph.order_predecessors(step):
        sentences.append(f"After, if done: {_names(before)}.")
    if partners := graph.partners(step):
        sentences.append(f"Never together with {_names(partners)}.")
    if step in graph.optional:
        sentences.append("May be left out.")
    return truncate(" ".join(sentences), _LONGEST_LABEL)


def _names(steps: Iterable[Step]) -> str:
    return ", ".join(map(one_line, sorted(steps)))

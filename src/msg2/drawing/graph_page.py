"""One self-contained page: the graph to explore, the videos under it, and what they say about every step.

It asks for nothing from outside. Without its script it is still there to be read: the diagram and the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Template

from msg2.drawing import html_document
from msg2.drawing.diagram import Diagram
from msg2.drawing.page_data import page_data, steps_in_diagram
from msg2.drawing.page_sections import scores_section
from msg2.drawing.page_table import evidence_table
from msg2.graph import SubtaskGraph
from msg2.graph.formula import TRUE
from msg2.metrics import score_graph
from msg2.task import Step, Task
from msg2.text import one_line, truncate

_LONGEST_LABEL = 400


def render_page(
    graph: SubtaskGraph,
    diagram: Diagram,
    svg: str,
    *,
    videos: Task | None = None,
    compare: SubtaskGraph | None = None,
    media: Mapping[str, str] | None = None,
    sections: str = "",
) -> str:
    """Put together the page of a graph.

    Parameters
    ----------
    graph : SubtaskGraph
        The graph.
    diagram : Diagram
        What its diagram shows.
    svg : str
        The diagram as an `<svg>` element.
    videos : Task, optional
        Labels that can be played on the graph.
    compare : SubtaskGraph, optional
        The true graph, whose differences the diagram shows.
    media : mapping from str to str, optional
        By the id of a video, the address of its file, relative to the page.
    sections : str
        HTML that follows below; see `msg2.drawing.page_sections`.

    Returns
    -------
    str
        The HTML document.
    """
    steps = steps_in_diagram(diagram)
    compared = "" if compare is None else scores_section(score_graph(graph, compare))
    body = Template(html_document.asset("page.html")).substitute(
        summary=_summary(graph),
        picture=html_document.inline_svg(svg, [_accessible_label(graph, step) for step in steps]),
        legend=_COMPARISON_LEGEND if diagram.compared else "",
        omitted_edges=f" Arrows that follow from others are left out ({diagram.omitted_edges})."
        if diagram.omitted_edges
        else "",
        compared=compared,
        table=evidence_table(graph, steps),
        sections=sections,
    )
    return html_document.document(graph.task, body, page_data(graph, diagram, videos, media))


_COMPARISON_LEGEND = """<li><span class="line common"></span>in both graphs</li>
<li><span class="line missing"></span>missing: only in the true graph</li>
<li><span class="line redundant"></span>redundant: not in the true graph</li>
"""


def _summary(graph: SubtaskGraph) -> str:
    videos = graph.method.get("videos")
    method = graph.method.get("name")
    parts = [f"{len(graph.steps)} steps"]
    parts += [f"{len(videos)} videos"] if isinstance(videos, list) else []
    parts += [f"learnt with {html_document.escape_name(method)}"] if isinstance(method, str) else []
    return " · ".join(parts)


def _accessible_label(graph: SubtaskGraph, step: Step) -> str:
    """A step for those who hear the page."""
    formula = graph.precondition(step)
    needs = "nothing before it" if formula == TRUE else formula.text(" and ", " or ", "not ", one_line)
    return truncate(f"{one_line(step)}. Needs {needs}.", _LONGEST_LABEL)

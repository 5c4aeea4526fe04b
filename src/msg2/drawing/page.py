"""One self-contained page: the graph to explore, the videos under it, and what they say about every step.

It asks for nothing from outside. Without its script it is still there to be read: the picture and the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Template

from msg2.drawing import markup
from msg2.drawing.page_data import drawn_steps, page_data
from msg2.drawing.page_table import step_table
from msg2.drawing.picture import Picture
from msg2.drawing.sections import scores_section
from msg2.drawing.text import cut, one_line
from msg2.graph import SubtaskGraph
from msg2.graph.formula import TRUE
from msg2.metrics import scores
from msg2.task import Step, Task

_LONGEST_LABEL = 400


def to_html(
    graph: SubtaskGraph,
    drawn: Picture,
    svg: str,
    *,
    videos: Task | None = None,
    compare: SubtaskGraph | None = None,
    media: Mapping[str, str] | None = None,
    sections: str = "",
) -> str:
    """The page of `graph` around its picture `drawn` as `svg`, which shows the differences from `compare`.

    `videos` can be played on the graph; `media` are addresses of their files, relative to the page, by id. `sections`
    are HTML that follows, see `msg2.drawing.sections`.
    """
    steps = drawn_steps(drawn)
    compared = "" if compare is None else scores_section(scores(graph, compare))
    body = Template(markup.asset("page.html")).substitute(
        summary=_summary(graph),
        picture=markup.inline(svg, [_label(graph, step) for step in steps]),
        legend=_COMPARED if drawn.compared else "",
        left_out=f" Arrows that follow from others are left out ({drawn.left_out})." if drawn.left_out else "",
        compared=compared,
        table=step_table(graph, steps),
        sections=sections,
    )
    return markup.document(graph.task, body, page_data(graph, drawn, videos, media))


_COMPARED = """<li><span class="line common"></span>in both graphs</li>
<li><span class="line missing"></span>missing: only in the true graph</li>
<li><span class="line redundant"></span>redundant: not in the true graph</li>
"""


def _summary(graph: SubtaskGraph) -> str:
    videos = graph.method.get("videos")
    method = graph.method.get("name")
    parts = [f"{len(graph.steps)} steps"]
    parts += [f"{len(videos)} videos"] if isinstance(videos, list) else []
    parts += [f"learnt with {markup.as_text(method)}"] if isinstance(method, str) else []
    return " · ".join(parts)


def _label(graph: SubtaskGraph, step: Step) -> str:
    """A step for those who hear the page."""
    formula = graph.precondition(step)
    needs = "nothing before it" if formula == TRUE else formula.text(" and ", " or ", "not ", one_line)
    return cut(f"{one_line(step)}. Needs {needs}.", _LONGEST_LABEL)

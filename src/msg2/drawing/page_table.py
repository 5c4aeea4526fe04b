"""The table of a page: what every step needs, and what the videos say about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msg2.drawing.html_document import SCROLLED, escape_name
from msg2.drawing.page_data import videos_without
from msg2.graph import StepEvidence, SubtaskGraph
from msg2.graph.explanation import NAMED_VIDEOS
from msg2.graph.formula import TRUE, Formula
from msg2.task import Step

_NOTHING = '<span class="quiet">nothing before it</span>'


def evidence_table(graph: SubtaskGraph, steps: Sequence[Step]) -> str:
    """Make the table of steps, with one row per step; the row of the n-th has the id `step-n`.

    Where the graph says more than what steps need, a column has it.

    Parameters
    ----------
    graph : SubtaskGraph
        The graph.
    steps : sequence of str
        Its steps, in the order of the rows.

    Returns
    -------
    str
        HTML.
    """
    places = {step: number for number, step in enumerate(steps)}
    more = bool(graph.order or graph.exclusive or graph.optional or graph.repeats)
    rows = "\n".join(_row(graph, step, places, more) for step in steps)
    return f"""<div class="scroll" {SCROLLED}>
<table class="steps">
<thead><tr><th scope="col">Step</th><th scope="col">Needs</th>{'<th scope="col">Also</th>' if more else ""}
<th scope="col">Held in</th><th scope="col">Not in</th><th scope="col">Next best</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>
"""


def _row(graph: SubtaskGraph, step: Step, rows: Mapping[Step, int], more: bool) -> str:
    precondition, evidence = graph.precondition(step), graph.step_evidence(step)
    cells = (
        _needs(precondition, rows),
        *(["<br>".join(_relations(graph, step, rows))] if more else []),
        _holds_cell(precondition, evidence),
        _violations_cell(precondition, evidence),
        _runner_up_cell(evidence, rows),
    )
    return (
        f'<tr id="step-{rows[step]}"><th scope="row">{escape_name(step)}</th>'
        + "".join(f"<td>{cell}</td>" for cell in cells)
        + "</tr>"
    )


def _needs(formula: Formula, rows: Mapping[Step, int]) -> str:
    """The formula with every step a link to its row."""
    if formula == TRUE:
        return _NOTHING
    return formula.text(" <b>and</b> ", " <b>or</b> ", "<b>not</b> ", lambda step: _link(step, rows))


def _link(step: Step, rows: Mapping[Step, int]) -> str:
    return f'<a href="#step-{rows[step]}">{escape_name(step)}</a>' if step in rows else escape_name(step)


def _relations(graph: SubtaskGraph, step: Step, rows: Mapping[Step, int]) -> Iterator[str]:
    """What the graph says about a step beyond what it needs."""

    def links(steps: Iterable[Step]) -> str:
        return ", ".join(_link(other, rows) for other in sorted(steps))

    if before := graph.order_predecessors(step):
        yield f"after {links(before)}, if done"
    if partners := graph.partners(step):
        yield f"never together with {links(partners)}"
    if step in graph.optional:
        counts = videos_without(graph, step)
        yield "may be left out" + (f": {counts[0]} of {counts[1]} videos do without it" if counts else "")
    if step in graph.repeats:
        yield f"done again in {100 * graph.repeats[step]:.0f} % of the runs"


def _holds_cell(precondition: Formula, evidence: StepEvidence) -> str:
    videos, holds = evidence.videos, evidence.holds
    if videos is None:
        return ""
    if precondition == TRUE or holds is None:
        return f'<span class="number quiet">in {videos} videos</span>'
    return f'<span class="number">{holds} of {videos}{f" ({100 * holds / videos:.0f} %)" if videos else ""}</span>'


def _violations_cell(precondition: Formula, evidence: StepEvidence) -> str:
    if precondition == TRUE or evidence.violations is None:
        return ""
    videos = evidence.violations
    names = ", ".join(escape_name(video) for video in videos[:NAMED_VIDEOS])
    return names + (f" and {len(videos) - NAMED_VIDEOS} more" if len(videos) > NAMED_VIDEOS else "")


def _runner_up_cell(evidence: StepEvidence, rows: Mapping[Step, int]) -> str:
    second = evidence.runner_up
    if second is None:
        return ""
    scores = [f"{value:.3f}" for value in (second.score, evidence.score) if value is not None]
    return _needs(second.precondition, rows) + (
        f' <span class="quiet">(score {" against ".join(scores)})</span>' if scores else ""
    )

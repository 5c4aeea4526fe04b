"""The table of a page: what every step needs, and what the videos say about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msg2.drawing.markup import as_text
from msg2.errors import InputError
from msg2.graph import SubtaskGraph, from_json
from msg2.graph.formula import TRUE, Formula
from msg2.task import Step

_NAMED_VIDEOS = 8
_NOTHING = '<span class="quiet">nothing before it</span>'


def step_table(graph: SubtaskGraph, steps: Sequence[Step]) -> str:
    """One row per step, in the order of `steps`; the row of the n-th has the id `step-n`."""
    places = {step: number for number, step in enumerate(steps)}
    rows = "\n".join(_row(graph, step, places) for step in steps)
    return f"""<div class="scroll">
<table class="steps">
<thead><tr><th scope="col">Step</th><th scope="col">Needs</th>
<th scope="col">Held in</th><th scope="col">Not in</th><th scope="col">Next best</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>
"""


def facts_of(graph: SubtaskGraph, step: Step) -> Mapping[str, Any]:
    """The evidence of a step; graph files may come from elsewhere, so it may be of any shape."""
    evidence = graph.evidence.get(step)
    return evidence if isinstance(evidence, Mapping) else {}


def runner_up(facts: Mapping[str, Any]) -> Formula | None:
    """The second best precondition, where the evidence names one."""
    second = facts.get("runner_up")
    try:
        return from_json(second.get("precondition")) if isinstance(second, Mapping) else None
    except InputError:
        return None


def _row(graph: SubtaskGraph, step: Step, rows: Mapping[Step, int]) -> str:
    precondition, facts = graph.precondition(step), facts_of(graph, step)
    cells = (
        _needs(precondition, rows),
        _held(precondition, facts),
        _not_in(precondition, facts),
        _next_best(facts, rows),
    )
    return (
        f'<tr id="step-{rows[step]}"><th scope="row">{as_text(step)}</th>'
        + "".join(f"<td>{cell}</td>" for cell in cells)
        + "</tr>"
    )


def _needs(formula: Formula, rows: Mapping[Step, int]) -> str:
    """The formula with every step a link to its row."""

    def link(step: Step) -> str:
        return f'<a href="#step-{rows[step]}">{as_text(step)}</a>' if step in rows else as_text(step)

    return _NOTHING if formula == TRUE else formula.text(" <b>and</b> ", " <b>or</b> ", "<b>not</b> ", link)


def _held(precondition: Formula, facts: Mapping[str, Any]) -> str:
    videos, holds = facts.get("videos"), facts.get("holds")
    if not isinstance(videos, int):
        return ""
    if precondition == TRUE or not isinstance(holds, int):
        return f'<span class="number quiet">in {videos} videos</span>'
    return f'<span class="number">{holds} of {videos}{f" ({100 * holds / videos:.0f} %)" if videos else ""}</span>'


def _not_in(precondition: Formula, facts: Mapping[str, Any]) -> str:
    videos = facts.get("violations")
    if precondition == TRUE or not isinstance(videos, list):
        return ""
    named = ", ".join(as_text(str(video)) for video in videos[:_NAMED_VIDEOS])
    return named + (f" and {len(videos) - _NAMED_VIDEOS} more" if len(videos) > _NAMED_VIDEOS else "")


def _next_best(facts: Mapping[str, Any], rows: Mapping[Step, int]) -> str:
    formula = runner_up(facts)
    if formula is None:
        return ""
    scores = [
        f"{value:.3f}"
        for value in (facts["runner_up"].get("score"), facts.get("score"))
        if isinstance(value, int | float)
    ]
    return _needs(formula, rows) + (f' <span class="quiet">(score {" against ".join(scores)})</span>' if scores else "")

"""One self-contained page: the picture, and what the videos say about every step. It asks for nothing from outside."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import Any

from msg2.drawing.picture import Picture
from msg2.drawing.text import cut, one_line
from msg2.errors import InputError
from msg2.graph import SubtaskGraph, from_json
from msg2.graph.formula import TRUE, Formula
from msg2.task import Step

_NAMED_VIDEOS = 8
_LONGEST_NAME = 300
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_SIZE = re.compile(r'<svg width="(\d+)pt" height="(\d+)pt"')
_STEP_LINK = re.compile(r'(<g id="s(\d+)" class="node">\n<title>[^<]*</title>\n<g><a)>')
_NOTHING = '<span class="quiet">nothing before it</span>'

_STYLE = """
:root { color-scheme: light dark;
  --ink: #2b2f36; --quiet: #666d78; --paper: #ffffff; --line: #dfe2e7; --link: #00617a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e6ea; --quiet: #a0a7b2; --paper: #17191d; --line: #363b43; --link: #6cc5dc; }
}
body { margin: 0 auto; max-width: 1400px; padding: 1.5rem; font: 16px/1.5 system-ui, sans-serif;
  color: var(--ink); background: var(--paper); }
h1 { margin: 0 0 .25rem; font-size: 1.6rem; overflow-wrap: anywhere; }
h2 { margin: 2.5rem 0 .25rem; font-size: 1.2rem; }
summary { margin: 1rem 0; cursor: pointer; color: var(--link); }
p, caption { color: var(--quiet); }
a { color: var(--link); }
.quiet { color: var(--quiet); }
figure { margin: 1rem 0; padding: .5rem; overflow-x: auto; background: #ffffff; border: 1px solid var(--line);
  border-radius: .5rem; }
figure svg { display: block; width: 100%; height: auto; margin: 0 auto; }
figure a:hover path, figure a:focus path { stroke-width: 2.5; }
.key { display: inline-block; width: .9em; height: .9em; margin: 0 .3em 0 .4em; border-radius: .25em;
  vertical-align: -.08em; border: 1px solid #009988; background: #d9efec; }
.scroll { overflow-x: auto; }
table { width: 100%; min-width: 48rem; table-layout: fixed; border-collapse: collapse; font-size: .92rem; }
th, td { padding: .45rem .6rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
thead th { color: var(--quiet); font-weight: 600; white-space: nowrap; }
tbody th { font-weight: 600; }
.wide { width: 27%; } .narrow { width: 8.5rem; }
tr:target { background: color-mix(in srgb, var(--link) 16%, transparent); }
.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
@media print {
  body { max-width: none; padding: 0; }
  a { color: inherit; text-decoration: none; }
  tr { break-inside: avoid; }
}
"""


def to_html(graph: SubtaskGraph, drawn: Picture, svg: str, sections: str = "") -> str:
    """The page of `graph` around its picture `drawn` as `svg`; a click on a step there leads to its row.

    `sections` are HTML that follows, see `msg2.drawing.sections`.
    """
    places = {step: number for number, step in enumerate(graph.steps)}
    rows = "\n".join(_row(graph, step, places) for step in graph.steps)
    body = f"""<p>{_summary(graph)}</p>
<figure>
{inline(svg)}</figure>
<p>Left to right, what comes first. <span class="key"></span>can be done at once; &amp; needs all of what leads to it,
| any of it, ¬ its absence. The wider an arrow, the more videos agree; dashed, few videos tell.{_left_out(drawn)}</p>
<div class="scroll">
<table>
<thead><tr><th scope="col" class="wide">Step</th><th scope="col" class="wide">Needs</th>
<th scope="col" class="narrow">Held in</th><th scope="col">Not in</th><th scope="col">Next best</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>
{sections}"""
    return document(graph.task, body)


def document(title: str, body: str) -> str:
    """A whole page: its title is a name, its body HTML."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(one_line(title))}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{as_text(title)}</h1>
{body}</body>
</html>
"""


def _summary(graph: SubtaskGraph) -> str:
    videos = graph.method.get("videos")
    method = graph.method.get("name")
    parts = [f"{len(graph.steps)} steps"]
    parts += [f"{len(videos)} videos"] if isinstance(videos, list) else []
    parts += [f"learnt with {as_text(method)}"] if isinstance(method, str) else []
    return " · ".join(parts)


def _left_out(drawn: Picture) -> str:
    return f" Arrows that follow from others are left out ({drawn.left_out})." if drawn.left_out else ""


def as_text(name: str) -> str:
    """A name as HTML, of its own writing direction, cut where it is endless."""
    line = one_line(name)
    short = cut(line, _LONGEST_NAME)
    title = "" if short == line else f' title="{escape(line)}"'
    return f"<bdi{title}>{escape(short)}</bdi>"


def inline(svg: str) -> str:
    """The picture fitted to the page: never larger than life, and scrolled rather than shrunk to less than half."""

    def sized(match: re.Match[str]) -> str:
        width = round(int(match[1]) * 4 / 3)
        return f'<svg style="max-width:{width}px;min-width:{round(width * 0.5)}px"'

    return _STEP_LINK.sub(r'\1 href="#step-\2">', _SIZE.sub(sized, svg, count=1))


def _row(graph: SubtaskGraph, step: Step, rows: Mapping[Step, int]) -> str:
    precondition = graph.precondition(step)
    evidence = graph.evidence.get(step)
    facts: Mapping[str, Any] = evidence if isinstance(evidence, Mapping) else {}
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
    runner_up = facts.get("runner_up")
    if not isinstance(runner_up, Mapping):
        return ""
    try:
        formula = from_json(runner_up.get("precondition"))
    except InputError:
        return ""
    scores = [
        f"{value:.3f}" for value in (runner_up.get("score"), facts.get("score")) if isinstance(value, int | float)
    ]
    return _needs(formula, rows) + (f' <span class="quiet">(score {" against ".join(scores)})</span>' if scores else "")

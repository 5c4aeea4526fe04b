"""What pages are made of: names as text, diagrams, tables, and a document that asks for nothing from outside.

Style and script stand in the page itself; its security policy names them by their SHA-256 and allows no others. The
parts are the table of steps, with what the videos say about each; the sections about labels that were filled in and
what that did to the graph; and the page with the phrases of the narration around each step.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from statistics import fmean

from msg2.drawing.page_data import videos_without
from msg2.graph import StepEvidence, SubtaskGraph
from msg2.graph.explanation import name_some
from msg2.graph.formula import TRUE, Formula
from msg2.media.narration import PhraseStatistics
from msg2.metrics import GraphScores
from msg2.task import PREDICTED, Segment, Step, Task
from msg2.text import one_line, truncate

_LONGEST_NAME = 300
SCROLLED = 'tabindex="0" role="group" aria-label="Table"'
"""Of what may be wider than the screen, so that keys can scroll it."""
_BROAD = 1200  # pixels from which on a diagram is scrolled rather than shrunk to the width of the page
_SCRIPTS = (
    "page_data", "formula", "forecaster", "formula_text", "diagram", "pan_zoom", "side_panel", "filter",
    "video_segments", "video_player", "checklist", "export", "main",
)  # fmt: skip
"""The parts of the page's script, in this order: they share one scope."""
_SIZE = re.compile(r'<svg width="(\d+)pt" height="(\d+)pt"')
_STEP_LINK = re.compile(r'(<g id="s(\d+)" class="node step[^"]*">\n<title>[^<]*</title>\n<g><a)>')


def escape_name(name: str) -> str:
    """Write a name as HTML, with its own writing direction, cut where it is endless.

    >>> escape_name("stir & taste")
    '<bdi>stir &amp; taste</bdi>'
    """
    line = one_line(name)
    short = truncate(line, _LONGEST_NAME)
    title = "" if short == line else f' title="{escape(line)}"'
    return f"<bdi{title}>{escape(short)}</bdi>"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Make a table."""
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    body = "\n".join(_table_row(*row) for row in rows)
    whole = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    return f'<div class="scroll" {SCROLLED}>\n{whole}\n</div>\n'


def _table_row(first: str, *rest: str, mark: str = "") -> str:
    return f'<tr{mark}><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>'


def inline_svg(svg: str, labels: Sequence[str] = ()) -> str:
    """Prepare a diagram for a page: never larger than life, and its steps lead to their rows in the table."""

    def set_size(match: re.Match[str]) -> str:
        width, height = (round(int(points) * 4 / 3) for points in match.groups())
        return f'<svg{" class=broad" if width > _BROAD else ""} width="{width}" height="{height}"'

    def add_link(match: re.Match[str]) -> str:
        label = f' aria-label="{escape(labels[int(match[2])])}"' if labels else ""
        return f'{match[1]} href="#step-{match[2]}"{label}>'

    return _STEP_LINK.sub(add_link, _SIZE.sub(set_size, svg, count=1))


def document(title: str, body: str, data: Mapping[str, object] | None = None) -> str:
    """Make a whole page."""
    style, script = asset("page.css"), "" if data is None else _script()
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; "
        + (f"script-src {_hash(script)}; img-src data: blob:; media-src 'self' file: blob:; " if script else "")
        + "base-uri 'none'; form-action 'none'"
    )
    # No parser of HTML can take this JSON for the end of the script, or for a comment in it.
    json_text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    live = f'<script type="application/json" id="data">{json_text}</script>\n' if script else ""
    live += f'<script type="module">{script}</script>\n' if script else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(one_line(title))}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{escape_name(title)}</h1></header>
{body}{live}</body>
</html>
"""


@cache
def asset(name: str) -> str:
    """The text of a file that pages are made of."""
    return files("msg2.drawing").joinpath("assets", name).read_text("utf-8")


@cache
def _script() -> str:
    return "\n" + "\n".join(asset(f"{name}.js") for name in _SCRIPTS)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


_NOTHING = '<span class="quiet">nothing before it</span>'


def evidence_table(graph: SubtaskGraph, steps: Sequence[Step]) -> str:
    """Make the table of steps: one row per step, that of the n-th with the id `step-n`, and a column for relations."""
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
    is_free, violations = precondition == TRUE, evidence.violations or ()
    return _table_row(
        escape_name(step),
        _needs(precondition, rows),
        *(["<br>".join(_relations(graph, step, rows))] if more else []),
        _holds_cell(is_free, evidence),
        "" if is_free else name_some([escape_name(video) for video in violations]),
        _runner_up_cell(evidence, rows),
        mark=f' id="step-{rows[step]}"',
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


def _holds_cell(is_free: bool, evidence: StepEvidence) -> str:
    videos, holds = evidence.videos, evidence.holds
    if videos is None:
        return ""
    if is_free or holds is None:
        return f'<span class="number quiet">in {videos} videos</span>'
    return f'<span class="number">{holds} of {videos}{f" ({100 * holds / videos:.0f} %)" if videos else ""}</span>'


def _runner_up_cell(evidence: StepEvidence, rows: Mapping[Step, int]) -> str:
    second = evidence.runner_up
    if second is None:
        return ""
    scores = [f"{value:.3f}" for value in (second.score, evidence.score) if value is not None]
    return _needs(second.precondition, rows) + (
        f' <span class="quiet">(score {" against ".join(scores)})</span>' if scores else ""
    )


_ID = re.compile(r' id="[^"]*"')  # they belong to the diagram at the top of the page, and lead from there to its table
_SCORE_COLUMNS = {"accuracy": "Accuracy", "spoc": "SPOC", "compatibility": "Compatibility", "f1": "Edge F1"}
_SCORE_EXPLANATIONS = {
    "accuracy": ("Accuracy", "how often a precondition says the same, over all sets of completed steps"),
    "spoc": ("SPOC", "how many pairs of steps are in the same order"),
    "precision": ("Edge precision", "arrows that are true, START and END included"),
    "recall": ("Edge recall", "true arrows that were found"),
    "f1": ("Edge F1", "harmonic mean of the two"),
}


def filling_section(task: Task, performed: Task | None = None) -> str:
    """List the labels that were added, by step and by video."""
    truth = None if performed is None else {video.id: set(video.sequence()) for video in performed}
    added = {video.id: [segment for segment in video.segments if segment.source == PREDICTED] for video in task}
    count, filled = sum(map(len, added.values())), sum(map(bool, added.values()))
    wrong = {} if truth is None else {
        video: {segment.step for segment in segments} - truth.get(video, set()) for video, segments in added.items()
    }  # fmt: skip
    right = "" if truth is None else f" {count - sum(map(len, wrong.values()))} of them were really done."
    columns = ["Step", "Videos with its label", "Added to videos", "Mean confidence"]
    columns += [] if truth is None else ["Really done"]
    steps = table(columns, [_step_row(task, step, added, None if truth is None else wrong) for step in task.steps])
    videos = table(
        ["Video", "Added"],
        [
            [escape_name(video), ", ".join(_added_label(label, label.step in wrong.get(video, ())) for label in labels)]
            for video, labels in added.items()
            if labels
        ],
    )
    return (
        f"<h2>What was filled in</h2>\n<p>{count} labels were added to {filled} of {len(task)} videos: steps that "
        f"their labels lack, where what is seen and said tells that they were done.{right}</p>\n{steps}"
        f"<details><summary>Video by video</summary>\n{videos}</details>\n"
    )


def comparison_section(svg: str, scores: Mapping[str, GraphScores]) -> str:
    """Show the graph that the annotated labels alone give."""
    rows = [
        [escape_name(name), *(_percent(of_graph.to_json()[key]) for key in _SCORE_COLUMNS)]
        for name, of_graph in scores.items()
    ]
    scored = table(["Graph", *_SCORE_COLUMNS.values()], rows)
    scored = f"<p>Against the true graph, in percent:</p>\n{scored}" if rows else ""
    diagram = inline_svg(_ID.sub("", svg))
    return f"<h2>Before: from the annotated labels alone</h2>\n{scored}<figure>\n{diagram}</figure>\n"


def scores_section(scores: GraphScores) -> str:
    """The `scores` of the graph of the page against the true one, as HTML."""
    rows = [[name, _percent(scores.to_json()[key]), words] for key, (name, words) in _SCORE_EXPLANATIONS.items()]
    return f"<h2>Compared with the true graph</h2>\n{table(['Score', 'Percent', 'What it says'], rows)}"


def _percent(value: float | None) -> str:
    return "N/A" if value is None else f"{100 * value:.2f}"


def _step_row(
    task: Task, step: Step, added: Mapping[str, Sequence[Segment]], wrong: Mapping[str, set[Step]] | None
) -> list[str]:
    labels = {video: label for video, segments in added.items() for label in segments if label.step == step}
    labelled = sum(step in video.sequence() for video in task) - len(labels)
    sure = [label.confidence for label in labels.values() if label.confidence is not None]
    mean = f"{100 * fmean(sure):.0f} %" if sure else ""
    row = [escape_name(step), str(labelled), str(len(labels)) if labels else "", mean]
    if wrong is not None:
        right = sum(step not in wrong[video] for video in labels)
        row.append(f"{right} of {len(labels)}" if labels else "")
    return row


def _added_label(segment: Segment, wrong: bool) -> str:
    sure = "" if segment.confidence is None else f' <span class="quiet">({100 * segment.confidence:.0f} %)</span>'
    name = escape_name(segment.step)
    return f"<s>{name}</s>{sure}" if wrong else f"{name}{sure}"


_COLUMNS = ["Phrase", "Videos", "Around", "In all", "Times as often"]


def step_phrases_page(
    phrases: Sequence[tuple[Task, Mapping[Step, Sequence[PhraseStatistics]]]], seconds: float, most: int
) -> str:
    """Make a page with the phrases around each step."""
    sections = []
    for task, around in phrases:
        narrated = sum(bool(video.sentences) for video in task)
        total = sum(len(video.sentences) for video in task)
        sections.append(
            f"<h2>{escape_name(task.name)}</h2>\n<p>{narrated} of {len(task)} videos have narration, "
            f"{total} phrases in all.</p>\n"
        )
        sections += [_step_section(task, step, around[step][:most]) for step in task.steps]
    body = (
        f"<p>Phrases that are said around a step, from {seconds:g} seconds before it begins to {seconds:g} seconds "
        "after it ends, and more often there than phrases in general; the most telling first. <b>Videos</b>: in how "
        "many it is said around the step. <b>Around</b> and <b>in all</b>: how often. <b>Times as often</b>: as it "
        "would be if the step were all one to it.</p>\n" + "".join(sections)
    )
    return document("What is said around each step", body)


def _step_section(task: Task, step: Step, phrases: Sequence[PhraseStatistics]) -> str:
    videos = sum(step in video.sequence() for video in task)
    rows = [
        [escape_name(phrase.phrase), str(phrase.videos), str(phrase.near), str(phrase.times), f"{phrase.lift:.1f}"]
        for phrase in phrases
    ] or [["nothing more than elsewhere", "", "", "", ""]]
    summary = f"<details open><summary>{escape_name(step)} ({videos} videos)</summary>\n"
    return f"{summary}{table(_COLUMNS, rows)}</details>\n"

"""What pages are made of: escaped names, diagrams, tables, sections, and a document that loads nothing from outside.

Style and script are part of the page; its security policy names them by their SHA-256 and allows no others.
"""

import base64
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from statistics import fmean
from string import Template

from msg2.metrics import GraphScores
from msg2.metrics.step_phrases import PhraseStatistics
from msg2.task import PREDICTED, Step, Task
from msg2.text import one_line, truncate

_LONGEST_NAME = 300
_BROAD = 1200  # pixels from which on a diagram is scrolled rather than shrunk to the width of the page
_SCRIPTS = (
    "page_data", "formula", "forecaster", "formula_text", "diagram", "pan_zoom", "side_panel", "filter",
    "video_segments", "video_player", "checklist", "export", "main",
)  # fmt: skip
"""The parts of the page's script, in this order: they share one scope."""
_SIZE = re.compile(r'<svg width="(\d+)pt" height="(\d+)pt"')
_STEP_LINK = re.compile(r'(<g id="s(\d+)" class="node step[^"]*">\n<title>[^<]*</title>\n<g><a)>')


def escape_name(name: str) -> str:
    """Write a name as HTML, with its own writing direction, cut where it is endless."""
    line = one_line(name)
    short = truncate(line, _LONGEST_NAME)
    title = "" if short == line else f' title="{escape(line)}"'
    return f"<bdi{title}>{escape(short)}</bdi>"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Make a table; whatever may be wider than the screen can be scrolled with keys."""
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    body = "\n".join(table_row(*row) for row in rows)
    whole = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    return f'<div class="scroll" tabindex="0" role="group" aria-label="Table">\n{whole}\n</div>\n'


def table_row(first: str, *rest: str, mark: str = "") -> str:
    """Make a row of a table, with its first cell as its heading."""
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


def document(
    title: str,
    body: str,
    data: Mapping[str, object] | None = None,
    *,
    scripts: Sequence[str] = _SCRIPTS,
    style: str = "page.css",
) -> str:
    """Make a whole page; with `data` for its script, where it has one."""
    policy, live = "", ""
    if data is not None:
        script = "\n" + "\n".join(asset(f"{name}.js") for name in scripts)
        policy = f"script-src {_hash(script)}; img-src data: blob:; media-src 'self' file: blob:; "
        # No parser of HTML can take this JSON for the end of the script, or for a comment in it.
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
        live = fill("script.html", data=text, script=script)
    return fill(
        "document.html",
        policy=f"default-src 'none'; style-src {_hash(asset(style))}; {policy}base-uri 'none'; form-action 'none'",
        title=escape(one_line(title)),
        style=asset(style),
        heading=escape_name(title),
        body=body + live,
    )


def data_uri(jpeg: bytes) -> str:
    """A picture as an address that a page needs not load."""
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def asset(name: str) -> str:
    """The text of a file that pages are made of."""
    return files("msg2.drawing").joinpath("assets", name).read_text("utf-8")


def fill(template: str, **values: object) -> str:
    """Fill in a template among the assets."""
    return Template(asset(template)).substitute(values)


_ID = re.compile(r' id="[^"]*"')  # they belong to the diagram at the top of the page, and lead from there to its table
_SCORE_COLUMNS = {"accuracy": "Accuracy", "spoc": "SPOC", "compatibility": "Compatibility", "f1": "Edge F1"}


def filling_section(task: Task, performed: Task | None = None) -> str:
    """List the labels that were added, by step and by video; with what was really performed, which are right."""
    added = {
        (video.id, segment.step): segment for video in task for segment in video.segments if segment.source == PREDICTED
    }
    done = {(video.id, step) for video in performed or () for step in video.sequence()}
    wrong = set() if performed is None else added.keys() - done
    by_video = defaultdict[str, list[str]](list)
    for (video, step), label in added.items():
        sure = "" if label.confidence is None else f' <span class="quiet">({100 * label.confidence:.0f} %)</span>'
        name = escape_name(step)
        by_video[video].append((f"<s>{name}</s>" if (video, step) in wrong else name) + sure)
    rows = []
    for step in task.steps:
        labels = {video: label for (video, name), label in added.items() if name == step}
        labelled = sum(step in video.sequence() for video in task) - len(labels)
        confidences = [label.confidence for label in labels.values() if label.confidence is not None]
        mean = f"{100 * fmean(confidences):.0f} %" if confidences else ""
        right = f"{sum((video, step) not in wrong for video in labels)} of {len(labels)}" if labels else ""
        rows.append([escape_name(step), str(labelled), str(len(labels) or ""), mean, right])
    columns = ["Step", "Videos with its label", "Added to videos", "Mean confidence", "Really done"]
    known = 4 if performed is None else 5
    steps = table(columns[:known], [row[:known] for row in rows])
    videos = table(["Video", "Added"], [[escape_name(video), ", ".join(labels)] for video, labels in by_video.items()])
    judged = "" if performed is None else f" {len(added) - len(wrong)} of them were really done."
    counts = {"added": len(added), "filled": len(by_video), "videos": len(task)}
    return fill("filling.html", **counts, judged=judged, steps=steps, by_video=videos)


def comparison_section(svg: str, scores: Mapping[str, GraphScores]) -> str:
    """Show the graph that the annotated labels alone give."""
    of_graphs = [(name, percents(graph)) for name, graph in scores.items()]
    rows = [[escape_name(name), *(own[column] for column in _SCORE_COLUMNS)] for name, own in of_graphs]
    numbers = table(["Graph", *_SCORE_COLUMNS.values()], rows)
    scored = f"<p>Against the true graph, in percent:</p>\n{numbers}" if rows else ""
    return fill("comparison.html", scores=scored, diagram=inline_svg(_ID.sub("", svg)))


def percents(scores: GraphScores) -> dict[str, str]:
    """The scores of a graph against the true one in percent."""
    return {name: "N/A" if value is None else f"{100 * value:.2f}" for name, value in scores.to_json().items()}


def step_phrases_page(
    phrases: Sequence[tuple[Task, Mapping[Step, Sequence[PhraseStatistics]]]], seconds: float, most: int
) -> str:
    """Make a page with the phrases around each step."""
    columns, parts = ["Phrase", "Videos", "Around", "In all", "Times as often"], []
    for task, around in phrases:
        narrated, total = sum(bool(video.sentences) for video in task), sum(len(video.sentences) for video in task)
        summary = f"{narrated} of {len(task)} videos have narration, {total} phrases in all."
        parts.append(f"<h2>{escape_name(task.name)}</h2>\n<p>{summary}</p>\n")
        for step in task.steps:
            videos = sum(step in video.sequence() for video in task)
            rows = [
                [escape_name(near.phrase), str(near.videos), str(near.near), str(near.times), f"{near.lift:.1f}"]
                for near in around[step][:most]
            ] or [["nothing more than elsewhere", "", "", "", ""]]
            heading = f"<details open><summary>{escape_name(step)} ({videos} videos)</summary>"
            parts.append(f"{heading}\n{table(columns, rows)}</details>\n")
    body = fill("phrases.html", seconds=f"{seconds:g}", tasks="".join(parts))
    return document("What is said around each step", body)

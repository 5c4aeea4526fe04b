"""What all pages are made of: names as text, diagrams, tables, and a document that asks for nothing from outside.

Style and script stand in the page itself; its security policy names them by their SHA-256 and allows no others.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from msg2.text import one_line, truncate

_LONGEST_NAME = 300
SCROLLED = 'tabindex="0" role="group" aria-label="Table"'
"""Of what may be wider than the screen, so that keys can scroll it."""
_BROAD = 1200
"""Pixels from which on a diagram is scrolled rather than shrunk to the width of the page."""
_SCRIPTS = (
    "page_data",
    "formula",
    "forecaster",
    "formula_text",
    "diagram",
    "pan_zoom",
    "side_panel",
    "filter",
    "video_segments",
    "video_player",
    "checklist",
    "export",
    "main",
)
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
    """Make a table.

    Parameters
    ----------
    columns : sequence of str
        The headings of the columns, as HTML.
    rows : sequence of sequences of str
        The cells, as HTML; the first of a row is its heading.

    Returns
    -------
    str
        HTML that scrolls where it is too wide.
    """
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    body = "\n".join(
        f'<tr><th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in rest) + "</tr>"
        for first, *rest in rows
    )
    whole = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    return f'<div class="scroll" {SCROLLED}>\n{whole}\n</div>\n'


def inline_svg(svg: str, labels: Sequence[str] = ()) -> str:
    """Prepare a diagram for a page: never larger than life, and its steps lead to their rows in the table.

    Parameters
    ----------
    svg : str
        An `<svg>` element as `msg2.drawing.svg` makes it.
    labels : sequence of str
        What a screen reader says for each step; without any, the name in the diagram.

    Returns
    -------
    str
        The `<svg>` element.
    """

    def set_size(match: re.Match[str]) -> str:
        width, height = (round(int(points) * 4 / 3) for points in match.groups())
        return f'<svg{" class=broad" if width > _BROAD else ""} width="{width}" height="{height}"'

    def add_link(match: re.Match[str]) -> str:
        label = f' aria-label="{escape(labels[int(match[2])])}"' if labels else ""
        return f'{match[1]} href="#step-{match[2]}"{label}>'

    return _STEP_LINK.sub(add_link, _SIZE.sub(set_size, svg, count=1))


def document(title: str, body: str, data: Mapping[str, Any] | None = None) -> str:
    """Make a whole page.

    Parameters
    ----------
    title : str
        Its title, as plain text.
    body : str
        HTML.
    data : mapping, optional
        Plain JSON values for the page's script; without them the page has no script.

    Returns
    -------
    str
        The HTML document.

    >>> "script-src" in document("tea", ""), "script-src" in document("tea", "", {"steps": []})
    (False, True)
    """
    style, script = asset("page.css"), "" if data is None else _script()
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; "
        + (f"script-src {_hash(script)}; img-src data: blob:; media-src 'self' file: blob:; " if script else "")
        + "base-uri 'none'; form-action 'none'"
    )
    live = f'<script type="application/json" id="data">{_json_for_script(data)}</script>\n' if script else ""
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


def _json_for_script(data: object) -> str:
    """JSON that no parser of HTML can take for the end of the script, or for a comment in it."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")

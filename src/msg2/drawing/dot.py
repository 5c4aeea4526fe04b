"""A diagram as Graphviz DOT: the one description from which SVG and PNG are laid out too."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from msg2.drawing import style
from msg2.drawing.diagram import Arrow, Box, Diagram, EdgeStatus
from msg2.text import one_line, truncate, width_in_ems

_FONT = "sans-serif"
_POINTS = 11.0
_NOTE_POINTS = 9.5
_MANY_ARROWS = 1500
_LONGEST_TOOLTIP = 2000
"""Characters; Graphviz refuses strings of more than 16 KB, and escapes make them longer."""
_LESS_EFFORT = "nslimit=0.2, nslimit1=0.2, mclimit=0.05, splines=line, "
"""For a thicket of arrows, where a careful layout would take minutes and be no clearer."""


def to_dot(diagram: Diagram) -> str:
    """The DOT text of `diagram`, left to right.

    >>> from msg2.drawing.diagram import build_diagram
    >>> from msg2.graph import SubtaskGraph, step
    >>> text = to_dot(build_diagram(SubtaskGraph("tea", ["boil", "pour"], {"pour": step("boil")})))
    >>> [line for line in text.splitlines() if "->" in line]
    ['  s0 -> s1 [id="e0", class="common", color="#3d434c", penwidth=1.3, style="solid", tooltip="boil → pour"];']
    """
    lines = ["digraph {", *_defaults(diagram)]
    lines += [_box(box) for box in diagram.boxes]
    lines += [_arrow(arrow) for arrow in diagram.arrows]
    return "\n".join([*lines, "}"]) + "\n"


def quote(text: str) -> str:
    r"""Quote `text` as a DOT string that is shown as it stands: no escapes, no entities, no HTML-like labels.

    >>> print(quote('<b> \\N "x"'))
    "&lt;b&gt; \\N \"x\""
    """
    plain = escape(one_line(text), quote=False)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'


def tooltip(text: str) -> str:
    """`text` as the value of a tooltip, where Graphviz takes escapes out twice."""
    return quote(truncate(one_line(text), _LONGEST_TOOLTIP).replace("\\", "\\\\"))


def _defaults(diagram: Diagram) -> Iterator[str]:
    effort = _LESS_EFFORT if len(diagram.arrows) > _MANY_ARROWS else ""
    yield (
        f"  graph [rankdir=LR, outputorder=edgesfirst, {effort}nodesep=0.18, ranksep=0.32, pad=0.15, "
        f'bgcolor="{style.PAPER}", fontname="{_FONT}", fontsize={_POINTS:g}, fontcolor="{style.INK}", '
        f"tooltip={tooltip(diagram.task)}];"
    )
    if not diagram.boxes:
        yield '  graph [label="no steps"];'
    elif diagram.compared:
        yield f"  graph [labelloc=b, label={_legend()}];"
    yield (
        f'  node [fontname="{_FONT}", fontsize={_POINTS:g}, fontcolor="{style.INK}", shape=box, '
        f'style="rounded,filled", fillcolor="{style.STEP_FILL}", color="{style.STEP_LINE}", margin="0,0"];'
    )
    yield "  edge [arrowsize=0.65];"


def _box(box: Box) -> str:
    if box.kind != "step":
        text, fill = style.OPERATOR_WORDS[box.kind], style.OPERATOR_FILL[box.kind]
        return (
            f'  {box.id} [id="{box.id}", class="{box.kind}", shape=circle, style=filled, fillcolor="{fill}", '
            f"width=0.26, height=0.26, fixedsize=true, label={quote(box.name)}, tooltip={tooltip(text)}];"
        )
    rows = [(line, _POINTS) for line in box.lines]
    colours = f'fillcolor="{style.START_FILL}", color="{style.START_LINE}", ' if box.is_start else ""
    label = '"' + "\\n".join(quote(line)[1:-1] for line in box.lines) + '"'
    if box.note:
        rows += [(line, _NOTE_POINTS) for line in box.note]
        colours = f'fillcolor="{style.MARK_FILL}", color="{style.MARK_LINE}", penwidth=1.6, '
        label = _label_with_note(box.lines, box.note)
    kind = "step marked" if box.note else "step start" if box.is_start else "step"
    width = (max(width_in_ems(text) * points for text, points in rows) + 14) / 72
    height = (sum(1.25 * points for _, points in rows) + 10) / 72
    return (
        f'  {box.id} [id="{box.id}", class="{kind}", {colours}width={width:.2f}, height={height:.2f}, '
        f"label={label}, tooltip={tooltip(box.name)}];"
    )


def _label_with_note(lines: tuple[str, ...], note: tuple[str, ...]) -> str:
    """An HTML-like label: the name, and the note under it, smaller and in the colour of marks."""
    name, words = ("<br/>".join(_html(line) for line in part) for part in (lines, note))
    return f'<{name}<br/><font point-size="{_NOTE_POINTS:g}" color="{style.MARK_INK}">{words}</font>>'


def _html(text: str) -> str:
    # HTML-like labels know no way to escape a backslash, but an invisible word joiner parts it from its letter.
    return escape(one_line(text)).replace("\\", "\\\N{WORD JOINER}")


def _arrow(arrow: Arrow) -> str:
    kind = f"{arrow.status} weak" if arrow.support.weak else arrow.status
    return (
        f'  {arrow.source} -> {arrow.target} [id="{arrow.id}", class="{kind}", color="{style.ARROW[arrow.status]}", '
        f'penwidth={style.arrow_width(arrow):g}, style="{"dashed" if style.is_dashed(arrow) else "solid"}", '
        f"tooltip={tooltip(arrow.text)}];"
    )


def _legend() -> str:
    lines: dict[EdgeStatus, str] = {"common": "──", "redundant": "──", "missing": "╌╌"}
    cells = "".join(
        f'<td><font color="{style.ARROW[status]}">{line} {style.STATUS_WORDS[status]}</font></td>'
        for status, line in lines.items()
    )
    return f'<<table border="0" cellspacing="10"><tr>{cells}</tr></table>>'

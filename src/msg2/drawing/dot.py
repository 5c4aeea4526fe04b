"""A diagram as Graphviz DOT: the one description from which SVG and PNG are laid out too."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import combinations
from typing import TypeAlias

from msg2.drawing import style
from msg2.drawing.diagram import KIND_WORDS, Arrow, Box, Diagram, DrawnKind, EdgeStatus, ExclusiveGroup
from msg2.text import one_line, truncate, width_in_ems

_FONT = "sans-serif"
_POINTS = 11.0
_NOTE_POINTS = 9.5
_MANY_ARROWS = 1500
_LONGEST_TOOLTIP = 2000
"""Characters; Graphviz refuses strings of more than 16 KB, and escapes make them longer."""
_LESS_EFFORT = "nslimit=0.2, nslimit1=0.2, mclimit=0.05, splines=line, "
"""For a thicket of arrows, where a careful layout would take minutes and be no clearer."""
_MOST_BARS = 3
"""Exclusive steps that are joined one by one; more of them would be a thicket."""

_Note: TypeAlias = tuple[tuple[str, ...], str]
"""Lines under the name of a step, and their colour."""


def to_dot(diagram: Diagram, top_down: bool = False) -> str:
    """The DOT text of a diagram.

    Parameters
    ----------
    diagram : Diagram
        The diagram.
    top_down : bool
        Whether steps go down, as fits beside a text, or left to right.

    Returns
    -------
    str

    >>> from msg2.drawing.diagram import build_diagram
    >>> from msg2.graph import SubtaskGraph, step
    >>> text = to_dot(build_diagram(SubtaskGraph("tea", ["boil", "pour"], {"pour": step("boil")})))
    >>> [line for line in text.splitlines() if "->" in line]
    ['  s0 -> s1 [id="e0", class="common", color="#3d434c", penwidth=1.3, style="solid", tooltip="boil → pour"];']
    """
    lines = ["digraph {", *_defaults(diagram, "TB" if top_down else "LR")]
    lines += [_box(box) for box in diagram.boxes]
    lines += [_arrow(arrow) for arrow in diagram.arrows]
    lines += [line for group in diagram.groups for line in _exclusive_group(group)]
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


def _defaults(diagram: Diagram, direction: str) -> Iterator[str]:
    effort = _LESS_EFFORT if len(diagram.arrows) > _MANY_ARROWS else ""
    yield (
        f"  graph [rankdir={direction}, outputorder=edgesfirst, {effort}nodesep=0.18, ranksep=0.32, pad=0.15, "
        f'bgcolor="{style.PAPER}", fontname="{_FONT}", fontsize={_POINTS:g}, fontcolor="{style.INK}", '
        f"tooltip={tooltip(diagram.task)}];"
    )
    if not diagram.boxes:
        yield '  graph [label="no steps"];'
    elif legend := _legend(diagram):
        yield f"  graph [labelloc=b, label={legend}];"
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
    notes: list[_Note] = [] if box.repeats is None else [((style.repeats_note(box.repeats),), style.QUIET_INK)]
    if box.note:
        notes.append((box.note, style.MARK_INK))
        colours = f'fillcolor="{style.MARK_FILL}", color="{style.MARK_LINE}", penwidth=1.6, '
    if notes:
        rows += [(line, _NOTE_POINTS) for lines, _ in notes for line in lines]
        label = _label_with_notes(box.lines, notes)
    kind = "step marked" if box.note else "step start" if box.is_start else "step"
    if box.is_optional:
        kind += " optional"
        colours += 'style="rounded,filled,dashed", '
    width = (max(width_in_ems(text) * points for text, points in rows) + 14) / 72
    height = (sum(1.25 * points for _, points in rows) + 10) / 72
    return (
        f'  {box.id} [id="{box.id}", class="{kind}", {colours}width={width:.2f}, height={height:.2f}, '
        f"label={label}, tooltip={tooltip(box.name)}];"
    )


def _label_with_notes(lines: tuple[str, ...], notes: list[_Note]) -> str:
    """An HTML-like label: the name, and the notes under it, smaller and each in its colour."""
    smaller = "".join(
        f'<br/><font point-size="{_NOTE_POINTS:g}" color="{colour}">{"<br/>".join(map(_html, words))}</font>'
        for words, colour in notes
    )
    return f"<{'<br/>'.join(map(_html, lines))}{smaller}>"


def _html(text: str) -> str:
    # HTML-like labels know no way to escape a backslash, but an invisible word joiner parts it from its letter.
    return escape(one_line(text)).replace("\\", "\\\N{WORD JOINER}")


def _arrow(arrow: Arrow) -> str:
    kind = f"{arrow.status} weak" if arrow.support.weak else arrow.status
    kind, head = (kind, "") if arrow.kind == "needs" else (f"{kind} after", "arrowhead=onormal, arrowsize=0.8, ")
    return (
        f'  {arrow.source} -> {arrow.target} [id="{arrow.id}", class="{kind}", color="{style.ARROW[arrow.status]}", '
        f'{head}penwidth={style.arrow_width(arrow):g}, style="{"dashed" if style.is_dashed(arrow) else "solid"}", '
        f"tooltip={tooltip(arrow.text)}];"
    )


def _exclusive_group(group: ExclusiveGroup) -> Iterator[str]:
    """Bars from step to step; where there are many steps, from a few words that stand beside them."""
    colour, said = style.EXCLUSIVE[group.status], tooltip(group.text)
    line = "dashed" if group.status == "missing" else "solid"
    look = f'class="{group.status} exclusive", color="{colour}", penwidth=1.5, style="{line}", tooltip={said}'
    if len(group.boxes) <= _MOST_BARS:
        for number, (one, other) in enumerate(combinations(group.boxes, 2)):
            ends = "dir=both, arrowhead=tee, arrowtail=tee, constraint=false"  # no step is moved by it
            yield f'  {one} -> {other} [id="{group.id}_{number}", {look}, {ends}];'
        return
    yield (
        f'  {group.id} [id="{group.id}", class="{group.status} exclusive", shape=plain, fontsize={_NOTE_POINTS:g}, '
        f'fontcolor="{colour}", label={quote(KIND_WORDS["exclusive"])}, tooltip={said}];'
    )
    for number, box in enumerate(group.boxes):
        # The words stand where there is a column already: behind first steps, else before the steps.
        ends = f"{box} -> {group.id}" if group.at_start else f"{group.id} -> {box}"
        bar = "dir=back, arrowtail=tee" if group.at_start else "arrowhead=tee"
        yield f'  {ends} [id="{group.id}_{number}", {look}, {bar}];'


def _legend(diagram: Diagram) -> str:
    """What lines and boxes mean, as far as they occur; nothing where there are only arrows that say "needs"."""
    symbols: dict[DrawnKind, str] = {
        "needs": "──▶", "after": "──▷", "exclusive": "├─┤", "repeats": style.REPEATS_SYMBOL,
    }  # fmt: skip
    colours: dict[DrawnKind, str] = {"exclusive": style.EXCLUSIVE["common"], "repeats": style.QUIET_INK}
    dashed = f'border="1" color="{style.STEP_LINE}" style="rounded,dashed" cellpadding="4"'
    kinds = [
        f"<td {dashed}>{KIND_WORDS[kind]}</td>"
        if kind == "optional"
        else _legend_cell(f"{symbols[kind]} {KIND_WORDS[kind]}", colours.get(kind, style.INK))
        for kind in diagram.legend
    ]
    lines: dict[EdgeStatus, str] = {"common": "──", "redundant": "──", "missing": "╌╌"}
    statuses = [
        _legend_cell(f"{line} {style.STATUS_WORDS[status]}", style.ARROW[status])
        for status, line in lines.items()
        if diagram.compared
    ]
    rows = [
        f'<table border="0" cellspacing="10"><tr>{"".join(cells)}</tr></table>' for cells in (kinds, statuses) if cells
    ]
    if len(rows) < 2:
        return f"<{rows[0]}>" if rows else ""
    return f'<<table border="0" cellspacing="0">{"".join(f"<tr><td>{row}</td></tr>" for row in rows)}</table>>'


def _legend_cell(text: str, colour: str) -> str:
    return f'<td><font color="{colour}">{text}</font></td>'

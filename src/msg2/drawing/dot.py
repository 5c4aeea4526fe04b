"""A diagram as Graphviz DOT: the one description from which SVG, PNG and PDF are laid out too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from html import escape
from itertools import combinations
from typing import TypeAlias

from msg2.drawing import style
from msg2.drawing.diagram import KIND_WORDS, Arrow, Box, Diagram, DrawnKind, EdgeStatus, ExclusiveGroup
from msg2.drawing.style import Direction, PictureOptions
from msg2.text import one_line, truncate, width_in_ems

_FONT = "sans-serif"
_LEGEND_SIZES: dict[Direction, int] = {"LR": 54, "TB": 36}  # width of a row of the legend at most, in sizes of the font
_MANY_ARROWS = 1500
_LONGEST_TOOLTIP = 2000  # characters; Graphviz refuses strings of more than 16 KB, and escapes make them longer
_LESS_EFFORT = "nslimit=0.2, nslimit1=0.2, mclimit=0.05, splines=line, "
"""For a thicket of arrows, where a careful layout would take minutes and be no clearer."""
_MOST_BARS = 3  # exclusive steps that are joined one by one; more of them would be a thicket

_LegendCell: TypeAlias = tuple[str, str, str]  # text, its colour, attributes of the cell
_Note: TypeAlias = tuple[tuple[str, ...], str]  # lines under the name of a step, and their colour


def to_dot(diagram: Diagram, options: PictureOptions | None = None) -> str:
    """The DOT text of a diagram."""
    chosen = options or PictureOptions()
    lines = ["digraph {", *_defaults(diagram, chosen)]
    lines += [_box(box, chosen.font_size) for box in diagram.boxes]
    lines += [_arrow(arrow) for arrow in diagram.arrows]
    lines += [line for group in diagram.groups for line in _exclusive_group(group, chosen.font_size)]
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


def _defaults(diagram: Diagram, options: PictureOptions) -> Iterator[str]:
    effort = _LESS_EFFORT if len(diagram.arrows) > _MANY_ARROWS else ""
    points, scale = options.font_size, options.font_size / 11
    limit = "" if options.inches is None else f'size="{options.inches:.4g},1000", '
    yield (
        f"  graph [rankdir={options.direction}, {limit}outputorder=edgesfirst, {effort}nodesep={0.18 * scale:.3g}, "
        f'ranksep={0.32 * scale:.3g}, pad=0.15, bgcolor="{style.PAPER}", fontname="{_FONT}", fontsize={points:g}, '
        f'fontcolor="{style.INK}", tooltip={tooltip(diagram.task)}];'
    )
    if not diagram.boxes:
        yield '  graph [label="no steps"];'
    elif legend := _legend(diagram, options):
        yield f"  graph [labelloc=b, label={legend}];"
    yield (
        f'  node [fontname="{_FONT}", fontsize={points:g}, fontcolor="{style.INK}", shape=box, '
        f'style="rounded,filled", fillcolor="{style.STEP_FILL}", color="{style.STEP_LINE}", margin="0,0"];'
    )
    yield "  edge [arrowsize=0.65];"


def _box(box: Box, points: float) -> str:
    small = _note_points(points)
    if box.kind != "step":
        text, fill = style.OPERATOR_WORDS[box.kind], style.OPERATOR_FILL[box.kind]
        size = f"width={0.031 * points:.3g}, height={0.031 * points:.3g}, fontsize={small}"
        return (
            f'  {box.id} [id="{box.id}", class="{box.kind}", shape=circle, style=filled, fillcolor="{fill}", '
            f"{size}, fixedsize=true, label={quote(box.name)}, tooltip={tooltip(text)}];"
        )
    rows = [(line, points) for line in box.lines]
    colours = f'fillcolor="{style.START_FILL}", color="{style.START_LINE}", ' if box.is_start else ""
    label = '"' + "\\n".join(quote(line)[1:-1] for line in box.lines) + '"'
    notes: list[_Note] = [] if box.repeats is None else [((style.repeats_note(box.repeats),), style.QUIET_INK)]
    if box.note:
        notes.append((box.note, style.MARK_INK))
        colours = f'fillcolor="{style.MARK_FILL}", color="{style.MARK_LINE}", penwidth=1.6, '
    if notes:
        rows += [(line, small) for lines, _ in notes for line in lines]
        label = _label_with_notes(box.lines, notes, small)
    kind = "step marked" if box.note else "step start" if box.is_start else "step"
    if box.is_optional:
        kind += " optional"
        colours += 'style="rounded,filled,dashed", '
    width = (max(width_in_ems(text) * size for text, size in rows) + 14 * points / 11) / 72
    height = (sum(1.25 * size for _, size in rows) + 10 * points / 11) / 72
    return (
        f'  {box.id} [id="{box.id}", class="{kind}", {colours}width={width:.2f}, height={height:.2f}, '
        f"label={label}, tooltip={tooltip(box.name)}];"
    )


def _note_points(points: float) -> int:
    """Size of notes and operators beside names of a size; HTML-like labels know whole points only."""
    return max(4, round(0.86 * points))


def _label_with_notes(lines: tuple[str, ...], notes: list[_Note], points: int) -> str:
    """An HTML-like label: the name, and the notes under it, smaller and each in its colour."""
    smaller = "".join(
        f'<br/><font point-size="{points}" color="{colour}">{"<br/>".join(map(_html, words))}</font>'
        for words, colour in notes
    )
    return f"<{'<br/>'.join(map(_html, lines))}{smaller}>"


def _html(text: str) -> str:
    # HTML-like labels know no way to escape a backslash, but an invisible word joiner parts it from its letter.
    return escape(one_line(text)).replace("\\", "\\\N{WORD JOINER}")


def _arrow(arrow: Arrow) -> str:
    kind = f"{arrow.status} weak" if arrow.support.weak else arrow.status
    head = ""
    if arrow.kind == "after":
        kind, head = f"{kind} after", "arrowhead=onormal, arrowsize=0.8, "
    elif arrow.is_alternative:  # lines that meet in the circle
        kind, head = f"{kind} alternative", "arrowhead=none, "
    return (
        f'  {arrow.source} -> {arrow.target} [id="{arrow.id}", class="{kind}", color="{style.ARROW[arrow.status]}", '
        f'{head}penwidth={style.arrow_width(arrow):g}, style="{"dashed" if style.is_dashed(arrow) else "solid"}", '
        f"tooltip={tooltip(arrow.text)}];"
    )


def _exclusive_group(group: ExclusiveGroup, points: float) -> Iterator[str]:
    """Bars from step to step; where there are many steps, from a few words that stand beside them."""
    colour, said = style.EXCLUSIVE[group.status], tooltip(group.text)
    line = "dashed" if group.status == "missing" else "solid"
    look = f'class="{group.status} exclusive", color="{colour}", penwidth=1.5, style="{line}", tooltip={said}'
    if len(group.boxes) <= _MOST_BARS:
        for number, (first, second) in enumerate(combinations(group.boxes, 2)):
            ends = "dir=both, arrowhead=tee, arrowtail=tee, constraint=false"  # no step is moved by it
            yield f'  {first} -> {second} [id="{group.id}_{number}", {look}, {ends}];'
        return
    yield (
        f'  {group.id} [id="{group.id}", class="{group.status} exclusive", shape=plain, '
        f"fontsize={_note_points(points)}, "
        f'fontcolor="{colour}", label={quote(KIND_WORDS["exclusive"])}, tooltip={said}];'
    )
    for number, box in enumerate(group.boxes):
        # The words stand where there is a column already: behind first steps, else before the steps.
        ends = f"{box} -> {group.id}" if group.at_start else f"{group.id} -> {box}"
        bar = "dir=back, arrowtail=tee" if group.at_start else "arrowhead=tee"
        yield f'  {ends} [id="{group.id}_{number}", {look}, {bar}];'


def _legend(diagram: Diagram, options: PictureOptions) -> str:
    """What lines and boxes mean, as far as they occur; by default only what a plain arrow does not say."""
    kinds: tuple[DrawnKind, ...] = diagram.drawn_kinds if options.legend else diagram.legend
    lines: dict[EdgeStatus, str] = {"common": "──", "redundant": "──", "missing": "╌╌"}
    samples = [(KIND_WORDS[kind], *_SAMPLES[kind]) for kind in kinds]
    cells = [(f"{sample} {words}".strip(), colour, box) for words, sample, colour, box in samples]
    statuses = [(f"{line} {style.STATUS_WORDS[status]}", style.ARROW[status], "") for status, line in lines.items()]
    points = _note_points(options.font_size)
    room = min(_LEGEND_SIZES[options.direction] * options.font_size, 72 * (options.inches or math.inf))
    rows = [row for part in (cells, statuses if diagram.compared else []) for row in _legend_rows(part, points, room)]
    if options.legend is False or not rows:
        return ""
    tables = [f'<table border="0" cellpadding="2" cellspacing="5"><tr>{"".join(row)}</tr></table>' for row in rows]
    stacked = "".join(f"<tr><td>{table}</td></tr>" for table in tables)
    return f'<<table border="0" cellpadding="0" cellspacing="0">{stacked}</table>>'


def _legend_rows(cells: Iterable[_LegendCell], points: int, room: float) -> list[list[str]]:
    """HTML-like cells of text of a size in points, as many in a row as there is room for."""
    rows: list[list[str]] = []
    left = 0.0
    for text, colour, box in cells:
        width = 0.85 * width_in_ems(text) * points + 8  # ems are reckoned generously, for boxes with one word
        if not rows or width > left:
            rows.append([])
            left = room
        left -= width + 10
        # Of a fixed size, so that a box is not drawn out to the width of its row.
        look = f' {box} fixedsize="true" width="{width:.0f}" height="{1.7 * points:.0f}"' if box else ""
        said = f'<font point-size="{points}" color="{colour}">{text}</font>'
        rows[-1].append(f'<td align="{"center" if box else "left"}"{look}>{said}</td>')
    return rows


_BOX = 'border="1" color="{line}" style="{style}" bgcolor="{fill}"'
_DASHED_BOX = _BOX.format(line=style.STEP_LINE, style="rounded,dashed", fill=style.STEP_FILL)
_START_BOX = _BOX.format(line=style.START_LINE, style="rounded", fill=style.START_FILL)
_SAMPLES: dict[DrawnKind, _LegendCell] = {
    "needs": ("──▶", style.INK, ""),
    "alternative": ("──(or)", style.INK, ""),
    "after": ("──▷", style.INK, ""),
    "exclusive": ("├─┤", style.EXCLUSIVE["common"], ""),
    "optional": ("", style.INK, _DASHED_BOX),
    "repeats": (style.REPEATS_SYMBOL, style.QUIET_INK, ""),
    "start": ("", style.INK, _START_BOX),
    "all": ("(and)", style.INK, ""),
    "not": ("(not)", style.INK, ""),
    "share": ("━━▶", style.INK, ""),
    "weak": ("╌╌▶", style.INK, ""),
}
"""How each kind is drawn, for the legend."""

"""Graphviz: the DOT text of a diagram, and of what directly follows what in data; and the pictures made of them.

Graphviz comes inside the pygraphviz wheels and runs in this process; no `dot` program is needed.
"""

import logging
import math
import os
import re
import struct
import sys
import tempfile
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from itertools import combinations, pairwise
from statistics import median

from msg2.drawing import style
from msg2.drawing.diagram import LONGEST_LABEL, WIDEST_LABEL, Arrow, Diagram, ExclusiveGroup, LoopArrow
from msg2.drawing.style import SIGNS, Direction, EdgeStatus, PictureOptions
from msg2.graph import END, START, Node
from msg2.task import Step, Task
from msg2.text import one_line, time_unit, truncate, width_in_ems, wrap

_log, _debug_log = logging.getLogger("msg2"), logging.getLogger(__name__)
_FONT = "sans-serif"
_LEGEND_SIZES: dict[Direction, int] = {"LR": 54, "TB": 36}  # width of a row of the legend at most, in sizes of the font
_MANY_ARROWS = 1500
_LONGEST_TOOLTIP = 2000  # characters; Graphviz refuses strings of more than 16 KB, and escapes make them longer
_LESS_EFFORT = "nslimit=0.2, nslimit1=0.2, mclimit=0.05, splines=line, "
"""For a thicket of arrows, where a careful layout would take minutes and be no clearer."""
_MOST_BARS = 3  # exclusive steps that are joined one by one; more of them would be a thicket

_NARROWER_LABELS = (14, 10)  # characters per line that are tried before a picture is made smaller
_SMALLEST_PRINT = 6.0  # points below which print is hard to read
_one_at_a_time = threading.Lock()  # Graphviz keeps its state in globals

_PNG_HEAD = 33  # bytes of a PNG before the first chunk that may be another one: its signature and its header
_PDF_OFFSET = re.compile(rb"\d{10}(?= 00000 n)|(?<=startxref\n)\d+")
_PDF_DATE = re.compile(rb"/CreationDate \([^)]*\)")
_HEAD = re.compile(r"\A.*?(?=<svg)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_TITLED_LINK = re.compile(r'(?:<title>[^<]*</title>\n)?<g id="a_[^"]*"><a xlink:title="([^"]*)">')
_RARE = 0.05
"""Share of the videos below which a succession is left out, unless it is the most frequent one from or to a step."""


def to_dot(diagram: Diagram, options: PictureOptions | None = None, columns: int | None = None) -> str:
    """The DOT text of a diagram, with labels of so many characters per line."""
    chosen = options or PictureOptions()
    lines = ["digraph {", *_defaults(diagram, chosen)]
    lines += [_node(node, diagram, chosen.font_size, columns) for node in diagram.nodes]
    lines += [_arrow(arrow) for arrow in diagram.arrows]
    lines += [line for group in diagram.groups for line in _exclusive_group(group, chosen.font_size)]
    lines += [line for loop in diagram.loops for line in _loop(loop, chosen.font_size)]
    return "\n".join([*lines, "}"]) + "\n"


def quote(*lines: str) -> str:
    """Quote lines as a DOT string that is shown as it stands: no escapes, no entities, no HTML-like labels."""
    plain = (escape(one_line(line), quote=False) for line in lines)
    return '"' + "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in plain) + '"'


def tooltip(text: str) -> str:
    """Quote a text as a tooltip, where Graphviz removes escapes twice."""
    return quote(truncate(one_line(text), _LONGEST_TOOLTIP).replace("\\", "\\\\"))


def _defaults(diagram: Diagram, options: PictureOptions) -> Iterator[str]:
    effort = _LESS_EFFORT if len(diagram.arrows) > _MANY_ARROWS else ""
    points, scale = options.font_size, options.font_size / 11
    yield (
        f"  graph [rankdir={options.direction}, {options.size_limit}outputorder=edgesfirst, {effort}"
        f'nodesep={0.18 * scale:.3g}, ranksep={0.32 * scale:.3g}, pad=0.15, bgcolor="{style.PAPER}", '
        f'fontname="{_FONT}", fontsize={points:g}, fontcolor="{style.INK}", tooltip={tooltip(diagram.graph.task)}];'
    )
    if not diagram.nodes:
        yield '  graph [label="no steps"];'
    elif legend := _legend(diagram, options):
        yield f"  graph [labelloc=b, label={legend}];"
    yield (
        f'  node [fontname="{_FONT}", fontsize={points:g}, fontcolor="{style.INK}", shape=box, '
        f'style="rounded,filled", fillcolor="{style.STEP_FILL}", color="{style.STEP_LINE}", margin="0,0"];'
    )
    yield "  edge [arrowsize=0.65];"


def _node(node: Node, diagram: Diagram, points: float, columns: int | None) -> str:
    small = _note_points(points)
    if node.kind != "step":
        name, words, fill = style.OPERATORS[node.kind]
        size = f"width={0.031 * points:.3g}, height={0.031 * points:.3g}, fontsize={small}"
        return (
            f'  {node.id} [id="{node.id}", class="{node.kind}", shape=circle, style=filled, fillcolor="{fill}", '
            f"{size}, fixedsize=true, label={quote(name)}, tooltip={tooltip(words)}];"
        )
    step, graph = node.label, diagram.graph
    name_lines, notes = diagram.label(step, columns), list[tuple[list[str], str]]()  # lines under it, their colour
    kind, colours = "step", ""
    if node.layer == 0:
        kind, colours = "step start", f'fillcolor="{style.START_FILL}", color="{style.START_LINE}", '
    if step in graph.repeats:
        notes.append(([style.repeats_note(graph.repeats[step])], style.QUIET_INK))
    if step in diagram.notes:
        notes.append((diagram.label(diagram.notes[step], columns), style.MARK_INK))
        kind, colours = "step marked", f'fillcolor="{style.MARK_FILL}", color="{style.MARK_LINE}", penwidth=1.6, '
    if step in graph.optional:
        kind, colours = f"{kind} optional", f'{colours}style="rounded,filled,dashed", '
    rows = [(line, points) for line in name_lines] + [(line, small) for lines, _ in notes for line in lines]
    width = (max(width_in_ems(text) * size for text, size in rows) + 14 * points / 11) / 72
    height = (sum(1.25 * size for _, size in rows) + 10 * points / 11) / 72
    label = quote(*name_lines)
    if notes:  # an HTML-like label: the notes are smaller, each in its colour
        smaller = (f'<br/><font point-size="{small}" color="{colour}">{_html(lines)}</font>' for lines, colour in notes)
        label = f"<{_html(name_lines)}{''.join(smaller)}>"
    return (
        f'  {node.id} [id="{node.id}", class="{kind}", {colours}width={width:.2f}, height={height:.2f}, '
        f"label={label}, tooltip={tooltip(step)}];"
    )


def _note_points(points: float) -> int:
    """Size of notes and operators beside names of a size; HTML-like labels know whole points only."""
    return max(4, round(0.86 * points))


def _html(lines: Iterable[str]) -> str:
    # HTML-like labels know no way to escape a backslash, but an invisible word joiner parts it from its letter.
    return "<br/>".join(escape(one_line(line)).replace("\\", "\\\N{WORD JOINER}") for line in lines)


def _arrow(arrow: Arrow) -> str:
    kind = f"{arrow.status} weak" if arrow.support.weak else arrow.status
    head = ""
    if arrow.kind == "after":
        kind, head = f"{kind} after", "arrowhead=onormal, arrowsize=0.8, "
    elif arrow.is_alternative:  # lines that meet in the circle
        kind, head = f"{kind} alternative", "arrowhead=none, "
    if arrow.is_followed:
        head += "dir=both, arrowtail=dot, "
    return (
        f'  {arrow.source} -> {arrow.target} [id="{arrow.id}", class="{kind}", color="{style.ARROW[arrow.status]}", '
        f'{head}penwidth={arrow.width:g}, style="{"dashed" if arrow.is_dashed else "solid"}", '
        f"tooltip={tooltip(arrow.text)}];"
    )


def _loop(loop: LoopArrow, points: float) -> Iterator[str]:
    """Dotted arrows back to where a part begins again; no step is moved by them."""
    label = quote(style.repeats_note(loop.share))
    for number, source in enumerate(loop.sources):
        yield (
            f'  {source} -> {loop.target} [id="{loop.id}_{number}", class="loop", color="{style.QUIET_INK}", '
            f'fontcolor="{style.QUIET_INK}", fontsize={_note_points(points)}, style=dotted, penwidth=1.4, '
            f"label={label}, constraint=false, tooltip={tooltip(loop.text)}];"
        )


def _exclusive_group(group: ExclusiveGroup, points: float) -> Iterator[str]:
    """Bars from step to step; where there are many steps, from a few words that stand beside them."""
    colour, said = style.EXCLUSIVE[group.status], tooltip(group.text)
    line = "dashed" if group.status == "missing" else "solid"
    look = f'class="{group.status} exclusive", color="{colour}", penwidth=1.5, style="{line}", tooltip={said}'
    if len(group.nodes) <= _MOST_BARS:
        for number, (first, second) in enumerate(combinations(group.nodes, 2)):
            ends = "dir=both, arrowhead=tee, arrowtail=tee, constraint=false"  # no step is moved by it
            yield f'  {first} -> {second} [id="{group.id}_{number}", {look}, {ends}];'
        return
    yield (
        f'  {group.id} [id="{group.id}", class="{group.status} exclusive", shape=plain, '
        f"fontsize={_note_points(points)}, "
        f'fontcolor="{colour}", label={quote(SIGNS["exclusive"].words)}, tooltip={said}];'
    )
    for number, node in enumerate(group.nodes):
        # The words stand where there is a column already: behind first steps, else before the steps.
        ends = f"{node} -> {group.id}" if group.at_start else f"{group.id} -> {node}"
        bar = "dir=back, arrowtail=tee" if group.at_start else "arrowhead=tee"
        yield f'  {ends} [id="{group.id}_{number}", {look}, {bar}];'


def _legend(diagram: Diagram, options: PictureOptions) -> str:
    """What lines and boxes mean, as far as they occur; by default only what a plain arrow does not say."""
    signs = [SIGNS[kind] for kind in (diagram.drawn_kinds if options.legend else diagram.legend)]
    lines: dict[EdgeStatus, str] = {"common": "──", "redundant": "──", "missing": "╌╌"}
    cells = [(f"{sign.dot} {sign.words}".strip(), sign.colour, sign.cell) for sign in signs]
    statuses = [(f"{line} {style.STATUS_WORDS[status]}", style.ARROW[status], "") for status, line in lines.items()]
    points = _note_points(options.font_size)
    room = min(_LEGEND_SIZES[options.direction] * options.font_size, 72 * (options.inches or math.inf))
    rows = [row for part in (cells, statuses if diagram.compared else []) for row in _legend_rows(part, points, room)]
    if options.legend is False or not rows:
        return ""
    tables = [f'<table border="0" cellpadding="2" cellspacing="5"><tr>{"".join(row)}</tr></table>' for row in rows]
    stacked = "".join(f"<tr><td>{table}</td></tr>" for table in tables)
    return f'<<table border="0" cellpadding="0" cellspacing="0">{stacked}</table>>'


def _legend_rows(cells: Iterable[tuple[str, str, str]], points: int, room: float) -> list[list[str]]:
    """Put cells (text, colour, attributes) as HTML into rows, as many in each as there is room for."""
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


def directly_follows(task: Task) -> Counter[tuple[Step | None, Step | None]]:
    """Count the direct successions of a task, by start; None is before the first and after the last step of a video."""
    runs = ([segment.step for segment in video.segments] for video in task if video.segments)
    return Counter(pair for run in runs for pair in pairwise([None, *run, None]))


def _median_waits(task: Task) -> dict[tuple[Step | None, Step | None], float]:
    """The seconds from the end of a step to the start of the one right after it, median."""
    waits: dict[tuple[Step | None, Step | None], list[float]] = {}
    for video in task:
        for before, after in pairwise(video.segments):
            if before.end is not None and after.start is not None:
                waits.setdefault((before.step, after.step), []).append(max(0.0, after.start - before.end))
    return {pair: median(seconds) for pair, seconds in waits.items()}


def directly_follows_dot(task: Task, options: PictureOptions) -> str:
    """Draw how often one step came right after another; the wider an arrow, the more often.

    In logs with times, arrows say how long that takes, median; the one that takes longest is in another colour.
    """
    counts = directly_follows(task)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], [name or "" for name in item[0]]))
    best = [{pair[end]: pair for pair, _ in reversed(ranked)} for end in (0, 1)]  # from each step, and to each
    kept = {*best[0].values(), *best[1].values()}
    drawn = [(pair, count) for pair, count in ranked if count >= _RARE * len(task) or pair in kept]
    hidden = len(counts) - len(drawn)
    said = f"{hidden} rarer successions are not drawn" if hidden else ""
    lines = [
        f'graph [rankdir={options.direction}, {options.size_limit}pad=0.15, bgcolor="{style.PAPER}", '
        f'fontname="{_FONT}", fontsize={options.font_size:g}, fontcolor="{style.QUIET_INK}", labelloc=b, '
        f"label={quote(said)}];",
        f'node [shape=box, style="rounded,filled", fillcolor="{style.STEP_FILL}", color="{style.STEP_LINE}", '
        f'fontname="{_FONT}", fontsize={options.font_size:g}, fontcolor="{style.INK}", height=0.3];',
        f'edge [color="{style.ARROW["common"]}", fontcolor="{style.INK}", fontname="{_FONT}", '
        f"fontsize={0.86 * options.font_size:.3g}, arrowsize=0.65];",
    ]
    done = Counter(segment.step for video in task for segment in video.segments)
    ids: dict[Step | None, str] = {name: f"s{number}" for number, name in enumerate(task.steps, start=1)}
    for name in task.steps:
        label = quote(*wrap(name, WIDEST_LABEL, LONGEST_LABEL), str(done[name]))
        lines.append(f"{ids[name]} [label={label}, tooltip={tooltip(name)}];")
    ends = f'shape=circle, label="", width=0.2, fillcolor="{style.START_FILL}", color="{style.START_LINE}"'
    lines += [f"start [{ends}, tooltip={START}];", f"end [{ends}, peripheries=2, tooltip={END}];"]
    waits = _median_waits(task) if task.absent == "skipped" else {}
    slowest = max((waits.get(pair, 0.0) for pair, _ in drawn), default=0.0)
    for (before, after), count in drawn:
        width, label = 0.6 + 2.4 * count / max(counts.values()), str(count)
        if (wait := waits.get((before, after))) is not None:
            size, unit = time_unit(wait)
            label = quote(str(count), f"{wait / size:.{int(size > 1)}f} {unit}")
            label += f', color="{style.ARROW["missing"]}"' * (wait == slowest > 0)
        lines.append(f"{ids.get(before, 'start')} -> {ids.get(after, 'end')} [label={label}, penwidth={width:.2f}];")
    return "digraph {\n  " + "\n  ".join(lines) + "\n}\n"


def render_svg(dot: str) -> str:
    """The diagram of `dot` as one `<svg>` element, without version, date and comments: the same bytes every time."""
    text = _render(dot, "svg").decode("utf-8")
    text = _COMMENT.sub("", _HEAD.sub("", text, count=1))
    return _TITLED_LINK.sub(r"<title>\1</title>\n<g><a>", text).strip() + "\n"


def _render_png(dot: str, options: PictureOptions) -> bytes:
    """The diagram of a DOT text as a PNG that says how large it is in print."""
    content = _render(dot, "png", dpi=str(options.dpi))
    per_metre = round(options.dpi / 0.0254)
    chunk = b"pHYs" + struct.pack(">IIB", per_metre, per_metre, 1)
    size = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return content[:_PNG_HEAD] + size + content[_PNG_HEAD:]


def _render_pdf(dot: str, _: PictureOptions) -> bytes:
    """The diagram of `dot` as a PDF of one page of its size, without a date: the same graph gives the same bytes."""
    content = _render(dot, "pdf", margin="0")
    if not (date := _PDF_DATE.search(content)):
        return content

    def move(offset: re.Match[bytes]) -> bytes:  # what stands at which byte is listed behind; dates differ in length
        at = int(offset[0])
        return b"%0*d" % (len(offset[0]), at - len(date[0]) if at > date.start() else at)

    return content[: date.start()] + _PDF_OFFSET.sub(move, content[date.end() :])


def _width_scale(dot: str) -> float:
    """By how much the diagram of `dot` is made smaller to keep to its limits: 1 where it need not be."""
    return float(_render(dot, "plain").split(maxsplit=2)[1])


def _render(dot: str, kind: str, **attributes: str) -> bytes:
    import pygraphviz

    with _one_at_a_time, _native_stderr_logged():
        layout = pygraphviz.AGraph(string=dot)
        try:
            layout.graph_attr.update(attributes)
            return bytes(layout.draw(format=kind, prog="dot"))
        finally:
            layout.close()


@contextmanager
def _native_stderr_logged() -> Iterator[None]:
    """Send what C libraries write on standard error (mostly about the system's font files) to the log instead."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as captured:
        original = os.dup(2)
        os.dup2(captured.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(original, 2)
            os.close(original)
            captured.seek(0)
            for line in captured.read().decode("utf-8", "replace").splitlines():
                _debug_log.debug("graphviz: %s", line)


def fitting_dot(diagram: Diagram, options: PictureOptions) -> str:
    """Make the DOT text of a diagram that keeps to a width, its labels as wide as they can be."""
    dot = to_dot(diagram, options)
    if options.inches is None or _width_scale(dot) == 1:
        return dot
    candidates = [dot, *(to_dot(diagram, options, columns) for columns in _NARROWER_LABELS)]
    scales = [_width_scale(candidate) for candidate in candidates]
    largest = max(scales)
    if largest * options.font_size < _SMALLEST_PRINT:
        hint = "another direction, a larger width or font_size makes it larger"
        _log.warning("the text of the picture is %.1f points high: %s", largest * options.font_size, hint)
    return candidates[scales.index(largest)]


DOT_RENDERERS: Mapping[str, Callable[[str, PictureOptions], str | bytes]] = {
    ".svg": lambda dot, _: render_svg(dot),
    ".png": _render_png,
    ".pdf": _render_pdf,
    ".dot": lambda dot, _: dot,
}
"""Suffix of a file -> what makes its content of DOT text."""

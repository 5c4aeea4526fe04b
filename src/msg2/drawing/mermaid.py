"""A diagram as a Mermaid flowchart, for Markdown pages that draw it themselves."""

from __future__ import annotations

from msg2.drawing import style
from msg2.drawing.diagram import KIND_WORDS, Arrow, Box, Diagram, DrawnKind, ExclusiveGroup
from msg2.drawing.style import Direction
from msg2.text import one_line

_CLASSES = (
    f"classDef start fill:{style.START_FILL},stroke:{style.START_LINE},color:{style.INK}",
    f"classDef step fill:{style.STEP_FILL},stroke:{style.STEP_LINE},color:{style.INK}",
    f"classDef marked fill:{style.MARK_FILL},stroke:{style.MARK_LINE},color:{style.MARK_INK}",
    *(
        f"classDef {kind} fill:{fill},stroke:{style.STEP_LINE},color:{style.INK}"
        for kind, fill in style.OPERATOR_FILL.items()
    ),
)
_CLASSES_OF_KINDS: dict[DrawnKind, str] = {
    "exclusive": f"classDef exclusive fill:none,stroke:none,color:{style.EXCLUSIVE['common']}",
    "optional": "classDef optional stroke-dasharray:5",
}
_SIGNS: dict[DrawnKind, str] = {
    "needs": "arrow",
    "alternative": "line to or",
    "after": "round end",
    "optional": "dashed box",
    "repeats": style.REPEATS_SYMBOL,
}
"""How the kinds are drawn that the chart itself does not explain: Mermaid has no legends."""


def to_mermaid(diagram: Diagram, direction: Direction = "LR") -> str:
    """The Mermaid text of a diagram."""
    lines = [*map(_box, diagram.boxes), *map(_arrow, diagram.arrows)]
    lines += [line for group in diagram.groups for line in _exclusive_group(group)]
    lines += [
        f"linkStyle {number} stroke:{style.ARROW[arrow.status]},stroke-width:{style.arrow_width(arrow):g}px"
        for number, arrow in enumerate(diagram.arrows)
        if arrow.support.share is not None or arrow.status != "common" or arrow.kind == "after"
    ]
    drawn = len(diagram.arrows)
    for group in diagram.groups:
        numbers = ",".join(str(drawn + place) for place in range(len(group.boxes)))
        lines.append(f"linkStyle {numbers} stroke:{style.EXCLUSIVE[group.status]},stroke-width:1.5px")
        drawn += len(group.boxes)
    optional = ",".join(box.id for box in diagram.boxes if box.is_optional)
    lines += [f"class {optional} optional"] if optional else []
    return "\n  ".join([f"flowchart {direction}", *lines, *_legend(diagram), *_CLASSES]) + "\n"


def quote(text: str) -> str:
    """Quote `text` for Mermaid: everything that Mermaid, Markdown or HTML could read as more than text is an entity.

    >>> quote('say "hi" & <b>')
    '"say #34;hi#34; #38; #60;b#62;"'
    """
    return '"' + "".join(c if c.isalnum() or c in " ,/?:!'" else f"#{ord(c)};" for c in one_line(text)) + '"'


def _box(box: Box) -> str:
    if box.kind != "step":
        return f"{box.id}(({quote(box.name)})):::{box.kind}"
    again = () if box.repeats is None else (style.repeats_note(box.repeats),)
    label = "<br/>".join(quote(text)[1:-1] for text in (*box.lines, *again, *box.note))
    return f'{box.id}("{label}"):::{"marked" if box.note else "start" if box.is_start else "step"}'


def _arrow(arrow: Arrow) -> str:
    line, end = "-.-" if style.is_dashed(arrow) else "--", "o" if arrow.kind == "after" else ">"
    if arrow.is_alternative:
        end = "" if style.is_dashed(arrow) else "-"
    return f"{arrow.source} {line}{end} {arrow.target}"


def _exclusive_group(group: ExclusiveGroup) -> list[str]:
    """A few words, with a dotted line to every step: a line from step to step would put one behind the other."""
    words = f"{group.id}[{quote(KIND_WORDS['exclusive'])}]:::exclusive"
    return [words, *(f"{group.id} -.- {box}" for box in group.boxes)]


def _legend(diagram: Diagram) -> list[str]:
    """A box with what lines and boxes mean, and the classes of what occurs."""
    if not diagram.legend:
        return []
    lines = [f"{sign}: {KIND_WORDS[kind]}" for kind, sign in _SIGNS.items() if kind in diagram.legend]
    words = "<br/>".join(quote(line)[1:-1] for line in lines)
    classes = [text for kind, text in _CLASSES_OF_KINDS.items() if kind in diagram.legend]
    look = f"classDef legend fill:none,stroke:none,color:{style.QUIET_INK},text-align:left"
    return [f'legend["{words}"]:::legend', *classes, look]

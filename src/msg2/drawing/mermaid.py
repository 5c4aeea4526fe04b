"""A diagram as a Mermaid flowchart, for Markdown pages that draw it themselves."""

from __future__ import annotations

from msg2.drawing import style
from msg2.drawing.diagram import Arrow, Box, Diagram
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


def to_mermaid(diagram: Diagram) -> str:
    """The Mermaid text of `diagram`, left to right.

    >>> from msg2.drawing.diagram import build_diagram
    >>> from msg2.graph import SubtaskGraph, step
    >>> text = to_mermaid(build_diagram(SubtaskGraph("tea", ["boil", "pour"], {"pour": step("boil")})))
    >>> print(text[: text.index("  classDef")])
    flowchart LR
      s0("boil"):::start
      s1("pour"):::step
      s0 --> s1
    <BLANKLINE>
    """
    lines = [*map(_box, diagram.boxes), *map(_arrow, diagram.arrows)]
    lines += [
        f"linkStyle {number} stroke:{style.ARROW[arrow.status]},stroke-width:{style.arrow_width(arrow):g}px"
        for number, arrow in enumerate(diagram.arrows)
        if arrow.support.share is not None or arrow.status != "common"
    ]
    return "\n  ".join(["flowchart LR", *lines, *_CLASSES]) + "\n"


def quote(text: str) -> str:
    """Quote `text` for Mermaid: everything that Mermaid, Markdown or HTML could read as more than text is an entity.

    >>> quote('say "hi" & <b>')
    '"say #34;hi#34; #38; #60;b#62;"'
    """
    return '"' + "".join(c if c.isalnum() or c in " ,/?:!'" else f"#{ord(c)};" for c in one_line(text)) + '"'


def _box(box: Box) -> str:
    if box.kind != "step":
        return f"{box.id}(({quote(box.name)})):::{box.kind}"
    label = "<br/>".join(quote(text)[1:-1] for text in (*box.lines, *box.note))
    return f'{box.id}("{label}"):::{"marked" if box.note else "start" if box.is_start else "step"}'


def _arrow(arrow: Arrow) -> str:
    return f"{arrow.source} {'-.->' if style.is_dashed(arrow) else '-->'} {arrow.target}"

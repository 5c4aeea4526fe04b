"""A diagram as a Mermaid flowchart, for Markdown pages that draw it themselves."""

from msg2.drawing import style
from msg2.drawing.diagram import Diagram
from msg2.drawing.style import SIGNS, Direction
from msg2.graph import Node
from msg2.text import one_line

_CLASSES = (
    f"classDef start fill:{style.START_FILL},stroke:{style.START_LINE},color:{style.INK}",
    f"classDef step fill:{style.STEP_FILL},stroke:{style.STEP_LINE},color:{style.INK}",
    f"classDef marked fill:{style.MARK_FILL},stroke:{style.MARK_LINE},color:{style.MARK_INK}",
    *(
        f"classDef {kind} fill:{operator.fill},stroke:{style.STEP_LINE},color:{style.INK}"
        for kind, operator in style.OPERATORS.items()
    ),
)
_CLASSES_OF_KINDS = {
    "exclusive": f"classDef exclusive fill:none,stroke:none,color:{style.EXCLUSIVE['common']}",
    "optional": "classDef optional stroke-dasharray:5",
}


def to_mermaid(diagram: Diagram, direction: Direction = "LR") -> str:
    """The Mermaid text of a diagram."""
    lines, looks, drawn = [_node(node, diagram) for node in diagram.nodes], [], len(diagram.arrows)
    for number, arrow in enumerate(diagram.arrows):
        line, end = ("-.-", "") if arrow.is_dashed else ("--", "-")  # lines that meet in the circle of an "or"
        if not arrow.is_alternative:
            end = "o" if arrow.kind == "after" else ">"
        lines.append(f"{arrow.source} {line}{end} {arrow.target}")
        if arrow.support.share is not None or arrow.status != "common" or arrow.kind == "after":
            looks.append(f"linkStyle {number} stroke:{style.ARROW[arrow.status]},stroke-width:{arrow.width:g}px")
    for group in diagram.groups:
        # A few words, with a dotted line to every step: a line from step to step would put one behind the other.
        lines.append(f"{group.id}[{quote(SIGNS['exclusive'].words)}]:::exclusive")
        lines += [f"{group.id} -.- {node}" for node in group.nodes]
        numbers = ",".join(str(drawn + place) for place in range(len(group.nodes)))
        looks.append(f"linkStyle {numbers} stroke:{style.EXCLUSIVE[group.status]},stroke-width:1.5px")
        drawn += len(group.nodes)
    for loop in diagram.loops:
        note = quote(style.repeats_note(loop.share))
        lines += [f"{source} -. {note} .-> {loop.target}" for source in loop.sources]
    optional = ",".join(f"s{place}" for place, step in enumerate(diagram.graph.steps) if step in diagram.graph.optional)
    looks += [f"class {optional} optional"] if optional else []
    return "\n  ".join([f"flowchart {direction}", *lines, *looks, *_legend(diagram), *_CLASSES]) + "\n"


def quote(*lines: str) -> str:
    """Quote lines for Mermaid: everything that Mermaid, Markdown or HTML could read as more than text is an entity."""
    plain = ("".join(c if c.isalnum() or c in " ,/?:!'" else f"#{ord(c)};" for c in one_line(line)) for line in lines)
    return f'"{"<br/>".join(plain)}"'


def _node(node: Node, diagram: Diagram) -> str:
    if node.kind != "step":
        return f"{node.id}(({quote(style.OPERATORS[node.kind].name)})):::{node.kind}"
    step, repeats, notes = node.label, diagram.graph.repeats, diagram.notes
    again = [style.repeats_note(repeats[step])] if step in repeats else []
    label = quote(*diagram.label(step), *again, *(diagram.label(notes[step]) if step in notes else []))
    return f"{node.id}({label}):::{'marked' if step in notes else 'step' if node.layer else 'start'}"


def _legend(diagram: Diagram) -> list[str]:
    """A box that says what lines and boxes mean (Mermaid has no legends), and the classes of what occurs."""
    if not diagram.legend:
        return []
    signs = [SIGNS[kind] for kind in diagram.legend if SIGNS[kind].mermaid]
    words = quote(*(f"{sign.mermaid}: {sign.words}" for sign in signs))
    classes = [text for kind, text in _CLASSES_OF_KINDS.items() if kind in diagram.legend]
    look = f"classDef legend fill:none,stroke:none,color:{style.QUIET_INK},text-align:left"
    return [f"legend[{words}]:::legend", *classes, look]

"""What a picture shows, whatever the format: boxes, operators, arrows, and how they differ from a true graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from msg2.drawing.text import wrapped
from msg2.errors import InputError, shortened
from msg2.graph import Edge, SubtaskGraph, wiring
from msg2.graph.formula import Kind
from msg2.options import DrawOptions
from msg2.task import Step

Status: TypeAlias = Literal["common", "redundant", "missing"]
"""Of an arrow beside the truth: in both graphs, only in the drawn one, only in the truth."""

_CHARACTERS_PER_ROW = 180
_NARROWEST = 14


@dataclass(frozen=True, slots=True)
class Box:
    """A step or an operator (`name` is &, | or ¬); `lines` is the name as it is written into the box.

    `starts` where nothing comes before the step; `note` is what is said of it, in a few words, as lines too.
    """

    id: str
    kind: Kind
    name: str
    lines: tuple[str, ...]
    starts: bool = False
    note: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Arrow:
    """From one box to another; `words` is what it says, `support` the share of videos that agree (None: unknown).

    `before` and `after` are the steps it speaks of; `before` is None for what leaves an operator.
    """

    id: str
    source: str
    target: str
    before: Step | None
    after: Step
    words: str
    support: float | None = None
    weak: bool = False
    status: Status = "common"


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes and arrows of a task, in a fixed order; `left_out` counts the pairs of steps that the reduction spares."""

    task: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    compared: bool
    left_out: int


def picture(
    graph: SubtaskGraph,
    compare: SubtaskGraph | None = None,
    marks: Mapping[Step, str] | None = None,
    options: DrawOptions | None = None,
) -> Picture:
    """`graph` (its transitive reduction, unless the options say otherwise) ready to be drawn.

    Beside `compare`, the true graph, every arrow has a status by the pair of steps it speaks of, through any operator.

    >>> from msg2.graph import step
    >>> chain = SubtaskGraph("t", "abc", {"b": step("a"), "c": step("b")})
    >>> truth = SubtaskGraph("t", "abc", {"b": step("a"), "c": step("a")})
    >>> [(arrow.words, arrow.status) for arrow in picture(chain, truth).arrows]
    [('a → b', 'common'), ('b → c', 'redundant'), ('a → c', 'missing')]
    """
    options = options or DrawOptions()
    drawn = graph.reduced() if options.reduce else graph
    truth = compare.reduced() if compare is not None and options.reduce else compare
    notes = marks or {}
    _check_names(graph, notes, "marks")
    _check_names(graph, () if truth is None else truth.steps, "true graph")
    nodes, edges = wiring(drawn)
    ids = {node.label: node.id for node in nodes if node.kind == "step"}
    wanted = drawn.edges() if truth is None else truth.edges()
    columns = _columns(drawn, options)

    def lines(text: str) -> tuple[str, ...]:
        return tuple(wrapped(text, columns, options.longest_label))

    boxes = [
        Box(node.id, node.kind, node.label, lines(node.label), node.layer == 0,
            lines(notes[node.label]) if node.label in notes else ())
        if node.kind == "step"
        else Box(node.id, node.kind, node.label, (node.label,))
        for node in nodes
    ]  # fmt: skip
    speaks_of = _steps_behind(edges)
    arrows = [
        Arrow(f"e{number}", edge.source, edge.target, edge.before, edge.after, _words(edge), edge.support, edge.weak,
              "common" if any((before, edge.after) in wanted for before in speaks_of[edge]) else "redundant")
        for number, edge in enumerate(edges)
    ]  # fmt: skip
    missing = sorted(wanted - drawn.edges(), key=lambda pair: (drawn.steps.index(pair[1]), pair[0]))
    arrows += [
        Arrow(f"e{number}", ids[before], ids[after], before, after, f"{before} → {after}", status="missing")
        for number, (before, after) in enumerate(missing, start=len(edges))
    ]
    return Picture(graph.task, tuple(boxes), tuple(arrows), compare is not None, len(graph.edges() - drawn.edges()))


def _columns(graph: SubtaskGraph, options: DrawOptions) -> int:
    """Characters per line: the deeper the graph, the narrower its boxes, so that a row of them fits a screen."""
    ranks = 1 + max(graph.layer.values(), default=0)
    return max(min(options.columns, _CHARACTERS_PER_ROW // ranks), min(options.columns, _NARROWEST))


def _check_names(graph: SubtaskGraph, names: Mapping[Step, str] | tuple[Step, ...], where: str) -> None:
    for name in sorted(set(names) - set(graph.steps)):
        raise InputError(f"{shortened(name)} is not a step of the graph", where=where)


def _words(edge: Edge) -> str:
    if edge.before is None:
        return f"→ {edge.after}"
    agreed = "" if edge.support is None else f": in this order in {100 * edge.support:.0f} % of the videos with both"
    return f"{edge.before} → {edge.after}{agreed}{', little support' if edge.weak else ''}"


def _steps_behind(edges: list[Edge]) -> dict[Edge, frozenset[Step]]:
    """Per edge, the steps it leads from, operators looked through; edges into an operator come before those out."""
    behind: dict[str, frozenset[Step]] = {}
    found: dict[Edge, frozenset[Step]] = {}
    for edge in edges:
        found[edge] = behind.get(edge.source, frozenset()) if edge.before is None else frozenset({edge.before})
        behind[edge.target] = behind.get(edge.target, frozenset()) | found[edge]
    return found

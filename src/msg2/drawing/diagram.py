"""What a diagram shows, whatever the format: boxes, operators, arrows, and how they differ from a true graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from msg2.errors import InputError
from msg2.graph import Link, SubtaskGraph, Support, node_link_graph
from msg2.graph.formula import FormulaKind
from msg2.graph.support import NO_SUPPORT
from msg2.task import Step
from msg2.text import short_repr, wrap

EdgeStatus: TypeAlias = Literal["common", "redundant", "missing"]
"""Of an arrow beside the truth: in both graphs, only in the drawn one, only in the truth."""

WIDEST_LABEL = 22
"""Characters per line of a label."""
NARROWEST_LABEL = 14
"""The same in deep graphs, whose boxes must be narrower."""
CHARACTERS_PER_ROW = 180
"""Characters of all labels from left to right that fit a screen."""
LONGEST_LABEL = 90
"""Characters of a label before it is cut with "…"; the full name is in the tooltip."""


@dataclass(frozen=True, slots=True)
class Box:
    """A step or an operator."""

    id: str
    kind: FormulaKind
    name: str
    """Of an operator, &, | or ¬."""
    lines: tuple[str, ...]
    """The name as it is written into the box."""
    is_start: bool = False
    """Whether nothing comes before the step."""
    note: tuple[str, ...] = ()
    """A few words about the step, as lines."""


@dataclass(frozen=True, slots=True)
class Arrow:
    """From one box to another."""

    id: str
    source: str
    target: str
    before: Step | None
    """The step it leaves; None for what leaves an operator."""
    after: Step
    """The step whose precondition it belongs to."""
    text: str
    """What it says, for a tooltip."""
    support: Support = NO_SUPPORT
    status: EdgeStatus = "common"


@dataclass(frozen=True, slots=True)
class Diagram:
    """Boxes and arrows of a task, in a fixed order."""

    task: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    compared: bool
    """Whether the arrows have a status beside a true graph."""
    omitted_edges: int
    """Edges that are not drawn because they follow from others."""


def build_diagram(
    graph: SubtaskGraph,
    compare: SubtaskGraph | None = None,
    marks: Mapping[Step, str] | None = None,
    reduce: bool = True,
) -> Diagram:
    """Lay out what a diagram of a graph shows.

    Parameters
    ----------
    graph : SubtaskGraph
        The graph.
    compare : SubtaskGraph, optional
        The true graph, with the same step names. Every arrow then has a status by the pair of steps it speaks of,
        through any operator.
    marks : mapping from str to str, optional
        Short notes on steps.
    reduce : bool
        Whether to draw the transitive reduction, which reads more easily, or the graph as it stands.

    Returns
    -------
    Diagram
        Ready to be drawn.

    Raises
    ------
    InputError
        Where `compare` or `marks` name a step that the graph does not have.

    >>> from msg2.graph import step
    >>> chain = SubtaskGraph("t", "abc", {"b": step("a"), "c": step("b")})
    >>> truth = SubtaskGraph("t", "abc", {"b": step("a"), "c": step("a")})
    >>> [(arrow.text, arrow.status) for arrow in build_diagram(chain, truth).arrows]
    [('a → b', 'common'), ('b → c', 'redundant'), ('a → c', 'missing')]
    """
    drawn = graph.transitive_reduction() if reduce else graph
    truth = compare.transitive_reduction() if compare is not None and reduce else compare
    notes = marks or {}
    _check_names(graph, notes, "marks")
    _check_names(graph, () if truth is None else truth.steps, "true graph")
    nodes, links = node_link_graph(drawn)
    ids = {node.label: node.id for node in nodes if node.kind == "step"}
    pairs = drawn.edge_pairs()
    true_pairs = pairs if truth is None else truth.edge_pairs()
    columns = _label_columns(drawn)

    def lines(text: str) -> tuple[str, ...]:
        return tuple(wrap(text, columns, LONGEST_LABEL))

    boxes = [
        Box(node.id, node.kind, node.label, lines(node.label), node.layer == 0,
            lines(notes[node.label]) if node.label in notes else ())
        if node.kind == "step"
        else Box(node.id, node.kind, node.label, (node.label,))
        for node in nodes
    ]  # fmt: skip
    sources = _source_steps(links)
    arrows = [
        Arrow(f"e{number}", link.source, link.target, link.before, link.after, _arrow_text(link), link.support,
              "common" if any((before, link.after) in true_pairs for before in sources[link]) else "redundant")
        for number, link in enumerate(links)
    ]  # fmt: skip
    missing = sorted(true_pairs - pairs, key=lambda pair: (drawn.steps.index(pair[1]), pair[0]))
    arrows += [
        Arrow(f"e{number}", ids[before], ids[after], before, after, f"{before} → {after}", status="missing")
        for number, (before, after) in enumerate(missing, start=len(links))
    ]
    return Diagram(graph.task, tuple(boxes), tuple(arrows), compare is not None, len(graph.edge_pairs() - pairs))


def _label_columns(graph: SubtaskGraph) -> int:
    """Characters per line: the deeper the graph, the narrower its boxes, so that a row of them fits a screen."""
    ranks = 1 + max(graph.layer.values(), default=0)
    return max(min(WIDEST_LABEL, CHARACTERS_PER_ROW // ranks), NARROWEST_LABEL)


def _check_names(graph: SubtaskGraph, names: Mapping[Step, str] | tuple[Step, ...], where: str) -> None:
    for name in sorted(set(names) - set(graph.steps)):
        raise InputError(f"{short_repr(name)} is not a step of the graph", where=where)


def _arrow_text(link: Link) -> str:
    if link.before is None:
        return f"→ {link.after}"
    share = link.support.share
    order = "" if share is None else f": in this order in {100 * share:.0f} % of the videos with both"
    return f"{link.before} → {link.after}{order}{', little support' if link.support.weak else ''}"


def _source_steps(links: list[Link]) -> dict[Link, frozenset[Step]]:
    """Per link, the steps it leads from, operators looked through; links into an operator come before those out."""
    into: dict[str, frozenset[Step]] = {}
    sources: dict[Link, frozenset[Step]] = {}
    for link in links:
        sources[link] = into.get(link.source, frozenset()) if link.before is None else frozenset({link.before})
        into[link.target] = into.get(link.target, frozenset()) | sources[link]
    return sources

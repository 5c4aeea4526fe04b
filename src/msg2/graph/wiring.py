"""A subtask graph as nodes and edges: steps, and one node per AND, OR and NOT between them (Sec. 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msg2.graph.formula import Formula, Kind
from msg2.task import Step

if TYPE_CHECKING:
    from msg2.graph.subtask import SubtaskGraph

LABELS: dict[Kind, str] = {"all": "&", "any": "|", "not": "¬", "true": "true"}
"""What is written on an operator node."""


@dataclass(frozen=True, slots=True)
class Node:
    """A step (`kind` "step", `label` its name) or an operator on the way to a step."""

    id: str
    kind: Kind
    label: str
    layer: int


@dataclass(frozen=True, slots=True)
class Edge:
    """From a step or operator to a step or operator.

    `before` and `after` are the steps it speaks of (`before` is None for what leaves an operator). `support` is the
    share of the videos with both steps in which `before` came first, or None where the graph has no such evidence;
    `weak` says that these videos are few.
    """

    source: str
    target: str
    before: Step | None
    after: Step
    support: float | None
    weak: bool = False


def wiring(graph: SubtaskGraph) -> tuple[list[Node], list[Edge]]:
    """Nodes and edges of `graph`, in a fixed order. Node ids are safe in any format: s0, s1, … and o0, o1, …"""
    nodes = [Node(f"s{i}", "step", name, graph.layer[name]) for i, name in enumerate(graph.steps)]
    ids = {node.label: node.id for node in nodes}
    edges: list[Edge] = []
    operators: list[Node] = []

    def connect(formula: Formula, target: str, after: Step) -> None:
        if formula.kind == "step":
            support, weak = _support(graph, formula.name, after)
            edges.append(Edge(ids[formula.name], target, formula.name, after, support, weak))
            return
        node = Node(f"o{len(operators)}", formula.kind, LABELS[formula.kind], graph.layer[after])
        operators.append(node)
        for operand in formula.operands:
            connect(operand, node.id, after)
        edges.append(Edge(node.id, target, None, after, None))

    for name, formula in graph.preconditions.items():
        connect(formula, ids[name], name)
    return nodes + operators, edges


def _support(graph: SubtaskGraph, before: Step, after: Step) -> tuple[float | None, bool]:
    """Support and weakness of one edge; the file's evidence is free-form, so nothing about its shape is assumed."""
    counts: Any = graph.evidence
    for key in (after, "edges", before):
        counts = counts.get(key) if isinstance(counts, Mapping) else None
    if not isinstance(counts, Mapping):
        return None, False
    first, together, weak = counts.get("before"), counts.get("together"), counts.get("weak") is True
    if isinstance(first, int | float) and isinstance(together, int | float) and 0 <= first <= together != 0:
        return first / together, weak
    return None, weak

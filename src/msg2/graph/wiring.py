"""A subtask graph as nodes and edges: steps, and one node per AND, OR and NOT between them (Sec. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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

    `before` and `after` are the steps it speaks of (`before` is None between two operators). `support` is the share
    of the videos with both steps in which `before` came first, or None where the graph has no such evidence.
    """

    source: str
    target: str
    before: Step | None
    after: Step
    support: float | None


def wiring(graph: SubtaskGraph) -> tuple[list[Node], list[Edge]]:
    """Nodes and edges of `graph`, in a fixed order. Node ids are safe in any format: s0, s1, … and o0, o1, …"""
    nodes = [Node(f"s{i}", "step", name, graph.layer[name]) for i, name in enumerate(graph.steps)]
    ids = {node.label: node.id for node in nodes}
    edges: list[Edge] = []
    operators: list[Node] = []

    def connect(formula: Formula, target: str, after: Step) -> None:
        if formula.kind == "step":
            support = _support(graph, formula.name, after)
            edges.append(Edge(ids[formula.name], target, formula.name, after, support))
            return
        node = Node(f"o{len(operators)}", formula.kind, LABELS[formula.kind], graph.layer[after])
        operators.append(node)
        for operand in formula.operands:
            connect(operand, node.id, after)
        edges.append(Edge(node.id, target, None, after, None))

    for name, formula in graph.preconditions.items():
        connect(formula, ids[name], name)
    return nodes + operators, edges


def _support(graph: SubtaskGraph, before: Step, after: Step) -> float | None:
    counts = graph.evidence.get(after, {}).get("edges", {}).get(before)
    if not isinstance(counts, dict) or not counts.get("together"):
        return None
    return float(counts["before"] / counts["together"])

"""A subtask graph as nodes and links: steps, and one node per AND, OR and NOT between them (Sec. 2).

What comes after another step if both are done is a link from step to step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msg2.graph.evidence import NO_SUPPORT, EdgeKind, Support
from msg2.graph.formula import Formula, FormulaKind
from msg2.task import Step

if TYPE_CHECKING:
    from msg2.graph.graph import SubtaskGraph

OPERATOR_SYMBOLS: dict[FormulaKind, str] = {"all": "&", "any": "|", "not": "¬", "true": "true"}
"""What is written on an operator node."""


@dataclass(frozen=True, slots=True)
class Node:
    """A step (`kind` "step", `label` its name) or an operator on the way to a step."""

    id: str
    kind: FormulaKind
    label: str
    layer: int


@dataclass(frozen=True, slots=True)
class Link:
    """From the node with the id `source` to the one with the id `target`: steps or operators."""

    source: str
    target: str
    before: Step | None
    """The step it leaves; None for what leaves an operator."""
    after: Step
    """The step whose precondition it belongs to."""
    support: Support = NO_SUPPORT
    """The videos that have `before` before `after`; without evidence, a support that says nothing."""
    kind: EdgeKind = "needs"


def node_link_graph(graph: SubtaskGraph) -> tuple[list[Node], list[Link]]:
    """Nodes and links of `graph`, in a fixed order. Node ids are safe in any format: s0, s1, … and o0, o1, …"""
    nodes = [Node(f"s{i}", "step", name, graph.layer[name]) for i, name in enumerate(graph.steps)]
    ids = {node.label: node.id for node in nodes}
    links: list[Link] = []
    operators: list[Node] = []

    def connect(formula: Formula, target: str, after: Step) -> None:
        if formula.kind == "step":
            support = graph.support(formula.name, after) or NO_SUPPORT
            links.append(Link(ids[formula.name], target, formula.name, after, support))
            return
        node = Node(f"o{len(operators)}", formula.kind, OPERATOR_SYMBOLS[formula.kind], graph.layer[after])
        operators.append(node)
        for operand in formula.operands:
            connect(operand, node.id, after)
        links.append(Link(node.id, target, None, after))

    for name, formula in graph.preconditions.items():
        connect(formula, ids[name], name)
    for before, after in graph.order:
        support = graph.support(before, after) or NO_SUPPORT
        links.append(Link(ids[before], ids[after], before, after, support, "after"))
    return nodes + operators, links

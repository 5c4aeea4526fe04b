"""A graph as GraphML: steps and operators as nodes, for networkx, Gephi, yEd, Cytoscape."""

from __future__ import annotations

from msg2.drawing.text import printable
from msg2.graph import SubtaskGraph, wiring


def to_graphml(graph: SubtaskGraph) -> str:
    """The GraphML text of `graph` as it stands; `networkx.read_graphml` reads it.

    Nodes have `kind`, `label` and `layer`, edges `support` (where there is evidence) and `weak`.
    """
    import networkx

    nodes, edges = wiring(graph)
    network = networkx.DiGraph(task=printable(graph.task))
    for node in nodes:
        network.add_node(node.id, kind=node.kind, label=printable(node.label), layer=node.layer)
    for edge in edges:
        known = {} if edge.support is None else {"support": edge.support}
        network.add_edge(edge.source, edge.target, weak=edge.weak, **known)
    return "\n".join(networkx.generate_graphml(network)) + "\n"

"""A graph as GraphML: steps and operators as nodes, for networkx, Gephi, yEd, Cytoscape."""

from __future__ import annotations

from msg2.drawing.text import printable
from msg2.graph import SubtaskGraph


def to_graphml(graph: SubtaskGraph) -> str:
    """The GraphML text of `graph.to_networkx()`, without what is unknown; `networkx.read_graphml` reads it."""
    import networkx

    network = graph.to_networkx()
    network.graph["task"] = printable(graph.task)
    for _, node in network.nodes(data=True):
        node["label"] = printable(node["label"])
    for _, _, edge in network.edges(data=True):
        if edge["support"] is None:
            del edge["support"]
    return "\n".join(networkx.generate_graphml(network)) + "\n"

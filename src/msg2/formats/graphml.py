"""A graph as GraphML: steps and operators as nodes, for networkx, Gephi, yEd, Cytoscape."""

from __future__ import annotations

from msg2.graph import SubtaskGraph
from msg2.text import escape_control_characters


def to_graphml(graph: SubtaskGraph) -> str:
    """The GraphML text of `graph.to_networkx()`, without values that are unknown; `networkx.read_graphml` reads it."""
    import networkx

    network = graph.to_networkx()
    network.graph["task"] = escape_control_characters(graph.task)
    for _, node in network.nodes(data=True):
        node["label"] = escape_control_characters(node["label"])
    for _, _, edge in network.edges(data=True):
        if edge["support"] is None:
            del edge["support"]
    return "\n".join(networkx.generate_graphml(network)) + "\n"

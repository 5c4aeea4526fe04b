"""A graph as GraphML: steps and operators as nodes, for networkx, Gephi, yEd, Cytoscape.

- A node has `kind` ("step", "all", "any", "not"), `label` and `layer`; a step also `optional` and, where it is done
  again, `repeats`.
- An edge has `kind` ("needs" or "after"), `weak` and, where it is known, `support`.
- The graph has `task` and `exclusive`: the groups as JSON, lists of node ids, because GraphML knows no lists.

What no node, edge or group of the graph says is left out: without `kind`, all edges say "needs". So everything but the
evidence and the method can be read back.
"""

from __future__ import annotations

import json

from msg2.graph import SubtaskGraph
from msg2.text import escape_control_characters


def to_graphml(graph: SubtaskGraph) -> str:
    """The GraphML text of `graph`; `networkx.read_graphml` reads it."""
    import networkx

    network = graph.to_networkx()
    network.graph["task"] = escape_control_characters(graph.task)
    ids = {node["label"]: name for name, node in network.nodes(data=True) if node["kind"] == "step"}
    del network.graph["exclusive"]
    if graph.exclusive:
        network.graph["exclusive"] = json.dumps([[ids[step] for step in group] for group in graph.exclusive])
    for step, share in graph.repeats.items():
        network.nodes[ids[step]]["repeats"] = share
    for _, node in network.nodes(data=True):
        node["label"] = escape_control_characters(node["label"])
        if not graph.optional:
            node.pop("optional", None)
    for _, _, edge in network.edges(data=True):
        if not graph.order:
            del edge["kind"]
        if edge["support"] is None:
            del edge["support"]
    return "\n".join(networkx.generate_graphml(network)) + "\n"

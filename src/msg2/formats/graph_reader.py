"""Graph files: our own and CaptainCook4D task graphs, which serve as truth, are read; GraphML is written.

GraphML has steps and operators as nodes, for networkx, Gephi, yEd, Cytoscape; `exclusive` are the groups as JSON, lists
of node ids, because GraphML knows no lists. What no node, edge or group of the graph says is left out: without `kind`,
all edges say "needs". So everything but the evidence and the method can be read back.
"""

from __future__ import annotations

import json
from pathlib import Path

from msg2.errors import InputError
from msg2.formats import captaincook4d
from msg2.formats.json_files import parse_json
from msg2.formats.source import Source
from msg2.graph import SubtaskGraph
from msg2.text import escape_control_characters

MAX_DEPTH = 100  # levels of nesting in a graph file; formulas that people can read have few


def read_graph(path: str | Path) -> SubtaskGraph:
    """Read the graph in a file: our graph JSON or a CaptainCook4D task graph, recognised by its content.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "tea.json")
    ...     _ = path.write_text('{"steps": {"1": "boil", "2": "pour"}, "edges": [["1", "2"]]}')
    ...     print(read_graph(path).precondition("pour"))
    boil
    """
    source = Source.at(path)
    if source.is_folder:
        raise InputError("is a folder, not a graph file", where=path, hint="name one of the files in it")
    if not source.is_json:
        # Where the file is no text at all, reading a line of it raises the error that says so.
        next(source.lines(), None)
        hint = "msg2 infer makes one of data"
        raise InputError("is not a graph file, which is one JSON object", where=path, hint=hint)
    document = parse_json(source.read_text(), source)
    if _has_level(document, MAX_DEPTH):
        raise InputError(f"is nested more than {MAX_DEPTH} levels deep", where=path)
    if captaincook4d.is_task_graph(document):
        return captaincook4d.parse_task_graph(document, source)
    try:
        return SubtaskGraph.from_json(document)
    except InputError as error:
        where = path if error.where is None else f"{path}, {error.where}"
        raise InputError(error.what, where=where, hint=error.hint) from None


def _has_level(value: object, level: int) -> bool:
    """Whether there is anything so many levels down in a JSON value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return level == 0 or any(_has_level(item, level - 1) for item in inner)


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

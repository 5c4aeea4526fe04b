"""Graph files: our own, and CaptainCook4D task graphs, which serve as truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msg2.errors import InputError
from msg2.graph import SubtaskGraph
from msg2.readers import captaincook4d
from msg2.readers.sources import Source, parsed_json

MAX_DEPTH = 100
"""Levels of nesting in a graph file; formulas that people can read have few."""


def read_graph(path: str | Path) -> SubtaskGraph:
    """The graph in a file: our graph JSON or a CaptainCook4D task graph, recognised by its content.

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
        # Text that is no text is the better complaint, where that is what is wrong.
        next(source.lines(), None)
        raise InputError("is not a graph file, which is one JSON object", where=path)
    document = parsed_json(source.whole_text(), source)
    if _too_deep(document):
        raise InputError(f"is nested more than {MAX_DEPTH} levels deep", where=path)
    if captaincook4d.is_task_graph(document):
        return captaincook4d.task_graph(document, source)
    try:
        return SubtaskGraph.from_json(document)
    except InputError as error:
        raise InputError(error.what, where=f"{path}, {error.where}", hint=error.hint) from None


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True

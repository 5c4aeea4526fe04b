"""How the data of a graph was read: recorded in the graph file, and used again for more data of the same task."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from msg2.formats.data_summary import preview_table
from msg2.formats.reading import choose_task
from msg2.formats.registry import FORMAT_OPTIONS, find_reader, read_all
from msg2.formats.source import Source
from msg2.graph import SubtaskGraph
from msg2.task import Task


def record_reading(graph: SubtaskGraph, reading: Mapping[str, object]) -> SubtaskGraph:
    """Return the graph with the options that its data was read with; without any, as it is."""
    return replace(graph, method={**graph.method, "reading": dict(reading)}) if reading else graph


def read_as_recorded(graph: SubtaskGraph, data: str | Path, **options: Any) -> Task:
    """Read the task that a graph is about as the graph's own data was read, unless options say otherwise."""
    recorded = graph.method.get("reading")
    source = Source.of_data(data)
    reader = find_reader(source, options.get("columns"))
    special = {name for name, readers in FORMAT_OPTIONS.items() if reader in readers}
    known = {"repeats", "overlap", "ties", *special}  # what the graph's own data took, this data may not take
    reading = {name: recorded[name] for name in known if name in recorded} if isinstance(recorded, dict) else {}
    if "columns" in reading:
        preview = preview_table(source, reading["columns"])
        if preview is None or preview.problem:  # this data has other columns
            del reading["columns"]
    tasks = read_all(source, **(reading | options))
    return tasks[0] if len(tasks) == 1 else choose_task(tasks, graph.task, data)

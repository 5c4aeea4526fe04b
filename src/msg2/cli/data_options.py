"""The arguments that say which data is read and how; shared by the commands."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from msg2.cli import console
from msg2.cli.generated_options import CommandWithOptions, GivenOptions, takes_fields
from msg2.errors import InputError
from msg2.formats import preview_table, read_all
from msg2.formats.reading import ReadOptions, choose_task
from msg2.formats.registry import FORMAT_OPTIONS, find_reader
from msg2.formats.source import Source
from msg2.graph import SubtaskGraph
from msg2.parallel import ENGINES
from msg2.task import Task

Data: TypeAlias = Annotated[
    Path, typer.Argument(metavar="DATA", help="A file, folder or archive in any format that msg2 reads; - is stdin.")
]
GraphFile: TypeAlias = Annotated[Path, typer.Argument(metavar="GRAPH", help="A graph file.")]
TaskName: TypeAlias = Annotated[str | None, typer.Option("--task", metavar="NAME", help="Only this task of DATA.")]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on stdout.")]


def _known_engine(name: str) -> str:
    if name not in ENGINES:
        raise typer.BadParameter(f"it is {name!r}, it must be one of {', '.join(ENGINES)}")
    return name


EngineName: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="|".join(ENGINES),
        callback=_known_engine,
        help="Whose processes do the work: those of this machine, or of the Ray cluster at RAY_ADDRESS.",
    ),
]


_READING_METAVARS = {"tier": "NAME", "fps": "X", "columns": "A=B,…", "draft_confidence": "P"}
"""Of options that are no choice."""


def takes_reading_options(*names: str) -> Callable[[Callable[..., None]], CommandWithOptions]:
    """Decorate a command so that it takes these fields of `ReadOptions`, and `columns`, as options, as `reading`."""
    return takes_fields(ReadOptions, "reading", {name: _READING_METAVARS.get(name) for name in (*names, "columns")})


def refuse_without(needed: str, context: typer.Context, *options: str) -> None:
    """A usage error for every option that was given but means nothing without another one."""
    for name in options:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(f"--{name.replace('_', '-')} goes with {needed}")


def without_none(values: dict[str, Any]) -> dict[str, Any]:
    """The options that were given; the others keep their defaults."""
    return {name: value for name, value in values.items() if value is not None}


def record_reading(graph: SubtaskGraph, reading: GivenOptions) -> SubtaskGraph:
    """Record in a graph how its data was read, where that was not by default."""
    return replace(graph, method={**graph.method, "reading": dict(reading)}) if reading else graph


def read_as_recorded(graph: SubtaskGraph, data: Path, **options: Any) -> Task:
    """Read the task that a graph is about as the graph's own data was read, unless options say otherwise."""
    recorded = graph.method.get("reading")
    source = Source.of_data(data)
    reader = find_reader(source, options.get("columns"))
    special = {name for name, readers in FORMAT_OPTIONS.items() if reader in readers}
    known = {"repeats", "overlap", *special}  # what the graph's own data took, this data may not take
    reading = {name: recorded[name] for name in known if name in recorded} if isinstance(recorded, dict) else {}
    if "columns" in reading:
        preview = preview_table(source, reading["columns"])
        if preview is None or preview.problem:  # this data has other columns
            del reading["columns"]
    with console.progress_bar("reading"):
        tasks = read_all(source, **(reading | options))
    return tasks[0] if len(tasks) == 1 else choose_task(tasks, graph.task, data)


def keep_tasks_with_two_videos(tasks: Sequence[Task], data: Path) -> list[Task]:
    """Keep the tasks with at least two labelled videos, so that one can be held out; a warning names the others."""
    labelled = {task.name: len(list(islice((video for video in task if video.segments), 2))) for task in tasks}
    if max(labelled.values(), default=0) < 2:
        raise InputError("no task has two videos with labels: none can be held out", where=data)
    for name, count in labelled.items():
        if count < 2:
            logging.getLogger("msg2").warning("%s: left out, it has fewer than two videos with labels", name)
    return [task for task in tasks if labelled[task.name] > 1]


def read_tasks(data: Path, task: str | None = None, **options: Any) -> list[Task]:
    """Read the tasks of a file or folder, or only the one of a name."""
    with console.progress_bar("reading"):
        tasks = read_all(data, **options)
    return tasks if task is None else [choose_task(tasks, task, data)]

"""The arguments that say which data is read and how; shared by the commands."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from msg2.errors import InputError
from msg2.graph import SubtaskGraph
from msg2.readers import read_all
from msg2.readers.registry import SPECIAL, options_for, the_task
from msg2.task import Task

Data: TypeAlias = Annotated[
    Path, typer.Argument(metavar="DATA", help="A file or folder in any format that msg2 reads, recognised by content.")
]
TaskName: TypeAlias = Annotated[str | None, typer.Option("--task", metavar="NAME", help="Only this task of DATA.")]
Overlap: TypeAlias = Annotated[
    Literal["unordered", "start"] | None,
    typer.Option(help="Overlapping segments: they say nothing about order (default), or are ordered by start."),
]
Repeats: TypeAlias = Annotated[
    Literal["first", "keep"] | None, typer.Option(help="Repeated steps: the first one counts (default), or all do.")
]
Order: TypeAlias = Annotated[
    Literal["file", "time"] | None,
    typer.Option(help="CaptainCook4D only: the order of the annotation file (the published protocol), or of time."),
]
Tier: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help="ELAN only: the tier that holds the steps, where there are several.")
]
Fps: TypeAlias = Annotated[
    float | None,
    typer.Option(metavar="X", help="CVAT and Label Studio: frames per second of the videos, where labels are frames."),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on stdout.")]


def refuse_without(needed: str, context: typer.Context, *options: str) -> None:
    """A usage error for every option that was given but means nothing without another one."""
    for name in options:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(f"--{name.replace('_', '-')} goes with {needed}")


def given(values: dict[str, Any]) -> dict[str, Any]:
    """The options that were given; the others keep their defaults."""
    return {name: value for name, value in values.items() if value is not None}


def with_reading(graph: SubtaskGraph, reading: dict[str, Any]) -> SubtaskGraph:
    """The graph with how its data was read, where that was not by default."""
    return replace(graph, method={**graph.method, "reading": reading}) if reading else graph


def read_as_learnt(graph: SubtaskGraph, data: Path, **options: Any) -> Task:
    """The task of `data` that the graph is about, read as the graph's own data was unless `options` say otherwise.

    That is the only task there is, or the one of its name.
    """
    recorded = graph.method.get("reading")
    general = {name for name in options if name not in SPECIAL}
    known = general.union(options_for(data))  # what the graph's own data took, this data may not take
    reading = {name: recorded[name] for name in known if name in recorded} if isinstance(recorded, dict) else {}
    tasks = read_tasks(data, None, **(reading | given(options)))
    return tasks[0] if len(tasks) == 1 else the_task(tasks, graph.task, data)


def with_enough_videos(tasks: Sequence[Task], data: Path) -> list[Task]:
    """The tasks with at least two labelled videos, so that one can be held out; the others are named in a warning."""
    enough = [task for task in tasks if sum(bool(video.segments) for video in task) > 1]
    if not enough:
        raise InputError("no task has two videos with labels: none can be held out", where=data)
    for task in tasks:
        if task not in enough:
            logging.getLogger("msg2").warning("%s: left out, it has fewer than two videos with labels", task.name)
    return enough


def read_tasks(data: Path, task: str | None = None, **options: Any) -> list[Task]:
    """The tasks of `data`, or only the one of that name; options that are None keep their defaults."""
    tasks = read_all(data, **given(options))
    return tasks if task is None else [the_task(tasks, task, data)]

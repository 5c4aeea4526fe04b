"""The arguments that say which data is read and how; shared by the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from msg2.readers import read_all
from msg2.readers.registry import the_task
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


def read_tasks(data: Path, task: str | None = None, **options: Any) -> list[Task]:
    """The tasks of `data`, or only the one of that name; options that are None keep their defaults."""
    tasks = read_all(data, **given(options))
    return tasks if task is None else [the_task(tasks, task, data)]

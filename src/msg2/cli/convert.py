"""`msg2 convert`: data in any known format, written for another tool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from msg2.cli import console
from msg2.cli.reading import Data, Fps, Order, TaskName, Tier, read_tasks
from msg2.errors import InputError
from msg2.options import ExportOptions
from msg2.worlds.export import SUFFIXES, suffix_of, write

_DEFAULT = ExportOptions()


def convert(
    data: Data,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="Its suffix decides the format: " + " ".join(SUFFIXES)),
    ],
    task: TaskName = None,
    order: Order = None,
    tier: Tier = None,
    fps: Fps = None,
    media: Annotated[
        str, typer.Option(metavar="PATH|URL", help="Where the tool finds a video; {video} stands for its id.")
    ] = _DEFAULT.media,
    frames: Annotated[
        float | None,
        typer.Option(metavar="X", help="To Label Studio: labels in frames, X a second; default: in seconds of sound."),
    ] = _DEFAULT.fps,
) -> None:
    """Write data for another tool: tables of steps, ELAN, Label Studio. Every label is kept, repeated ones too.

    ELAN has a file per video: of many videos, `-o labels.eaf` makes a folder `labels`. For Label Studio the labelling
    interface of the project lies beside the labels, which are predictions: people correct them there.

    Examples: `msg2 convert crosstask_release -o steps.csv`, `msg2 convert filled.csv -o labels.eaf`,
    `msg2 convert filled.csv -o labels.label-studio.json --media "https://videos.example.org/{video}.mp4"`
    """
    with console.usage():
        options = ExportOptions(media, frames)
    if output.exists() and output.samefile(data):
        raise InputError("is the data, the result would replace it", where=output, hint="choose another output")
    suffix_of(output)
    tasks = read_tasks(data, task, repeats="keep", order=order, tier=tier, fps=fps)
    written = write(tasks, output, options)
    labels = sum(len(video.segments) for task in tasks for video in task)
    console.say(f"{labels} labels of {sum(map(len, tasks))} videos: {console.files(written)}")

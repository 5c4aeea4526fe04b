"""`msg2 convert`: data in any known format, written for another tool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from msg2.cli import console
from msg2.cli.shared_options import Data, GivenOptions, TaskName, read_tasks, reads_data, refuse_clashes
from msg2.formats.reading import WriteOptions
from msg2.formats.registry import WRITE_SUFFIXES, match_suffix, write
from msg2.formats.source import Source

_DEFAULT = WriteOptions()


@reads_data("order", "tier", "fps")
def convert(
    data: Data,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Its suffix decides the format: " + " ".join(WRITE_SUFFIXES)
        ),
    ],
    task: TaskName = None,
    media: Annotated[
        str, typer.Option(metavar="PATH|URL", help="Where the tool finds a video; {video} stands for its id.")
    ] = _DEFAULT.media,
    frames: Annotated[
        float | None,
        typer.Option(metavar="X", help="To Label Studio: labels in frames, X a second; default: in seconds of sound."),
    ] = _DEFAULT.fps,
    guard: Annotated[
        bool,
        typer.Option("--guard", help="To CSV, TSV: an apostrophe before names that a spreadsheet would run (= + - @)."),
    ] = _DEFAULT.guard,
    *,
    reading: GivenOptions,
) -> None:
    """Write data for another tool: tables of steps, ELAN, Label Studio. Every label is kept, repeated ones too.

    ELAN has a file per video: of many videos, `-o labels.eaf` makes a folder `labels`; from ELAN to ELAN, other tiers
    and links stay. For Label Studio the labelling
    interface of the project lies beside the labels, which are predictions: people correct them there.

    Examples: `msg2 convert crosstask_release -o steps.csv`, `msg2 convert filled.csv -o labels.eaf`,
    `msg2 convert filled.csv -o labels.label-studio.json --media "https://videos.example.org/{video}.mp4"`
    """
    original = Source.of_data(data)
    with console.usage_errors():
        options = WriteOptions(media, frames, original, guard)
    refuse_clashes([output], data)
    match_suffix(output)
    tasks = read_tasks(data, task, repeats="keep", **reading)
    with console.progress_bar("writing") as progress:
        written = write(tasks, output, options, progress)
    labels = sum(task.labels for task in tasks)
    console.print_line(f"{labels} labels of {sum(map(len, tasks))} videos: {console.format_paths(written)}")

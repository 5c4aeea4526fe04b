"""`msg2 convert`: data in any known format, written for another tool."""

from pathlib import Path
from typing import Annotated

from msg2.cli import console, flags
from msg2.cli.flags import option, output_option, switch
from msg2.formats.reading import WriteOptions
from msg2.formats.registry import WRITERS, match_suffix, write
from msg2.formats.source import Source
from msg2.task import demonstrations_noun

_DEFAULT = WriteOptions()


@flags.reads_data("order", "tier", "fps")
def convert(
    data: flags.Data,
    output: Annotated[Path, output_option("FILE", "Its suffix decides the format: " + " ".join(WRITERS))],
    reading: flags.GivenOptions,
    task: flags.TaskName = None,
    media: Annotated[str, option("PATH|URL", "Where the tool finds a video; {video} is its id.")] = _DEFAULT.media,
    frames: Annotated[float | None, option("X", "Label Studio: in frames, X a second, not in seconds.")] = _DEFAULT.fps,
    guard: Annotated[bool, switch("--guard", "An apostrophe before what spreadsheets run (= + - @).")] = _DEFAULT.guard,
) -> None:
    """Write data for another tool: tables of steps, XES, ELAN, Label Studio. Every label is kept, repeated ones too.

    ELAN has a file per video: of many videos, `-o labels.eaf` makes a folder `labels`; from ELAN to ELAN, other tiers
    and links stay. For Label Studio the labelling
    interface of the project lies beside the labels, which are predictions: people correct them there.

    Examples: `msg2 convert crosstask_release -o steps.csv`, `msg2 convert filled.csv -o labels.eaf`,
    `msg2 convert filled.csv -o labels.label-studio.json --media "https://videos.example.org/{video}.mp4"`
    """
    original = Source.of_data(data)
    with console.usage_errors():
        options = WriteOptions(media, frames, original, guard)
    flags.refuse_clashes([output], data)
    match_suffix(output)
    tasks = flags.read_tasks(data, task, repeats="keep", **reading)
    with console.progress_bar("writing") as progress:
        written = write(tasks, output, options, progress)
    labels = sum(task.labels for task in tasks)
    noun = demonstrations_noun("skipped" if all(task.absent == "skipped" for task in tasks) else "unknown")
    console.print_line(f"{labels} labels of {sum(map(len, tasks))} {noun}: {console.format_paths(written)}")

"""`msg2 describe`: what is in the data, and what looks wrong with it."""

from __future__ import annotations

from msg2.cli import console
from msg2.cli.data_options import Data, Json, takes_reading_options
from msg2.cli.generated_options import GivenOptions
from msg2.formats.data_summary import TaskSummary, summarize


@takes_reading_options("order", "tier", "fps")
def describe(data: Data, json: Json = False, *, reading: GivenOptions) -> None:
    """What is in the data, and what looks wrong with it.

    Example: `msg2 describe steps.csv`
    """
    with console.progress_bar("reading"):
        found = summarize(data, **reading)
    if json:
        console.print_json(found.to_json())
        return
    count = f"{len(found.tasks)} task" if len(found.tasks) == 1 else f"{len(found.tasks)} tasks"
    console.print_line(f"{data}: {found.format}; {count}")
    console.print_line("")
    noun = "runs" if "event log" in found.format else "videos"
    console.print_table(
        ["task", noun, "steps", "labels", "cover", "repeats", "overlaps", "seconds"],
        [
            (t.task, t.videos, t.steps, t.segments, f"{t.coverage:.0%}", t.repeats, t.overlaps, _seconds(t))
            for t in found.tasks
        ],
    )
    console.print_line(f"cover: share of the steps that a {noun[:-1]} has; seconds: when the last label ends, median")
    if len(found.tasks) == 1:
        console.print_line("")
        shares = sorted(found.tasks[0].videos_with_step.items(), key=lambda item: (-item[1], item[0]))
        console.print_table(["step", f"in {noun}"], [(step, f"{share:.0%}") for step, share in shares])
    remarks = [*found.findings, *(f"{t.task}: {finding}" for t in found.tasks for finding in t.findings)]
    if remarks:
        console.print_line("\nWorth a look:")
        for remark in remarks:
            console.print_line(f"- {remark}")


def _seconds(task: TaskSummary) -> str:
    return "no times" if task.median_last_end is None else f"{task.median_last_end:.0f}"

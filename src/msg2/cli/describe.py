"""`msg2 describe`: what is in the data, and what looks wrong with it."""

from dataclasses import replace
from typing import Annotated

from msg2.cli import console, flags
from msg2.cli.flags import option
from msg2.formats.data_summary import PairAgreement, TaskSummary, summarize
from msg2.metrics.annotator_agreement import StepAgreement
from msg2.text import time_unit

_MOST_STEPS = 1000
"""Steps that are listed, those of the most videos; a table of a million takes minutes."""


@flags.reads_data("order", "tier", "fps")
def describe(
    data: flags.Data,
    reading: flags.GivenOptions,
    variants: Annotated[int | None, option("N", "Also the N most frequent variants of one task.", min=1)] = None,
    where: Annotated[list[str] | None, option("CONDITION", "Only runs that meet it; may be given again.")] = None,
    json: flags.Json = False,
) -> None:
    """What is in the data, and what looks wrong with it.

    A condition is `step=NAME`, `variant<=5`, `start>=2012-01-01` (or `end`), or a column of a table or an attribute of
    XES with a value: `channel=Internet`. There are = != < <= > and >=.

    Examples: `msg2 describe steps.csv`, `msg2 describe log.xes --variants 10 --where "step=pay"`
    """
    with console.progress_bar("reading"):
        summary = summarize(data, where=where or (), variants=bool(variants), **reading)
    if json:
        kept = [replace(task, variants=task.variants[:variants]) for task in summary.tasks]
        console.print_json(replace(summary, tasks=tuple(kept)).to_json())
        return
    count = f"{len(summary.tasks)} task" if len(summary.tasks) == 1 else f"{len(summary.tasks)} tasks"
    console.print_line(f"{data}: {summary.format}; {count}", "")
    noun = "runs" if "event log" in summary.format else "videos"
    size, unit = time_unit(max((task.median_last_end or 0.0 for task in summary.tasks), default=0.0))
    if noun == "videos":
        size, unit = 1, "seconds"
    columns = ["task", noun, "steps", "labels", "cover", "repeats", "overlaps", unit]
    console.print_table(columns, (_row(task, size) for task in summary.tasks))
    console.print_line(f"cover: share of the steps that a {noun[:-1]} has; {unit}: when the last label ends, median")
    for task in summary.tasks:
        if task.dates is not None:
            console.print_line(f"{task.task}: from {task.dates[0][:10]} to {task.dates[1][:10]}")
    if len(summary.tasks) == 1:
        console.print_line("")
        shares = sorted(summary.tasks[0].videos_with_step.items(), key=lambda item: (-item[1], item[0]))
        console.print_table(["step", f"in {noun}"], [(step, f"{share:.0%}") for step, share in shares[:_MOST_STEPS]])
        if len(shares) > _MOST_STEPS:
            console.print_line(f"and {len(shares) - _MOST_STEPS:,} more steps, which --json lists")
        if variants:
            found = summary.tasks[0].variants
            console.print_line(f"\nVariants: {len(found)} in all; the most frequent ones:")
            listed = enumerate(found[:variants], start=1)
            console.print_table(
                ["", noun, "share", "steps"], [(n, v.runs, f"{v.share:.0%}", v.to_english()) for n, v in listed]
            )
    for task in summary.tasks:
        for pair in task.agreement:
            _print_agreement(task.task, pair)
    remarks = [*summary.findings, *(f"{t.task}: {finding}" for t in summary.tasks for finding in t.findings)]
    if remarks:
        console.print_line("\nWorth a look:", *(f"- {remark}" for remark in remarks))


def _row(task: TaskSummary, size: int) -> tuple[object, ...]:
    time = "no times" if task.median_last_end is None else f"{task.median_last_end / size:.{int(size > 1)}f}"
    counts = task.videos, task.steps, task.segments
    return task.task, *counts, f"{task.coverage:.0%}", task.repeats, task.overlaps, time


def _print_agreement(task: str, pair: PairAgreement) -> None:
    """How far two annotators agree, the steps that they disagree on most first."""
    first, second = pair.annotators
    overall = pair.agreement.overall
    presence = f"a kappa of {_kappa(overall.presence_kappa)} on which steps a video has"
    times = f"of {_kappa(overall.time_kappa)} on when they go on (videos in common: {pair.agreement.videos})"
    console.print_line(f"\n{task}: {first} and {second} agree with {presence}, {times}")
    rows = [
        (step.step, step.both, step.first - step.both, step.second - step.both, _kappa(step.time_kappa))
        for step in sorted(pair.agreement.steps, key=lambda step: (_disagreement(step), step.step))
    ]
    console.print_table(["step", "in both", f"only {first}", f"only {second}", "kappa in time"], rows)


def _disagreement(step: StepAgreement) -> tuple[int, float]:
    return 2 * step.both - step.first - step.second, 1.0 if step.time_kappa is None else step.time_kappa


def _kappa(value: float | None) -> str:
    return "N/A" if value is None else f"{value:.2f}"

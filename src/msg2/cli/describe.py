"""`msg2 describe`: what is in the data, and what looks wrong with it."""

from msg2.cli import console, flags
from msg2.formats.data_summary import PairAgreement, TaskSummary, summarize
from msg2.metrics.annotator_agreement import StepAgreement


@flags.reads_data("order", "tier", "fps")
def describe(data: flags.Data, reading: flags.GivenOptions, json: flags.Json = False) -> None:
    """What is in the data, and what looks wrong with it.

    Example: `msg2 describe steps.csv`
    """
    with console.progress_bar("reading"):
        summary = summarize(data, **reading)
    if json:
        console.print_json(summary.to_json())
        return
    count = f"{len(summary.tasks)} task" if len(summary.tasks) == 1 else f"{len(summary.tasks)} tasks"
    console.print_line(f"{data}: {summary.format}; {count}", "")
    noun = "runs" if "event log" in summary.format else "videos"
    columns = ["task", noun, "steps", "labels", "cover", "repeats", "overlaps", "seconds"]
    console.print_table(columns, map(_row, summary.tasks))
    console.print_line(f"cover: share of the steps that a {noun[:-1]} has; seconds: when the last label ends, median")
    if len(summary.tasks) == 1:
        console.print_line("")
        shares = sorted(summary.tasks[0].videos_with_step.items(), key=lambda item: (-item[1], item[0]))
        console.print_table(["step", f"in {noun}"], [(step, f"{share:.0%}") for step, share in shares])
    for task in summary.tasks:
        for pair in task.agreement:
            _print_agreement(task.task, pair)
    remarks = [*summary.findings, *(f"{t.task}: {finding}" for t in summary.tasks for finding in t.findings)]
    if remarks:
        console.print_line("\nWorth a look:", *(f"- {remark}" for remark in remarks))


def _row(task: TaskSummary) -> tuple[object, ...]:
    seconds = "no times" if task.median_last_end is None else f"{task.median_last_end:.0f}"
    counts = task.videos, task.steps, task.segments
    return task.task, *counts, f"{task.coverage:.0%}", task.repeats, task.overlaps, seconds


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

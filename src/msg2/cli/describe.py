"""`msg2 describe`: what is in the data, and what looks wrong with it."""

from __future__ import annotations

from msg2.cli import console, flags
from msg2.formats.data_summary import PairAgreement, TaskSummary, summarize
from msg2.metrics.annotator_agreement import StepAgreement


@flags.reads_data("order", "tier", "fps")
def describe(data: flags.Data, json: flags.Json = False, *, reading: flags.GivenOptions) -> None:
    """What is in the data, and what looks wrong with it.

    Example: `msg2 describe steps.csv`
    """
    with console.progress_bar("reading"):
        found = summarize(data, **reading)
    if json:
        console.print_json(found.to_json())
        return
    count = f"{len(found.tasks)} task" if len(found.tasks) == 1 else f"{len(found.tasks)} tasks"
    console.print_line(f"{data}: {found.format}; {count}", "")
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
    for task in found.tasks:
        for pair in task.agreement:
            _print_agreement(task.task, pair)
    remarks = [*found.findings, *(f"{t.task}: {finding}" for t in found.tasks for finding in t.findings)]
    if remarks:
        console.print_line("\nWorth a look:", *(f"- {remark}" for remark in remarks))


def _seconds(task: TaskSummary) -> str:
    return "no times" if task.median_last_end is None else f"{task.median_last_end:.0f}"


def _print_agreement(task: str, pair: PairAgreement) -> None:
    """How far two annotators agree, the steps that they disagree on most first."""
    first, second = pair.annotators
    overall = pair.agreement.overall
    console.print_line(
        f"\n{task}: {first} and {second} agree with a kappa of {_kappa(overall.presence_kappa)} on which steps a video "
        f"has, of {_kappa(overall.time_kappa)} on when they go on (videos in common: {pair.agreement.videos})"
    )
    rows = [
        (one.step, one.both, one.first - one.both, one.second - one.both, _kappa(one.time_kappa))
        for one in sorted(pair.agreement.steps, key=lambda one: (_disagreement(one), one.step))
    ]
    console.print_table(["step", "in both", f"only {first}", f"only {second}", "kappa in time"], rows)


def _disagreement(one: StepAgreement) -> tuple[int, float]:
    return 2 * one.both - one.first - one.second, 1.0 if one.time_kappa is None else one.time_kappa


def _kappa(value: float | None) -> str:
    return "N/A" if value is None else f"{value:.2f}"

"""`msg2 describe`: what is in the data, and what looks wrong with it."""

from __future__ import annotations

from msg2.cli import console
from msg2.cli.reading import Data, Fps, Json, Order, Tier
from msg2.readers import TaskSurvey, survey


def describe(data: Data, json: Json = False, order: Order = None, tier: Tier = None, fps: Fps = None) -> None:
    """What is in the data, and what looks wrong with it.

    Example: `msg2 describe steps.csv`
    """
    found = survey(data, order=order, tier=tier, fps=fps)
    if json:
        console.say_json(found.to_json())
        return
    count = f"{len(found.tasks)} task" if len(found.tasks) == 1 else f"{len(found.tasks)} tasks"
    console.say(f"{data}: {found.format}; {count}")
    console.say("")
    console.say_table(
        ["task", "videos", "steps", "labels", "cover", "repeats", "overlaps", "seconds"],
        [
            (t.task, t.videos, t.steps, t.segments, f"{t.coverage:.0%}", t.repeats, t.overlaps, _seconds(t))
            for t in found.tasks
        ],
    )
    console.say("cover: share of the steps that a video has; seconds: when the last label ends, median")
    if len(found.tasks) == 1:
        console.say("")
        shares = sorted(found.tasks[0].videos_with_step.items(), key=lambda item: (-item[1], item[0]))
        console.say_table(["step", "in videos"], [(step, f"{share:.0%}") for step, share in shares])
    remarks = [*found.findings, *(f"{t.task}: {finding}" for t in found.tasks for finding in t.findings)]
    if remarks:
        console.say("\nWorth a look:")
        for remark in remarks:
            console.say(f"- {remark}")


def _seconds(task: TaskSurvey) -> str:
    return "no times" if task.median_last_end is None else f"{task.median_last_end:.0f}"

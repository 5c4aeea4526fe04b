"""`msg2 check --online`: every step judged when it comes, by the habits of other videos."""

from __future__ import annotations

from collections.abc import Iterator

from msg2.assist.online import Finding, Habits, Verdict, watch
from msg2.cli import console
from msg2.graph import SubtaskGraph
from msg2.options import OnlineOptions
from msg2.task import Task


def say_verdicts(graph: SubtaskGraph, task: Task, training: Task | None, json: bool) -> None:
    """The verdicts on all videos of `task`: all of them as JSON, else those that reach the operating point."""
    threshold = OnlineOptions().threshold
    found = list(_verdicts(graph, task, training))
    if json:
        videos = {video: [verdict.to_json() for verdict in verdicts] for video, verdicts in found}
        console.say_json({"task": graph.task, "threshold": threshold, "videos": videos})
        return
    for video, verdicts in found:
        for verdict in verdicts:
            if verdict.mistake:
                console.say(f"{video}  {_sentence(verdict)}")
    steps = [verdict for _, verdicts in found for verdict in verdicts]
    mistakes = sum(verdict.mistake for verdict in steps)
    console.say(
        f"\n{mistakes} of {len(steps)} labels in {len(found)} videos are mistakes with a probability of at least "
        f"{threshold:g}; --json has all probabilities."
    )


def _verdicts(graph: SubtaskGraph, task: Task, training: Task | None) -> Iterator[tuple[str, tuple[Verdict, ...]]]:
    """Every video with its verdicts; without `training`, by the habits of the other videos of the task."""
    habits = Habits.of(graph, task if training is None else training)
    for video in task:
        of_others = habits if training is not None else habits.without(Habits.of(graph, [video]))
        yield video.id, watch(graph, of_others).video(video)


def _sentence(verdict: Verdict) -> str:
    when = f"at {verdict.start:.1f} s" if verdict.start is not None else f"as step {verdict.position}"
    why = "; ".join(map(_reason, verdict.findings))
    without = "".join(f", without '{finding.oddity.other}'" for finding in verdict.skipped)
    return f"{when}: '{verdict.step}', {console.percent(verdict.probability)} %: {why}{without}"


def _reason(finding: Finding) -> str:
    odd = finding.oddity
    like = f" (as in {finding.times} of {finding.chances} videos)"
    match odd.kind:
        case "premature" if odd.clause is not None:
            return f"before {odd.clause.words()}{like}"
        case "out of order":
            return f"after '{odd.other}', which needs it{like}"
        case "repeated":
            return f"once more{like}"
    return f"never seen in {finding.chances} videos"

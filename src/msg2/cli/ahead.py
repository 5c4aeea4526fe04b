"""`msg2 next`: what it says, after steps that are done and about held-out videos."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from msg2 import assist
from msg2.assist import LEARNT_RANKERS, RANKERS, Outlook, Ranked, Wait
from msg2.cli import console
from msg2.graph import SubtaskGraph
from msg2.inference import infer
from msg2.options import SplitOptions
from msg2.task import Step, Task


def say_next(
    graph: SubtaskGraph, done: Sequence[Step], ranker: str, data: Task | None, horizon: int | None, json: bool
) -> None:
    """The steps that are left; with `data` when they come, with a `horizon` what comes within so many steps."""
    rank = RANKERS[ranker](graph) if data is None or ranker in RANKERS else LEARNT_RANKERS[ranker](graph, data)
    ranking = assist.next_steps(graph, done, rank)
    waits: dict[Step, Wait | None] = {}
    if data is not None:
        wait_for, last = assist.waiting(data), done[-1] if done else None
        waits = {ranked.step: wait_for(last, ranked.step) for ranked in ranking}
    ahead = None
    if horizon is not None:
        ahead = assist.outlook(rank, done, horizon, None if data is None else assist.endings(graph, data))
    if json:
        console.say_json(_as_json(graph, done, ranker, ranking, waits, ahead))
    elif not ranking:
        console.say("Nothing is left: all steps are done.")
    else:
        _say_table(ranking, waits, ahead)


def _as_json(
    graph: SubtaskGraph,
    done: Sequence[Step],
    ranker: str,
    ranking: Sequence[Ranked],
    waits: dict[Step, Wait | None],
    ahead: Outlook | None,
) -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    for ranked in ranking:
        unmet = [clause.to_json() for clause in ranked.unmet]
        one = {"step": ranked.step, "probability": ranked.probability, "eligible": ranked.eligible, "unmet": unmet}
        if ahead is not None:
            one["within"] = ahead.within.get(ranked.step, 0.0)
        if ranked.step in waits:
            wait = waits[ranked.step]
            one["seconds"] = None if wait is None else asdict(wait)
        steps.append(one)
    found: dict[str, Any] = {"task": graph.task, "done": list(done), "ranker": ranker, "next": steps}
    if ahead is not None:
        found |= {
            "horizon": ahead.horizon,
            "ends": ahead.ends,
            "path": list(ahead.path),
            "path_probability": ahead.likely,
        }
    return found


def _say_table(ranking: Sequence[Ranked], waits: dict[Step, Wait | None], ahead: Outlook | None) -> None:
    timed = any(wait is not None for wait in waits.values())
    columns = ["step", "percent", *([f"within {ahead.horizon}"] if ahead else []), *(["seconds"] if timed else [])]
    rows = []
    for ranked in ranking:
        row = [ranked.step, console.percent(ranked.probability)]
        if ahead is not None:
            row.append(console.percent(ahead.within.get(ranked.step, 0.0)))
        if timed:
            wait = waits[ranked.step]
            row.append("" if wait is None else f"{wait.median:.0f} ({wait.low:.0f} to {wait.high:.0f})")
        rows.append([*row, " and ".join(clause.words() for clause in ranked.unmet)])
    console.say_table([*columns, "still needs"], rows)
    if ahead is not None:
        console.say(f"\nMost probable: {', then '.join(ahead.path)} ({console.percent(ahead.likely)} %).")
        if ahead.ends:
            console.say(f"Fewer than {len(ahead.path)} more steps come: {console.percent(ahead.ends)} %.")


def ranker_of(ranker: str, method: str, options: dict[str, Any]) -> Callable[[Task], assist.Ranker]:
    """From training videos to the ranker of that name, with a graph by that method."""
    if ranker == "bigram":
        return assist.bigram
    if ranker in RANKERS:
        return lambda training: RANKERS[ranker](infer(training, method, **options))
    return lambda training: LEARNT_RANKERS[ranker](infer(training, method, **options), training)


def say_accuracy(
    tasks: list[Task], make: Callable[[Task], assist.Ranker], splits: int, facts: dict[str, Any], json: bool
) -> None:
    """How often the ranker is right about held-out videos: mean over seeded splits, per task and of tasks."""
    shares: dict[str, list[float]] = {}
    with console.without_remarks():
        for task in console.progress(tasks, "evaluating", len(tasks)):
            for seed in range(splits):
                training, test = assist.split(task, SplitOptions(seed=seed))
                share = assist.evaluate(make(training), test).accuracy
                if share is not None:
                    shares.setdefault(task.name, []).append(share)
    means = {name: sum(values) / len(values) for name, values in shares.items()}
    mean = sum(means.values()) / len(means) if means else None
    if json:
        console.say_json({"accuracy": mean, "tasks": means, **facts})
    else:
        rows = [*means.items(), ("mean of tasks", mean)]
        console.say_table(["task", "accuracy in percent"], [(name, console.percent(value)) for name, value in rows])

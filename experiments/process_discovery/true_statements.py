"""Whether what a graph states is true of the data that it was learned from, by plain counts of the data itself.

A statement is true where it holds in 95 % of the runs in which it can be judged. It cannot be judged where the steps
are simultaneous or overlap, and, in data whose labels may be missing, where a step that it asks for is absent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from experiments.experiment_options import ExperimentOptions
from experiments.graph_learning.process_trees import Trace, add_loops, random_tree, simulate_log
from experiments.process_discovery.contest_models import ContestModel, find_models
from experiments.result_tables import Result, Table, Value
from msg2.formats import read_all
from msg2.graph import SubtaskGraph
from msg2.inference import infer
from msg2.progress import Progress
from msg2.task import Segment, Step, Task, Video

CLOCKS = {"1 s": 1, "1 min": 60, "1 day": 86_400}
"""Resolutions of the simulated clocks, in seconds; the mean time from event to event is six hours."""
KINDS = ("needs", "after", "responses", "exclusive", "required")
_MEAN_GAP = 6 * 3600
_HOLDS = 0.95


def run(data: Path, options: ExperimentOptions, progress: Progress) -> Result:
    """Learn from every data set, and count in how many runs each statement holds."""
    sources = [*_sources(data, options)]
    rows: list[list[Value]] = []
    total = {weak: Counter[tuple[str, bool]]() for weak in (False, True)}
    of_logs = Counter[tuple[str, bool]]()
    failed: dict[str, list[str]] = {}
    for number, (name, read_tasks) in enumerate(sources):
        progress(number, len(sources), name)
        found: dict[bool, Counter[tuple[str, bool]]] = {weak: Counter() for weak in (False, True)}
        is_log = False
        for task in read_tasks():
            is_log = task.absent == "skipped"
            graph = infer(task)
            for kind, text, weak, held, judged in judge(graph, task):
                holds = held >= _HOLDS * judged
                found[weak][kind, holds] += judged > 0
                if judged and not holds and not weak:
                    failed.setdefault(name, []).append(f"{text}: {held} of {judged}")
        for weak, counts in found.items():
            total[weak] += counts
        of_logs += found[False] if is_log else Counter()
        rows.append([name, *_shares(found[False]), _ordering(found[False])])
    rows.append(["all logs", *_shares(of_logs), _ordering(of_logs)])
    rows.append(["all", *_shares(total[False]), _ordering(total[False])])
    rows.append(["all, those listed as weak", *_shares(total[True]), _ordering(total[True])])
    columns = ["data", *KINDS, "needs, after and responses, percent"]
    notes = ["Statements that hold in 95 % of the runs in which they can be judged, of how many; weak ones are apart."]
    table = Table("Statements that are true of their data", columns, rows, notes)
    return Result("statements", [table], {"failed": failed})


def _shares(found: Counter[tuple[str, bool]]) -> list[Value]:
    return [f"{found[kind, True]} of {found[kind, True] + found[kind, False]}" for kind in KINDS]


def _ordering(found: Counter[tuple[str, bool]]) -> Value:
    right, wrong = (sum(found[kind, holds] for kind in KINDS[:3]) for holds in (True, False))
    return 100 * right / (right + wrong) if right + wrong else None


def judge(graph: SubtaskGraph, task: Task) -> Iterator[tuple[str, str, bool, int, int]]:
    """Count for every statement: its kind, its words, whether it is weak, the runs in which it holds, those that tell.

    Parameters
    ----------
    graph : SubtaskGraph
        What was learned.
    task : Task
        What it was learned from, every repetition kept.

    Yields
    ------
    tuple
    """
    first: list[dict[Step, Segment]] = []
    last: list[dict[Step, Segment]] = []
    for video in task:
        placed = (
            [*video.segments] if video.is_timed else [Segment(s.step, n, n + 1) for n, s in enumerate(video.segments)]
        )
        first.append({segment.step: segment for segment in reversed(placed)})
        last.append({})
        for segment in placed:
            if segment.step not in last[-1] or (segment.end or 0) >= (last[-1][segment.step].end or 0):
                last[-1][segment.step] = segment
    lacking_counts = task.absent == "skipped"

    def count(verdicts: Iterable[bool | None]) -> tuple[int, int]:
        told = [verdict for verdict in verdicts if verdict is not None]
        return sum(told), len(told)

    def comes(
        step: Step, names: Iterable[Step], runs: list[dict[Step, Segment]], *, after: bool
    ) -> Iterator[bool | None]:
        """Whether one of some steps comes before a step, or after it; None where that cannot be told."""
        for shown in runs:
            if step not in shown:
                continue
            others = [shown[name] for name in names if name in shown]
            own = shown[step]
            if any(own.before(other) if after else other.before(own) for other in others):
                yield True
            elif all(other.before(own) if after else own.before(other) for other in others):
                yield False if others or lacking_counts else None
            else:
                yield None

    for name in graph.steps:
        for clause in graph.precondition(name).clauses():
            weak = any((support := graph.support(other, name)) is not None and support.weak for other in clause.steps)
            yield "needs", f"{name} needs {clause}", weak, *count(comes(name, clause.steps, first, after=False))
    for before, after in graph.order:
        both = [shown for shown in first if before in shown]
        support = graph.support(before, after)
        weak = support is not None and support.weak
        yield "after", f"{after} after {before}", weak, *count(comes(after, [before], both, after=False))
    for name, formula in graph.responses:
        yield "responses", f"{formula} follows {name}", False, *count(comes(name, formula.steps, last, after=True))
    for group in graph.exclusive:
        apart = [len(shown.keys() & set(group)) == 1 for shown in first if shown.keys() & set(group)]
        yield "exclusive", " or ".join(group), False, *count(apart)
    for name in sorted(graph.required) if lacking_counts else ():
        yield "required", name, False, *count(name in shown for shown in first)


def _sources(data: Path, options: ExperimentOptions) -> Iterator[tuple[str, Callable[[], list[Task]]]]:
    """The data sets, by name, each read when it is its turn."""
    few = slice(1) if options.quick else slice(None)
    for path in sorted((data / "logs").glob("*.xes.gz"))[few]:
        yield path.name.partition(".")[0], partial(read_all, path, repeats="keep")
    for place in ("crosstask/crosstask_release", "captaincook4d/complete_step_annotations.json"):
        if (data / place).exists() and not options.quick:
            yield place.partition("/")[0], partial(read_all, data / place, repeats="keep")
    for model in find_models(data / "pdc2025")[::12][few]:
        yield f"contest {model.name}", partial(_noisy_log, model)
    for clock, resolution in CLOCKS.items():
        seeds = range(options.random_worlds)[: 1 if options.quick else None]
        yield f"simulated, clock of {clock}", partial(_simulated_logs, seeds, resolution)


def _simulated_logs(seeds: Iterable[int], clock: int) -> list[Task]:
    return [simulated(seed, clock) for seed in seeds]


def _noisy_log(model: ContestModel) -> list[Task]:
    """The training log of a model, as what it is: what is absent was not done."""
    task = model.training_log("noisy")
    return [Task(task.name, task.steps, task, "skipped")]


def simulated(seed: int, clock: int, cases: int = 1000, noise: float = 0.05) -> Task:
    """A log of a random process with loops whose times are cut to a clock."""
    tree = add_loops(random_tree(np.random.default_rng([seed, 5])), np.random.default_rng([seed, 6]))
    return on_clock(simulate_log(tree, cases, noise, seed), clock, 0.0, seed)


def on_clock(log: Sequence[Trace], clock: int, ties: float, seed: int) -> Task:
    """The cases of a log as runs with times cut to a clock; a share of the events comes with the one before."""
    rng, videos = np.random.default_rng([seed, 7]), []
    for number, trace in enumerate(log):
        gaps = rng.exponential(_MEAN_GAP, len(trace)) * (rng.random(len(trace)) >= ties)
        times = (np.cumsum(gaps) + rng.uniform(0, 86_400)) // clock * clock
        events = [Segment(step, time, time) for step, time in zip(trace, times.tolist(), strict=True)]
        videos.append(Video(f"{number:04d}", events))
    return Task("log", sorted({step for trace in log for step in trace}), videos, "skipped")

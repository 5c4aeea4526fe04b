"""What texts, and answers of models, add to few recordings: statements on the order of steps as a prior."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from pathlib import Path
from statistics import fmean

import numpy as np

from experiments.experiment_options import ExperimentOptions
from experiments.result_tables import Dot, Result, Table, Value
from msg2 import metrics
from msg2.formats import read_all
from msg2.formats.graph_reader import read_truths
from msg2.graph import SubtaskGraph
from msg2.inference.inference import run_inference
from msg2.inference.likelihood.statements import OrderStatements
from msg2.progress import Progress
from msg2.simulation import NoiseOptions, RandomWorldOptions, household_worlds, random_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Step, Task

RECORDINGS: Sequence[int | None] = (1, 2, 3, 5, 10, None)
"""None: all."""
RIGHT = (0.95, 0.8, 0.65, 0.5)
"""Share of the ordered pairs of which the simulated answers are right."""
NO_PRIOR, WRITTEN = "no prior", "written order"
FILE = "task_graph_generation_annotations.json"
Scores = dict[str, list[tuple[float, float | None]]]
"""Of every prior, edge F1 in percent and the estimated reliability, one pair for each graph."""


def run(data: Path, options: ExperimentOptions, progress: Progress) -> Result:
    """Edge F1 in percent by number of recordings and prior, on recipes and on simulated worlds.

    Parameters
    ----------
    data : Path
        Folder of the annotation sets.
    options : ExperimentOptions
        What can be set; `world_seeds` draws of recordings and answers.
    progress : Progress
        Shows how far the work is.

    Returns
    -------
    Result
        The tables, the facts that make them repeatable, and the chart.
    """
    folder = data / "captaincook4d"
    tasks = read_all(folder / FILE, order="time")
    truths = read_truths(folder / "task_graphs", [task.name for task in tasks])
    counts = RECORDINGS[1:2] if options.quick else RECORDINGS
    recipes: dict[int | None, Scores] = {}
    worlds: dict[int | None, Scores] = {}
    for number, count in enumerate(counts):
        progress(number, len(counts), f"{count or 'all'} recordings")
        recipes[count], worlds[count] = defaultdict(list), defaultdict(list)
        for seed in range(options.world_seeds):
            for task in tasks:
                rng = np.random.default_rng([seed, len(task.steps), len(task)])
                chosen = task if count is None else _draw(task, count, rng)
                truth = metrics.match_step_names(truths[task.name], SubtaskGraph(task.name, task.steps, {}))
                _measure(chosen, truth, rng, recipes[count])
            for task, truth in _simulated_tasks(count or 50, seed):
                _measure(task, truth, np.random.default_rng(seed), worlds[count])
    tables = [
        *_tables("24 recipes of CaptainCook4D", recipes),
        *_tables("12 household worlds and 12 random ones", worlds),
    ]
    chart = {
        f"{count or 'all'} recordings": {prior: Dot(fmean(f1 for f1, _ in cells)) for prior, cells in scores.items()}
        for count, scores in recipes.items()
    }
    return Result("text-priors", tables, {"seeds": list(range(options.world_seeds))}, chart)


def _draw(task: Task, count: int, rng: np.random.Generator) -> Task:
    """So many of the recordings; the steps of the task stay known."""
    videos = list(task)
    chosen = sorted(rng.permutation(len(videos))[:count].tolist())
    return Task(task.name, task.steps, [videos[place] for place in chosen])


def _simulated_tasks(videos: int, seed: int) -> list[tuple[Task, SubtaskGraph]]:
    """The household worlds with the usual noise, and as many random ones without noise and without ORs."""
    worlds = [(world, NoiseOptions()) for world in household_worlds()]
    for number in range(12):
        shape = RandomWorldOptions(steps=14, depth=(4, 6, 8)[number % 3], or_rate=0, max_parents=2)
        worlds.append((random_world(shape, 100 * seed + number), NoiseOptions.none()))
    shown = [simulate(world, SimulationOptions(videos=videos, noise=noise), seed) for world, noise in worlds]
    return [(one.task.with_first_labels(), one.graph) for one in shown]


def _measure(task: Task, truth: SubtaskGraph, rng: np.random.Generator, scores: Scores) -> None:
    """Learn one graph with every prior."""
    priors: dict[str, list[OrderStatements]] = {NO_PRIOR: [], WRITTEN: [draw_written_order(truth, rng)]}
    priors |= {f"{100 * right:.0f} % right": [draw_answers(truth, right, rng)] for right in RIGHT}
    for prior, statements in priors.items():
        graph = run_inference(task, statements=statements).graph
        believed = graph.method["model"].get("reliability", {}).get("simulated")
        scores[prior].append((100 * (metrics.edge_scores(graph, truth, ends=True).f1 or 0.0), believed))


def draw_answers(truth: SubtaskGraph, right: float, rng: np.random.Generator) -> OrderStatements:
    """Answers to "is A strictly required before B?" of every ordered pair, each right with the same probability."""
    said = {(a, b) for a, b in permutations(truth.steps, 2) if (a in truth.ancestors(b)) == bool(rng.random() < right)}
    return OrderStatements("simulated", frozenset(truth.steps), frozenset(said))


def draw_written_order(truth: SubtaskGraph, rng: np.random.Generator) -> OrderStatements:
    """One of the orders in which the true graph can be written down, drawn step by step."""
    written: list[Step] = []
    while left := [name for name in truth.steps if name not in written]:
        free = [name for name in left if truth.ancestors(name) <= set(written)]
        written.append(free[int(rng.integers(len(free)))])
    return OrderStatements("simulated", frozenset(written), frozenset(combinations(written, 2)))


def _tables(title: str, measured: Mapping[int | None, Scores]) -> list[Table]:
    """Edge F1, and the reliability that was estimated."""
    first = next(iter(measured.values()))
    f1: list[list[Value]] = []
    believed: list[list[Value]] = []
    for count, scores in measured.items():
        f1.append([count or "all", *(fmean(value for value, _ in scores[prior]) for prior in first)])
        shares = [[share for _, share in scores[prior] if share is not None] for prior in first if prior != NO_PRIOR]
        believed.append([count or "all", *(100 * fmean(own) if own else None for own in shares)])
    priors = [*first]
    return [
        Table(f"{title}: edge F1, percent", ["recordings", *priors], f1),
        Table(f"{title}: estimated reliability, percent of ordered pairs", ["recordings", *priors[1:]], believed),
    ]

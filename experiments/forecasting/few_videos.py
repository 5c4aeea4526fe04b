"""The next step with one to forty videos: the learned forecaster beside a bigram, on real tasks and simulated ones.

The bigram also has the smoothing that is best on the test videos, which nobody knows beforehand. Chains are worlds in
which a bigram is the truth: the next step depends on the last one alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, pstdev

import numpy as np

from experiments.experiment_options import ExperimentOptions
from experiments.forecasting.next_step_transfer import subsample_videos
from experiments.result_tables import Result, Table, Value
from msg2.assist import Ranker
from msg2.assist.learned_forecaster import LearnedForecaster, fit_forecaster, step_indices
from msg2.assist.next_step_evaluation import evaluate_ranker, train_test_split
from msg2.assist.rankers import bigram, recency
from msg2.formats import read_all, to_task
from msg2.inference import infer
from msg2.progress import Progress
from msg2.simulation import household_worlds, simulate
from msg2.simulation.simulator import SimulationOptions, random_stream
from msg2.task import Step, Task

SIZES = (1, 3, 5, 10, 15, 40)
"""Training videos; a task that has fewer is left out."""
SEEDS = 3
TEST_VIDEOS = 20
WORLD_VIDEOS = 70
SMOOTHINGS = (0.5, 2.0, 5.0)
CHAINS = 12
ROWS = ("recency", "bigram", "bigram, best smoothing", "learned")


def run(data: Path, options: ExperimentOptions, progress: Progress) -> Result:
    """Accuracy by the number of training videos, with its spread over seeds."""
    seeds = range(1 if options.quick else SEEDS)
    sets = {name: made() for name, made in _sets(data).items()}
    if options.quick:
        sets = {name: tasks[:1] for name, tasks in sets.items()}
    tables, number, total = [], 0, sum(map(len, sets.values()))
    for name, tasks in sets.items():
        found: dict[tuple[str, int], list[list[float]]] = defaultdict(lambda: [[] for _ in seeds])
        for task in tasks:
            progress(number, total, f"{name}: {task.name}")
            number += 1
            for seed in seeds:
                for size in SIZES:
                    for row, accuracy in _measure(task, size, seed).items():
                        found[row, size][seed].append(100 * accuracy)
        tables.append(_table(name, found))
    return Result("few-videos", tables, {"seeds": list(seeds), "sizes": list(SIZES), "smoothings": list(SMOOTHINGS)})


def _sets(data: Path) -> Mapping[str, Callable[[], Sequence[Task]]]:
    """Real tasks and worlds."""
    crosstask = data / "crosstask" / "crosstask_release"
    recipes = data / "captaincook4d" / "task_graph_generation_annotations.json"
    worlds = SimulationOptions(videos=WORLD_VIDEOS)
    sets: dict[str, Callable[[], Sequence[Task]]] = {
        "CrossTask": lambda: read_all(crosstask),
        "CrossTask, repeated steps too": lambda: read_all(crosstask, repeats="keep"),
        "CaptainCook4D": lambda: read_all(recipes),
        "household worlds": lambda: [simulate(world, worlds, seed=0).task for world in household_worlds()],
        "chains": lambda: [draw_chain(number, 4 + number, repeats=False) for number in range(CHAINS)],
        "chains, repeated steps too": lambda: [draw_chain(n, 3 + n // 2, repeats=True) for n in range(CHAINS)],
    }
    return sets if recipes.is_file() else {name: made for name, made in sets.items() if name != "CaptainCook4D"}


def draw_chain(number: int, steps: int, *, repeats: bool) -> Task:
    """Draw a task whose next step depends on the last one only, and on what is done where no step is repeated."""
    rng = random_stream(number, "chain", steps)
    after = rng.dirichlet(np.full(steps, 0.15 + 0.05 * (number % 4)), steps + 1) + 1e-3
    videos = []
    for _ in range(WORLD_VIDEOS):
        video: list[int] = []
        for _ in range(2 + int(rng.poisson(steps)) if repeats else steps - int(rng.binomial(steps, 0.1))):
            shares = after[video[-1] if video else steps].copy()
            shares[[] if repeats else video] = 0
            video.append(int(rng.choice(steps, p=shares / shares.sum())))
        videos.append([f"step {step}" for step in video])
    task = to_task(videos, repeats="keep")
    return Task(f"chain {number}", task.steps, task.videos)


def _measure(task: Task, size: int, seed: int) -> dict[str, float]:
    """The accuracy of every row on test videos; nothing where there are too few videos."""
    training, test = train_test_split(task, seed=seed)
    if len(training) < 0.8 * size:
        return {}
    training, test = subsample_videos(training, size, seed), test.sample(TEST_VIDEOS)
    learned = infer(training)
    rankers: dict[str, Ranker] = {
        "recency": recency(learned),
        "bigram": bigram(training),
        **{f"bigram {value}": smoothed_bigram(training, value) for value in SMOOTHINGS},
        "learned": _asked_at_once(fit_forecaster(learned, training), test),
    }
    return {row: evaluate_ranker(ranker, test).accuracy or 0.0 for row, ranker in rankers.items()}


def _asked_at_once(forecaster: LearnedForecaster, test: Task) -> Ranker:
    """The forecaster with all its answers about the test videos worked out in one go."""
    graph = forecaster.extractor.graph
    sequences = [tuple(segment.step for segment in video.segments) for video in test]
    asked = list(dict.fromkeys(sequence[:length] for sequence in sequences for length in range(len(sequence))))
    answers = dict(zip(asked, forecaster.after([step_indices(done, graph) for done in asked]).tolist(), strict=True))
    return lambda done: dict(zip(graph.steps, answers[tuple(done)], strict=True))


def smoothed_bigram(task: Task, smoothing: float) -> Ranker:
    """Count pairs, and add so many observations that are spread as the steps of all videos are."""
    videos = [[segment.step for segment in video.segments] for video in task]
    pairs = Counter((last, name) for video in videos for last, name in zip([None, *video], video, strict=False))
    single = Counter(name for video in videos for name in video)
    again = {name for video in videos for name, times in Counter(video).items() if times > 1}
    share = {name: (single[name] + 0.5) / (single.total() + 0.5 * len(task.steps)) for name in task.steps}

    def rank(done: Sequence[Step]) -> Mapping[Step, float]:
        last, closed = done[-1] if done else None, set(done) - again
        left = {n: pairs[last, n] + smoothing * share[n] for n in task.steps if n not in closed}
        return {name: weight / sum(left.values()) for name, weight in left.items()}

    return rank


def _table(name: str, found: Mapping[tuple[str, int], list[list[float]]]) -> Table:
    means = {key: [fmean(values) for values in seeds if values] for key, seeds in found.items()}
    sizes = [size for size in SIZES if means.get(("bigram", size))]
    for size in sizes:  # the best of all smoothings, the usual one included
        known = [means[row, size] for row, other in means if other == size and row.startswith("bigram")]
        means["bigram, best smoothing", size] = max(known, key=fmean)
    rows: list[list[Value]] = [[row, *(f"{fmean(means[row, s]):.1f} ± {pstdev(means[row, s]):.1f}" for s in sizes)]
                               for row in ROWS]  # fmt: skip
    ahead = (fmean(means["learned", size]) - fmean(means["bigram", size]) for size in sizes)
    rows.append(["learned less bigram", *(f"{points:+.1f}" for points in ahead)])
    return Table(
        f"{name}: accuracy of the next step by the number of videos, percent", ["ranker", *map(str, sizes)], rows
    )

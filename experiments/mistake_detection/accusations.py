"""Who is accused of a mistake: videos as they are, copies with two steps swapped, and recordings with known errors.

CrossTask: graphs learned with five-fold cross-validation over videos; a video is accused where `check` finds a mistake
of a probability of one half or more. An empty graph accuses nobody, so copies of the videos in which one pair of needed
neighbours is swapped are judged as well. CaptainCook4D: one recording left out, truth as in `mistakes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from experiments.experiment_options import ExperimentOptions
from experiments.mistake_detection.annotated_mistakes import Recipe, read_recipes
from experiments.result_tables import Result, Table, Value
from msg2.assist import check
from msg2.benchmarking import learn
from msg2.formats import read_all
from msg2.graph import SubtaskGraph
from msg2.progress import Progress
from msg2.task import Absent, Task, Video

Learner: TypeAlias = Callable[[Task, Absent], SubtaskGraph]
FOLDS = 5


def _other(method: str) -> Learner:
    return lambda task, absent: learn(task, method)


LEARNERS: Mapping[str, Learner] = {
    "nothing is ever wrong (empty graph)": lambda task, absent: SubtaskGraph(
        task.name, task.steps, {}, optional=task.steps
    ),
    "always-before": _other("always-before"),
    "always-before, δ = 0.9": _other("always-before:delta=0.9"),
    "always-before, δ = 0.8": _other("always-before:delta=0.8"),
    "msg2": _other("msg2"),
    "likelihood": lambda task, absent: learn(task, f"likelihood:absent={absent}"),
}


def run(data: Path, options: ExperimentOptions, progress: Progress) -> Result:
    """Count the accused on CrossTask and on CaptainCook4D.

    Parameters
    ----------
    data : Path
        Folder of the annotation sets.
    options : ExperimentOptions
        `quick` takes two tasks and two recipes.
    progress : Progress
        Shows how far the work is.

    Returns
    -------
    Result
        Two tables, and the facts that make them repeatable.
    """
    tasks = read_all(data / "crosstask")
    recipes = {order: read_recipes(data / "captaincook4d", order) for order in ("file", "time")}
    if options.quick:
        tasks, recipes = tasks[:2], {order: of_order[:2] for order, of_order in recipes.items()}
    by_task: dict[str, dict[str, Any]] = {name: {} for name in LEARNERS}
    for number, task in enumerate(tasks):
        progress(number, len(tasks) + 2 * len(recipes["file"]), f"CrossTask: {task.name}")
        for name, learner in LEARNERS.items():
            by_task[name][task.name] = accusations(task, learner)
    crosstask = [_crosstask_row(name, counts.values()) for name, counts in by_task.items()]
    cooking: list[list[Value]] = []
    done = len(tasks)
    for order, of_order in recipes.items():
        counts = {name: np.zeros(4, dtype=np.int64) for name in LEARNERS}
        for recipe in of_order:
            progress(done, len(tasks) + 2 * len(recipes["file"]), f"CaptainCook4D, {order}: {recipe.name}")
            done += 1
            for name, learner in LEARNERS.items():
                counts[name] += _accused_recordings(recipe, learner)
        cooking += [_cooking_row(name, order, of_row) for name, of_row in counts.items()]
    tables = [
        Table(
            "CrossTask, five-fold cross-validation over videos, missing labels unknown",
            ["graph", "videos", "accused", "%", "copies with needed neighbours swapped", "accused ", "% "],
            crosstask,
            ["A copy swaps one pair of neighbours (a, b), drawn at random, of which the graph says that b needs a."],
        ),
        Table(
            "CaptainCook4D, one recording left out, what has no label was skipped",
            [
                "graph",
                "order",
                "with an error of order or a missing step",
                "accused",
                "%",
                "without any error",
                "accused ",
                "% ",
            ],
            cooking,
        ),
    ]
    chart = {
        "CrossTask: % accused": tables[0].dots("%"),
        "CrossTask: % of swapped copies accused": tables[0].dots("% "),
    }
    return Result("accusations", tables, {"folds": FOLDS, "by task": by_task["likelihood"]}, chart)


def accusations(task: Task, learner: Learner) -> dict[str, int]:
    """Learn from four fifths of the videos and check the others, and copies of them with needed neighbours swapped.

    Parameters
    ----------
    task : Task
        All videos.
    learner : callable
        From training videos to a graph.

    Returns
    -------
    dict of str to int
        Numbers of videos, accused videos, copies and accused copies.
    """
    rng = np.random.default_rng(0)
    fold = rng.permutation(len(task.videos)) % FOLDS
    counts = {"videos": 0, "accused": 0, "swapped": 0, "swapped accused": 0}
    for held_out in range(FOLDS):
        graph = learner(task.with_videos(v for v, f in zip(task.videos, fold, strict=True) if f != held_out), "unknown")
        judged = [v for v, f in zip(task.videos, fold, strict=True) if f == held_out]
        swapped = [copy for video in judged if (copy := swap_needed_neighbours(video, graph, rng)) is not None]
        counts["videos"] += len(judged)
        counts["accused"] += len(check(graph, task.with_videos(judged), absent="unknown").accused)
        counts["swapped"] += len(swapped)
        counts["swapped accused"] += len(check(graph, task.with_videos(swapped), absent="unknown").accused)
    return counts


def swap_needed_neighbours(video: Video, graph: SubtaskGraph, rng: np.random.Generator) -> Video | None:
    """Copy a video with the times of two neighbours exchanged, of which the second needs the first.

    Parameters
    ----------
    video : Video
        The video, each step once.
    graph : SubtaskGraph
        Which says what is needed.
    rng : numpy.random.Generator
        Draws one of several pairs.

    Returns
    -------
    Video or None
        None where no neighbours need each other.
    """
    segments = video.segments
    pairs = [
        place
        for place in range(len(segments) - 1)
        if segments[place].before(segments[place + 1])
        and graph.kind(segments[place].step, segments[place + 1].step) == "needs"
    ]
    if not pairs:
        return None
    place = int(rng.choice(pairs))
    first, second = segments[place], segments[place + 1]
    copy = [replace(first, step=second.step), replace(second, step=first.step)]
    return Video(f"{video.id} with neighbours swapped", [*segments[:place], *copy, *segments[place + 2 :]])


def _accused_recordings(recipe: Recipe, learner: Learner) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Recordings with an error of order or a missing step, those accused; recordings without any error, and these."""
    counts = np.zeros(4, dtype=np.int64)
    for recording in recipe.recordings:
        wrong = any(recording.out_of_order)
        if not wrong and not recording.flawless:
            continue
        graph = learner(recipe.training(recording, flawless=False).with_first_labels(), "skipped")
        accused = bool(check(graph, recording.video.with_first_labels(), absent="skipped").accused)
        counts += np.array([wrong, wrong and accused, not wrong, not wrong and accused], dtype=np.int64)
    return counts


def _crosstask_row(name: str, counts: Any) -> list[Value]:
    total = {key: sum(one[key] for one in counts) for key in ("videos", "accused", "swapped", "swapped accused")}
    share = 100 * total["accused"] / total["videos"]
    swapped = 100 * total["swapped accused"] / total["swapped"] if total["swapped"] else None
    return [name, total["videos"], total["accused"], share, total["swapped"], total["swapped accused"], swapped]


def _cooking_row(name: str, order: str, counts: np.ndarray[Any, np.dtype[np.int64]]) -> list[Value]:
    wrong, found, right, alarms = counts.tolist()
    return [name, order, wrong, found, 100 * found / max(wrong, 1), right, alarms, 100 * alarms / max(right, 1)]

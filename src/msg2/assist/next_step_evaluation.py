"""How often a ranker is right about the next step of videos it has not seen (Sec. 5.2)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from msg2.assist.rankers import LEARNED_RANKER, RANKERS, Ranker, make_ranker
from msg2.errors import InputError, require
from msg2.formats import to_task, to_tasks
from msg2.graph import SubtaskGraph
from msg2.inference import infer
from msg2.inference.registry import DEFAULT_METHOD
from msg2.metrics.calibration import NextStepPrediction
from msg2.progress import Progress, no_progress
from msg2.task import Step, Task, Video
from msg2.text import short_repr

if TYPE_CHECKING:
    from msg2.formats.conversion import Demonstrations

TEST_SHARE = 0.15
"""Share of the videos that is held out for testing."""
SPLITS = 5
"""Seeded splits into training and test videos; the seeds are 0, 1, …"""
MOST_VIDEOS = 20_000
"""Videos of a task that are learned from and tested on: more hardly make the share of hits surer."""
_TIE = 1e-9
"""Probabilities that are no further apart are equal."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NextStepScore:
    """Expected number of `correct` predictions out of `total`."""

    correct: float
    total: int

    @property
    def accuracy(self) -> float | None:
        """Share of correct predictions; None where nothing was predicted."""
        return self.correct / self.total if self.total else None


@dataclass(frozen=True, slots=True)
class NextStepEvaluation:
    """Accuracy of a ranker on held-out videos."""

    ranker: str
    method: str | None
    """How the graphs were learned; None where the ranker uses no graph."""
    splits: int
    tasks: Mapping[str, float]
    """The mean over the splits, by task; a task without any label in its test videos is left out."""

    @property
    def accuracy(self) -> float | None:
        """The mean of the tasks; None where there is none."""
        return sum(self.tasks.values()) / len(self.tasks) if self.tasks else None

    def to_json(self) -> dict[str, object]:
        """Plain values for one JSON object."""
        return {
            "accuracy": self.accuracy,
            "tasks": dict(self.tasks),
            "ranker": self.ranker,
            "method": self.method,
            "splits": self.splits,
        }


def evaluate_next_step(
    tasks: Demonstrations,
    ranker: str = LEARNED_RANKER,
    method: str = DEFAULT_METHOD,
    *,
    splits: int = SPLITS,
    progress: Progress = no_progress,
    **options: Any,
) -> NextStepEvaluation:
    """Learn from some videos of each task, and predict every step of the others.

    Parameters
    ----------
    tasks : Task, list of Task or anything that `msg2.infer` takes
        Each with at least two videos; of a task with very many, `MOST_VIDEOS` are taken.
    ranker : str
        A key of `msg2.assist.RANKERS`.
    method : str
        How graphs are learned: a key of `msg2.inference.METHODS`.
    splits : int
        Seeded splits into training and test videos; their accuracies are averaged.
    progress : Progress
        Is told how many splits of all tasks are done.
    **options
        Options of the method, as in `msg2.infer`.

    Returns
    -------
    NextStepEvaluation

    Raises
    ------
    InputError
        For an unknown ranker or method, and for a task with fewer than two videos.

    >>> evaluate_next_step([["boil", "pour"]] * 4, method="always-before").accuracy
    1.0
    """
    chosen = to_tasks(tasks)
    needs_graph = ranker not in RANKERS or RANKERS[ranker].needs_graph
    means: dict[str, float] = {}
    for number, whole in enumerate(chosen):
        task, shares = limit_videos(whole), []
        for seed in range(splits):
            progress(number * splits + seed, len(chosen) * splits, f"{task.name}, split {seed + 1} of {splits}")
            _, share = learn_and_predict(task, seed, ranker, method, **options)
            shares += [] if share is None else [share]
        if shares:
            means[task.name] = sum(shares) / len(shares)
    progress(len(chosen) * splits, len(chosen) * splits, "")
    return NextStepEvaluation(ranker, method if needs_graph else None, splits, means)


def learn_and_predict(
    task: Task, seed: int, ranker: str, method: str, **options: Any
) -> tuple[SubtaskGraph, float | None]:
    """The graph of the training videos of a split, and the share of right predictions on its test videos."""
    training, test = train_test_split(task, seed=seed)
    needs_graph = ranker not in RANKERS or RANKERS[ranker].needs_graph
    graph = infer(training, method, **options) if needs_graph else SubtaskGraph(task.name, task.steps, {})
    return graph, evaluate_ranker(make_ranker(ranker, graph, training), test).accuracy


def limit_videos(task: Task) -> Task:
    """At most `MOST_VIDEOS` of the videos, evenly spread; a warning says so where there are more."""
    if len(task) <= MOST_VIDEOS:
        return task
    _log.warning("%s: %d of %d videos are taken, evenly spread", task.name, MOST_VIDEOS, len(task))
    return task.sample(MOST_VIDEOS)


def evaluate_ranker(ranker: Ranker, videos: Iterable[Video]) -> NextStepScore:
    """Compare the most probable step with the step that came, at every place of every video, the first included."""
    correct, total = 0.0, 0
    for video in videos:
        predictions = next_step_predictions(ranker, [video])
        total += len(predictions)
        correct += sum(prediction.correct for prediction in predictions)
    return NextStepScore(correct, total)


def next_step_predictions(ranker: Ranker, videos: Iterable[Video]) -> list[NextStepPrediction]:
    """Predict every step of every video from all earlier steps of its sequence."""
    predictions = []
    for video in videos:
        sequence = [segment.step for segment in video.segments]
        for position, came in enumerate(sequence):
            probabilities = ranker(sequence[:position])
            confidence = max(probabilities.values(), default=0.0)
            correct = tie_aware_accuracy(probabilities, came)
            predictions.append(NextStepPrediction(confidence, correct, probabilities.get(came, 0.0)))
    return predictions


def train_test_split(task: Demonstrations, seed: int = 0, test_share: float = TEST_SHARE) -> tuple[Task, Task]:
    """Hold out a seeded share of the videos, by a permutation of their sorted ids; return training and test videos."""
    require(0 < test_share < 1, f"test-share is {test_share}, it must be between 0 and 1")
    require(seed >= 0, f"seed is {seed}, it must be 0 or more")
    task = to_task(task)
    if len(task) < 2:
        raise InputError(
            f"task {short_repr(task.name)} has {len(task)} video(s), none can be held out",
            hint="at least two videos are needed",
        )
    size = min(max(1, round(test_share * len(task))), len(task) - 1)
    chosen = np.random.default_rng(seed).permutation(len(task))[:size].tolist()
    held_out = set(chosen)
    left = [number for number in range(len(task)) if number not in held_out]  # the videos of a task are sorted by id
    return task.select(left), task.select(sorted(chosen))


def tie_aware_accuracy(probabilities: Mapping[Step, float], came: Step) -> float:
    """The chance that a random choice among the most probable steps is the right one."""
    best = max(probabilities.values(), default=0.0) - _TIE
    leaders = [name for name, probability in probabilities.items() if probability >= best]
    return 1 / len(leaders) if came in leaders else 0.0

"""Procedure planning on CrossTask: which steps come between the first and the last of T consecutive ones?

The task, both ends and T are given, all true; what came before the window is not. Windows of the official labels, with
their repeats; 70 % of the videos of every task are for training.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, pstdev
from typing import TypeAlias

import numpy as np

from experiments.bootstrap_intervals import ConfidenceInterval, ScoredItems, bootstrap_interval, weighted_accuracy
from experiments.experiment_options import ExperimentOptions
from experiments.forecasting.window_planning import (
    FEATURES,
    WindowCounts,
    candidate_windows,
    count_windows,
    fit_window_planner,
    fit_window_weights,
)
from experiments.result_tables import Dot, Result, Table, Value
from msg2.assist.learned_forecaster import k_fold_split
from msg2.assist.next_step_evaluation import train_test_split
from msg2.assist.planning import Plan
from msg2.formats import read_all
from msg2.progress import Progress
from msg2.task import Step, Task, Video

LENGTHS = (3, 4)
TEST_SHARE = 0.3
STRENGTHS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
"""Windows that the bigram counts for in the interpolated n-gram; the best in the training videos is taken."""
LOOKS = 1
"""Versions of `ours` whose successes in the test windows had been seen when this result was written."""
PUBLISHED = (
    "CEFITO 39.6 / 64.1 and 24.8 / 57.5; ViterbiPlanNet 38.5 / 63.1 and 24.6 / 57.0; SCHEMA 37.2 / 62.7 and "
    "24.2 / 57.0; Gemini 2.5 Pro 29.2 / 57.9 and 14.0 / 51.3"
)
"""Success rate / mean accuracy in percent at T = 3 and T = 4."""

Window: TypeAlias = tuple[Step, ...]
WindowAnswer: TypeAlias = Callable[[Step, Step], Sequence[Plan]]
"""From the ends of a window to plans, the best first."""


@dataclass(frozen=True, slots=True)
class WindowScore:
    """How an answer compares with the window that came."""

    video: str
    success: bool
    accuracy: float
    """Share of the places with the right step, both ends included."""
    iou: float
    """Steps in both, of the steps in either."""
    log_loss: float | None
    """−log of the probability of the window that came; None where no probabilities are given."""


def run(data: Path, options: ExperimentOptions, progress: Progress) -> Result:
    """Success rate, mean accuracy and mean IoU of every row, over all test windows; mean of seeded splits.

    Parameters
    ----------
    data : Path
        Folder of the annotation sets; an experiment that simulates does not read it.
    options : ExperimentOptions
        What can be set.
    progress : Progress
        Shows how far the work is.

    Returns
    -------
    Result
        The tables, the facts that make them repeatable, and the chart.
    """
    tasks = read_all(data / "crosstask" / "crosstask_release", repeats="keep")
    seeds = range(options.splits)
    tables, chart, facts = [], {}, {}
    for number, length in enumerate(LENGTHS):
        made: dict[str, list[list[WindowScore]]] = {}
        learned = []
        for seed in seeds:
            progress(number * len(seeds) + seed, len(LENGTHS) * len(seeds), f"T = {length}, split {seed}")
            splits = [train_test_split(task, seed, TEST_SHARE) for task in tasks]
            training, test = [one for one, _ in splits], [other for _, other in splits]
            weights, strength = fit_window_weights(training, length), best_strength(training, length)
            learned.append({"weights": dict(zip(FEATURES, weights.tolist(), strict=True)), "strength": strength})
            rows: dict[str, Sequence[WindowAnswer]] = {
                "most frequent": [most_frequent_middle(task, length) for task in training],
                "bigram": [interpolated_ngram(task, length, np.inf) for task in training],
                "n-gram with window counts": [interpolated_ngram(task, length, strength) for task in training],
                "ours, weights of each task": [_planner(task, length) for task in training],
                "ours": [_planner(task, length, weights) for task in training],
                "knows the test: modes of all windows": [most_frequent_between(task, length) for task in tasks],
                "knows the test: modes of its windows": [most_frequent_between(task, length) for task in test],
            }
            for row, answers in rows.items():
                scores = [score_windows(answer, task, length) for answer, task in zip(answers, test, strict=True)]
                made.setdefault(row, []).append([one for of_task in scores for one in of_task])
        tables += [_score_table(length, made), _difference_table(length, made)]
        chart[f"success rate at T = {length}, percent"] = _dots(made)
        success = {row: [100 * _mean_of(one, "success") for one in splits] for row, splits in made.items()}
        facts[f"T = {length}"] = {
            "success per split": success,
            "test windows per split": [len(one) for one in made["ours"]],
            "learned per split": learned,
        }
    return Result("planning", tables, {"seeds": list(seeds), "looks at the test windows": LOOKS, **facts}, chart)


def score_windows(answer: WindowAnswer, test: Task, length: int) -> list[WindowScore]:
    """Ask for every window of the test videos.

    Parameters
    ----------
    answer : WindowAnswer
        From training videos.
    test : Task
        The test videos.
    length : int
        T.

    Returns
    -------
    list of WindowScore
        One per window.
    """
    known: dict[tuple[Step, Step], Sequence[Plan]] = {}
    scores = []
    for video in test:
        for window in windows_of(video, length):
            ends = window[0], window[-1]
            if ends not in known:
                known[ends] = answer(*ends)
            best, plans = known[ends][0].steps, known[ends]
            chance = next((plan.probability for plan in plans if plan.steps == window), 0.0)
            loss = None if plans[0].probability is None else float(-np.log(max(chance or 0.0, 1e-9)))
            right = mean(one == other for one, other in zip(best, window, strict=True))
            overlap = len(set(best) & set(window)) / len(set(best) | set(window))
            scores.append(WindowScore(f"{test.name}/{video.id}", best == window, right, overlap, loss))
    return scores


def windows_of(video: Video, length: int) -> list[Window]:
    """All runs of so many consecutive steps of a video, repeats included.

    Parameters
    ----------
    video : Video
        With its labels.
    length : int
        T.

    Returns
    -------
    list of tuple of Step
    """
    steps = tuple(segment.step for segment in video.segments)
    return [steps[start : start + length] for start in range(len(steps) - length + 1)]


def most_frequent_middle(task: Task, length: int) -> WindowAnswer:
    """The most frequent steps inside windows of the task, whatever their ends.

    Parameters
    ----------
    task : Task
        The training videos.
    length : int
        T.

    Returns
    -------
    WindowAnswer
    """
    middles = Counter(window[1:-1] for video in task for window in windows_of(video, length))
    best = min(middles, key=lambda middle: (-middles[middle], middle))
    return lambda first, last: [Plan((first, *best, last), None, True)]


def most_frequent_between(task: Task, length: int) -> WindowAnswer:
    """The most frequent steps between these ends; of the test videos, no answer that knows the ends only is better.

    Parameters
    ----------
    task : Task
        Videos with these ends.
    length : int
        T.

    Returns
    -------
    WindowAnswer
    """
    seen = Counter(window for video in task for window in windows_of(video, length))

    def answer(first: Step, last: Step) -> list[Plan]:
        between = [window for window in seen if (window[0], window[-1]) == (first, last)]
        return [Plan(min(between, key=lambda window: (-seen[window], window)), None, True)]

    return answer


def interpolated_ngram(task: Task, length: int, strength: float) -> WindowAnswer:
    """The bigram, conditioned on both ends, interpolated with the counts of the windows that have these ends.

    P(m | a, z) = (#(a m z) + s q(m)) / (#(a · z) + s), where q(m) ∝ Π p(next | last) along a m z.

    Parameters
    ----------
    task : Task
        The training videos.
    length : int
        T.
    strength : float
        s, the windows that the bigram counts for; infinite: only the bigram.

    Returns
    -------
    WindowAnswer
    """
    counts = count_windows(_indices(task), len(task.steps), length)

    def answer(first: Step, last: Step) -> list[Plan]:
        rows, seen, bigram = _weigh(counts, task.steps.index(first), task.steps.index(last))
        probabilities = bigram if np.isinf(strength) else (seen + strength * bigram) / (seen.sum() + strength)
        best = np.argsort(-probabilities.round(9), kind="stable")
        return [Plan(tuple(task.steps[n] for n in rows[row]), float(probabilities[row]), True) for row in best]

    return answer


def best_strength(tasks: Sequence[Task], length: int) -> float:
    """Of `STRENGTHS`, the one with the most successes in held-out folds of the training videos of all tasks.

    Parameters
    ----------
    tasks : sequence of Task
        The training videos.
    length : int
        T.

    Returns
    -------
    float
    """
    successes = np.zeros(len(STRENGTHS))
    for task in tasks:
        for inside, others in k_fold_split(_indices(task)):
            counts = count_windows(others, len(task.steps), length)
            came = count_windows(inside, len(task.steps), length).windows
            ends = {(one[start], one[start + length - 1]) for one in inside for start in range(len(one) - length + 1)}
            for first, last in sorted(ends):
                rows, seen, bigram = _weigh(counts, first, last)
                right = came.lookup(rows)
                successes += [right[int(np.argmax(seen + strength * bigram))] for strength in STRENGTHS]
    return STRENGTHS[int(np.argmax(successes))]


def _weigh(counts: WindowCounts, first: int, last: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All windows with these ends, how often each was seen, and its probability by the bigram."""
    rows = candidate_windows(counts, first, last)
    bigram = np.prod(counts.bigram[rows[:, :-1], rows[:, 1:]], axis=1)
    return rows, counts.windows.lookup(rows), bigram / bigram.sum()


def _planner(task: Task, length: int, weights: np.ndarray | None = None) -> WindowAnswer:
    planner = fit_window_planner(task, length, weights)
    return lambda first, last: planner.plan(first, last, k=len(task.steps) ** (length - 2))


def _indices(task: Task) -> list[tuple[int, ...]]:
    index = {name: place for place, name in enumerate(task.steps)}
    return [tuple(index[segment.step] for segment in video.segments) for video in task]


def _mean_of(scores: Sequence[WindowScore], name: str) -> float:
    return mean(float(getattr(one, name)) for one in scores)


def _score_table(length: int, made: Mapping[str, Sequence[Sequence[WindowScore]]]) -> Table:
    rows: list[list[Value]] = []
    for row, splits in made.items():
        success, accuracy, iou = (
            [100 * _mean_of(one, name) for one in splits] for name in ("success", "accuracy", "iou")
        )
        has_loss = splits[0][0].log_loss is not None
        loss = mean(_mean_of(one, "log_loss") for one in splits) if has_loss else None
        rows.append([row, mean(success), pstdev(success), mean(accuracy), mean(iou), loss])
    return Table(
        f"CrossTask procedure planning from the true first and last step, T = {length}",
        ["answer", "success rate", "spread", "mean accuracy", "mean IoU", "log loss"],
        rows,
        [
            f"Percent of all test windows, mean of {len(next(iter(made.values())))} seeded splits by video "
            f"({100 * TEST_SHARE:g} % test); the spread is over splits. A success is a window with every step right. "
            "Accuracy is over all places, both ends included, which are given. The log loss (nats) is that of the "
            "window that came.",
            "`most frequent` puts the most frequent middle of the task between any ends. `n-gram with window counts` "
            "interpolates the bigram with the windows that have these ends, as strongly as does best in the training "
            "videos. `ours` is `experiments.forecasting.window_planning`, its weights learned from the training videos "
            "of all tasks. The last two rows know what came most often between these ends in all videos, and in the "
            "test videos: the latter is a ceiling, no answer that is told only the ends can be better.",
            f"Published systems see pictures of the first and last moment and must recognise the steps in them, so "
            f"their numbers (success / mean accuracy at T = 3 and T = 4) are not comparable: {PUBLISHED}.",
        ],
    )


def _difference_table(length: int, made: Mapping[str, Sequence[Sequence[WindowScore]]]) -> Table:
    rows: list[list[Value]] = []
    for row, splits in made.items():
        if row == "ours":
            continue
        apart = [
            100 * (_mean_of(one, "success") - _mean_of(other, "success"))
            for one, other in zip(made["ours"], splits, strict=True)
        ]
        interval = success_difference(made["ours"], splits)
        rows.append([row, mean(apart), 100 * interval.low, 100 * interval.high, min(apart), max(apart), apart[0]])
    return Table(
        f"`ours` minus the others, success rate in points, T = {length}",
        ["answer", "difference", "low", "high", "least of splits", "greatest of splits", "first split"],
        rows,
        [
            "Paired: the same windows. The interval is the central 95 % of a bootstrap over videos, each with its "
            "windows in all splits whose test videos it is among.",
            "The form of `ours` and its κ were chosen by cross-validation within the training videos of the first "
            "split, so only in that one did the test videos play no part in the choice.",
        ],
    )


def success_difference(
    ours: Sequence[Sequence[WindowScore]], others: Sequence[Sequence[WindowScore]]
) -> ConfidenceInterval:
    """The difference of success rates over the windows of all splits, with its interval over videos.

    Parameters
    ----------
    ours, others : sequence of sequences of WindowScore
        Of the same windows, by split.

    Returns
    -------
    ConfidenceInterval
        Between −1 and 1.
    """
    videos = sorted({one.video for split in ours for one in split})
    number = {video: place for place, video in enumerate(videos)}
    of_item = np.array([number[one.video] for split in ours for one in split])

    def items(splits: Sequence[Sequence[WindowScore]]) -> ScoredItems:
        success = np.array([float(one.success) for split in splits for one in split])
        return ScoredItems(of_item, np.ones(len(success), dtype=np.bool_), success)

    return bootstrap_interval(weighted_accuracy, items(ours), items(others))


def _dots(made: Mapping[str, Sequence[Sequence[WindowScore]]]) -> dict[str, Dot]:
    found = {row: [100 * _mean_of(one, "success") for one in splits] for row, splits in made.items()}
    return {row: Dot(mean(one), mean(one) - pstdev(one), mean(one) + pstdev(one)) for row, one in found.items()}

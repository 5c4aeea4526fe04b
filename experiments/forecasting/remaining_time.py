"""How many seconds a CrossTask video still goes on after each step, from the training videos; five seeded splits.

The error is the mean distance in seconds; the trivial answers are means of what was left of the training videos.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, pstdev

from experiments.experiment_options import ExperimentOptions
from experiments.result_tables import Dot, Result, Table, Value
from msg2.assist.next_step_evaluation import TEST_SHARE, train_test_split
from msg2.assist.time_left import fit_time_left
from msg2.formats import read_all
from msg2.graph import SubtaskGraph
from msg2.progress import Progress
from msg2.task import Step, Task, Video


@dataclass(frozen=True, slots=True)
class Moment:
    """A video after one of its steps ended: what was done, seconds since the first step ended, and seconds left."""

    done: tuple[Step, ...]
    elapsed: float
    left: float


@dataclass(frozen=True, slots=True)
class TimedAnswer:
    """Seconds that were said to be left, and the interval, where there was one."""

    seconds: float
    low: float | None = None
    high: float | None = None


TimeForecaster = Callable[[Moment], TimedAnswer]
"""Sees `done` and `elapsed` of a moment."""


def moments_of(video: Video) -> list[Moment]:
    """The moments after each first label of a video but the last, from its times.

    >>> from msg2.task import Segment
    >>> [(one.elapsed, one.left) for one in moments_of(Video("v", [Segment("a", 0, 2), Segment("b", 3, 7)]))]
    [(0, 5)]
    """
    segments = video.with_first_labels().segments
    ends = [segment.end or 0.0 for segment in segments]
    last = max((segment.end or 0.0 for segment in video.segments), default=0.0)
    return [
        Moment(video.sequence()[: place + 1], max(end - ends[0], 0.0), max(last - max(ends[: place + 1]), 0.0))
        for place, end in enumerate(ends[:-1])
    ]


def _average_by(
    training: Task, key: Callable[[Moment], object], average: Callable[[list[float]], float] = fmean
) -> TimeForecaster:
    """The mean, or another average, of what was left at the training moments with the same key; else of all."""
    groups: defaultdict[object, list[float]] = defaultdict(list)
    everything = [one for video in training for one in moments_of(video)]
    for one in everything:
        groups[key(one)].append(one.left)
    overall = average([one.left for one in everything])
    return lambda moment: TimedAnswer(average(groups.get(key(moment), [overall])))


def _mean_whole(training: Task) -> TimeForecaster:
    """The mean of whole videos, from the end of the first step, less what has passed."""
    whole = fmean(moments[0].left for video in training if (moments := moments_of(video)))
    return lambda moment: TimedAnswer(max(whole - moment.elapsed, 0.0))


def _ours(training: Task) -> TimeForecaster:
    model = fit_time_left(SubtaskGraph(training.name, training.steps, {}), training)
    if model is None:
        return _mean_whole(training)

    def forecast(moment: Moment) -> TimedAnswer:
        left = model(moment.done, moment.elapsed)
        return TimedAnswer(left.median, left.low, left.high)

    return forecast


ROWS: Mapping[str, Callable[[Task], TimeForecaster]] = {
    "mean of the rest": lambda training: _average_by(training, lambda moment: None),
    "mean of whole videos less what has passed": _mean_whole,
    "mean of the rest after as many steps": lambda training: _average_by(training, lambda moment: len(moment.done)),
    "mean of the rest after the same last step": lambda training: _average_by(training, lambda moment: moment.done[-1]),
    "median of the rest after the same last step": lambda training: _average_by(
        training, lambda moment: moment.done[-1], median
    ),
    "ours": _ours,
}
"""From training videos to a forecaster."""


def run(data: Path, options: ExperimentOptions, progress: Progress) -> Result:
    """Mean error in seconds, over tasks and seeded splits; and how often the interval holds.

    Parameters
    ----------
    data : Path
        Folder of the annotation sets.
    options : ExperimentOptions
        What can be set.
    progress : Progress
        Shows how far the work is.

    Returns
    -------
    Result
        The tables, the facts that make them repeatable, and the chart.
    """
    tasks, seeds = read_all(data / "crosstask" / "crosstask_release"), range(options.splits)
    errors: dict[str, dict[str, list[float]]] = {row: {} for row in ROWS}
    inside: list[bool] = []
    for number, task in enumerate(tasks):
        progress(number, len(tasks), task.name)
        for seed in seeds:
            training, test = train_test_split(task, seed=seed)
            moments = [one for video in test for one in moments_of(video)]
            for row, forecaster_from in ROWS.items():
                forecaster = forecaster_from(training)
                answers = [forecaster(one) for one in moments]
                distances = [abs(answer.seconds - one.left) for answer, one in zip(answers, moments, strict=True)]
                errors[row].setdefault(task.name, []).append(fmean(distances))
                inside += [
                    answer.low <= one.left <= answer.high
                    for answer, one in zip(answers, moments, strict=True)
                    if answer.low is not None and answer.high is not None
                ]
    tables = [_error_table(tasks, errors, 100 * fmean(inside), len(inside))]
    facts = {"seeds": list(seeds), "errors": errors, "inside": fmean(inside)}
    return Result("time-left", tables, facts, _chart(errors))


def _error_table(
    tasks: Sequence[Task], errors: Mapping[str, Mapping[str, list[float]]], inside: float, answers: int
) -> Table:
    rows: list[list[Value]] = [[task.name, *(fmean(errors[row][task.name]) for row in ROWS)] for task in tasks]
    rows.append(["mean", *(fmean(_split_means(errors[row])) for row in ROWS)])
    rows.append(["spread over splits", *(pstdev(_split_means(errors[row])) for row in ROWS)])
    splits = len(next(iter(errors[next(iter(ROWS))].values())))
    return Table(
        "Seconds that a video still goes on, mean error in seconds",
        ["task", *ROWS],
        rows,
        [
            f"After every step but the last of {100 * TEST_SHARE:g} % test videos, mean of {splits} seeded splits. "
            "What is left ends with the last label of the video.",
            f"Of our intervals, which are to hold four times in five, {inside:.1f} % held ({answers:,} of them).",
        ],
    )


def _chart(errors: Mapping[str, Mapping[str, list[float]]]) -> dict[str, dict[str, Dot]]:
    found = {row: _split_means(by_task) for row, by_task in errors.items()}
    dots = {row: Dot(fmean(one), fmean(one) - pstdev(one), fmean(one) + pstdev(one)) for row, one in found.items()}
    return {"mean error, seconds": dots}


def _split_means(by_task: Mapping[str, list[float]]) -> list[float]:
    """Mean of tasks for every split."""
    return [fmean(values) for values in zip(*by_task.values(), strict=True)]

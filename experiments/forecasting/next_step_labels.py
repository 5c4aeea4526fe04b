"""Next step on CrossTask from labels only (Table 2 and App. C): graphs from the training videos, 15 % test videos.

Beside the accuracy of every ranker: how far its probabilities can be believed, and what is known further ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean, pstdev

from experiments import paper_results
from experiments.experiment_options import ExperimentOptions
from experiments.forecasting import horizon_forecasts
from experiments.forecasting.logistic_ranker import logistic_ranker
from experiments.name_order import infer_by_names
from experiments.result_tables import Dot, Result, Table, Value
from msg2.assist import Ranker
from msg2.assist.learned_forecaster import fit_forecaster
from msg2.assist.next_step_evaluation import TEST_SHARE, next_step_predictions, train_test_split
from msg2.assist.rankers import bigram, grprop, recency
from msg2.formats import read_all
from msg2.graph import SubtaskGraph
from msg2.inference import infer
from msg2.metrics.calibration import NextStepPrediction, score_calibration
from msg2.progress import Progress
from msg2.task import Task

DELTA = 0.55
"""δ of the paper for CrossTask (App. B)."""


def _learn_graph(task: Task) -> SubtaskGraph:
    return infer(task, "msg2", delta=DELTA)


def _empty_graph(task: Task) -> SubtaskGraph:
    return SubtaskGraph(task.name, task.steps, {})


ROWS: Mapping[str, Callable[[Task], Ranker]] = {
    "name order": lambda task: recency(infer_by_names(task)),
    "msgi": lambda task: recency(infer(task, "msgi")),
    "msgi+": lambda task: recency(infer(task, "msgi+")),
    "always-before": lambda task: recency(infer(task, "always-before")),
    "msg2": lambda task: recency(_learn_graph(task)),
    "msg2, δ auto": lambda task: recency(infer(task, "msg2")),
    "msg2, grprop": lambda task: grprop(_learn_graph(task)),
    "bigram": bigram,
    "logistic": logistic_ranker,
    "learned": lambda task: fit_forecaster(_learn_graph(task), task),
    "learned, no graph": lambda task: fit_forecaster(_empty_graph(task), task),
}
"""From training videos to a ranker."""
HORIZON_ROWS = ("bigram", "learned")
"""Rows that also look further ahead, on the first split."""


def run(data: Path, options: ExperimentOptions, progress: Progress) -> Result:
    """Accuracy in percent, mean over seeded splits; the mean of tasks with its spread over splits.

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
    tasks = read_all(data / "crosstask" / "crosstask_release")
    seeds = range(options.splits)
    made: dict[str, dict[str, list[list[NextStepPrediction]]]] = {row: {} for row in ROWS}
    ahead: dict[str, list[horizon_forecasts.HorizonForecast]] = {}
    times: list[bool] = []
    for number, task in enumerate(tasks):
        progress(number, len(tasks), task.name)
        for seed in seeds:
            training, test = train_test_split(task, seed=seed)
            for row, ranker_from in ROWS.items():
                ranker = ranker_from(training)
                made[row].setdefault(task.name, []).append(next_step_predictions(ranker, test))
                if row in HORIZON_ROWS and seed == seeds[0]:
                    ahead.setdefault(row, []).extend(horizon_forecasts.horizon_forecasts(ranker, training, test))
            if seed == seeds[0]:
                times.extend(horizon_forecasts.gaps_within_interval(training, test))
    cells = {
        row: {name: [_accuracy_percent(s) for s in splits] for name, splits in found.items()}
        for row, found in made.items()
    }
    pooled = {row: [one for splits in found.values() for s in splits for one in s] for row, found in made.items()}
    tables = [
        _accuracy_table(tasks, cells),
        _calibration_table(pooled),
        _confidence_table(pooled),
        *horizon_forecasts.horizon_tables(ahead, times),
    ]
    facts = {"seeds": list(seeds), "delta": DELTA, "splits": cells, "test videos": held_out_videos(tasks, seeds)}
    return Result("next-step", tables, facts, _accuracy_chart(cells))


def held_out_videos(tasks: Sequence[Task], seeds: Sequence[int]) -> dict[str, dict[str, list[str]]]:
    """The test videos of every task and seed, by id: with them the splits can be used elsewhere.

    Parameters
    ----------
    tasks : sequence
        The tasks.
    seeds : sequence
        Of the splits.

    Returns
    -------
    mapping
        Task -> seed -> ids of the test videos.
    """
    tests = {task.name: {str(seed): train_test_split(task, seed=seed)[1] for seed in seeds} for task in tasks}
    return {name: {seed: [video.id for video in test] for seed, test in one.items()} for name, one in tests.items()}


def _accuracy_table(tasks: Sequence[Task], cells: Mapping[str, Mapping[str, list[float]]]) -> Table:
    printed = {name: no_ssp for name, (_, _, no_ssp, _) in paper_results.NEXT_STEP.items()}
    msgi, msgi_plus, no_ssp, _ = paper_results.NEXT_STEP_MEAN
    rows: list[list[Value]] = [
        [task.name, printed[task.name], *(mean(cells[row][task.name]) for row in ROWS)] for task in tasks
    ]
    rows.append(["mean", no_ssp, *(mean(_split_means(cells[row])) for row in ROWS)])
    rows.append(["spread over splits", None, *(pstdev(_split_means(cells[row])) for row in ROWS)])
    seeds = max(len(values) for values in next(iter(cells.values())).values())
    return Table(
        "CrossTask next step, labels only, accuracy in percent",
        ["task", "paper MSG²-noSSP", *ROWS],
        rows,
        [
            f"Mean of {seeds} seeded splits with {100 * TEST_SHARE:g} % test videos; "
            f"ties count with their expected value. `msg2` is at the paper's δ = {DELTA}.",
            f"The paper's MSGI and MSGI+ average {msgi} and {msgi_plus}: a null graph leaves the choice to the way "
            "ties are broken; here they count with their expected value.",
            "`logistic` is a logistic regression on what is done and what was done last, among the steps left. "
            "`learned` stands on the graph of `msg2`; without a graph it is told nothing of preconditions.",
        ],
    )


def _accuracy_chart(cells: Mapping[str, Mapping[str, list[float]]]) -> dict[str, dict[str, Dot]]:
    """The mean of tasks with its spread over splits, beside what the paper prints."""
    msgi, msgi_plus, no_ssp, _ = paper_results.NEXT_STEP_MEAN
    printed = {"msgi": msgi, "msgi+": msgi_plus, "msg2": no_ssp}
    found = {row: _split_means(by_task) for row, by_task in cells.items()}
    dots = {row: Dot(mean(one), mean(one) - pstdev(one), mean(one) + pstdev(one), printed.get(row))
            for row, one in found.items()}  # fmt: skip
    return {"mean of tasks, percent": dots}


def _calibration_table(pooled: Mapping[str, Sequence[NextStepPrediction]]) -> Table:
    found = {row: score_calibration(made) for row, made in pooled.items()}
    return Table(
        "Can the probabilities be believed?",
        ["ranker", "calibration error, percent", "log loss"],
        [[row, 100 * one.expected_calibration_error, one.log_loss] for row, one in found.items()],
        [
            "All predictions of all tasks and splits. The error is the mean distance between the probability of the "
            "most probable step and the share of times it comes, over ten bins (0 is best). The log loss is that of "
            "the step that came; a step said to be impossible counts as 10⁻⁹."
        ],
    )


def _confidence_table(pooled: Mapping[str, Sequence[NextStepPrediction]]) -> Table:
    rows: list[list[Value]] = [
        [row, f"{100 * b.low:.0f} to {100 * b.high:.0f}", 100 * b.confidence, 100 * b.accuracy, b.count]
        for row in HORIZON_ROWS
        if row in pooled
        for b in score_calibration(pooled[row]).bins
    ]
    columns = ["ranker", "probability, percent", "mean probability", "came, percent", "predictions"]
    return Table("Predictions by the probability of the most probable step", columns, rows)


def _accuracy_percent(made: Sequence[NextStepPrediction]) -> float:
    """Accuracy of the predictions, as `evaluate_ranker` has it."""
    return 100 * sum(one.correct for one in made) / len(made) if made else 0.0


def _split_means(by_task: Mapping[str, list[float]]) -> list[float]:
    """Mean of tasks for every split."""
    return [mean(values) for values in zip(*by_task.values(), strict=True)]

"""A task with few videos that borrows from the others: next step on CrossTask by the number of training videos."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np

from experiments.experiment_options import ExperimentOptions
from experiments.forecasting.next_step_labels import DELTA
from experiments.forecasting.transfer_learning import fit_transfer_prior
from experiments.result_tables import Result, Table, Value, save_plot
from msg2.assist import Ranker
from msg2.assist.learned_forecaster import fit_forecaster
from msg2.assist.next_step_evaluation import next_step_predictions, train_test_split
from msg2.assist.rankers import bigram, recency
from msg2.formats import read_all
from msg2.inference import infer
from msg2.inference.likelihood.score import NameEncoder
from msg2.metrics.calibration import NextStepPrediction, score_calibration
from msg2.progress import Progress
from msg2.task import Task
from msg2.text_encoders import text_encoder


@dataclass(frozen=True, slots=True)
class TransferOptions:
    """The learning curve with and without other tasks (`python -m experiments transfer`)."""

    sizes: tuple[int, ...] = (5, 10, 20, 40)
    """Training videos; after these, all there are."""
    splits: int = 5
    """Seeded splits into training and test videos; the seeds are 0, 1, …"""

    @staticmethod
    def quick() -> TransferOptions:
        """A small part of it."""
        return TransferOptions(sizes=(5,), splits=1)


ROWS = ("msg2", "bigram", "learned", "learned, with transfer")


def fit_rankers(training: Task, others: Sequence[Task], encode: NameEncoder) -> Mapping[str, Ranker]:
    """A ranker per row, from a few videos of one task and, for transfer, all training videos of the others.

    Parameters
    ----------
    training : Task
        A few videos of one task.
    others : sequence
        The training videos of all tasks.
    encode : NameEncoder
        From step names to vectors.

    Returns
    -------
    mapping
        A ranker per row of the tables.
    """
    graph = infer(training, "msg2", delta=DELTA)
    lent = fit_transfer_prior(graph, len(training), others, encode)
    made = (
        recency(graph),
        bigram(training),
        fit_forecaster(graph, training),
        fit_forecaster(graph, training, transfer=lent),
    )
    return dict(zip(ROWS, made, strict=True))


def run(data: Path, options: ExperimentOptions, progress: Progress) -> Result:
    """Accuracy and log loss of test videos by the number of training videos; with a folder, also as a plot in it.

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
    chosen = TransferOptions.quick() if options.quick else TransferOptions()
    tasks, encode = read_all(data / "crosstask" / "crosstask_release"), text_encoder(options.text_encoder)
    seeds, sizes = range(chosen.splits), [*chosen.sizes, None]
    made: dict[tuple[str, int | None], dict[tuple[str, int], list[NextStepPrediction]]] = {}
    for seed in seeds:
        parts = {task.name: train_test_split(task, seed=seed) for task in tasks}
        whole = [training for training, _ in parts.values()]
        for number, task in enumerate(tasks, start=seed * len(tasks)):
            progress(number, len(seeds) * len(tasks), f"split {seed}, {task.name}")
            training, test = parts[task.name]
            for size in sizes:
                for row, ranker in fit_rankers(subsample_videos(training, size, seed), whole, encode).items():
                    made.setdefault((row, size), {})[task.name, seed] = next_step_predictions(ranker, test)
    accuracy = {key: _mean(found, lambda of: 100 * mean(one.correct for one in of)) for key, found in made.items()}
    loss = {key: _mean(found, lambda of: score_calibration(of).log_loss) for key, found in made.items()}
    if options.folder is not None:
        from experiments.plots import learning_curve_plot  # pictures, where they are wanted

        everything = mean(len(training) for training in whole)
        curves = {row: [(size or everything, accuracy[row, size]) for size in sizes] for row in ROWS}
        shown, title = "accuracy of the next step, percent", "CrossTask: what other tasks lend"
        save_plot(options.folder / "transfer.svg", lambda: learning_curve_plot(curves, shown, title))
    notes = [
        f"Mean of {len(tasks)} tasks and {len(seeds)} seeded splits; the training videos are drawn from those of the "
        f"split. Other tasks lend what their own training videos show, by likeness of step names ({encode.name})."
    ]
    tables = [
        Table(f"Next step by the number of training videos, {what}", _columns(sizes), _rows(values, sizes), notes)
        for what, values in (("accuracy in percent", accuracy), ("log loss", loss))
    ]
    facts = {"seeds": list(seeds), "sizes": list(chosen.sizes), "delta": DELTA, "encoder": encode.name}
    return Result("transfer", tables, facts)


def subsample_videos(task: Task, size: int | None, seed: int) -> Task:
    """`task` with so many of its videos, drawn with the seed; smaller draws are parts of larger ones.

    Parameters
    ----------
    task : Task
        The task.
    size : int or None
        How many videos are kept; None: all.
    seed : int
        Of everything random.

    Returns
    -------
    Task
        With fewer videos.

    >>> from msg2.task import Video
    >>> task = Task("t", [], [Video(str(number), []) for number in range(9)])
    >>> two, five, everything = (subsample_videos(task, size, 0) for size in (2, 5, None))
    >>> len(five), len(everything), {*two} < {*five}
    (5, 9, True)
    """
    if size is None:
        return task
    order = np.random.default_rng(seed).permutation(len(task)).tolist()
    return task.with_videos(task.videos[place] for place in order[:size])


def _mean(
    found: Mapping[tuple[str, int], list[NextStepPrediction]], value: Callable[[list[NextStepPrediction]], float]
) -> float:
    """Mean of all tasks and splits with predictions."""
    return mean(value(predictions) for predictions in found.values() if predictions)


def _columns(sizes: Sequence[int | None]) -> list[str]:
    return ["ranker", *("all" if size is None else str(size) for size in sizes)]


def _rows(values: Mapping[tuple[str, int | None], float], sizes: Sequence[int | None]) -> list[list[Value]]:
    return [[row, *(values[row, size] for size in sizes)] for row in ROWS]

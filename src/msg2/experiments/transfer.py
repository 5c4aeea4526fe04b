"""A task with few videos that borrows from the others: next step on CrossTask by the number of training videos."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean

import numpy as np

from msg2.assist import Ranker, bigram, learned, recency, split
from msg2.assist.calibration import Prediction, predictions, reliability
from msg2.assist.transfer import TextEncoder, borrowed
from msg2.experiments.next_step import DELTA
from msg2.experiments.tables import Cell, Result, Table, kept_plot
from msg2.inference import infer
from msg2.media.text import text_encoder
from msg2.options import ExperimentOptions, SplitOptions, TransferOptions
from msg2.readers import read_all
from msg2.task import Task

ROWS = ("msg2", "bigram", "learned", "learned, with transfer")


def rankers(training: Task, others: Sequence[Task], encode: TextEncoder) -> Mapping[str, Ranker]:
    """A ranker per row, from a few videos of one task and, for transfer, all training videos of the others."""
    graph = infer(training, "msg2", delta=DELTA)
    lent = borrowed(graph, len(training), others, encode)
    made = (recency(graph), bigram(training), learned(graph, training), learned(graph, training, borrowed=lent))
    return dict(zip(ROWS, made, strict=True))


def run(data: Path, options: ExperimentOptions, report: Callable[[str], None]) -> Result:
    """Accuracy and log loss of test videos by the number of training videos; with a folder, also as a plot in it."""
    chosen = TransferOptions.quick() if options.quick else TransferOptions()
    tasks, encode = read_all(data / "crosstask" / "crosstask_release"), text_encoder(options.text_encoder)
    seeds, sizes = range(chosen.splits), [*chosen.sizes, None]
    made: dict[tuple[str, int | None], dict[tuple[str, int], list[Prediction]]] = {}
    for seed in seeds:
        parts = {task.name: split(task, SplitOptions(seed=seed)) for task in tasks}
        whole = [training for training, _ in parts.values()]
        for task in tasks:
            report(f"split {seed}, {task.name}")
            training, test = parts[task.name]
            for size in sizes:
                for row, ranker in rankers(few(training, size, seed), whole, encode).items():
                    made.setdefault((row, size), {})[task.name, seed] = predictions(ranker, test)
    accuracy = {key: _mean(found, lambda of: 100 * mean(one.right for one in of)) for key, found in made.items()}
    loss = {key: _mean(found, lambda of: reliability(of).log_loss) for key, found in made.items()}
    if options.folder is not None:
        from msg2.drawing.plots import learning_plot  # pictures, where they are wanted

        everything = mean(len(training) for training in whole)
        curves = {row: [(size or everything, accuracy[row, size]) for size in sizes] for row in ROWS}
        shown, title = "accuracy of the next step, percent", "CrossTask: what other tasks lend"
        kept_plot(options.folder / "transfer.svg", lambda: learning_plot(curves, shown, title), report)
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


def few(task: Task, size: int | None, seed: int) -> Task:
    """`task` with so many of its videos, drawn with the seed; smaller draws are parts of larger ones.

    >>> from msg2.task import Video
    >>> task = Task("t", [], [Video(str(number), []) for number in range(9)])
    >>> len(few(task, 5, 0)), len(few(task, None, 0)), {*few(task, 2, 0)} < {*few(task, 5, 0)}
    (5, 9, True)
    """
    if size is None:
        return task
    order = np.random.default_rng(seed).permutation(len(task)).tolist()
    return task.with_videos(task.videos[place] for place in order[:size])


def _mean(found: Mapping[tuple[str, int], list[Prediction]], value: Callable[[list[Prediction]], float]) -> float:
    """Mean of all tasks and splits with predictions."""
    return mean(value(predictions) for predictions in found.values() if predictions)


def _columns(sizes: Sequence[int | None]) -> list[str]:
    return ["ranker", *("all" if size is None else str(size) for size in sizes)]


def _rows(values: Mapping[tuple[str, int | None], float], sizes: Sequence[int | None]) -> list[list[Cell]]:
    return [[row, *(values[row, size] for size in sizes)] for row in ROWS]

"""Methods side by side: tasks × methods × splits, graphs against the truth and the next step, as tables and a plot.

Every score is a share of one, in tables a percentage. ± is the spread over splits; where there is one, over tasks. Two
methods are compared on the same tasks and splits: the interval of their difference is a bootstrap of the tasks.
"""

from __future__ import annotations

import csv
import hashlib
import io
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import product
from os import PathLike
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.assist.next_step_evaluation import SPLITS, learn_and_predict, limit_videos
from msg2.assist.rankers import DEFAULT_RANKER, RANKERS
from msg2.errors import require, require_count
from msg2.files import FileContent, write_together
from msg2.formats.conversion import Demonstrations, to_tasks
from msg2.formats.graph_reader import read_truths
from msg2.graph import SubtaskGraph
from msg2.inference import METHODS, infer
from msg2.inference.inference import keep_tasks_with_two_videos
from msg2.inference.registry import DEFAULT_METHOD, find_method, parse_options
from msg2.metrics import score_graph
from msg2.progress import Progress, no_progress, quiet_logs
from msg2.result_cache import Measurement, measure_cells
from msg2.task import Task

__all__ = ["BenchmarkResult", "ResultTable", "benchmark"]

Value: TypeAlias = str | float | int | None
Scores: TypeAlias = Mapping[tuple[str, int], Mapping[str, float | None]]
"""(task, seed) -> measure -> a share of one, None for N/A."""

MEASURES = {
    "accuracy": "accuracy", "spoc": "SPOC", "compatibility": "compatibility", "precision": "edge precision",
    "recall": "edge recall", "f1": "edge F1", "next_step": "next step",
}  # fmt: skip
"""What a benchmark measures, and what tables call it."""
SHOWN = ("accuracy", "spoc", "compatibility", "f1", "next_step")
"""The measures of a table that is not told which."""
BENCHMARK_SUFFIXES = (".md", ".tex", ".csv", ".svg", ".png")
_LATEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "δ": r"$\delta$",
    "²": "$^2$",
}  # fmt: skip


_log = logging.getLogger(__name__)


class Dot(NamedTuple):
    """A value in a chart, the ends of its whisker, and what the paper prints for it."""

    value: float
    low: float | None = None
    high: float | None = None
    printed: float | None = None


@dataclass(frozen=True, slots=True)
class ResultTable:
    """Rows under columns; numbers are kept as they are and rounded only in text. None is N/A."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]
    notes: Sequence[str] = ()

    def to_markdown(self) -> str:
        """Write the table with its title and notes.

        >>> print(ResultTable("T", ["method", "f1"], [["a", 81.25], ["b", None]]).to_markdown())
        ### T
        <BLANKLINE>
        | method | f1 |
        |---|---:|
        | a | 81.25 |
        | b | N/A |
        <BLANKLINE>
        """
        lines = [f"### {self.title}", "", _markdown_row(self.columns)]
        lines.append("|" + "|".join("---:" if right else "---" for right in self._is_numeric()) + "|")
        lines += [_markdown_row([*map(format_value, row)]) for row in self.rows]
        return "\n".join([*lines, "", *(f"{note}\n" for note in self.notes)])

    def to_latex(self) -> str:
        """Write the table for LaTeX, with the rules of the package booktabs.

        >>> print(ResultTable("T", ["method", "f1"], [["a & b", 81.25]]).to_latex())
        \\begin{table}
        \\caption{T}
        \\begin{tabular}{lr}
        \\toprule
        method & f1 \\\\
        \\midrule
        a \\& b & 81.25 \\\\
        \\bottomrule
        \\end{tabular}
        \\end{table}
        <BLANKLINE>
        """
        rows = [
            " & ".join(_to_latex(format_value(cell)) for cell in row) + r" \\" for row in (self.columns, *self.rows)
        ]
        kinds = "".join("r" if right else "l" for right in self._is_numeric())
        head = [r"\begin{table}", rf"\caption{{{_to_latex(' '.join([self.title, *self.notes]))}}}"]
        body = [rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", rows[0], r"\midrule", *rows[1:], r"\bottomrule"]
        return "\n".join([*head, *body, r"\end{tabular}", r"\end{table}", ""])

    def dots(self, column: str, *, spread: bool = False, printed: str | None = None) -> dict[str, Dot]:
        """The numbers of a column by the first one, for a chart.

        Parameters
        ----------
        column : str
            Name of the column.
        spread : bool
            Whether the next column is its spread.
        printed : str, optional
            Name of the column with the paper's numbers.

        Returns
        -------
        dict
            By the first cell of the row.

        >>> ResultTable("T", ["method", "f1", "±"], [["a", 80.0, 1.0], ["b", None, None]]).dots("f1", spread=True)
        {'a': Dot(value=80.0, low=79.0, high=81.0, printed=None)}
        """
        place, beside = (self.columns.index(name) for name in (column, printed or column))
        found = {}
        for row in self.rows:
            value = _number(row[place])
            if value is not None:
                apart = _number(row[place + 1]) if spread else None
                low, high = (None, None) if apart is None else (value - apart, value + apart)
                found[str(row[0])] = Dot(value, low, high, _number(row[beside]) if printed else None)
        return found

    def _is_numeric(self) -> list[bool]:
        return [all(not isinstance(row[i], str) for row in self.rows) for i in range(len(self.columns))]


def _number(cell: Value) -> float | None:
    return cell if isinstance(cell, float | int) else None


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _to_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def format_value(cell: Value) -> str:
    """Write a cell of a table: numbers that are not whole with two digits."""
    if cell is None:
        return "N/A"
    return f"{cell:.2f}" if isinstance(cell, float) else str(cell)


@dataclass(frozen=True, slots=True)
class ConfidenceInterval:
    """A value with the ends of its bootstrap confidence interval."""

    value: float
    low: float
    high: float


def ratio_interval(
    part: NDArray[np.float64], whole: NDArray[np.float64], *, resamples: int = 1000, seed: int = 0
) -> ConfidenceInterval:
    """Compute a ratio of two sums over units with its 95 % percentile interval over resampled units.

    Units, such as videos or tasks, with nothing in `whole` are left out. For a paired difference, `part` is the
    difference.

    >>> ratio_interval(np.array([1.0, 2.0]), np.array([2.0, 4.0]))
    ConfidenceInterval(value=0.5, low=0.5, high=0.5)
    """
    kept = whole > 0
    part, whole = part[kept], whole[kept]
    drawn = np.random.default_rng(seed).multinomial(len(whole), np.full(len(whole), 1 / len(whole)), size=resamples)
    low, high = np.quantile((drawn @ part) / (drawn @ whole), [0.025, 0.975])
    return ConfidenceInterval(float(part.sum() / whole.sum()), float(low), float(high))


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """What every method scored, by row of the table, task and seed; as tables, LaTeX, CSV or a plot."""

    scores: Mapping[str, Scores]
    against: str | None = None
    """The row that the others are compared with."""

    def table(
        self, title: str = "All tasks, percent", measures: Iterable[str] = SHOWN, notes: Sequence[str] = ()
    ) -> ResultTable:
        """Make a table of the mean of every measure that some row has, and its spread over seeds, else over tasks.

        Parameters
        ----------
        title : str
            Of the table.
        measures : iterable of str
            Keys of `MEASURES`.
        notes : sequence of str
            Below the table.

        Returns
        -------
        ResultTable
        """
        known, (tasks, seeds) = self._known(measures), self._places()
        spread = ["± seeds"] if len(seeds) > 1 else ["± tasks"] if len(tasks) > 1 else []
        columns = ["method", *(column for measure in known for column in (MEASURES[measure], *spread))]
        rows = [
            [row, *(cell for measure in known for cell in self._mean(row, measure)[: 1 + len(spread)])]
            for row in self.scores
        ]
        return ResultTable(title, columns, rows, notes)

    def task_table(self, measure: str, title: str | None = None) -> ResultTable:
        """Make a table of one measure with a row per task and a column per method, the mean over the seeds.

        Parameters
        ----------
        measure : str
            A key of `MEASURES`.
        title : str, optional
            Of the table.

        Returns
        -------
        ResultTable
        """
        name = MEASURES[measure]
        rows = [
            [task, *(fmean(values) if (values := self._values(row, measure, task)) else None for row in self.scores)]
            for task in self._places()[0]
        ]
        return ResultTable(title or f"{name[0].upper()}{name[1:]} per task, percent", ["task", *self.scores], rows)

    def differences(self, measures: Iterable[str] = SHOWN) -> ResultTable:
        """Make a table of how much better every row is than `against`, with paired 95 % intervals.

        Parameters
        ----------
        measures : iterable of str
            Keys of `MEASURES`.

        Returns
        -------
        ResultTable

        Raises
        ------
        InputError
            Where there is no row `against`.
        """
        against, known, (tasks, seeds) = self.against or "", self._known(measures), self._places()
        require(against in self.scores, f"there is no row {self.against!r}", hint=f"there is {', '.join(self.scores)}")
        units = [(task, None) for task in tasks] if len(tasks) > 1 else [(tasks[0], seed) for seed in seeds]
        rows: list[list[Value]] = [[row] for row in self.scores if row != against]
        for cells, measure in product(rows, known):
            pairs = [[self._values(row, measure, *unit) for row in (str(cells[0]), against)] for unit in units]
            gains = np.array([fmean(ours) - fmean(theirs) for ours, theirs in pairs if ours and theirs])
            interval = ratio_interval(gains, np.ones(len(gains))) if len(gains) else None
            cells += [None] * 3 if interval is None else [interval.value, interval.low, interval.high]
        columns = ["method", *(column for measure in known for column in (MEASURES[measure], "from", "to"))]
        units_name = "tasks" if len(tasks) > 1 else "seeds"
        note = f"from, to: 95 % interval of the difference, from a paired bootstrap of the {units_name}."
        return ResultTable(f"Better than {self.against} by, points", columns, rows, [note])

    def tables(self) -> list[ResultTable]:
        """Make all tables: the means, the differences from `against`, and every measure per task."""
        compared = [self.differences()] if self.against is not None else []
        per_task = [self.task_table(measure) for measure in self._known(SHOWN)]
        return [self.table(), *compared, *(per_task if len(self._places()[0]) > 1 else ())]

    def to_json(self) -> dict[str, Any]:
        """Return every score, unrounded, and the tables."""
        cells = [
            {"method": row, "task": task, "seed": seed, **values}
            for row, scores in self.scores.items() for (task, seed), values in scores.items()
        ]  # fmt: skip
        return {"scores": cells, "tables": [asdict(table) for table in self.tables()]}

    def save(self, *paths: str | PathLike[str]) -> None:
        """Write the tables (.md, .tex), every score in a row of its own (.csv), or a plot (.svg, .png).

        Parameters
        ----------
        *paths : str or path
            The files; their suffixes say what is written.

        Raises
        ------
        InputError
            For another suffix, or a file that cannot be written.
        """
        check_suffixes(map(Path, paths))
        write_together({Path(path): self._format(Path(path).suffix) for path in paths})

    def _format(self, suffix: str) -> FileContent:
        if suffix == ".csv":
            text, cells = io.StringIO(), self.to_json()["scores"]
            names = [*dict.fromkeys(name for cell in cells for name in cell)]
            writer = csv.DictWriter(text, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(cells)
            return text.getvalue()
        if suffix in (".svg", ".png"):
            from msg2.drawing.plots import dot_plot  # pictures, where they are wanted

            table, names = self.table(), [MEASURES[measure] for measure in self._known(SHOWN)]
            panels = {name: table.dots(name, spread=len(table.columns) > 1 + len(names)) for name in names}
            return dot_plot(panels, "Methods side by side, percent", suffix)
        return "\n".join(one.to_markdown() if suffix == ".md" else one.to_latex() for one in self.tables())

    def _places(self) -> tuple[list[str], list[int]]:
        """The tasks and the seeds."""
        places = [place for scores in self.scores.values() for place in scores]
        return [*dict.fromkeys(task for task, _ in places)], sorted({seed for _, seed in places})

    def _known(self, measures: Iterable[str]) -> list[str]:
        cells = [cell for scores in self.scores.values() for cell in scores.values()]
        return [measure for measure in measures if any(cell.get(measure) is not None for cell in cells)]

    def _values(self, row: str, measure: str, task: str | None, seed: int | None = None) -> list[float]:
        """In percent; None stands for all tasks, or all seeds."""
        return [
            100 * value
            for place, cell in self.scores[row].items()
            if task in (None, place[0]) and seed in (None, place[1]) and (value := cell.get(measure)) is not None
        ]

    def _mean(self, row: str, measure: str) -> tuple[float | None, float | None]:
        """The mean over tasks and seeds with its spread; N/A where a seed has no graph with such a score."""
        seeds = [self._values(row, measure, None, seed) for seed in self._places()[1]]
        if not all(seeds):
            return None, None
        means = [fmean(values) for values in seeds] if len(seeds) > 1 else seeds[0]
        return fmean(means), pstdev(means) if len(means) > 1 else None


def check_suffixes(paths: Iterable[Path]) -> None:
    """Refuse files that a benchmark cannot be written to, before it is run."""
    for path in paths:
        hint = f"use one of {' '.join(BENCHMARK_SUFFIXES)}"
        require(path.suffix in BENCHMARK_SUFFIXES, "a benchmark is not written in this format", where=path, hint=hint)


# -- running one ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BenchmarkCell:
    """A method, as it is written, on a task, with a split."""

    task: str
    method: str
    seed: int


@dataclass(frozen=True, slots=True)
class BenchmarkPlan:
    """What the cells of a benchmark have in common."""

    tasks: Mapping[str, Task]
    truths: Mapping[str, SubtaskGraph]
    ranker: str
    splits: bool
    digests: Mapping[str, str]
    """Of the videos and the true graph of each task, where measurements are kept."""

    def measure(self, cell: BenchmarkCell) -> Measurement:
        """Learn the graph, and compare it with the truth, or predict the held-out videos."""
        task, truth = self.tasks[cell.task], self.truths.get(cell.task)
        name, options = read_method(cell.method)
        is_ranker, next_step = name not in METHODS, None
        if self.splits:
            way = (name, DEFAULT_METHOD) if is_ranker else (self.ranker, name)
            graph, next_step = learn_and_predict(task, cell.seed, *way, **options)
        else:
            graph = learn(task, cell.method)
        scores = {} if truth is None or is_ranker else score_graph(graph, truth, task).to_json()
        return {**scores, "next_step": next_step}

    def options(self, cell: BenchmarkCell) -> list[object]:
        """What a measurement depends on, beside the cell."""
        return [version("msg2"), self.digests.get(cell.task), self.ranker, self.splits]


def _digest(task: Task, truth: SubtaskGraph | None) -> str:
    digest = hashlib.sha256(truth.dumps().encode() if truth else b"")
    for video in task:
        digest.update(repr((video.id, video.segments)).encode())
    return digest.hexdigest()


def read_method(text: str) -> tuple[str, dict[str, Any]]:
    """Read a method with options, as in msg2:delta=0.8, or a ranker that stands for itself."""
    name, *settings = text.split(":")
    if name not in METHODS and name in RANKERS and not settings:
        return name, {}
    find_method(name)
    return name, parse_options(name, settings)


def learn(task: Demonstrations, method: str) -> SubtaskGraph:
    """Learn a graph by a method with its options, as in msg2:delta=0.8."""
    name, options = read_method(method)
    return infer(task, name, **options)


def benchmark(
    data: Demonstrations,
    truth: str | PathLike[str] | Mapping[str, SubtaskGraph] | None = None,
    methods: str | Iterable[str] | Mapping[str, str] | None = None,
    *,
    ranker: str = DEFAULT_RANKER,
    seeds: int | None = None,
    against: str | None = None,
    cells: Path | None = None,
    jobs: int = 1,
    progress: Progress = no_progress,
) -> BenchmarkResult:
    """Compare methods on tasks: their graphs with the true ones, and how often they are right about the next step.

    Parameters
    ----------
    data : path, list of Task or anything that `msg2.infer` takes
        The tasks.
    truth : path or mapping, optional
        The true graphs: a file, a folder of files called like the tasks, or graphs by task.
    methods : str, or iterable or mapping of str, optional
        Methods, with options where they are written, as in ``"msg2:delta=0.8"``; names of rankers stand for the next
        step. A mapping says what their rows are called. By default all methods.
    ranker : str
        How methods predict the next step from their graph.
    seeds : int, optional
        Splits: for each, 15 % of the videos are held out, the graph is learned from the others and the next steps of
        those are predicted. With a truth and no `seeds`, graphs are learned once, from all videos; without a truth,
        there are 5 splits.
    against : str, optional
        The row that the others are compared with.
    cells : Path, optional
        A file that keeps what was measured: if interrupted, the same call goes on from there.
    jobs : int
        Processes that share the work.
    progress : Progress
        Is told after every graph.

    Returns
    -------
    BenchmarkResult

    Raises
    ------
    InputError
        Where the data, a truth, a method or an option cannot be used.

    >>> result = benchmark([["boil", "pour"]] * 4, {"task": SubtaskGraph("task", ["boil", "pour"], {})}, ["likelihood"])
    >>> [(row[0], row[1]) for row in result.table().rows]  # the accuracy, in percent
    [('likelihood', 75.0)]
    """
    listed = [methods] if isinstance(methods, str) else methods or METHODS
    rows = dict(methods) if isinstance(methods, Mapping) else {name: name for name in listed}
    for text in rows.values():
        read_method(text)
    require(rows, "there is no method to compare")
    require_count("seeds", seeds)
    require(against is None or against in rows, f"there is no row {against!r}", hint=f"there is {', '.join(rows)}")
    require(ranker in RANKERS, f"there is no ranker {ranker!r}", hint=f"there are {', '.join(RANKERS)}")
    tasks = to_tasks(data)
    names = [task.name for task in tasks]
    truths = truth if truth is None or isinstance(truth, Mapping) else read_truths(truth, names)
    splits = seeds is not None or truths is None
    for name in () if truths is None else [name for name in names if name not in truths]:
        _log.warning("%s: it has no true graph to be compared with", name)
    for text in () if splits else rows.values():
        require(text in METHODS or ":" in text, f"the ranker {text!r} predicts held-out videos: say how many `seeds`")
    if splits:
        tasks = [*map(limit_videos, keep_tasks_with_two_videos(tasks, "data"))]
    truths = truths or {}
    digests = {task.name: _digest(task, truths.get(task.name)) for task in tasks if cells is not None}
    plan = BenchmarkPlan({task.name: task for task in tasks}, truths, ranker, splits, digests)
    places = [(name, seed) for name in plan.tasks for seed in range((seeds or SPLITS) if splits else 1)]
    texts = dict.fromkeys(rows.values())
    with quiet_logs():
        measured = measure_cells(
            [BenchmarkCell(name, text, seed) for name, seed in places for text in texts],
            plan.measure, cell_options=plan.options, file=cells, jobs=jobs, progress=progress,
        )  # fmt: skip
    return BenchmarkResult(
        {row: {place: measured[BenchmarkCell(place[0], text, place[1])] for place in places}
         for row, text in rows.items()}, against,
    )  # fmt: skip

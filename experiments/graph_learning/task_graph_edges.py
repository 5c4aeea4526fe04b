"""Edges on CaptainCook4D against its human task graphs: the published protocol, and recordings with real mistakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from experiments.experiment_options import ExperimentOptions
from experiments.result_tables import Result, Table, Value
from msg2 import metrics
from msg2.formats import read_all, read_graph
from msg2.graph import SubtaskGraph
from msg2.inference import infer
from msg2.progress import Progress

SETTINGS: Sequence[tuple[str, str, str]] = (
    (
        "24 recipes without errors, order of the file (the published protocol)",
        "task_graph_generation_annotations.json",
        "file",
    ),
    ("24 recipes without errors, order of time", "task_graph_generation_annotations.json", "time"),
    ("12 recipes, all recordings with their mistakes, order of the file", "complete_step_annotations.json", "file"),
    ("12 recipes, all recordings with their mistakes, order of time", "complete_step_annotations.json", "time"),
)
ROWS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "always-before": ("always-before", {}),
    "always-before, δ = 0.96": ("always-before", {"delta": 0.96}),
    "always-before, δ = 0.8": ("always-before", {"delta": 0.8}),
    "msg2, δ = 0.96": ("msg2", {"delta": 0.96}),
    "msg2, δ = 0.8": ("msg2", {"delta": 0.8}),
    "msg2, δ auto": ("msg2", {}),
    "msgi+": ("msgi+", {}),
    "msgi": ("msgi", {}),
    "likelihood": ("likelihood", {}),
}


def run(data: Path, options: ExperimentOptions, progress: Progress) -> Result:
    """Precision, recall and F1 in percent with START and END after transitive reduction, mean over recipes.

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
    folder = data / "captaincook4d"
    known = read_task_graphs(folder)
    tables, recipes = [], {}
    done, total = 0, len(SETTINGS) * len(ROWS)
    for title, file, order in SETTINGS:
        tasks = read_all(folder / file, order=order)
        rows: list[list[Value]] = []
        for row, (method, chosen) in ROWS.items():
            progress(done, total, f"{title}: {row}")
            done += 1
            scores = [score_edges(infer(task, method, **chosen), known) for task in tasks]
            recipes[f"{title}: {row}"] = {t.name: s.f1 for t, s in zip(tasks, scores, strict=True)}
            rows.append(
                [row, *(100 * mean(getattr(s, name) or 0.0 for s in scores) for name in ("precision", "recall", "f1"))]
            )
        tables.append(Table(title, ["method", "precision", "recall", "F1"], rows))
    chart = {table.title: table.dots("F1") for table in tables}
    return Result("captaincook4d", tables, {"f1 per recipe": recipes}, chart)


def read_task_graphs(folder: Path) -> dict[str, SubtaskGraph]:
    """The graphs that people drew, by the name of the recipe without spaces."""
    return {path.stem: read_graph(path) for path in sorted((folder / "task_graphs").glob("*.json"))}


def score_edges(graph: SubtaskGraph, truths: Mapping[str, SubtaskGraph]) -> metrics.EdgeScores:
    """The edges of a graph, with START and END, against those of its recipe.

    Parameters
    ----------
    graph : SubtaskGraph
        Of a recipe.
    truths : mapping
        The human task graphs by recipe.

    Returns
    -------
    metrics.EdgeScores
        Precision, recall and F1.
    """
    return metrics.edge_scores(graph, truths["".join(filter(str.isalnum, graph.task)).lower()], ends=True)

"""Edges on CaptainCook4D against its human task graphs: the published protocol, and recordings with real mistakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from msg2 import metrics
from msg2.experiments.tables import Cell, Result, Table
from msg2.graph import SubtaskGraph
from msg2.inference import infer
from msg2.options import ExperimentOptions
from msg2.readers import read_all, read_graph

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


def run(data: Path, options: ExperimentOptions, report: Callable[[str], None]) -> Result:
    """Precision, recall and F1 in percent with START and END after transitive reduction, mean over recipes."""
    folder = data / "captaincook4d"
    known = truths(folder)
    tables, recipes = [], {}
    for title, file, order in SETTINGS:
        tasks = read_all(folder / file, order=order)
        rows: list[list[Cell]] = []
        for row, (method, chosen) in ROWS.items():
            report(f"{title}: {row}")
            scores = [compared(infer(task, method, **chosen), known) for task in tasks]
            recipes[f"{title}: {row}"] = {t.name: s.f1 for t, s in zip(tasks, scores, strict=True)}
            rows.append(
                [row, *(100 * mean(getattr(s, name) or 0.0 for s in scores) for name in ("precision", "recall", "f1"))]
            )
        tables.append(Table(title, ["method", "precision", "recall", "F1"], rows))
    chart = {table.title: table.dots("F1") for table in tables}
    return Result("captaincook4d", tables, {"f1 per recipe": recipes}, chart)


def truths(folder: Path) -> dict[str, SubtaskGraph]:
    """The graphs that people drew, by the name of the recipe without spaces."""
    return {path.stem: read_graph(path) for path in sorted((folder / "task_graphs").glob("*.json"))}


def compared(graph: SubtaskGraph, truths: Mapping[str, SubtaskGraph]) -> metrics.EdgeScores:
    """The edges of a graph, with START and END, against those of its recipe."""
    return metrics.edge_scores(graph, truths["".join(filter(str.isalnum, graph.task)).lower()], ends=True)

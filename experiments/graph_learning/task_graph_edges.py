"""Edges on CaptainCook4D against its human task graphs: the published protocol, and recordings with real mistakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from experiments.experiment_options import ExperimentOptions
from experiments.result_tables import Result
from msg2.benchmarking import benchmark
from msg2.formats import read_all
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
ROWS: Mapping[str, str] = {
    "always-before": "always-before",
    "always-before, δ = 0.96": "always-before:delta=0.96",
    "always-before, δ = 0.9": "always-before:delta=0.9",
    "always-before, δ = 0.8": "always-before:delta=0.8",
    "always-before, δ = 0.7": "always-before:delta=0.7",
    "msg2, δ = 0.96": "msg2:delta=0.96",
    "msg2, δ = 0.8": "msg2:delta=0.8",
    "msg2, δ auto": "msg2",
    "msgi+": "msgi+",
    "msgi": "msgi",
    "likelihood": "likelihood",
}
BASELINES = ("always-before", "always-before", "always-before, δ = 0.8", "always-before, δ = 0.8")
"""By setting, the simple baseline at its best fixed setting, known only because the truth is."""
MEASURES = ("precision", "recall", "f1")
PUBLISHED = (
    "The published protocol. TGML-DO has an F1 of 87.8 there (Seminara et al., NeurIPS 2024; 88.0 when run again), and "
    "71.1 is given there for a port of MSG² that has neither OR nor layers nor the weight 1/E[f] of the paper's rule."
)


def run(data: Path, options: ExperimentOptions, progress: Progress) -> Result:
    """Precision, recall and F1 in percent, with START and END after transitive reduction: mean and spread of recipes.

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
    tables, compared = [], []
    recipes: dict[str, dict[str, float | None]] = {}
    for number, ((title, file, order), baseline) in enumerate(zip(SETTINGS, BASELINES, strict=True)):
        progress(number, len(SETTINGS), title)
        against = baseline if baseline in ROWS else None
        result = benchmark(read_all(folder / file, order=order), folder / "task_graphs", ROWS, against=against)
        recipes |= {
            f"{title}: {row}": {task: scores["f1"] for (task, _), scores in found.items()}
            for row, found in result.scores.items()
        }
        tables.append(result.table(title, MEASURES, [PUBLISHED] if number == 0 else ()))
        compared += [replace(result.differences(MEASURES), title=f"{title}: better than {against} by, points")]
    chart = {table.title: table.dots("edge F1", spread=True) for table in tables}
    return Result("captaincook4d", [*tables, *compared], {"f1 per recipe": recipes}, chart)

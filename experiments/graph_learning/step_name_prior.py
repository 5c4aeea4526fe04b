"""What the names of the steps add to `likelihood`: edges against human task graphs, and worlds by number of videos."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

from experiments.experiment_options import ExperimentOptions
from experiments.graph_learning import task_graph_edges
from experiments.result_tables import Dot, Result, Table, Value
from msg2 import metrics
from msg2.formats import read_all
from msg2.formats.graph_reader import read_truths
from msg2.inference import infer
from msg2.inference.likelihood.score import NameEncoder
from msg2.progress import Progress
from msg2.simulation import household_worlds, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.text_encoders import text_encoder

VIDEOS = (5, 10, 20, 54)
MEASURES = ("accuracy", "spoc", "f1")


def run(data: Path, options: ExperimentOptions, progress: Progress) -> Result:
    """Edge F1 of recipes; accuracy, SPOC and edge F1 of worlds; in percent, with and without the names.

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
    encoder = text_encoder(options.text_encoder)
    rows: Mapping[str, NameEncoder | None] = {"likelihood": None, f"likelihood, names ({encoder.name})": encoder}
    recipes: list[list[Value]] = []
    chart: dict[str, dict[str, Dot]] = {}
    simulated: list[list[Value]] = []
    folder = data / "captaincook4d"
    total = len(task_graph_edges.SETTINGS) + len(VIDEOS)
    for number, (title, file, order) in enumerate(task_graph_edges.SETTINGS):
        progress(number, total, title)
        tasks = read_all(folder / file, order=order)
        truths = read_truths(folder / "task_graphs", [task.name for task in tasks])
        scores = {
            row: [
                metrics.edge_scores(infer(task, "likelihood", names=names), truths[task.name], ends=True).f1 or 0.0
                for task in tasks
            ]
            for row, names in rows.items()
        }
        chart[title] = {row: Dot(100 * fmean(found)) for row, found in scores.items()}
        recipes.append([title, *(dot.value for dot in chart[title].values())])
    for number, videos in enumerate(VIDEOS, start=len(task_graph_edges.SETTINGS)):
        progress(number, total, f"worlds with {videos} videos")
        for row, names in rows.items():
            found = [_world_scores(names, videos, seed) for seed in range(options.world_seeds)]
            simulated.append([videos, row, *(fmean(values) for values in zip(*found, strict=True))])
    return Result(
        "names",
        [
            Table("Edge F1 on CaptainCook4D, percent", ["recordings", *rows], recipes),
            Table("Twelve household worlds, percent", ["videos", "method", "accuracy", "SPOC", "edge F1"], simulated,
                  [f"The usual noise, {options.world_seeds} seeds."]),
        ],
        {"encoder": encoder.name, "seeds": list(range(options.world_seeds))},
        chart,
    )  # fmt: skip


def _world_scores(names: NameEncoder | None, videos: int, seed: int) -> list[float]:
    """Means over the worlds."""
    found = []
    for world in household_worlds():
        shown = simulate(world, SimulationOptions(videos=videos), seed)
        graph = infer(shown.task.with_first_labels(), "likelihood", names=names)
        scores = metrics.score_graph(graph, shown.graph).to_json()
        found.append([100 * (scores[name] or 0.0) for name in MEASURES])
    return [fmean(values) for values in zip(*found, strict=True)]

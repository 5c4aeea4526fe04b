"""The paper's Table 1 on worlds with known graphs: the twelve household tasks at the default noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

from msg2 import metrics
from msg2.experiments import paper
from msg2.experiments.tables import Cell, Result, Table
from msg2.inference import infer
from msg2.options import ExperimentOptions, WorldOptions
from msg2.worlds import simulate, violation_rate, worlds

ROWS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "msgi": ("msgi", {}),
    "msgi+": ("msgi+", {}),
    "always-before": ("always-before", {}),
    "always-before, δ = 0.8": ("always-before", {"delta": 0.8}),
    "msg2, δ = 0.96": ("msg2", {"delta": 0.96}),
    "msg2, δ = 0.8": ("msg2", {"delta": 0.8}),
    "msg2, δ auto": ("msg2", {}),
    "msg2, greedy, δ auto": ("msg2", {"max_literals": None}),
}
COLUMNS = ("accuracy", "spoc", "compatibility", "f1")


def run(data: Path | None, options: ExperimentOptions, report: Callable[[str], None]) -> Result:
    """Accuracy, SPOC, compatibility and edge F1 in percent: mean of the worlds, spread over seeds of the simulation."""
    found: dict[str, list[list[dict[str, float | None]]]] = {row: [] for row in ROWS}  # row -> seed -> world
    rates = []
    for seed in range(options.world_seeds):
        for row in ROWS:
            found[row].append([])
        for world in worlds():
            report(f"{world.name}, seed {seed}")
            simulation = simulate(world, WorldOptions(), seed)
            task = simulation.task.with_first_labels()
            rates.append(violation_rate(task, simulation.graph))
            for row, (method, chosen) in ROWS.items():
                graph = infer(task, method, **chosen)
                found[row][seed].append(metrics.scores(graph, simulation.graph, task).to_json())
    table = Table(
        "Twelve household worlds, default noise, percent",
        ["method", "accuracy", "± seeds", "SPOC", "± seeds", "compatibility", "± seeds", "edge F1", "± seeds"],
        [[row, *(cell for column in COLUMNS for cell in _cells(found[row], column))] for row in ROWS],
        [
            f"{WorldOptions().videos} videos per world, {options.world_seeds} seeds; "
            f"{100 * mean(rates):.1f} % of the labels violate the true graph."
        ],
    )
    printed = Table(
        "The paper's Table 1 (ProceL videos, the authors' graphs), percent",
        ["method", "accuracy", "SPOC", "compatibility"],
        [[row, *values] for row, values in paper.GRAPHS.items()],
        ["Other videos and other graphs: only the order of the methods can be compared."],
    )
    per_world = Table(
        "Accuracy per world, percent",
        ["world", *ROWS],
        [
            [world.name, *(100 * mean(_number(seed[i]["accuracy"]) for seed in found[row]) for row in ROWS)]
            for i, world in enumerate(worlds())
        ],
    )
    return Result("graphs", [table, printed, per_world], {"seeds": list(range(options.world_seeds)), "scores": found})


def _cells(seeds: list[list[dict[str, float | None]]], column: str) -> tuple[Cell, Cell]:
    """Mean over worlds and seeds, and spread of the seeds' means; N/A where any graph has no such score."""
    if any(scores[column] is None for scores_of_seed in seeds for scores in scores_of_seed):
        known = [s[column] for scores_of_seed in seeds for s in scores_of_seed if s[column] is not None]
        if not known:
            return None, None
    means = [100 * mean(_number(s[column]) for s in worlds_ if s[column] is not None) for worlds_ in seeds]
    return mean(means), pstdev(means)


def _number(value: float | None) -> float:
    if value is None:
        raise ValueError("not applicable")
    return value

"""The paper's Table 1 on worlds with known graphs: the twelve household tasks at the default noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
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
    "wording": ("wording", {}),
    "msgi": ("msgi", {}),
    "msgi+": ("msgi+", {}),
    "always-before": ("always-before", {}),
    "always-before, δ = 0.8": ("always-before", {"delta": 0.8}),
    "msg2, δ = 0.96": ("msg2", {"delta": 0.96}),
    "msg2, δ = 0.8": ("msg2", {"delta": 0.8}),
    "msg2, δ auto": ("msg2", {}),
    "msg2, greedy, δ auto": ("msg2", {"max_literals": None}),
    "likelihood": ("likelihood", {}),
}
COLUMNS = ("accuracy", "spoc", "compatibility", "edges.f1")


def run(data: Path | None, options: ExperimentOptions, report: Callable[[str], None]) -> Result:
    """Accuracy, SPOC, compatibility and edge F1 in percent: mean of the worlds, spread over seeds of the simulation."""
    seeds = range(options.world_seeds)
    found: dict[str, list[list[metrics.Scores]]] = {row: [[] for _ in seeds] for row in ROWS}  # row -> seed -> world
    rates = []
    for seed in seeds:
        for world in worlds():
            report(f"{world.name}, seed {seed}")
            simulation = simulate(world, WorldOptions(), seed)
            task = simulation.task.with_first_labels()
            rates.append(violation_rate(task, simulation.graph))
            for row, (method, chosen) in ROWS.items():
                graph = infer(task, method, **chosen)
                found[row][seed].append(metrics.scores(graph, simulation.graph, task))
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
            [world.name, *(100 * mean(of_seed[i].accuracy for of_seed in found[row]) for row in ROWS)]
            for i, world in enumerate(worlds())
        ],
    )
    scores = {row: [[one.to_json() for one in of_seed] for of_seed in of_row] for row, of_row in found.items()}
    return Result("graphs", [table, printed, per_world], {"seeds": list(seeds), "scores": scores})


def _cells(of_seeds: list[list[metrics.Scores]], column: str) -> tuple[Cell, Cell]:
    """Mean over worlds and seeds, and spread of the seeds' means; N/A where a seed has no graph with such a score."""
    known = [[value for value in map(attrgetter(column), of_seed) if value is not None] for of_seed in of_seeds]
    if not all(known):
        return None, None
    means = [100 * mean(values) for values in known]
    return mean(means), pstdev(means)

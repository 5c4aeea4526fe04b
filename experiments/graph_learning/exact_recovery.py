"""What is recovered exactly from noise-free demonstrations of random worlds, with and without ORs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.experiment_options import ExperimentOptions
from experiments.result_tables import Result, Table, Value
from msg2.graph import SubtaskGraph, are_equivalent
from msg2.inference import infer
from msg2.progress import Progress
from msg2.simulation import NoiseOptions, RandomWorldOptions, random_world, simulate
from msg2.simulation.simulator import SimulationOptions

ROWS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "always-before": ("always-before", {}),
    "msg2, δ = 0.96": ("msg2", {"delta": 0.96}),
    "msg2, δ auto": ("msg2", {}),
    "msg2, greedy, δ = 0.96": ("msg2", {"delta": 0.96, "max_literals": None}),
    "msgi+": ("msgi+", {}),
    "likelihood": ("likelihood", {}),
}
SETTINGS = (
    ("chains of at most two parents, no OR", RandomWorldOptions(steps=12, depth=4, or_rate=0.0, max_parents=2)),
    ("up to three parents, no OR", RandomWorldOptions(steps=12, depth=4, or_rate=0.0)),
    ("half of the preconditions with an OR", RandomWorldOptions(steps=12, depth=4, or_rate=0.5)),
)
VIDEOS = 500
"""Demonstrations per world: enough that every order that is possible is seen."""


def run(data: Path | None, options: ExperimentOptions, progress: Progress) -> Result:
    """Share of graphs, and of preconditions with and without OR, that equal the truth after transitive reduction.

    Parameters
    ----------
    data : Path or None
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
    tables = []
    for setting, (title, shape) in enumerate(SETTINGS):
        counts = {row: [0, 0, 0] for row in ROWS}
        totals = [0, 0, 0]
        for seed in range(options.random_worlds):
            done = setting * options.random_worlds + seed
            progress(done, len(SETTINGS) * options.random_worlds, f"{title}, seed {seed}")
            world = random_world(shape, seed)
            task = simulate(world, SimulationOptions(videos=VIDEOS, noise=NoiseOptions.none()), seed).task
            totals = [a + b for a, b in zip(totals, count_recovered(world.graph, world.graph), strict=True)]
            for row, (method, chosen) in ROWS.items():
                found = count_recovered(infer(task, method, **chosen), world.graph)
                counts[row] = [a + b for a, b in zip(counts[row], found, strict=True)]
        tables.append(
            Table(
                f"Random worlds without noise: {title}",
                ["method", "graphs, percent", "preconditions without OR, percent", "preconditions with OR, percent"],
                [[row, *map(_percent, counts[row], totals)] for row in ROWS],
                [f"{options.random_worlds} worlds of {shape.steps} steps, {VIDEOS} videos each."],
            )
        )
    facts = {"seeds": list(range(options.random_worlds)), "videos": VIDEOS}
    chart = {
        f"{title}: {column}": table.dots(column)
        for (title, _), table in zip(SETTINGS, tables, strict=True)
        for column in (table.columns[1], table.columns[3])
    }
    return Result("recovery", tables, facts, chart)


def count_recovered(graph: SubtaskGraph, truth: SubtaskGraph) -> tuple[int, int, int]:
    """Count what is recovered exactly, after transitive reduction.

    Parameters
    ----------
    graph : SubtaskGraph
        What was found.
    truth : SubtaskGraph
        What should have been.

    Returns
    -------
    tuple of (int, int, int)
        1 if all is equal; preconditions without OR, and with OR, that are equal (of steps that need something).
    """
    ours, theirs = graph.transitive_reduction(), truth.transitive_reduction()
    equal = {name: are_equivalent(ours.precondition(name), theirs.precondition(name)) for name in theirs.steps}
    with_or = {name for name, formula in theirs.preconditions.items() if "any" in formula.kinds}
    plain = set(theirs.preconditions) - with_or
    return int(all(equal.values())), sum(equal[name] for name in plain), sum(equal[name] for name in with_or)


def _percent(part: int, whole: int) -> Value:
    return 100 * part / whole if whole else None

"""The whole way, from demonstrations to a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from msg2 import metrics
from msg2.files import write_together
from msg2.graph import SubtaskGraph
from msg2.inference import METHODS, infer
from msg2.options import DemoOptions, WorldOptions
from msg2.worlds import as_table, simulate, violation_rate, world


@dataclass(frozen=True, slots=True)
class Demo:
    """What the demonstration of the system made."""

    graph: SubtaskGraph
    videos: int
    violation_rate: float
    scores: Mapping[str, metrics.Scores]
    """By method, against the true graph."""
    table: Path
    graph_file: Path
    truth_file: Path
    page: Path
    comparison: Path


def demo(folder: Path, options: DemoOptions) -> Demo:
    """Simulate a household task, learn its graph from the noisy labels, and draw it: all files in `folder`."""
    simulation = simulate(world(options.world), WorldOptions(), options.seed)
    task, truth = simulation.task.with_first_labels(), simulation.graph
    graphs = {method: infer(task, method, seed=options.seed) for method in METHODS}
    graph = graphs["msg2"]
    table, graph_file, truth_file = folder / "steps.csv", folder / "graph.json", folder / "truth.json"
    write_together({table: as_table([simulation.task]), graph_file: graph.dumps(), truth_file: truth.dumps()})
    return Demo(
        graph,
        len(task),
        violation_rate(task, truth),
        {method: metrics.scores(graph, truth, task) for method, graph in graphs.items()},
        table,
        graph_file,
        truth_file,
        graph.show(folder / "graph.html"),
        graph.show(folder / "compared.svg", compare=truth),
    )

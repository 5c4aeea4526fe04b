"""What the names of the steps add to `likelihood`: edges against human task graphs, and worlds by number of videos."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean

from msg2 import metrics
from msg2.experiments import captaincook4d
from msg2.experiments.tables import Cell, Dot, Result, Table
from msg2.inference import infer
from msg2.inference.names import Encoder
from msg2.media.text import text_encoder
from msg2.options import ExperimentOptions, WorldOptions
from msg2.readers import read_all
from msg2.worlds import simulate, worlds

VIDEOS = (5, 10, 20, 54)
MEASURES = ("accuracy", "spoc", "f1")


def run(data: Path, options: ExperimentOptions, report: Callable[[str], None]) -> Result:
    """Edge F1 of recipes; accuracy, SPOC and edge F1 of worlds; in percent, with and without the names."""
    encoder = text_encoder(options.text_encoder)
    rows: Mapping[str, Encoder | None] = {"likelihood": None, f"likelihood, names ({encoder.name})": encoder}
    recipes: list[list[Cell]] = []
    chart: dict[str, dict[str, Dot]] = {}
    simulated: list[list[Cell]] = []
    folder = data / "captaincook4d"
    truths = captaincook4d.truths(folder)
    for title, file, order in captaincook4d.SETTINGS:
        report(title)
        tasks = read_all(folder / file, order=order)
        scores = {
            row: [captaincook4d.compared(infer(task, "likelihood", names=names), truths).f1 or 0.0 for task in tasks]
            for row, names in rows.items()
        }
        chart[title] = {row: Dot(100 * fmean(found)) for row, found in scores.items()}
        recipes.append([title, *(dot.value for dot in chart[title].values())])
    for videos in VIDEOS:
        report(f"worlds with {videos} videos")
        for row, names in rows.items():
            found = [_scores(names, videos, seed) for seed in range(options.world_seeds)]
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


def _scores(names: Encoder | None, videos: int, seed: int) -> list[float]:
    """Means over the worlds."""
    found = []
    for world in worlds():
        shown = simulate(world, WorldOptions(videos=videos), seed)
        graph = infer(shown.task.with_first_labels(), "likelihood", names=names)
        scores = metrics.scores(graph, shown.graph).to_json()
        found.append([100 * (scores[name] or 0.0) for name in MEASURES])
    return [fmean(values) for values in zip(*found, strict=True)]

"""Whether the probabilities of the bootstrap are true: ancestor relations of worlds whose graph is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.experiment_options import ExperimentOptions
from experiments.result_tables import Result, Table, save_plot
from msg2.graph import SubtaskGraph
from msg2.inference import run_inference
from msg2.inference.bootstrap import GraphFrequencies
from msg2.metrics.calibration import CalibrationBin, expected_calibration_error
from msg2.progress import Progress
from msg2.simulation import random_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.simulation.worlds import RandomWorldOptions


@dataclass(frozen=True, slots=True)
class CalibrationOptions:
    """How probabilities of the bootstrap are compared with the truth (`python -m experiments calibration`)."""

    worlds: int = 10
    """Random worlds; the seeds are 0, 1, …"""
    videos: int = 20
    """Of each world."""
    samples: int = 50
    bins: int = 10
    world: RandomWorldOptions = field(default_factory=lambda: RandomWorldOptions(steps=12, depth=4, or_rate=0.25))

    @staticmethod
    def quick() -> CalibrationOptions:
        """A small part of it."""
        return CalibrationOptions(worlds=1, samples=5)


ROWS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "always-before": ("always-before", {}),
    "always-before, δ = 0.8": ("always-before", {"delta": 0.8}),
    "msg2, δ auto": ("msg2", {}),
    "likelihood": ("likelihood", {}),
}


@dataclass(frozen=True, slots=True, eq=False)
class RelationForecasts:
    """Probabilities and whether it was so, both of shape (relations,)."""

    probability: NDArray[np.float64]
    truth: NDArray[np.bool_]

    def bins(self, count: int) -> list[CalibrationBin]:
        """Sort the relations into `count` bins of probability of equal width; empty ones are left out.

        Shares of bootstrap samples lie on the edges of bins: here an edge belongs to the bin above it.

        >>> bins = RelationForecasts(np.array([0.1, 0.3, 0.9]), np.array([False, True, True])).bins(2)
        >>> [(one.confidence, one.accuracy, one.count) for one in bins]
        [(0.2, 0.5, 2), (0.9, 1.0, 1)]
        """
        place = np.minimum((self.probability * count).astype(np.int64), count - 1)
        return [
            CalibrationBin(
                number / count,
                (number + 1) / count,
                int(here.sum()),
                float(self.probability[here].mean()),
                float(self.truth[here].mean()),
            )
            for number, here in ((number, place == number) for number in range(count))
            if here.any()
        ]

    def error(self, count: int) -> float:
        """The expected calibration error: |predicted − true|, averaged over the relations."""
        return expected_calibration_error(self.bins(count))

    def brier(self) -> float:
        """The mean squared distance of probability and truth."""
        return float(np.square(self.probability - self.truth).mean())


def relation_forecasts(frequencies: GraphFrequencies, truth: SubtaskGraph) -> RelationForecasts:
    """Compare the ancestor relations of bootstrap samples with those of the true graph.

    Parameters
    ----------
    frequencies : GraphFrequencies
        Of the bootstrap samples.
    truth : SubtaskGraph
        Of the same steps.

    Returns
    -------
    RelationForecasts
        Of every ordered pair of steps: the probability that one is an ancestor of the other, and whether it is.
    """
    places = [frequencies.steps.index(name) for name in truth.steps]
    pairs = ~np.eye(len(places), dtype=np.bool_)
    return RelationForecasts(frequencies.ancestors[np.ix_(places, places)][pairs], truth.ancestor_matrix[pairs])


def run(data: Path | None, options: ExperimentOptions, progress: Progress) -> Result:
    """Predicted against true, in bins and as single numbers; with a folder, also as a plot in it.

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
    chosen = CalibrationOptions.quick() if options.quick else CalibrationOptions()
    found: dict[str, RelationForecasts] = {}
    for row, (method, given) in ROWS.items():
        parts = []
        for seed in range(chosen.worlds):
            progress(len(found) * chosen.worlds + seed, len(ROWS) * chosen.worlds, f"{row}, world {seed}")
            shown = simulate(random_world(chosen.world, seed), SimulationOptions(videos=chosen.videos), seed)
            frequencies = run_inference(shown.task, method, samples=chosen.samples, **given).frequencies
            assert frequencies is not None
            parts.append(relation_forecasts(frequencies, shown.graph))
        found[row] = RelationForecasts(
            np.concatenate([part.probability for part in parts]), np.concatenate([part.truth for part in parts])
        )
    bins = {row: one.bins(chosen.bins) for row, one in found.items()}
    if options.folder is not None:
        from experiments.plots import reliability_plot  # pictures, where they are wanted

        curves = {row: [(b.confidence, b.accuracy, b.count) for b in some] for row, some in bins.items()}
        title = "Ancestor relations of worlds"
        save_plot(options.folder / "calibration.svg", lambda: reliability_plot(curves, title))
    summary = Table(
        "Probabilities of ancestor relations against the truth",
        ["method", "calibration error, percent", "Brier score", "relations"],
        [[row, 100 * one.error(chosen.bins), one.brier(), len(one.truth)] for row, one in found.items()],
        [
            f"{chosen.worlds} random worlds of {chosen.world.steps} steps with the usual noise, "
            f"{chosen.videos} videos each, {chosen.samples} samples."
        ],
    )
    per_bin = Table(
        "By predicted probability",
        ["method", "predicted, percent", "true, percent", "relations"],
        [[row, 100 * b.confidence, 100 * b.accuracy, b.count] for row, some in bins.items() for b in some],
    )
    return Result("calibration", [summary, per_bin], {"options": asdict(chosen)})

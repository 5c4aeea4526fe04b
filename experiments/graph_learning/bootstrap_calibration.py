"""Whether the probabilities of the bootstrap are true: of ancestor relations, and of the kinds of pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.experiment_options import ExperimentOptions
from experiments.graph_learning.kind_suite import DEVELOPMENT, LabelledLog, tree_log, world_log
from experiments.result_tables import Result, Table, Value, save_plot
from msg2.formats.conversion import to_task
from msg2.graph import SubtaskGraph
from msg2.inference.bootstrap import GraphFrequencies
from msg2.inference.inference import run_inference
from msg2.metrics.calibration import CalibrationBin, expected_calibration_error
from msg2.progress import Progress
from msg2.simulation import RandomWorldOptions, random_world, simulate
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Absent


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
    return Result("calibration", [summary, _kind_table(chosen, progress), per_bin], {"options": asdict(chosen)})


def kind_forecasts(log: LabelledLog, absent: Absent, samples: int) -> RelationForecasts:
    """Compare the kinds of pairs in bootstrap samples of `likelihood` with the true ones.

    Parameters
    ----------
    log : LabelledLog
        What was seen, and the true kinds.
    absent : "unknown" or "skipped"
        What a missing label means.
    samples : int
        Of the bootstrap.

    Returns
    -------
    RelationForecasts
        Of every ordered pair of steps and every kind: how probable it is, and whether it is so.
    """
    task = to_task({f"{number:05d}": trace for number, trace in enumerate(log.traces)})
    frequencies = run_inference(task, "likelihood", samples=samples, absent=absent).frequencies
    assert frequencies is not None
    found = [
        (share, log.kinds[pair] == kind)
        for pair in permutations(task.steps, 2)
        for kind, share in frequencies.kind(*pair).items()
    ]
    return RelationForecasts(np.array([share for share, _ in found]), np.array([true for _, true in found]))


def _kind_table(options: CalibrationOptions, progress: Progress) -> Table:
    """The calibration of kinds: needs, after if done, exclusive, free."""
    settings: Mapping[str, Callable[[int], tuple[LabelledLog, Absent]]] = {
        "process trees, 100 cases, 5 % noise": lambda seed: (tree_log(seed, 100, 0.05), "skipped"),
        "process trees, 30 cases": lambda seed: (tree_log(seed, 30, 0.0), "skipped"),
        "random worlds, 54 videos, 20 % of the labels missing": lambda seed: (world_log(seed, 54, 0.2), "unknown"),
    }
    rows: list[list[Value]] = []
    for number, (row, draw) in enumerate(settings.items()):
        progress(number, len(settings), f"kinds: {row}")
        parts = [kind_forecasts(*draw(seed), options.samples) for seed in DEVELOPMENT.trees[: options.worlds]]
        found = RelationForecasts(
            np.concatenate([part.probability for part in parts]), np.concatenate([part.truth for part in parts])
        )
        trivial = RelationForecasts(np.full(len(found.truth), 0.25), found.truth)
        rows.append([row, 100 * found.error(options.bins), found.brier(), trivial.brier(), len(found.truth)])
    return Table(
        "Probabilities of the kinds of pairs against the truth, likelihood",
        ["data", "calibration error, percent", "Brier score", "of all kinds alike", "pairs × kinds"],
        rows,
        [f"{options.worlds} trees or worlds of the development set, {options.samples} samples."],
    )

"""Whether the probabilities of the bootstrap are true: ancestor relations of worlds whose graph is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msg2.experiments.tables import Result, Table, kept_plot
from msg2.graph import SubtaskGraph
from msg2.inference import Shares, study
from msg2.options import BootstrapOptions, CalibrationOptions, ExperimentOptions, WorldOptions
from msg2.worlds import random_world, simulate

ROWS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "always-before": ("always-before", {}),
    "always-before, δ = 0.8": ("always-before", {"delta": 0.8}),
    "msg2, δ auto": ("msg2", {}),
    "likelihood": ("likelihood", {}),
}


@dataclass(frozen=True, slots=True)
class Bin:
    """The mean `predicted` probability of some relations, the share that is `true`, and how many they are."""

    predicted: float
    true: float
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """Probabilities and whether it was so, both of shape (relations,)."""

    probability: NDArray[np.float64]
    truth: NDArray[np.bool_]

    def bins(self, count: int) -> list[Bin]:
        """Relations of like probability, in `count` bins of equal width; empty ones are left out.

        >>> Forecast(np.array([0.1, 0.3, 0.9]), np.array([False, True, True])).bins(2)
        [Bin(predicted=0.2, true=0.5, count=2), Bin(predicted=0.9, true=1.0, count=1)]
        """
        place = np.minimum((self.probability * count).astype(np.int64), count - 1)
        return [
            Bin(float(self.probability[here].mean()), float(self.truth[here].mean()), int(here.sum()))
            for here in (place == number for number in range(count))
            if here.any()
        ]

    def error(self, count: int) -> float:
        """The expected calibration error: |predicted − true|, averaged over the relations."""
        return sum(b.count * abs(b.predicted - b.true) for b in self.bins(count)) / len(self.truth)

    def brier(self) -> float:
        """The mean squared distance of probability and truth."""
        return float(np.square(self.probability - self.truth).mean())


def forecast(shares: Shares, truth: SubtaskGraph) -> Forecast:
    """Of every ordered pair of steps: the probability that one is an ancestor of the other, and whether it is."""
    places = [shares.steps.index(name) for name in truth.steps]
    pairs = ~np.eye(len(places), dtype=np.bool_)
    return Forecast(shares.ancestors[np.ix_(places, places)][pairs], truth.order[pairs])


def run(data: Path | None, options: ExperimentOptions, report: Callable[[str], None]) -> Result:
    """Predicted against true, in bins and as single numbers; with a folder, also as a plot in it."""
    chosen = CalibrationOptions.quick() if options.quick else CalibrationOptions()
    found: dict[str, Forecast] = {}
    for row, (method, given) in ROWS.items():
        parts = []
        for seed in range(chosen.worlds):
            report(f"{row}, world {seed}")
            shown = simulate(random_world(chosen.world, seed), WorldOptions(videos=chosen.videos), seed)
            shares = study(shown.task, method, bootstrap=BootstrapOptions(samples=chosen.samples), **given).shares
            assert shares is not None
            parts.append(forecast(shares, shown.graph))
        found[row] = Forecast(
            np.concatenate([part.probability for part in parts]), np.concatenate([part.truth for part in parts])
        )
    bins = {row: one.bins(chosen.bins) for row, one in found.items()}
    if options.folder is not None:
        from msg2.drawing.plots import reliability_plot  # pictures, where they are wanted

        curves = {row: [(b.predicted, b.true, b.count) for b in some] for row, some in bins.items()}
        title = "Ancestor relations of worlds"
        kept_plot(options.folder / "calibration.svg", lambda: reliability_plot(curves, title), report)
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
        [[row, 100 * b.predicted, 100 * b.true, b.count] for row, some in bins.items() for b in some],
    )
    return Result("calibration", [summary, per_bin], {"options": asdict(chosen)})

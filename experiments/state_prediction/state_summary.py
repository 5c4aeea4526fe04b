"""What all cells of the experiment on state prediction say together: means, spreads and paired intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from experiments.bootstrap_intervals import ConfidenceInterval, Numbers
from experiments.state_prediction.state_cells import LABELS, ROWS, StateCell, StateStudyOptions
from msg2.result_cache import Measurement
from msg2.simulation import household_worlds
from msg2.simulation.simulated_features import FeatureOptions

KeyPath: TypeAlias = tuple[str, ...]
"""Where a number stands in what a cell found."""


@dataclass(frozen=True, slots=True)
class StateSummary:
    """All cells of an experiment, and the options it was run with."""

    cells: Mapping[StateCell, Measurement]
    options: StateStudyOptions

    @property
    def worlds(self) -> tuple[str, ...]:
        """The names of the worlds, in the order of the paper's tasks."""
        return self.options.worlds or tuple(one.name for one in household_worlds())

    def seeds(self, row: str) -> tuple[int, ...]:
        """The seeds that a row of the ablation was run with."""
        return self.options.seeds if row not in ROWS or ROWS[row].repeated else self.options.seeds[:1]

    def values(
        self, row: str, path: KeyPath, *, unlabelled: float | None = None, clutter: float | None = None,
        seeds: Sequence[int] | None = None,
    ) -> Numbers:  # fmt: skip
        """Shape (seeds, worlds): one number of every cell of a row, NaN where it is N/A or not measured yet.

        Parameters
        ----------
        row : str
            Name of the row.
        path : KeyPath
            Where the number stands in a measurement.
        unlabelled : float or None
            Share of what was performed that nobody labels; None: that of the options.
        clutter : float or None
            Difficulty of the features; None: the usual one.
        seeds : Sequence[int] or None
            The seeds that are pooled; None: all of the row.

        Returns
        -------
        Numbers
            Shape (seeds, worlds).
        """
        noise = self.options.unlabelled if unlabelled is None else unlabelled
        difficulty = FeatureOptions().clutter if clutter is None else clutter
        found = np.full((len(seeds or self.seeds(row)), len(self.worlds)), np.nan)
        for i, seed in enumerate(seeds or self.seeds(row)):
            for j, name in enumerate(self.worlds):
                value: object = self.cells.get(StateCell(row, name, seed, noise, difficulty))
                for key in path:
                    value = value[key] if isinstance(value, dict) else None
                found[i, j] = np.nan if value is None else value
        return found

    def shares(
        self, row: str, *, unlabelled: float | None = None, clutter: float | None = None,
        seeds: Sequence[int] | None = None,
    ) -> tuple[float | None, float | None]:  # fmt: skip
        """Precision and recall of the added labels, percent, pooled over the worlds and seeds.

        Parameters
        ----------
        row : str
            Name of the row.
        unlabelled : float or None
            Share of what was performed that nobody labels; None: that of the options.
        clutter : float or None
            Difficulty of the features; None: the usual one.
        seeds : Sequence[int] or None
            The seeds that are pooled; None: all of the row.

        Returns
        -------
        tuple[float or None, float or None]
            None where nothing was added, or nothing was missing.
        """
        added, right, missing = (
            float(self.values(row, ("additions", name), unlabelled=unlabelled, clutter=clutter, seeds=seeds).sum())
            for name in ("added", "right", "missing")
        )
        precision, recall = (finite_or_none(100 * right / whole) if whole else None for whole in (added, missing))
        return precision, recall

    def gains(
        self, row: str, delta: str, key: str, *, unlabelled: float | None = None, clutter: float | None = None,
        seeds: Sequence[int] | None = None,
    ) -> Numbers:  # fmt: skip
        """Shape (seeds, worlds): a score of the graph learnt from filled labels less that from the labels alone.

        Parameters
        ----------
        row : str
            Name of the row.
        delta : str
            Of the graphs.
        key : str
            Of the score.
        unlabelled : float or None
            Share of what was performed that nobody labels; None: that of the options.
        clutter : float or None
            Difficulty of the features; None: the usual one.
        seeds : Sequence[int] or None
            The seeds that are pooled; None: all of the row.

        Returns
        -------
        Numbers
            Shape (seeds, worlds).
        """
        path, seeds = ("graphs", delta, key), seeds or self.seeds(row)
        after = self.values(row, path, unlabelled=unlabelled, clutter=clutter, seeds=seeds)
        return after - self.values(LABELS, path, unlabelled=unlabelled, seeds=seeds)


def paired_interval(differences: Numbers, options: StateStudyOptions) -> ConfidenceInterval:
    """The mean of paired differences, and the ends of its bootstrap interval.

    Parameters
    ----------
    differences : Numbers
        One per pair; NaN where there is none.
    options : StateStudyOptions
        What can be set.

    Returns
    -------
    ConfidenceInterval
        The mean and its interval.

    >>> paired_interval(np.array([1.0, 1.0, 1.0]), StateStudyOptions())
    ConfidenceInterval(value=1.0, low=1.0, high=1.0)
    """
    known = differences[~np.isnan(differences)]
    drawn = np.random.default_rng(0).integers(len(known), size=(options.resamples, len(known)))
    tail = (1 - options.confidence) / 2
    low, high = np.quantile(known[drawn].mean(axis=1), [tail, 1 - tail])
    return ConfidenceInterval(float(known.mean()), float(low), float(high))


def mean_and_spread(found: Numbers) -> tuple[float | None, float | None]:
    """Of shape (seeds, worlds): the mean, and the standard deviation of the seeds' means where there are several."""
    means = nan_mean(found, 1)
    return finite_or_none(means.mean()), finite_or_none(means.std()) if len(means) > 1 else None


def nan_mean(found: Numbers, axis: int | None = None) -> Numbers:
    """The mean of what is not NaN; NaN where there is nothing.

    Parameters
    ----------
    found : Numbers
        The numbers.
    axis : int or None
        Over which the mean is taken; None: over all.

    Returns
    -------
    Numbers
        Without that axis.
    """
    known = ~np.isnan(found)
    count = np.asarray(known.sum(axis))
    total = np.where(known, found, 0).sum(axis)
    return np.asarray(np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0))


def finite_or_none(value: Numbers | float) -> float | None:
    """N/A where it is not a number."""
    return None if np.isnan(value) else float(value)

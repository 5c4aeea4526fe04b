"""The models of the Process Discovery Contest 2025: training logs, and pairs of traces of which one fits better."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from msg2.formats import read
from msg2.task import Task

Trace: TypeAlias = tuple[str, ...]
Log: TypeAlias = Literal["clean", "noisy"]
LOGS: tuple[Log, ...] = ("clean", "noisy")

CONSTRUCTS = ("long-term dependencies", "loops", "OR", "invisible tasks", "optional tasks", "duplicate tasks")
"""What the six digits of a model's name stand for; 0: it has none."""


@dataclass(frozen=True, slots=True)
class TracePair:
    """Two traces, and whether the first one fits the model better."""

    first: Trace
    second: Trace
    first_fits: bool


@dataclass(frozen=True, slots=True)
class ContestModel:
    """One model of the contest, by the `name` of its files in a `folder`."""

    name: str
    folder: Path

    @property
    def constructs(self) -> tuple[str, ...]:
        """What the model has, of `CONSTRUCTS`."""
        return tuple(construct for construct, digit in zip(CONSTRUCTS, self.name, strict=True) if digit != "0")

    def training_log(self, log: Log) -> Task:
        """Read the traces to learn from, every event of them."""
        return read(self.folder / f"{self.name}_train_{log}.csv.gz", repeats="keep")

    def pairs(self) -> list[TracePair]:
        """Read the pairs to decide."""
        with gzip.open(self.folder / f"{self.name}_pairs.csv.gz", "rt", encoding="utf-8") as file:
            return [
                TracePair(tuple(row["test"].split()), tuple(row["base"].split()), row["test_fits_better"] == "1")
                for row in csv.DictReader(file)
            ]


def find_models(folder: Path) -> list[ContestModel]:
    """List the models whose files are in a folder, by name."""
    return [ContestModel(path.name[:6], folder) for path in sorted(folder.glob("*_pairs.csv.gz"))]


def traces_of(task: Task) -> list[Trace]:
    """Return the events of every case."""
    return [tuple(segment.step for segment in video.segments) for video in task.videos]


def accuracy(pairs: Sequence[TracePair], scores: Sequence[tuple[float, float]]) -> float:
    """Count how many pairs are decided rightly; equal scores are a guess.

    Parameters
    ----------
    pairs : sequence of TracePair
        What is to be decided.
    scores : sequence of (float, float)
        How well the two traces of each pair fit; more is better.

    Returns
    -------
    float
        In percent.

    >>> pairs = [TracePair(("a",), ("b",), True), TracePair(("a",), ("b",), False)]
    >>> accuracy(pairs, [(2.0, 1.0), (1.0, 1.0)])
    75.0
    """
    right = sum(
        0.5 if one == other else float((one > other) == pair.first_fits)
        for pair, (one, other) in zip(pairs, scores, strict=True)
    )
    return 100 * right / len(pairs)

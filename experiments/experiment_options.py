"""What the command line sets for every experiment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ExperimentOptions:
    """How often the experiments are repeated, at which size, and where they keep what was measured."""

    splits: int = 5
    """Seeded splits into training and test videos; the seeds are 0, 1, …"""
    world_seeds: int = 3
    """Simulations of every world; the seeds are 0, 1, …"""
    random_worlds: int = 20
    """Random worlds per setting."""
    jobs: int = 1
    """Cells of a table that are measured at the same time."""
    full: bool = False
    """The paper's sizes, in the place of ones for two cores."""
    quick: bool = False
    """A small part, to see that it runs: its numbers mean nothing."""
    held_out: bool = False
    """The worlds that are run once, at the end, in the place of those that a method is developed on."""
    folder: Path | None = None
    """Where what was measured is kept, so that an interrupted experiment goes on."""
    text_encoder: str = "words"
    """Of narration: hashed words, or the folder of a sentence encoder."""
    task: str | None = None
    """Of the figure of the search; None: that of the paper."""
    step: str | None = None
    """Whose precondition is searched for; None: the last one of the task's graph."""

    @staticmethod
    def for_quick_look() -> ExperimentOptions:
        """Return options that run once what otherwise is repeated."""
        return ExperimentOptions(splits=1, world_seeds=1, random_worlds=2, quick=True)

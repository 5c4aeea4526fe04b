"""How the search of `likelihood` goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from msg2.errors import require


@dataclass(frozen=True, slots=True)
class LikelihoodOptions:
    """`likelihood`: how the search goes; none of it is a threshold of what is found."""

    absent: Literal["auto", "unknown", "skipped"] = "auto"
    """A video lacks a step: its label may be missing ("unknown"), or it was not done ("skipped", as in event logs)."""
    levels: tuple[float, ...] = (0.0001, 0.02, 0.05, 0.1, 0.2, 0.4)
    """Probabilities of a disorderly choice; the share of videos at each level is learned."""
    starts: tuple[float, ...] = (0.95, 0.8)
    """The search starts from the pairs that more than this share of the videos order alike, and from no order."""
    candidates: int = 12
    """Pairs to add, to remove and to reverse whose score is computed in each round: those that promise most."""
    alternatives: int = 24
    """Steps that are tried as alternatives in what a step needs: those that come before it most often."""
    rounds: int = 1_000
    """Rounds of moves of one climb, at most."""
    scout_labels: int = 8_000
    """Of more labels, about so many, of whole videos, serve for the first climbs, and to say what moves promise."""
    search_labels: int = 20_000
    """Of more labels, about so many, of whole videos, serve for the last climb; rates are estimated from all."""
    tolerance: float = 0.01
    """Nats that a round of moves, or a new estimate of the noise, must gain for the search to go on."""

    def __post_init__(self) -> None:
        levels, starts = self.levels, self.starts
        require(
            len(levels) > 0 and all(1e-12 <= level < 1 for level in levels),
            f"levels is {levels}, it must be one or more numbers from 1e-12 to below 1",
        )
        require(all(0 <= share < 1 for share in starts), f"starts is {starts}, it must be numbers from 0 to below 1")
        for name in ("candidates", "alternatives", "rounds", "scout_labels", "search_labels"):
            value = getattr(self, name)
            require(value >= 1, f"{name.replace('_', '-')} is {value}, it must be 1 or more")
        require(0 < self.tolerance < float("inf"), f"tolerance is {self.tolerance}, it must be a number above 0")

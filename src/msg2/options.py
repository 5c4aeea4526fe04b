"""Every option with its default: the only place where a default value is written.

Frozen dataclasses; the command line and the library build them from the names a user gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from msg2.errors import InputError

Delta: TypeAlias = float | Literal["auto"]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How files become tasks."""

    repeats: Literal["first", "keep"] = "first"
    """A repeated step keeps its first segment, or all of them."""
    overlap: Literal["unordered", "start"] = "unordered"
    """Overlapping segments say nothing about order, or are ordered by their start."""
    order: Literal["file", "time"] = "file"
    """CaptainCook4D only: the order of the annotation file (the published protocol), or of time."""


@dataclass(frozen=True, slots=True)
class PrecisionOptions:
    """The paper's search (`msg2`); symbols as in App. B."""

    delta: Delta = "auto"
    """δ: a step is critical for another when its transition purity is above this."""
    alpha: float = 0.2
    """α: cost of one Boolean operation."""
    recency: float = 0.7
    """λ: weight lost per completed step in between; 1 switches recency off."""
    recency_rule: Literal["each", "satisfied"] = "each"
    """Weight of a formula: from each literal's own recency (minimum for AND, maximum for OR), or from the moment the
    formula became satisfied (the paper's text)."""
    max_literals: int | None = 2
    """2 is the two-literal rule; None (or another number) is the paper's literal greedy search."""
    exclude_relatives: bool = False
    """Two-literal rule: the second literal may not be an ancestor or descendant of the first."""

    def __post_init__(self) -> None:
        _check_delta(self.delta)
        _check(0 <= self.alpha < float("inf"), f"alpha is {self.alpha}, it must be a number from 0 up")
        _check(0 < self.recency <= 1, f"recency is {self.recency}, it must be above 0 and at most 1")
        limit = self.max_literals
        _check(limit is None or limit >= 1, f"max-literals is {limit}, it must be 1 or more, or none")


@dataclass(frozen=True, slots=True)
class DecisionOptions:
    """Decision trees on eligibility (`msgi` and `msgi+`): nothing to choose."""


@dataclass(frozen=True, slots=True)
class OrderOptions:
    """`always-before`: a before b in every video that orders them, or with purity above δ."""

    delta: float | None = None

    def __post_init__(self) -> None:
        if self.delta is not None:
            _check_delta(self.delta)


@dataclass(frozen=True, slots=True)
class DeltaOptions:
    """How δ is chosen from the data: by the likelihood of held-out videos."""

    grid: tuple[float, ...] = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.96, 0.99)
    folds: int = 5
    max_held_out: int = 200
    """Held-out videos scored per fold: enough for a stable choice, and the time stays bounded."""


@dataclass(frozen=True, slots=True)
class NextStepOptions:
    """Next-step prediction (App. C)."""

    rho: float = 0.9
    """ρ: discount per step since a step became eligible."""


@dataclass(frozen=True, slots=True)
class EvidenceOptions:
    """What counts as little support."""

    weak_below: int = 5
    """An edge whose two steps are ordered in fewer videos than this is flagged as weak."""


def _check(good: bool, what: str) -> None:
    if not good:
        raise InputError(what)


def _check_delta(delta: Delta) -> None:
    _check(delta == "auto" or (isinstance(delta, (int, float)) and 0 <= delta <= 1),
           f"delta is {delta}, it must be between 0 and 1, or auto")  # fmt: skip

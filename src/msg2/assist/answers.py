"""The answers of an assistant: typed, each with a probability where the data give one, and with the reason in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msg2.assist.online_monitoring import DeviationAssessment
from msg2.assist.waiting_times import WaitingTime
from msg2.json_values import fields_to_json
from msg2.task import Step


class Answer:
    """What all answers have in common."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """Plain values for one JSON object."""
        return fields_to_json(self)


@dataclass(frozen=True, slots=True)
class StepReport(Answer):
    """What the assistant makes of a step that was done."""

    step: Step
    """The most probable one, where several were possible."""
    at: float | None
    """Seconds; None without a time."""
    confidence: float
    """How probably it was this step, by all that was seen so far: not the one that was told."""
    mistake: bool
    """Whether a mistake was more probably made than not."""
    probability: float
    """That it is a mistake, if it was done."""
    findings: tuple[DeviationAssessment, ...]
    """What speaks against it, the surest first."""
    corrects: tuple[Step, ...]
    """Earlier mistakes that it makes good."""
    skipped: tuple[DeviationAssessment, ...]
    """Steps that it needs and that nobody saw."""
    reason: str


@dataclass(frozen=True, slots=True)
class NextStep(Answer):
    """A step that may come next."""

    step: Step
    rank: int
    """1 is the first."""
    probability: float | None
    """None without data: a graph alone knows no probabilities."""
    eligible: bool
    """Whether what it needs is done and nothing rules it out."""
    seconds: WaitingTime | None
    """Until it begins; None where times are not known."""
    reason: str


@dataclass(frozen=True, slots=True)
class MissingStep(Answer):
    """A step that was left out, or was done wrongly and not again."""

    step: Step
    probability: float
    """That leaving it out is a mistake."""
    reason: str


@dataclass(frozen=True, slots=True)
class RunEnd(Answer):
    """Whether the run is finished."""

    finished: bool
    """Whether it is more probable than not that nothing more comes; without data, that nothing required is left."""
    probability: float | None
    """That nothing more comes; None without data."""
    left: tuple[Step, ...]
    """Required steps that are not done."""
    reason: str

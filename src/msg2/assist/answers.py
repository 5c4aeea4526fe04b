"""The answers of an assistant: typed, each with a probability where the data give one, and with the reason in words.

Why an assistant says what it says, in words, with the numbers of videos behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from msg2.assist.assistant_model import Precedents
from msg2.assist.online_monitoring import DeviationAssessment
from msg2.assist.rankers import RankedStep
from msg2.assist.time_left import WaitingTime
from msg2.graph import SubtaskGraph
from msg2.options import fields_to_json
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


ENOUGH_VIDEOS = 5
"""Videos that had done the same, from which on they are cited."""


def explain_deviation(finding: DeviationAssessment) -> str:
    """Say what speaks against a step.

    >>> from msg2.assist.deviations import Deviation
    >>> from msg2.graph import step
    >>> early = Deviation("premature", "flip bread", None, step("put bread in pan"))
    >>> explain_deviation(DeviationAssessment(early, 4, 51, 0.4))
    "'flip bread' needs 'put bread in pan', which 47 of 51 videos did before it"
    """
    deviation, times, chances = finding.deviation, finding.times, finding.chances
    name, other = deviation.step, deviation.other
    known = times is not None and chances is not None and chances > 0
    usual = f"{(chances or 0) - (times or 0)} of {chances} videos"
    match deviation.kind:
        case "premature":
            needed = "" if deviation.clause is None else deviation.clause.to_english()
            return f"'{name}' needs {needed}" + (f", which {usual} did before it" if known else ", which is not done")
        case "out of order":
            return (
                f"'{name}' comes before '{other}'" + (f" in {usual}" if known else " in the graph") + ", not after it"
            )
        case "exclusive":
            both = f": {times} of {chances} videos with '{name}' do both" if known else ""
            return f"a run does only one of '{name}' and '{other}'{both}"
        case "repeated":
            return f"'{name}' was done before" + (f", and {times} of {chances} videos do it again" if known else "")
        case "skipped":
            return f"'{other}' is missing, which {usual} have before '{name}'" if known else f"'{other}' is missing"
        case "never seen":
            return f"none of {chances} videos has '{name}'"


def explain_next(graph: SubtaskGraph, ranked: RankedStep, last: Step | None, precedents: Precedents | None) -> str:
    """Say why a step may come next, or not yet."""
    name = ranked.step
    if ranked.ruled_out_by:
        return f"ruled out by {_quoted(ranked.ruled_out_by)}"
    if ranked.unmet:
        return "; ".join(_unmet_need(graph, name, clause.to_english(), clause.steps) for clause in ranked.unmet)
    parts = []
    if precedents is not None:
        where, count = (
            "begin with it" if last is None else "that had done the same went on with it",
            precedents.counts.get(name, 0),
        )
        cited = f"{count} of {precedents.of} videos {where}"
        if precedents.of < ENOUGH_VIDEOS:
            cited = "judged by videos at a similar point"
        elif count == 0:
            cited = f"none of {precedents.of} videos {where}, so judged by videos at a similar point"
        parts.append(cited)
    needs = sorted(graph.precondition(name).steps)
    if needs:
        parts.append("what it needs is done")
    if ranked.awaited:
        parts.append(f"{_quoted(ranked.awaited)} come{'s' * (len(ranked.awaited) == 1)} first, if done at all")
    return "; ".join(parts) or "it needs nothing"


def _unmet_need(graph: SubtaskGraph, name: Step, need: str, steps: Iterable[Step]) -> str:
    """A clause that does not hold, with the videos in which it did."""
    evidence, needed = graph.step_evidence(name), list(steps)
    support = evidence.edges.get(needed[0]) if len(needed) == 1 else None
    if support is not None and support.before is not None and evidence.videos:
        return f"it needs {need}, which {support.before} of {evidence.videos} videos did before it"
    return f"it needs {need}"


def _quoted(steps: Sequence[Step]) -> str:
    return " and ".join(f"'{name}'" for name in steps)

"""Events in, answers out, as JSON: what `msg2 watch` reads line by line, and what the app takes over HTTP.

An event has one of these keys, and is answered with everything that is known after it:

- `did`: a step, with `at` (seconds) and `confidence` if these are known;
- `saw`: step -> probability, with `at`: a recogniser that is not sure;
- `accept`: a step that is done after all;
- `undo`: true: what was told last is taken back;
- `plan`: a step to reach, with `length` and `k` if wanted: nothing happens, the answer has `plans`;
- `ask`: true: nothing happens; `now` (seconds) and `ended` (whether the run is over) may be given.

Every answer has a type, a probability where the data give one, and a reason in words, with the numbers of videos
behind it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msg2.assist.belief import Precedents
from msg2.assist.rankers import RankedStep
from msg2.assist.rule_probabilities import DeviationAssessment
from msg2.assist.time_left import WaitingTime
from msg2.errors import InputError
from msg2.graph import Formula, SubtaskGraph
from msg2.options import fields_to_json
from msg2.task import Step
from msg2.text import short_repr

if TYPE_CHECKING:
    from msg2.assist.assistant import Assistant

ENOUGH_VIDEOS = 5
"""Videos that had done the same, from which on they are cited."""
_FIELDS: Mapping[str, frozenset[str]] = {
    "did": frozenset({"at", "confidence"}),
    "saw": frozenset({"at"}),
    "accept": frozenset(),
    "undo": frozenset(),
    "plan": frozenset({"length", "k"}),
    "ask": frozenset({"now", "ended"}),
}
"""The kinds of events, and what else each may have."""


# -- answers ---------------------------------------------------------------------------------------------------------


class Answer:
    """What all answers have in common."""

    __slots__ = ()

    def to_json(self) -> dict[str, object]:
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


def explain_deviation(finding: DeviationAssessment) -> str:
    """Say what speaks against a step.

    >>> from msg2.assist.following import Deviation
    >>> from msg2.graph import step
    >>> early = Deviation("need", "flip bread", None, step("put bread in pan"))
    >>> explain_deviation(DeviationAssessment(early, 4, 51, 0.4))
    "'flip bread' needs 'put bread in pan', which 47 of 51 videos did before it"
    """
    deviation, times, chances = finding.deviation, finding.times, finding.chances
    name, other = deviation.step, deviation.other
    known = times is not None and chances is not None and chances > 0
    usual = f"{(chances or 0) - (times or 0)} of {chances} videos"
    match deviation.kind:
        case "need":
            needed = "" if deviation.clause is None else deviation.clause.to_english()
            return f"'{name}' needs {needed}" + (f", which {usual} did before it" if known else ", which is not done")
        case "order":
            return (
                f"'{name}' comes before '{other}'" + (f" in {usual}" if known else " in the graph") + ", not after it"
            )
        case "exclusive":
            both = f": {times} of {chances} videos with '{name}' do both" if known else ""
            return f"a run does only one of '{name}' and '{other}'{both}"
        case "repeated":
            return f"'{name}' was done before" + (f", and {times} of {chances} videos do it again" if known else "")
        case "left out":
            return f"'{other}' is missing, which {usual} have before '{name}'" if known else f"'{other}' is missing"
        case "unknown step":
            return f"none of {chances} videos has '{name}'"


def explain_next(graph: SubtaskGraph, ranked: RankedStep, last: Step | None, precedents: Precedents | None) -> str:
    """Say why a step may come next, or not yet."""
    if ranked.ruled_out_by:
        return f"ruled out by {_quoted(ranked.ruled_out_by)}"
    if ranked.unmet:
        return "; ".join(_explain_need(graph, ranked.step, clause) for clause in ranked.unmet)
    parts = []
    if precedents is not None:
        count = precedents.counts.get(ranked.step, 0)
        where = "begin with it" if last is None else "that had done the same went on with it"
        if precedents.of < ENOUGH_VIDEOS:
            parts.append("judged by videos at a similar point")
        elif count == 0:
            parts.append(f"none of {precedents.of} videos {where}, so judged by videos at a similar point")
        else:
            parts.append(f"{count} of {precedents.of} videos {where}")
    if graph.precondition(ranked.step).steps:
        parts.append("what it needs is done")
    if ranked.awaited:
        parts.append(f"{_quoted(ranked.awaited)} come{'s' * (len(ranked.awaited) == 1)} first, if done at all")
    return "; ".join(parts) or "it needs nothing"


def _explain_need(graph: SubtaskGraph, name: Step, clause: Formula) -> str:
    """A clause that does not hold, with the videos in which it did."""
    evidence, needed = graph.step_evidence(name), list(clause.steps)
    support = evidence.edges.get(needed[0]) if len(needed) == 1 else None
    if support is not None and support.before is not None and evidence.videos:
        return f"it needs {clause.to_english()}, which {support.before} of {evidence.videos} videos did before it"
    return f"it needs {clause.to_english()}"


def _quoted(steps: Sequence[Step]) -> str:
    return " and ".join(f"'{name}'" for name in steps)


# -- events ----------------------------------------------------------------------------------------------------------


def answer_event(assistant: Assistant, event: object, k: int | None = None) -> dict[str, object]:
    """Tell an assistant what happened, and collect its answers."""
    kind, fields = _parse(event)
    report, plans, now, ended = None, None, None, False
    match kind:
        case "did":
            report = assistant.did(_text(fields, "did"), _number(fields, "at"), _number(fields, "confidence"))
        case "saw":
            if not isinstance(fields["saw"], Mapping):
                raise InputError("'saw' must be an object from steps to probabilities")
            report = assistant.saw(fields["saw"], _number(fields, "at"))
        case "accept":
            assistant.accept(_text(fields, "accept"))
        case "undo":
            assistant.undo()
        case "plan":
            wanted = _whole(fields, "k")
            length = _whole(fields, "length")
            plans = assistant.plan(_text(fields, "plan"), length, 1 if wanted is None else wanted)
        case _:
            now, ended = _number(fields, "now"), _truth(fields, "ended")
    left = assistant.time_left(now)
    answer: dict[str, object] = {
        "done": assistant.done(),
        "progress": list(assistant.progress()),
        "next": [step.to_json() for step in assistant.next(k)],
        "missing": [step.to_json() for step in assistant.missing(ended)],
        "time_left": None if left is None else left.to_json(),
        "finished": assistant.finished().to_json(),
    }
    if report is not None:
        answer = {"report": report.to_json(), **answer}
    return answer if plans is None else {"plans": [plan.to_json() for plan in plans], **answer}


def _parse(event: object) -> tuple[str, Mapping[str, object]]:
    """The kind of an event, and all that it has."""
    there = [kind for kind in _FIELDS if isinstance(event, Mapping) and kind in event]
    if not isinstance(event, Mapping) or len(there) != 1:
        hint = 'such as {"did": "whisk", "at": 12.3}'
        raise InputError(f"an event is an object with one of {', '.join(map(repr, _FIELDS))}", hint=hint)
    for key in event:
        if key not in _FIELDS[there[0]] | {there[0]}:
            raise InputError(f"an event with {there[0]!r} has no {short_repr(str(key))}")
    if there[0] in ("undo", "ask") and event[there[0]] is not True:
        raise InputError(f"{there[0]!r} is {_shown(event[there[0]])}, it must be true")
    return there[0], event


def _shown(value: object) -> str:
    """A value as it stands in JSON."""
    return short_repr(json.dumps(value, ensure_ascii=False, default=str)).strip("'\"")


def _require(fields: Mapping[str, object], key: str, valid: bool, what: str) -> None:
    if not valid:
        raise InputError(f"{key!r} is {_shown(fields[key])}, it must be {what}")


def _text(fields: Mapping[str, object], key: str) -> str:
    value = fields[key]
    _require(fields, key, isinstance(value, str), "the name of a step")
    return str(value)


def _number(fields: Mapping[str, object], key: str) -> float | None:
    value = fields.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{key!r} is {_shown(value)}, it must be a number")
    _require(fields, key, abs(value) <= sys.float_info.max, "a finite number")  # JSON has numbers of any size
    return value


def _truth(fields: Mapping[str, object], key: str) -> bool:
    value = fields.get(key, False)
    _require(fields, key, isinstance(value, bool), "true or false")
    return value is True


def _whole(fields: Mapping[str, object], key: str) -> int | None:
    value = fields.get(key)
    _require(fields, key, value is None or type(value) is int, "a whole number")
    return value if isinstance(value, int) else None

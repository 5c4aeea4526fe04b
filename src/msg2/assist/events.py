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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msg2.assist.belief import Precedents
from msg2.assist.rankers import RankedStep
from msg2.assist.rule_probabilities import DeviationAssessment
from msg2.assist.time_left import WaitingTime
from msg2.errors import InputError, require
from msg2.graph import Formula, SubtaskGraph
from msg2.options import fields_to_json
from msg2.task import Step
from msg2.text import short_repr

if TYPE_CHECKING:
    from msg2.assist.assistant import Assistant

ENOUGH_VIDEOS = 5
"""Videos that had done the same, from which on they are cited."""
_NAME, _NUMBER, _COUNT = ("the name of a step",), ("a number", "a finite number"), ("a whole number",)
_FIELDS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "did": {"did": _NAME, "at": _NUMBER, "confidence": _NUMBER},
    "saw": {"saw": ("an object from steps to probabilities",), "at": _NUMBER},
    "accept": {"accept": _NAME},
    "undo": {"undo": ("true",)},
    "plan": {"k": _COUNT, "length": _COUNT, "plan": _NAME},
    "ask": {"ask": ("true",), "now": _NUMBER, "ended": ("true or false",)},
}
"""The kinds of events, what each may have, and what that must be."""
_VALID: Mapping[str, Callable[[object], bool]] = {
    "the name of a step": lambda value: isinstance(value, str),
    "an object from steps to probabilities": lambda value: isinstance(value, Mapping),
    "a number": lambda value: value is None or (isinstance(value, int | float) and not isinstance(value, bool)),
    "a finite number": lambda value: not isinstance(value, int | float) or abs(value) <= sys.float_info.max,
    "a whole number": lambda value: value is None or type(value) is int,
    "true": lambda value: value is True,
    "true or false": lambda value: isinstance(value, bool),
}


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
    """Say what speaks against a step."""
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
            report = assistant.did(fields["did"], fields.get("at"), fields.get("confidence"))
        case "saw":
            report = assistant.saw(fields["saw"], fields.get("at"))
        case "accept":
            assistant.accept(fields["accept"])
        case "undo":
            assistant.undo()
        case "plan":
            wanted = fields.get("k")
            plans = assistant.plan(fields["plan"], fields.get("length"), 1 if wanted is None else wanted)
        case _:
            now, ended = fields.get("now"), fields.get("ended", False)
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


def _parse(event: object) -> tuple[str, Mapping[str, Any]]:
    """The kind of an event, and all that it has, each of its type."""
    kinds = [kind for kind in _FIELDS if isinstance(event, Mapping) and kind in event]
    if not isinstance(event, Mapping) or len(kinds) != 1:
        hint = 'such as {"did": "whisk", "at": 12.3}'
        raise InputError(f"an event is an object with one of {', '.join(map(repr, _FIELDS))}", hint=hint)
    fields = _FIELDS[kinds[0]]
    for key in event:
        require(key in fields, f"an event with {kinds[0]!r} has no {short_repr(str(key))}")
    for key, demands in fields.items():
        for demand in demands if key in event else ():
            if not _VALID[demand](event[key]):
                value = short_repr(json.dumps(event[key], ensure_ascii=False, default=str)).strip("'\"")
                is_value = "" if key == "saw" else f"is {value}, it "
                raise InputError(f"{key!r} {is_value}must be {demand}")
    return kinds[0], event

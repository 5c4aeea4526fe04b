"""Events in, answers out, as JSON: what `msg2 watch` reads line by line, and what the app takes over HTTP.

An event has one of these keys, and is answered with everything that is known after it:

- `did`: a step, with `at` (seconds) and `confidence` if these are known; `began`: a step that begins;
- `saw`: step -> probability, with `at`: a recogniser that is not sure;
- `observe`: step -> probability, with `at`: one frame of a stream;
- `accept`: a step that is done after all;
- `undo`: true, what was told last is taken back, or the `id` of an event; `correct`: an id, with `did` or `saw`;
- `pause`, `resume`: true, with `at`: the clock stops, and goes on;
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
from msg2.assist.following import MistakeKind
from msg2.assist.mistakes import Mistake
from msg2.assist.rankers import RankedStep
from msg2.assist.time_left import WaitingTime
from msg2.errors import InputError, require
from msg2.graph import Formula, SubtaskGraph, step
from msg2.graph.evidence import demonstrations
from msg2.graph.explanation import response_backing
from msg2.options import JsonFields
from msg2.task import Step
from msg2.text import short_repr

if TYPE_CHECKING:
    from msg2.assist.assistant import Assistant

ENOUGH_VIDEOS = 5
"""Videos that had done the same, from which on they are cited."""
_NAME, _NUMBER, _COUNT = ("the name of a step",), ("a number", "a finite number"), ("a whole number",)
_SHARES, _TEXT, _TRUE = ("an object from steps to probabilities",), ("a text",), ("true",)
_TOLD: Mapping[str, Sequence[str]] = {"at": _NUMBER, "id": _TEXT, "actor": _TEXT}
EVENTS: Mapping[str, tuple[Mapping[str, Sequence[str]], str]] = {
    "correct": (
        {"correct": _TEXT, "did": _NAME, "saw": _SHARES},
        "The event with this id told that another step was done, or that something else was seen.",
    ),
    "did": (
        {"did": _NAME, "confidence": _NUMBER, **_TOLD},
        "A step was done; `at` is in seconds, `confidence` how probably. Under its `id` an event is told once only.",
    ),
    "began": ({"began": _NAME, **_TOLD}, "A step begins."),
    "saw": (
        {"saw": _SHARES, **_TOLD},
        "A recogniser saw one of these steps; an empty object is a moment without a step.",
    ),
    "observe": (
        {"observe": _SHARES, "at": _NUMBER},
        "One frame of a stream; what is missing to 1 is background. Frames are not kept.",
    ),
    "accept": ({"accept": _NAME, "id": _TEXT}, "A step is done after all."),
    "undo": ({"undo": ("true or a text",)}, "The last event, or the one with this id, is taken back."),
    "pause": ({"pause": _TRUE, "at": _NUMBER}, "The clock stops."),
    "resume": ({"resume": _TRUE, "at": _NUMBER}, "The clock goes on."),
    "plan": ({"k": _COUNT, "length": _COUNT, "plan": _NAME}, "The question for ways to a step; nothing happens."),
    "ask": (
        {"ask": _TRUE, "now": _NUMBER, "ended": ("true or false",)},
        "The question how the run stands, at a time `now`; nothing happens. `ended`: that was all.",
    ),
}
"""The kinds of events: what each may have, what that must be, and what the event means."""
_VALID: Mapping[str, Callable[[object], bool]] = {
    "the name of a step": lambda value: isinstance(value, str),
    "an object from steps to probabilities": lambda value: isinstance(value, Mapping),
    "a number": lambda value: value is None or (isinstance(value, int | float) and not isinstance(value, bool)),
    "a finite number": lambda value: not isinstance(value, int | float) or abs(value) <= sys.float_info.max,
    "a whole number": lambda value: value is None or type(value) is int,
    "a text": lambda value: isinstance(value, str),
    "true": lambda value: value is True,
    "true or a text": lambda value: value is True or isinstance(value, str),
    "true or false": lambda value: isinstance(value, bool),
}


# -- answers ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StepReport(JsonFields):
    """What the assistant makes of an event."""

    step: Step
    """The most probable one, where several were possible; empty where probably nothing was done."""
    at: float | None
    """Seconds; None without a time."""
    confidence: float
    """How probably it was this step, by all that was seen so far: not the one that was told."""
    mistake: bool
    """Whether there is an alarm now: true once for each mistake, and not again; `alarms` has those that stand."""
    kind: MistakeKind | None
    """Of the surest mistake; None where nothing speaks against the step."""
    probability: float
    """That a mistake was made: of the surest of `findings`."""
    findings: tuple[Mistake, ...]
    """What speaks against it, the surest first."""
    reason: str


@dataclass(frozen=True, slots=True)
class Alarm(JsonFields):
    """A mistake that was probably made, and of which the assistant has warned."""

    step: Step
    kind: MistakeKind
    probability: float
    at: float | None
    """When it was raised, in seconds; None without times."""
    reason: str
    stated: bool
    """Whether it breaks a stated rule, which is certain: a hard stop."""
    unmet: tuple[Formula, ...]
    """What should have come before the step or, of the kind `order`, should have come after it."""


@dataclass(frozen=True, slots=True)
class NextStep(JsonFields):
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
    due: bool
    """Whether it is eligible, and nothing that is still to come should come before it."""
    stated: bool
    """Whether doing it now would break a stated rule: show a hard stop in its place."""
    unmet: tuple[Formula, ...]
    """What should come first: clauses of its precondition, and steps that come before it if done at all."""


@dataclass(frozen=True, slots=True)
class MissingStep(JsonFields):
    """A step that was left out, or was done wrongly and not again."""

    step: Step
    probability: float
    """That leaving it out is a mistake."""
    reason: str


@dataclass(frozen=True, slots=True)
class RunEnd(JsonFields):
    """Whether the run is finished."""

    finished: bool
    """Whether it is more probable than not that nothing more comes; without data, that nothing required is left."""
    probability: float | None
    """That nothing more comes; None without data."""
    left: tuple[Step, ...]
    """Required steps that are not done."""
    reason: str


def explain_mistake(graph: SubtaskGraph, mistake: Mistake) -> str:
    """Say what speaks against a step, with the videos behind it."""
    names = [clause.to_english() for clause in mistake.unmet]
    match mistake.kind:
        case "need":
            one_of_them = mistake.unmet[0].name if mistake.unmet[0].kind == "step" else None
            return (
                f"'{mistake.step}' needs {' and '.join(names)}, which {'is' if len(names) == 1 else 'are'} not done"
                + (_behind(graph, one_of_them, mistake.step) if one_of_them is not None and len(names) == 1 else "")
            )
        case "order":
            first = mistake.unmet[0]
            behind = _behind(graph, mistake.step, first.name) if first.kind == "step" and len(names) == 1 else ""
            return f"'{mistake.step}' comes before {' and '.join(names)}, not after{behind}"
        case "exclusive":
            return f"a run does only one of '{mistake.step}' and {' and '.join(names)}"
        case "repeated":
            return f"'{mistake.step}' was done before"
        case "left out":
            return f"{' and '.join(names) or repr(mistake.step)} is missing"
        case "unknown step":
            return f"'{mistake.step}' is no step of the graph"


def explain_follow_up(graph: SubtaskGraph, mistake: Mistake) -> str:
    """Say what must follow what was done, with its counts."""
    formula, early = mistake.unmet[0] if mistake.unmet else step(mistake.step), mistake.after or ""
    counts = response_backing(graph, early, formula).words(demonstrations(graph))
    return f"after '{early}', {formula.to_english()} follows" + (f": {counts}" if counts else "")


def breaks_stated_rule(graph: SubtaskGraph, step: RankedStep | Mistake) -> bool:
    """Whether a mistake, or a step that were done now, breaks what a person stated: all of a graph without evidence."""
    before, after = {name for clause in step.unmet for name in clause.steps}, set[Step]()
    if isinstance(step, RankedStep):
        before, after = before.union(step.awaited), set(step.ruled_out_by)
    elif step.kind == "order":
        before, after = after, before
    if not graph.evidence:
        return bool(before or after)
    partners = graph.partners(step.step)
    pairs = {(name, step.step) for name in before - partners} | {(step.step, name) for name in after - partners}
    return not graph.stated.isdisjoint(pairs)


def _behind(graph: SubtaskGraph, before: Step, after: Step) -> str:
    """How many videos have a pair in this order."""
    if (before, after) in graph.stated:
        return " (a stated rule)"
    support = graph.support(before, after)
    if support is None or support.before is None or not support.together:
        return ""
    return f" (so {support.before} of {support.together} videos)"


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
    if clause.kind == "step" and (clause.name, name) in graph.stated:
        return f"it needs {clause.to_english()} (a stated rule)"
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
        case "did" | "began" | "saw" | "observe" | "accept":
            report = getattr(assistant, kind)(fields[kind], **{key: fields[key] for key in fields if key != kind})
        case "undo":
            assistant.undo(None if fields["undo"] is True else fields["undo"])
        case "correct":
            report = assistant.correct(fields["correct"], fields.get("did", fields.get("saw", {})))
        case "pause" | "resume":
            getattr(assistant, kind)(fields.get("at"))
        case "plan":
            wanted = fields.get("k")
            plans = assistant.plan(fields["plan"], fields.get("length"), 1 if wanted is None else wanted)
        case _:
            now, ended = fields.get("now"), fields.get("ended", False)
    left = assistant.time_left(now)
    answer: dict[str, object] = {
        "alarms": [alarm.to_json() for alarm in assistant.alarms()],
        "done": assistant.done(),
        "inferred": assistant.inferred(),
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
    kinds = [kind for kind in EVENTS if isinstance(event, Mapping) and kind in event]
    if kinds[:1] == ["correct"]:
        kinds = kinds[:1]
    if not isinstance(event, Mapping) or len(kinds) != 1:
        hint = 'such as {"did": "whisk", "at": 12.3}'
        raise InputError(f"an event is an object with one of {', '.join(map(repr, EVENTS))}", hint=hint)
    fields, _ = EVENTS[kinds[0]]
    for key in event:
        require(key in fields, f"an event with {kinds[0]!r} has no {short_repr(str(key))}")
    both = kinds == ["correct"] and ("did" in event) == ("saw" in event)
    require(not both, "an event with 'correct' has either 'did' or 'saw'")
    for key, demands in fields.items():
        for demand in demands if key in event else ():
            if not _VALID[demand](event[key]):
                value = short_repr(json.dumps(event[key], ensure_ascii=False, default=str)).strip("'\"")
                is_value = "" if key == "saw" else f"is {value}, it "
                raise InputError(f"{key!r} {is_value}must be {demand}")
    return kinds[0], event

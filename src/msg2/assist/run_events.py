"""Events and answers as JSON: what `msg2 watch` reads line by line, and what the app takes over HTTP.

An event has one of these keys, and is answered with everything that is known after it:

- `did`: a step, with `at` (seconds) and `confidence` if these are known;
- `saw`: step -> probability, with `at`: a recogniser that is not sure;
- `accept`: a step that is done after all;
- `undo`: true: what was told last is taken back;
- `plan`: a step to reach, with `length` and `k` if wanted: nothing happens, the answer has `plans`;
- `ask`: true: nothing happens; `now` (seconds) and `ended` (whether the run is over) may be given.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from msg2.assist.assistant import Assistant
from msg2.errors import InputError
from msg2.text import short_repr

_FIELDS: Mapping[str, frozenset[str]] = {
    "did": frozenset({"at", "confidence"}),
    "saw": frozenset({"at"}),
    "accept": frozenset(),
    "undo": frozenset(),
    "plan": frozenset({"length", "k"}),
    "ask": frozenset({"now", "ended"}),
}
"""The kinds of events, and what else each may have."""


def answer_event(assistant: Assistant, event: object, k: int | None = None) -> dict[str, Any]:
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
    answer = {
        "done": assistant.done(),
        "progress": list(assistant.progress()),
        "next": [one.to_json() for one in assistant.next(k)],
        "missing": [one.to_json() for one in assistant.missing(ended)],
        "time_left": None if left is None else left.to_json(),
        "finished": assistant.finished().to_json(),
    }
    if report is not None:
        answer = {"report": report.to_json(), **answer}
    return answer if plans is None else {"plans": [one.to_json() for one in plans], **answer}


def _parse(event: object) -> tuple[str, Mapping[str, Any]]:
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


def _text(fields: Mapping[str, Any], key: str) -> str:
    if not isinstance(fields[key], str):
        raise InputError(f"{key!r} is {_shown(fields[key])}, it must be the name of a step")
    return str(fields[key])


def _number(fields: Mapping[str, Any], key: str) -> float | None:
    value = fields.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise InputError(f"{key!r} is {_shown(value)}, it must be a number")
    if value is not None and not abs(value) <= sys.float_info.max:  # JSON has numbers of any size
        raise InputError(f"{key!r} is {_shown(value)}, it must be a finite number")
    return value


def _truth(fields: Mapping[str, Any], key: str) -> bool:
    value = fields.get(key, False)
    if not isinstance(value, bool):
        raise InputError(f"{key!r} is {_shown(value)}, it must be true or false")
    return value


def _whole(fields: Mapping[str, Any], key: str) -> int | None:
    value = fields.get(key)
    if value is not None and type(value) is not int:
        raise InputError(f"{key!r} is {_shown(value)}, it must be a whole number")
    return value

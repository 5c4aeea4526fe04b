"""A precondition and its evidence in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msg2.errors import InputError
from msg2.graph.formula import TRUE, Formula, from_json
from msg2.task import Step

_NAMED_VIDEOS = 8


def explain(step: Step, precondition: Formula, evidence: object) -> str:
    """What `step` needs and what the videos say; `evidence` is the step's entry in the graph file, if it has one.

    Whatever of the entry is not as msg2 writes it is left out: graph files may come from elsewhere.

    >>> from msg2.graph.formula import step as s
    >>> print(explain("flip bread", s("heat pan"), {"videos": 10, "holds": 9, "violations": ["v7"]}))
    'flip bread' needs 'heat pan'.
    It held in 9 of the 10 videos with this step (90 %).
    It did not hold in: v7.
    """
    known: Mapping[str, Any] = evidence if isinstance(evidence, Mapping) else {}
    lines = [f"'{step}' needs {_needs(precondition)}."]
    lines += _role(known)
    if precondition == TRUE:
        return "\n".join([*lines, "No video shows this step."] if known.get("videos") == 0 else lines)
    match known:
        case {"confidence": float(confidence)}:
            lines.append(f"So say {round(100 * confidence)} % of the samples of the videos.")
    match known:
        case {"videos": int(videos), "holds": int(holds)} if videos:
            lines.append(f"It held in {holds} of the {videos} videos with this step ({round(100 * holds / videos)} %).")
    for key, words in (("examples", "It held, for instance, in"), ("violations", "It did not hold in")):
        match known.get(key):
            case [_, *_] as videos:
                lines.append(f"{words}: {_named(videos)}.")
    edges = known.get("edges")
    for before, counts in sorted(edges.items()) if isinstance(edges, Mapping) else ():
        match counts:
            case {"weak": True, "together": int(together)}:
                lines.append(f"Little support: '{before}' and '{step}' are ordered in only {together} videos.")
    match known:
        case {"score": float(score), "runner_up": {"precondition": value, "score": float(second)}}:
            with suppress(InputError):
                lines.append(f"Next best: {_needs(from_json(value))} (score {second:.3f} against {score:.3f}).")
    return "\n".join(lines)


def _role(known: Mapping[str, Any]) -> Iterator[str]:
    match known:
        case {"optional": {"without": int(without), "videos": int(videos)}}:
            yield f"It is optional: {without} of {videos} videos do without it, and no step needs it."
    match known:
        case {"instead": [_, *_] as others}:
            yield f"Videos show it or {' or '.join(map(repr, map(str, others)))}, hardly ever both."


def _named(videos: Sequence[Any]) -> str:
    more = f" and {len(videos) - _NAMED_VIDEOS} more" if len(videos) > _NAMED_VIDEOS else ""
    return ", ".join(map(str, videos[:_NAMED_VIDEOS])) + more


def _needs(formula: Formula) -> str:
    return "nothing before it" if formula == TRUE else formula.words()

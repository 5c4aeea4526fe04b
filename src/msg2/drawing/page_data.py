"""What is embedded in a page: the graph, its evidence and the videos, as plain values; steps are numbers.

Names are for the eye only (made printable, on one line), so nothing in the page depends on what they hold.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msg2.assist import check
from msg2.drawing.page_table import facts_of, runner_up
from msg2.drawing.picture import Arrow, Picture
from msg2.drawing.text import one_line
from msg2.drawing.timeline import INFERRED
from msg2.graph import Formula, SubtaskGraph
from msg2.options import NextStepOptions
from msg2.task import Segment, Step, Task, Video

Places: TypeAlias = Mapping[Step, int]


def page_data(
    graph: SubtaskGraph, drawn: Picture, videos: Task | None = None, media: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The values of the page of `graph`; `media` are addresses of video files by the ids of `videos`.

    >>> from msg2.drawing.picture import picture
    >>> from msg2.graph import step
    >>> graph = SubtaskGraph("tea", ["boil", "pour"], {"pour": step("boil")})
    >>> page_data(graph, picture(graph))["steps"]
    [{'name': 'boil', 'needs': True}, {'name': 'pour', 'needs': 0}]
    """
    steps = drawn_steps(drawn)
    place = {name: number for number, name in enumerate(steps)}
    return {
        "task": one_line(graph.task),
        "key": hashlib.sha256("\0".join([graph.task, *steps]).encode("utf-8", "surrogatepass")).hexdigest()[:16],
        "compared": drawn.compared,
        "rho": NextStepOptions().rho,
        "steps": [_step(graph, name, place, named=videos is None) for name in steps],
        "arrows": [_arrow(arrow, place) for arrow in drawn.arrows],
        "videos": [] if videos is None else _videos(graph, videos, place, media or {}),
    }


def drawn_steps(drawn: Picture) -> list[Step]:
    """The steps in the order of their ids s0, s1, … in the picture: what comes first, first."""
    return [box.name for box in drawn.boxes if box.kind == "step"]


def _step(graph: SubtaskGraph, name: Step, place: Places, named: bool) -> dict[str, Any]:
    """`named`: with the names of the videos that contradict the precondition, which are otherwise found from labels."""
    facts = facts_of(graph, name)
    entry: dict[str, Any] = {"name": one_line(name), "needs": _numbered(graph.precondition(name), place)}
    entry |= {key: facts[key] for key in ("videos", "holds", "confidence", "score") if _is_number(facts.get(key))}
    if named and isinstance(facts.get("violations"), list):
        entry["violations"] = [one_line(str(video)) for video in facts["violations"]]
    match facts:
        case {"optional": {"without": int(without), "videos": int(videos)}}:
            entry["optional"] = [without, videos]
    match facts:
        case {"instead": [*others]}:
            entry["instead"] = [place[other] for other in others if other in place]
    edges = _edges(facts.get("edges"), place)
    entry |= {"edges": edges} if edges else {}
    second = runner_up(facts)
    if second is not None and second.support <= place.keys():
        score = facts["runner_up"].get("score")
        entry["second"] = {"needs": _numbered(second, place), **({"score": score} if _is_number(score) else {})}
    return entry


def _edges(edges: object, place: Places) -> dict[int, dict[str, Any]]:
    """What is known about each step that must come before: in how many videos it did, of how many with both, …"""
    keys = ("before", "together", "probability", "direct", "weak")
    found = {
        place[name]: {
            key: counts[key] for key in keys if isinstance(counts.get(key), bool) or _is_number(counts.get(key))
        }
        for name, counts in (edges.items() if isinstance(edges, Mapping) else ())
        if name in place and isinstance(counts, Mapping)
    }
    return {before: counts for before, counts in found.items() if counts}


def _arrow(arrow: Arrow, place: Places) -> dict[str, Any]:
    entry = {"source": arrow.source, "target": arrow.target, "after": place[arrow.after], "status": arrow.status}
    return entry if arrow.before is None else entry | {"before": place[arrow.before]}


def _numbered(formula: Formula, place: Places) -> Any:
    """The formula as in a graph file, with numbers in the place of names."""
    match formula.kind:
        case "true":
            return True
        case "step":
            return place[formula.name]
        case "not":
            return {"not": _numbered(formula.operands[0], place)}
        case _:
            return {formula.kind: [_numbered(operand, place) for operand in formula.operands]}


def _videos(graph: SubtaskGraph, task: Task, place: Places, media: Mapping[str, str]) -> list[dict[str, Any]]:
    report = check(graph, task)
    mistakes: defaultdict[str, list[Any]] = defaultdict(list)
    for mistake in report.mistakes:
        clauses = graph.precondition(mistake.step).clauses()
        mistakes[mistake.video].append([mistake.position - 1, [clauses.index(clause) for clause in mistake.unmet]])
    skipped: defaultdict[str, list[int]] = defaultdict(list)
    for left_out in report.skipped:
        skipped[left_out.video].append(place[left_out.step])
    return [
        _without_nothing(
            {
                "id": one_line(video.id),
                "steps": [place[segment.step] for segment in video.segments],
                "times": _times(video),
                "added": _added(video.segments),
                "mistakes": mistakes[video.id],
                "skipped": skipped[video.id],
                "file": media.get(video.id),
            }
        )
        for video in task
    ]


def _times(video: Video) -> list[float]:
    """Start and end of every segment, one after the other; nothing where the video has only an order."""
    return [_short(time) for segment in video.segments for time in (segment.start, segment.end) if time is not None]


def _added(segments: Sequence[Segment]) -> list[list[int]]:
    """Places of the predicted segments, each with its confidence in percent where that is known."""
    return [
        [number, *([] if segment.confidence is None else [round(100 * segment.confidence)])]
        for number, segment in enumerate(segments)
        if segment.source == INFERRED
    ]


def _short(seconds: float) -> float:
    """To the millisecond, and without ".0": a page holds many of them."""
    rounded = round(float(seconds), 3)
    return int(rounded) if rounded.is_integer() and rounded < 1e9 else rounded


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _without_nothing(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key in ("id", "steps") or value}

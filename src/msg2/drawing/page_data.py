"""What is embedded in a page: the graph, its evidence and the videos, as plain values; steps are numbers.

Names are for the eye only (made printable, on one line), so nothing in the page depends on what they hold. The files of
videos are addressed relative to the page, so that both can be moved together.
"""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from msg2.assist import Mistake, check
from msg2.assist.forecasting import fit_end_probability
from msg2.assist.learned_forecaster import fit_forecaster
from msg2.assist.mistakes import ACCUSED
from msg2.assist.rankers import RHO
from msg2.drawing.diagram import Arrow, Diagram
from msg2.graph import SubtaskGraph, Support, related_pairs
from msg2.media.video_files import find_video_files
from msg2.task import PREDICTED, Segment, Step, Task, Video
from msg2.text import one_line


def find_video_links(videos: Task, folder: Path, page: Path) -> dict[str, str]:
    """Find the files of videos and write their addresses for a page.

    Parameters
    ----------
    videos : Task
        The videos.
    folder : Path
        Where their files are; the folders in it are searched too.
    page : Path
        The page that links to them.

    Returns
    -------
    dict from str to str
        By the id of a video that has a file, its address relative to the page.
    """
    recordings, _ = find_video_files(folder, wanted=[video.id for video in videos])
    home = page.resolve().parent
    return {
        recording.video: quote(Path(os.path.relpath(recording.media.resolve(), home)).as_posix())
        for recording in recordings
        if recording.media is not None
    }


MOST_VIDEOS = 2_000  # videos that a page holds; of more, it shows a sample
StepNumbers: TypeAlias = Mapping[Step, int]
"""The number of each step on the page: its place among the steps of the diagram."""
PageObject: TypeAlias = dict[str, object]  # an object in the page, whose script (assets/*.js) says what it holds


def page_data(
    graph: SubtaskGraph, diagram: Diagram, videos: Task | None = None, media: Mapping[str, str] | None = None
) -> PageObject:
    """Collect the values that the page of a graph works with."""
    steps = steps_in_diagram(diagram)
    place = {name: number for number, name in enumerate(steps)}
    counts = {
        frozenset({pair.before, pair.after}): [pair.opposing, pair.together]
        for pair in related_pairs(graph)
        if pair.kind == "exclusive" and pair.opposing is not None
    }
    return {
        "task": one_line(graph.task),
        "key": hashlib.sha256("\0".join([graph.task, *steps]).encode("utf-8", "surrogatepass")).hexdigest()[:16],
        "compared": diagram.compared,
        "rho": RHO,
        "steps": [
            _step(graph, name, place, named=videos is None) | _relations(graph, name, place, counts) for name in steps
        ],
        "arrows": [_arrow(arrow, place) for arrow in diagram.arrows],
        **(
            {
                "groups": [
                    {"steps": [int(box[1:]) for box in group.boxes], "status": group.status} for group in diagram.groups
                ]
            }
            if diagram.groups
            else {}
        ),
        "videos": [] if videos is None else _videos(graph, videos, place, media or {}),
        **({} if videos is None else _forecast(graph, videos, place)),
    }


def steps_in_diagram(diagram: Diagram) -> list[Step]:
    """The steps in the order of their ids s0, s1, … in the diagram: what comes first, first."""
    return [box.name for box in diagram.boxes if box.kind == "step"]


def _step(graph: SubtaskGraph, name: Step, place: StepNumbers, named: bool) -> PageObject:
    """`named`: with the names of the videos that contradict the precondition, which are otherwise found from labels."""
    evidence = graph.step_evidence(name)
    violations = evidence.violations if named else None
    without, second = videos_without(graph, name), evidence.runner_up
    edges = {place[before]: _support(support) for before, support in evidence.edges.items() if before in place}
    runner_up = None
    if second is not None and second.precondition.steps <= place.keys():
        runner_up = _known({"needs": second.precondition.to_json(place.__getitem__), "score": second.score})
    return {"name": one_line(name), "needs": graph.precondition(name).to_json(place.__getitem__)} | _known({
        "videos": evidence.videos,
        "holds": evidence.holds,
        "confidence": evidence.confidence,
        "score": evidence.score,
        "violations": None if violations is None else [one_line(video) for video in violations[:MOST_VIDEOS]],
        "optional": None if without is None else list(without),
        "instead": None if evidence.instead is None else [place[n] for n in evidence.instead if n in place],
        "edges": {before: counts for before, counts in edges.items() if counts} or None,
        "second": runner_up,
    })  # fmt: skip


def _known(entry: PageObject) -> PageObject:
    return {key: value for key, value in entry.items() if value is not None}


def videos_without(graph: SubtaskGraph, step: Step) -> tuple[int, int] | None:
    """Count the videos that leave out a step which may be left out."""
    evidence, videos = graph.step_evidence(step), graph.method.get("videos")
    if evidence.optional is not None:
        return evidence.optional.without, evidence.optional.videos
    if step not in graph.optional:
        return None
    if evidence.videos is None or not isinstance(videos, list) or evidence.videos > len(videos):
        return None
    return len(videos) - evidence.videos, len(videos)


def _relations(
    graph: SubtaskGraph, name: Step, place: StepNumbers, counts: Mapping[frozenset[Step], object]
) -> PageObject:
    """What the graph says about a step beyond what it needs: of most steps, nothing."""
    after, never = (sorted(place[n] for n in of(name)) for of in (graph.order_predecessors, graph.partners))
    both = {place[other]: counts.get(frozenset({name, other})) for other in graph.partners(name)}
    return _known({
        "after": after or None,
        "never": never or None,
        "both": {other: videos for other, videos in sorted(both.items()) if videos} if never else None,
        "mayOmit": name in graph.optional or None,
        "repeats": graph.repeats.get(name),
    })  # fmt: skip


def _support(support: Support) -> PageObject:
    """What is known about a step that must come before: in how many videos it did, of how many with both, …"""
    known = support.to_json()
    return {key: known[key] for key in ("before", "together", "probability", "direct", "weak") if key in known}


def _arrow(arrow: Arrow, place: StepNumbers) -> PageObject:
    ends = {"source": arrow.source, "target": arrow.target, "after": place[arrow.after], "status": arrow.status}
    return ends | _known({
        "kind": None if arrow.kind == "needs" else arrow.kind,
        "trueKind": arrow.true_kind,
        "before": None if arrow.before is None else place[arrow.before],
    })  # fmt: skip


def _forecast(graph: SubtaskGraph, task: Task, place: StepNumbers) -> PageObject:
    """What the page needs to forecast the next step, and the end, as the library does; nothing without any label."""
    if not any(video.segments for video in task):
        return {}
    learned, end = fit_forecaster(graph, task).to_json(), fit_end_probability(graph, task).to_json()
    return {"forecast": learned | {"steps": [place[name] for name in graph.steps], "end_terms": end["terms"]}}


def _videos(graph: SubtaskGraph, task: Task, place: StepNumbers, media: Mapping[str, str]) -> list[PageObject]:
    report = check(graph, task)
    mistakes, left_out, not_seen = (defaultdict[str, list[object]](list) for _ in range(3))
    for reported, absences in ((report.mistakes, left_out), (report.not_seen, not_seen)):
        for mistake in reported:
            absent = absences[mistake.video]
            if mistake.probability < ACCUSED:
                continue
            if mistake.position is not None:
                mistakes[mistake.video].append(_mistake(mistake, place))
            else:
                unmet = [clause.to_json(place.__getitem__) for clause in mistake.unmet] or [place[mistake.step]]
                absent += [formula for formula in unmet if formula not in absent]
    shown = []
    for video in task:
        named = {"id": one_line(video.id), "steps": [place[segment.step] for segment in video.segments]}
        more = {
            "times": _times(video),
            "added": _predicted_segments(video.segments),
            "mistakes": mistakes[video.id],
            "leftOut": left_out[video.id],
            "notSeen": not_seen[video.id],
            "file": media.get(video.id),
        }
        shown.append(named | {key: value for key, value in more.items() if value})
    return shown


def _mistake(mistake: Mistake, place: StepNumbers) -> PageObject:
    """What went wrong in a segment of a video."""
    return {"at": (mistake.position or 0) - 1, "kind": mistake.kind} | _known({
        "unmet": [clause.to_json(place.__getitem__) for clause in mistake.unmet] or None,
        "probability": None if mistake.probability == 1 else round(mistake.probability, 3),
    })  # fmt: skip


def _times(video: Video) -> list[float]:
    """Start and end of every segment, to the millisecond and without ".0": a page holds many of them."""
    times = (time for segment in video.segments for time in (segment.start, segment.end) if time is not None)
    rounded = (round(float(time), 3) for time in times)
    return [int(time) if time.is_integer() and time < 1e9 else time for time in rounded]


def _predicted_segments(segments: Sequence[Segment]) -> list[list[int]]:
    """Places of the predicted segments, each with its confidence in percent where that is known."""
    return [
        [number, *([] if segment.confidence is None else [round(100 * segment.confidence)])]
        for number, segment in enumerate(segments)
        if segment.source == PREDICTED
    ]

"""Worker tasks of the workbench: read what there is to label, find its files, learn the graph of the labels so far.

Each returns JSON, and runs in the sandbox.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from msg2 import drawing
from msg2.errors import InputError
from msg2.formats.captions import name_finder, read_cues
from msg2.formats.reading import choose_task
from msg2.formats.source import Source
from msg2.formats.step_table import to_csv
from msg2.graph import PairKind, SubtaskGraph
from msg2.inference import run_inference
from msg2.labelling import label
from msg2.labelling.drafts import NO_DRAFTS
from msg2.labelling.video_selection import differing_pairs, graph_stability, rank_videos
from msg2.media.video_files import VideoFiles
from msg2.metrics import PairDifference
from msg2.progress import Progress
from msg2.server.dataset_workers import folder_videos, holds_labels, read_tasks
from msg2.server.schemas import DatasetRecord, FillRequest
from msg2.task import DRAFT, Step, Task, Video

SURE = 0.8
"""Drafts that are less sure than this are called unsure."""
SAMPLES = 40
"""Bootstrap samples behind *which video next* and *enough?*: they tell 5 % from 10 %."""
MAX_NEXT = 5
MAX_CHANGES = 3

_KINDS: Mapping[PairKind, str] = {
    "needs": "“{1}” needs “{0}”",
    "after": "“{1}” comes after “{0}”, if both are done",
    "exclusive": "“{0}” and “{1}” are never both done",
    "free": "“{0}” and “{1}” are free of each other",
}


def read_base(
    path: Path, dataset: DatasetRecord, task: str | None, others: Mapping[str, Path], *, progress: Progress
) -> dict[str, Any]:
    """Read the labels of a task, and find the files of its videos."""
    source = Source.at(path)
    if dataset.media and not holds_labels(source):
        chosen = Task(dataset.title, [], [])
    else:
        chosen = choose_task(read_tasks(source, dataset, repeats="keep"), task, path)
    labels = {video.id: [asdict(one) | {"video": video.id} for one in video.segments] for video in chosen}
    found = folder_videos(source, labels or None)
    places = {files.video: _place(dataset.id, path, files) for files in found}
    if labels:  # videos in the same folder that have no labels yet
        known = {file for files in found for file in (files.media, files.captions)}
        for files in folder_videos(source):
            if files.path not in known:
                places[files.video] = _place(dataset.id, path, files)
    for id, folder in others.items():
        missing = sorted(labels.keys() - places.keys())
        if missing:
            places |= {files.video: _place(id, folder, files) for files in folder_videos(Source.at(folder), missing)}
    videos = [{"video": name, "labels": labels.get(name, [])} for name in sorted({*labels, *places})]
    return {"task": chosen.name, "steps": list(chosen.steps), "videos": videos, "places": places}


def _place(data: str, folder: Path, files: VideoFiles) -> dict[str, str | None]:
    media, captions = (
        None if file is None else file.relative_to(folder).as_posix() for file in (files.media, files.captions)
    )
    return {"data": data, "media": media, "captions": captions}


def read_drafts(
    path: Path, dataset: DatasetRecord, videos: Sequence[str], *, progress: Progress
) -> list[dict[str, Any]]:
    """Read the labels of a dataset as drafts of videos that are named like its own."""
    find, found = name_finder(videos), []
    for task in read_tasks(path, dataset, repeats="keep"):
        for video in task:
            name = find(video.id)
            if name is not None and video.segments:
                rows = [asdict(one) | {"video": name, "source": one.source or "draft"} for one in video.segments]
                found.append({"video": name, "labels": rows})
    if not found:
        raise InputError("has labels of none of these videos", where=dataset.name)
    return found


def draft_from_narration(
    path: Path,
    dataset: DatasetRecord,
    videos: Sequence[str],
    steps: Sequence[Step],
    labelled: Task,
    *,
    progress: Progress,
) -> list[dict[str, Any]]:
    """Draft labels from the narration, the step names and the videos that are labelled already."""
    known = labelled if len(labelled) else None
    drafted = label(path, list(steps) or None, known, task=dataset.title, progress=progress)
    find, found = name_finder(videos), []
    for video in drafted.task:
        name, rows = find(video.id), [asdict(one) for one in video.segments if one.source == DRAFT]
        if name is not None and rows:
            found.append({"video": name, "labels": [row | {"video": name} for row in rows]})
    return found


def fill_labels(
    path: Path,
    dataset: DatasetRecord,
    request: FillRequest,
    given: tuple[Path, DatasetRecord] | None,
    *,
    progress: Progress,
) -> dict[str, Any]:
    """Fill in the labels of videos that have none, from what is said in them."""
    known = None
    if given is not None:
        known = choose_task(read_tasks(given[0], given[1], repeats="keep"), request.task, given[0])
    found = label(path, request.steps or None, known, task=known.name if known else dataset.title, progress=progress)
    drafts = [[one for one in video.segments if one.source == DRAFT] for video in found.task]
    sure = sum((one.confidence or 0) >= SURE for rows in drafts for one in rows)
    remarks = [
        f"{found.drafted} labels of {sum(map(bool, drafts))} videos were filled in, as drafts; {sure} of them are at "
        f"least {SURE:.0%} sure",
        *found.notes,
    ]
    if found.calibration is not None:
        remarks.append(
            f"the confidences are off by {found.calibration.error:.0%} on {found.calibration.videos} held-out videos"
        )
    least = found.graph_confidence
    if least:
        rule = "do not count" if least >= NO_DRAFTS else f"count from {least:.0%} on"
        why = "too few labels tell whether they help" if found.calibration is None else "held-out labels say so"
        remarks.append(f"for a graph, drafts {rule}, as {why}; the options for experts can say otherwise")
    return {"table": to_csv([found.task]), "draft_confidence": least or None, "remarks": remarks}


def read_captions_of(path: Path, *, progress: Progress) -> list[dict[str, Any]]:
    """Read a caption file with the times of its words."""
    return [
        asdict(cue.sentence) | {"words": [[word.text, word.start, word.end] for word in cue.fragments]}
        for cue in read_cues(Source.at(path))
    ]


def learn_live_graph(
    labelled: Task, unlabelled: Sequence[Video], previous: dict[str, Any] | None, *, progress: Progress
) -> dict[str, Any]:
    """Learn the graph of the labels so far, say what changed, whether it is enough, and which videos come next."""
    enough_to_learn = len(labelled.steps) > 1
    result = run_inference(labelled.with_first_labels(), samples=SAMPLES) if enough_to_learn else None
    graphs = result.frequencies.graphs if result is not None and result.frequencies is not None else ()
    stability = graph_stability(graphs, len(labelled))
    choices = rank_videos(unlabelled, labelled, graphs)[:MAX_NEXT]
    return {
        "svg": None if result is None else drawing.svg(result.graph, picture=drawing.PictureOptions(direction="TB")),
        "graph": None if result is None else result.graph.to_json(),
        "changes": _changes(previous, None if result is None else result.graph),
        "movement": stability.movement,
        "enough": stability.enough,
        "sentence": stability.sentence,
        "next": [asdict(choice) for choice in choices],
    }


def _changes(previous: dict[str, Any] | None, graph: SubtaskGraph | None) -> str:
    """What is different from the graph before, in a line."""
    if graph is None:
        return "Label two or more steps, and their graph appears here."
    if previous is None:
        return f"The first graph: {len(graph.steps)} steps, {len(graph.edges())} edges."
    differences = differing_pairs(SubtaskGraph.from_json(previous), graph)
    if not differences:
        return "The last change left the graph as it was."
    told = "; ".join(map(_in_words, differences[:MAX_CHANGES]))
    more = len(differences) - MAX_CHANGES
    return f"Changed: {told}{f'; and {more} more' if more > 0 else ''}."


def _in_words(pair: PairDifference) -> str:
    return _KINDS[pair.second].format(pair.before, pair.after)

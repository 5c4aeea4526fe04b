"""Tasks of the workbench: read what there is to label, find its files, learn the graph of the labels so far.

Each returns JSON, and runs in a worker process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypedDict

from msg2 import drawing
from msg2.errors import InputError
from msg2.formats.captions import name_finder, read_cues
from msg2.formats.reading import choose_task
from msg2.formats.source import Source
from msg2.formats.step_table import to_csv
from msg2.graph import PairKind, SubtaskGraph
from msg2.inference.inference import run_inference
from msg2.labelling import label
from msg2.labelling.drafts import NO_DRAFTS
from msg2.labelling.video_selection import differing_pairs, graph_stability, rank_videos
from msg2.media.video_files import VideoFiles
from msg2.metrics import PairDifference
from msg2.server.dataset_workers import folder_videos, holds_labels, label_rows, read_tasks
from msg2.server.schemas import DatasetRecord, FillRequest
from msg2.server.workers import JsonObject
from msg2.task import DRAFT, Segment, Step, Task, Video

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


class FilledLabels(TypedDict):
    """A table of labels that were filled in, what to take of it for a graph, and what is to be said about it."""

    table: str
    draft_confidence: float | None
    remarks: list[str]


def read_base(path: Path, dataset: DatasetRecord, task: str | None, others: Mapping[str, Path]) -> JsonObject:
    """Read the labels of a task, and find the files of its videos."""
    source = Source.at(path)
    if dataset.media and not holds_labels(source):
        chosen = Task(dataset.title, [], [])
    else:
        chosen = choose_task(read_tasks(source, dataset, repeats="keep"), task, path)
    labels = {video.id: label_rows(video.id, video.segments) for video in chosen}
    of_labels = folder_videos(source, labels or None)
    places = {files.video: _place(dataset.id, path, files) for files in of_labels}
    if labels:  # videos in the same folder that have no labels yet
        known = {file for files in of_labels for file in (files.media, files.captions)}
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


def read_drafts(path: Path, dataset: DatasetRecord, videos: Sequence[str]) -> list[JsonObject]:
    """Read the labels of a dataset as drafts of videos that are named like its own."""
    tasks = read_tasks(path, dataset, repeats="keep")
    drafts = _drafts_by_video(((video.id, video.segments) for task in tasks for video in task), videos)
    if not drafts:
        raise InputError("has labels of none of these videos", where=dataset.name)
    return drafts


def draft_from_narration(
    path: Path, dataset: DatasetRecord, videos: Sequence[str], steps: Sequence[Step], labelled: Task
) -> list[JsonObject]:
    """Draft labels from the narration, the step names and the videos that are labelled already."""
    known = labelled if len(labelled) else None
    drafted = label(path, list(steps) or None, known, task=dataset.title)
    return _drafts_by_video(((video.id, _drafts(video)) for video in drafted.task), videos)


def _drafts_by_video(segments: Iterable[tuple[str, Sequence[Segment]]], videos: Sequence[str]) -> list[JsonObject]:
    """Return segments as drafts, under the name that the workbench has for their video."""
    find, drafts = name_finder(videos), list[JsonObject]()
    for video, rows in segments:
        name = find(video)
        if name is not None and rows:
            drafts.append(
                {"video": name, "labels": [{**row, "source": row["source"] or DRAFT} for row in label_rows(name, rows)]}
            )
    return drafts


def _drafts(video: Video) -> list[Segment]:
    return [segment for segment in video.segments if segment.source == DRAFT]


def fill_labels(
    path: Path, dataset: DatasetRecord, request: FillRequest, labels: tuple[Path, DatasetRecord] | None
) -> FilledLabels:
    """Fill in the labels of videos that have none, from what is said in them."""
    known = None
    if labels is not None:
        known = choose_task(read_tasks(labels[0], labels[1], repeats="keep"), request.task, labels[0])
    filled = label(path, request.steps or None, known, task=known.name if known else dataset.title)
    drafts = [_drafts(video) for video in filled.task]
    sure = sum((draft.confidence or 0) >= SURE for rows in drafts for draft in rows)
    remarks = [
        f"{filled.drafted} labels of {sum(map(bool, drafts))} videos were filled in, as drafts; {sure} of them are at "
        f"least {SURE:.0%} sure",
        *filled.notes,
    ]
    calibration, least = filled.calibration, filled.graph_confidence
    if calibration is not None:
        remarks.append(f"the confidences are off by {calibration.error:.0%} on {calibration.videos} held-out videos")
    if least:
        rule = "do not count" if least >= NO_DRAFTS else f"count from {least:.0%} on"
        why = "too few labels tell whether they help" if calibration is None else "held-out labels say so"
        remarks.append(f"for a graph, drafts {rule}, as {why}; the options for experts can say otherwise")
    return {"table": to_csv([filled.task]), "draft_confidence": least or None, "remarks": remarks}


def read_captions_of(path: Path) -> list[JsonObject]:
    """Read a caption file with the times of its words."""
    return [
        asdict(cue.sentence) | {"words": [[word.text, word.start, word.end] for word in cue.fragments]}
        for cue in read_cues(Source.at(path))
    ]


def learn_live_graph(labelled: Task, unlabelled: Sequence[Video], previous: JsonObject | None) -> JsonObject:
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


def _changes(previous: JsonObject | None, graph: SubtaskGraph | None) -> str:
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

"""Tasks on datasets and their labels: describe, read, draft, export. Each returns JSON, and runs in a worker process.

An upload lies in a file that is named after its id. Where that name shows up as the name of a task, the name of the
upload takes its place.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from lzma import LZMAError
from pathlib import Path
from typing import TypedDict

from msg2 import drawing
from msg2.errors import InputError
from msg2.files import safe_names
from msg2.formats import captaincook4d, preview_table, read_all, write
from msg2.formats.captions import CAPTION_SUFFIXES, name_finder, read_cues
from msg2.formats.columns import EVENT_NAMES, STEP_NAMES
from msg2.formats.data_summary import summarize_task
from msg2.formats.downloads import extract_zip
from msg2.formats.reading import choose_task
from msg2.formats.registry import find_reader
from msg2.formats.source import Source
from msg2.formats.step_table import to_csv
from msg2.graph import PairKind, SubtaskGraph
from msg2.inference.inference import run_inference
from msg2.labelling import label
from msg2.labelling.drafts import NO_DRAFTS
from msg2.labelling.video_selection import differing_pairs, graph_stability, rank_videos
from msg2.media.video_files import MEDIA_SUFFIXES, VideoFiles, find_video_files
from msg2.metrics import PairDifference
from msg2.server.schemas import CaptionEntry, DatasetRecord, FillRequest, TablePreviewResponse, Unit
from msg2.server.workers import JsonObject
from msg2.simulation import SimulationOptions, household_world, simulate
from msg2.task import DRAFT, Segment, Step, Task, Video

EXAMPLE_TASK = "Make Coffee"
VIDEO_FOLDER = "a folder of videos or captions, without labels"
"""The format of a dataset that has no labels yet."""
_SHOWN_CHARACTERS = 100
"""Of a cell, in a preview."""


def is_graph_file(path: Path) -> bool:
    """Tell whether a file is a graph file, by its content; a broken one is one as well."""
    document = Source.at(path).document
    return isinstance(document, dict) and ("preconditions" in document or captaincook4d.is_task_graph(document))


def describe_dataset(path: Path, dataset: DatasetRecord, unpack_megabytes: int | None = None) -> JsonObject:
    """Describe a dataset. An uploaded ZIP archive becomes the folder it holds; an Excel workbook stays a file."""
    if unpack_megabytes is not None and zipfile.is_zipfile(path) and not Source.at(path).is_spreadsheet:
        folder = path.with_name("unpacked")
        try:
            extract_zip(path, folder, max_bytes=unpack_megabytes << 20)
        except (OSError, LZMAError) as error:
            what = f"cannot be unpacked ({getattr(error, 'strerror', None) or error})"
            raise InputError(what, where=path) from error
        path.unlink()
        folder.rename(path)
    source = Source.at(path)
    videos = folder_videos(source)
    if videos and not holds_labels(source):
        entry = {"name": dataset.title, "videos": len(videos), "steps": []}
        return {"format": VIDEO_FOLDER, "tasks": [entry], "media": True}
    format = find_reader(source, dataset.reading.columns).description
    preview = preview_table(source, dataset.reading.columns)
    entries = [
        {
            "name": task.name, "videos": len(task), "steps": list(task.steps), "unit": unit_of(task),
            "findings": list(summarize_task(task).findings),
        }
        for task in read_tasks(source, dataset, repeats="keep")
    ]  # fmt: skip
    columns = {} if preview is None else dict(preview.columns)
    return {"format": format, "tasks": entries, "media": bool(videos), "columns": columns}


def preview_columns(path: Path, dataset: DatasetRecord) -> TablePreviewResponse | None:
    """Look at the first rows of a table, to ask which column is which."""
    preview = preview_table(path, dataset.reading.columns)
    if preview is None or len(preview.header) < 2:
        return None
    rows = [[cell[:_SHOWN_CHARACTERS] for cell in row] for row in preview.rows]
    choices = {"steps": list(STEP_NAMES), "events": list(EVENT_NAMES)}
    return {
        "kind": preview.kind, "header": list(preview.header), "rows": rows, "columns": dict(preview.columns),
        "choices": choices, "problem": preview.problem,
    }  # fmt: skip


def unit_of(task: Task) -> Unit:
    """Say what the task has many of: a log, where what is not written down was not done, has runs."""
    return "run" if task.absent == "skipped" else "video"


def write_example(folder: Path, name: str) -> None:
    """Write the labels of an everyday task, whose demonstrations are simulated, as a table."""
    simulation = simulate(household_world(EXAMPLE_TASK), SimulationOptions(), seed=0)
    table, *_ = write([simulation.task], folder / f"{name}.csv")
    table.rename(folder / name)


def folder_videos(source: Source, wanted: Iterable[str] | None = None) -> Sequence[VideoFiles]:
    """Find the videos in a folder, and captions there that belong to none of its files; nothing in a file."""
    if not source.is_folder or not any(_is_video_file(path) for path in source.path.rglob("*")):
        return ()
    found, missing = find_video_files(source.path, wanted=wanted)
    media = {Source.at(video.media).stem for video in found if video.media is not None}
    if not media and wanted is None:
        return found
    taken = {video.captions for video in found}
    files = (Source.at(path) for path in sorted(source.path.rglob("*")) if path not in taken)
    spoken = {file.stem: file.path for file in files if file.path.name.lower().endswith(CAPTION_SUFFIXES)}
    if wanted is None:  # captions in another language belong to a video that is there
        names = [(name, name) for name in spoken if not any(f"{name}.".startswith(f"{stem}.") for stem in media)]
    else:
        find = name_finder(spoken)
        names = [(video, name) for video in missing if (name := find(video)) is not None]
    return (*found, *(VideoFiles(video, None, spoken[name]) for video, name in names))


def holds_labels(source: Source) -> bool:
    """Tell whether a folder of videos also holds labels that msg2 reads."""
    try:
        return find_reader(source) is not None
    except InputError:
        return False


def _is_video_file(path: Path) -> bool:
    return path.name.lower().endswith((*MEDIA_SUFFIXES, *CAPTION_SUFFIXES))


def read_labels(path: Path, dataset: DatasetRecord, task: str | None) -> JsonObject:
    """Read every label of a task, video by video."""
    chosen = choose_task(read_tasks(path, dataset, repeats="keep"), task, path)
    videos = [{"video": video.id, "labels": label_rows(video.id, video.segments)} for video in chosen]
    return {"task": chosen.name, "steps": list(chosen.steps), "videos": videos}


def label_rows(video: str, segments: Iterable[Segment]) -> list[JsonObject]:
    """Return segments as rows of a table of labels."""
    return [asdict(segment) | {"video": video} for segment in segments]


def export_labels(path: Path, dataset: DatasetRecord, suffix: str, folder: Path) -> str:
    """Write the data in another format; where that takes several files, a ZIP archive of them."""
    stem = safe_names([dataset.title])[0]
    return pack_files(write(read_tasks(path, dataset, repeats="keep"), folder / f"{stem}{suffix}"), folder, stem)


def read_tasks(path: Path | Source, dataset: DatasetRecord, **options: str | float) -> list[Task]:
    """Read the tasks of a dataset; one that is named after the file is named after the upload instead."""
    source = path if isinstance(path, Source) else Source.at(path)
    tasks = read_all(source, **options, **dataset.reading.model_dump(exclude_none=True))
    return [
        Task(dataset.title, task.steps, task.videos, task.absent) if task.name == source.path.name else task
        for task in tasks
    ]


def pack_files(files: Sequence[Path], folder: Path, stem: str) -> str:
    """Pack the files of an export into one, where there are several."""
    if len(files) == 1:
        return files[0].relative_to(folder).as_posix()
    with zipfile.ZipFile(folder / f"{stem}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, file.relative_to(folder))
    return f"{stem}.zip"


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


def read_captions_of(path: Path) -> list[CaptionEntry]:
    """Read a caption file with the times of its words."""
    return [
        {
            "text": cue.sentence.text,
            "start": cue.sentence.start,
            "end": cue.sentence.end,
            "words": [(word.text, word.start, word.end) for word in cue.fragments],
        }
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

"""Functions on datasets and their labels: describe, read, draft, export. They run in the sandbox and return JSON.

An upload lies in a file named after its id; a task that would be called so gets the name of the upload.
"""

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, field, replace
from lzma import LZMAError
from pathlib import Path
from typing import cast

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from msg2 import drawing, formats, labelling, simulation
from msg2.errors import InputError, require
from msg2.files import safe_names, write_whole
from msg2.formats.archives import extract_zip
from msg2.formats.captions import CAPTION_SUFFIXES, name_finder, read_cues
from msg2.formats.columns import EVENTS, STEPS
from msg2.formats.data_summary import summarize_task
from msg2.formats.graph_reader import is_task_graph
from msg2.formats.reading import choose_task
from msg2.formats.registry import find_reader
from msg2.formats.source import Source
from msg2.formats.step_table import to_csv
from msg2.formats.video_files import MEDIA_SUFFIXES, VideoFiles, find_video_files
from msg2.graph import PairKind, SubtaskGraph
from msg2.inference.inference import run_inference
from msg2.labelling.drafts import NO_DRAFTS
from msg2.labelling.video_selection import differing_pairs, graph_stability, rank_videos
from msg2.server.sandbox import JsonObject, NamedFile
from msg2.server.schemas import CaptionEntry, DatasetRecord, FillRequest, TablePreviewResponse, Unit
from msg2.task import DRAFT, Segment, Step, Task, Video

EXAMPLE_TASK = "Make Coffee"
VIDEO_FOLDER = "a folder of videos or captions, without labels"
"""The format of a dataset that has no labels yet."""
_SHOWN_CHARACTERS = 100
"""Of a cell, in a preview."""


@dataclass(frozen=True, slots=True)
class Dataset(NamedFile):
    """Data with its record."""

    record: DatasetRecord = field(hash=False)


def is_graph_file(file: NamedFile) -> bool:
    """Tell whether a file is a graph file, by its content; a broken one is one as well."""
    document = Source.at(file.path).document
    return isinstance(document, dict) and ("preconditions" in document or is_task_graph(document))


def describe_dataset(data: Dataset, unpacked_megabytes: int) -> JsonObject:
    """Describe a dataset. An uploaded ZIP archive becomes the folder it holds; an Excel workbook stays a file."""
    path, columns = data.path, data.record.reading.columns
    if data.record.path is None and zipfile.is_zipfile(path) and Source.at(path).kind != "workbook":
        folder = path.with_name("unpacked")
        try:
            extract_zip(path, folder, max_bytes=unpacked_megabytes << 20)
        except (OSError, LZMAError) as error:
            what = f"cannot be unpacked ({getattr(error, 'strerror', None) or error})"
            raise InputError(what, where=path) from error
        path.unlink()
        folder.rename(path)
    source = Source.at(path)
    videos = folder_videos(source)
    if videos and not holds_labels(source):
        entry = {"name": data.record.title, "videos": len(videos), "steps": []}
        return {"format": VIDEO_FOLDER, "tasks": [entry], "media": True}
    format, preview = find_reader(source, columns).description, formats.preview_table(source, columns)
    entries = [
        {
            "name": task.name, "videos": len(task), "steps": list(task.steps), "unit": unit_of(task),
            "findings": list(summarize_task(task).findings),
        }
        for task in read_tasks(data, repeats="keep")
    ]  # fmt: skip
    known = {} if preview is None else dict(preview.columns)
    return {"format": format, "tasks": entries, "media": bool(videos), "columns": known}


def preview_columns(data: Dataset) -> TablePreviewResponse | None:
    """Look at the first rows of a table, to ask which column is which."""
    preview = formats.preview_table(data.path, data.record.reading.columns)
    if preview is None or len(preview.header) < 2:
        return None
    rows = [[cell[:_SHOWN_CHARACTERS] for cell in row] for row in preview.rows]
    choices = {"steps": list(STEPS.names), "events": list(EVENTS.names)}
    return {
        "kind": preview.kind, "header": list(preview.header), "rows": rows, "columns": dict(preview.columns),
        "choices": choices, "problem": preview.problem,
    }  # fmt: skip


def unit_of(task: Task) -> Unit:
    """Say what the task has many of: a log, where what is not written down was not done, has runs."""
    return "run" if task.absent == "skipped" else "video"


def write_example(path: Path) -> None:
    """Write the labels of an everyday task, whose demonstrations are simulated, as a table."""
    world, options = simulation.household_world(EXAMPLE_TASK), simulation.SimulationOptions()
    write_whole(path, to_csv([simulation.simulate(world, options, seed=0).task]))


def folder_videos(source: Source, wanted: Iterable[str] | None = None) -> Sequence[VideoFiles]:
    """Find the videos in a folder, and captions there that belong to none of its files; nothing in a file."""
    paths = sorted(source.path.rglob("*")) if source.is_folder else []
    if not any(path.name.lower().endswith((*MEDIA_SUFFIXES, *CAPTION_SUFFIXES)) for path in paths):
        return ()
    videos, missing = find_video_files(source.path, wanted=wanted)
    taken, stems = {video.captions for video in videos}, {Source.at(video.path).stem for video in videos}
    others = [path for path in paths if path.name.lower().endswith(CAPTION_SUFFIXES) and path not in taken]
    spoken = {Source.at(path).stem: path for path in others}
    if wanted is None:  # captions in another language belong to a video that is there
        names = [(name, name) for name in spoken if not any(f"{name}.".startswith(f"{stem}.") for stem in stems)]
    else:
        find = name_finder(spoken)
        names = [(video, name) for video in missing if (name := find(video)) is not None]
    return (*videos, *(VideoFiles(video, None, spoken[name]) for video, name in names))


def holds_labels(source: Source) -> bool:
    """Tell whether a folder of videos also holds labels that msg2 reads."""
    with suppress(InputError):
        return find_reader(source) is not None
    return False


def read_labels(data: Dataset, task: str | None) -> JsonObject:
    """Read every label of a task, video by video."""
    chosen = read_task(data, task, repeats="keep")
    videos = [_video_labels(video.id, video.segments) for video in chosen]
    return {"task": chosen.name, "steps": list(chosen.steps), "videos": videos}


def _video_labels(video: str, segments: Iterable[Segment]) -> JsonObject:
    return {"video": video, "labels": [asdict(segment) | {"video": video} for segment in segments]}


def export_labels(data: Dataset, suffix: str, folder: Path) -> str:
    """Write the data in another format; where that takes several files, a ZIP archive of them."""
    stem = safe_names([data.record.title])[0]
    return pack_files(formats.write(read_tasks(data, repeats="keep"), folder / f"{stem}{suffix}"), folder, stem)


def read_tasks(data: Dataset, **options: str | float) -> list[Task]:
    """Read the tasks of a dataset; one that is named after the file is named after the upload instead."""
    title = data.record.title
    tasks = formats.read_all(Source.at(data.path), **options, **data.record.reading.model_dump(exclude_none=True))
    return [
        Task(title, task.steps, task.videos, task.absent) if task.name == data.path.name else task for task in tasks
    ]


def read_task(data: Dataset, name: str | None, **options: str | float) -> Task:
    """Read the task of this name, or the only one."""
    return choose_task(read_tasks(data, **options), name, data.path)


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
MAX_HISTORY = 200
MAX_NEXT = 5
MAX_CHANGES = 3

_KINDS: Mapping[PairKind, str] = {
    "needs": "“{1}” needs “{0}”",
    "after": "“{1}” comes after “{0}”, if both are done",
    "exclusive": "“{0}” and “{1}” are never both done",
    "together": "“{0}” and “{1}” happen together",
    "free": "“{0}” and “{1}” are free of each other",
}


def read_base(data: Dataset, task: str | None, others: Mapping[str, Path]) -> JsonObject:
    """Read the labels of a task, and find the files of its videos."""
    source = Source.at(data.path)
    without_labels = data.record.media and not holds_labels(source)
    chosen = Task(data.record.title, [], []) if without_labels else read_task(data, task, repeats="keep")
    labels = {video.id: video.segments for video in chosen}
    of_labels = folder_videos(source, labels or None)
    known = {file for files in of_labels for file in (files.media, files.captions)}
    unlabelled = [files for files in folder_videos(source) if files.path not in known]
    places = {files.video: _place(data.record.id, data.path, files) for files in (*of_labels, *unlabelled)}
    for id, folder in others.items():
        missing = sorted(labels.keys() - places.keys())
        if missing:
            places |= {files.video: _place(id, folder, files) for files in folder_videos(Source.at(folder), missing)}
    videos = [_video_labels(name, labels.get(name, ())) for name in sorted({*labels, *places})]
    return {"task": chosen.name, "steps": list(chosen.steps), "videos": videos, "places": places}


def _place(data: str, folder: Path, files: VideoFiles) -> dict[str, str]:
    named = {"media": files.media, "captions": files.captions}
    inside = {kind: file.relative_to(folder).as_posix() for kind, file in named.items() if file is not None}
    return {"data": data, **inside}


def read_drafts(data: Dataset, videos: Sequence[str]) -> list[JsonObject]:
    """Read the labels of a dataset as drafts of videos that are named like its own."""
    tasks = read_tasks(data, repeats="keep")
    drafts = _drafts_by_video(((video.id, video.segments) for task in tasks for video in task), videos)
    require(drafts, "has labels of none of these videos", where=data.record.name)
    return drafts


def draft_from_narration(
    data: Dataset, videos: Sequence[str], steps: Sequence[Step], labelled: Task
) -> list[JsonObject]:
    """Draft labels from the narration, the step names and the videos that are labelled already."""
    known = labelled if len(labelled) else None
    drafted = labelling.label(data.path, list(steps) or None, known, task=data.record.title)
    return _drafts_by_video(((video.id, _drafts(video)) for video in drafted.task), videos)


def _drafts_by_video(segments: Iterable[tuple[str, Sequence[Segment]]], videos: Sequence[str]) -> list[JsonObject]:
    """Return segments as drafts, under the name that the workbench has for their video."""
    find, drafts = name_finder(videos), list[JsonObject]()
    for video, own in segments:
        name = find(video)
        if name is not None and own:
            drafts.append(_video_labels(name, [replace(segment, source=segment.source or DRAFT) for segment in own]))
    return drafts


def _drafts(video: Video) -> list[Segment]:
    return [segment for segment in video.segments if segment.source == DRAFT]


def fill_labels(data: Dataset, request: FillRequest, labels: Dataset | None) -> tuple[str, float | None, list[str]]:
    """Fill in the labels of videos from what is said: a table, which drafts are sure enough for a graph, remarks."""
    known = None if labels is None else read_task(labels, request.task, repeats="keep")
    task = data.record.title if known is None else known.name
    filled = labelling.label(data.path, request.steps or None, known, task=task)
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
    return to_csv([filled.task]), least or None, remarks


def read_captions_of(file: NamedFile) -> list[CaptionEntry]:
    """Read a caption file with the times of its words."""
    cues = read_cues(Source.at(file.path))
    captions = [{**asdict(cue.sentence), "words": [*map(astuple, cue.fragments)]} for cue in cues]
    return cast(list[CaptionEntry], captions)


class GraphEntry(TypedDict):
    """A graph that was learned with so many labelled videos; of all but the last, only how much it moved."""

    videos: int
    movement: float | None
    graph: JsonObject | None


_HISTORY = TypeAdapter(list[GraphEntry])


def learn_live_graph(labelled: Task, unlabelled: Sequence[Video], history: Path) -> JsonObject:
    """Learn the graph of the labels so far, say what changed, whether it is enough, and which videos come next."""
    result = run_inference(labelled.with_first_labels(), samples=SAMPLES) if len(labelled.steps) > 1 else None
    graphs = result.frequencies.graphs if result is not None and result.frequencies is not None else ()
    stability = graph_stability(graphs, len(labelled))
    entries: list[GraphEntry] = []
    with suppress(OSError, ValueError):  # none yet, or nothing that is worth stopping for
        entries = _HISTORY.validate_json(history.read_bytes())
    previous = entries[-1]["graph"] if entries else None
    if result is not None:
        older: list[GraphEntry] = [{**entry, "graph": None} for entry in entries if entry["videos"] != len(labelled)]
        graph = result.graph.to_json()
        newest: GraphEntry = {"videos": len(labelled), "movement": stability.movement, "graph": graph}
        entries = [*older[-MAX_HISTORY:], newest]
        write_whole(history, _HISTORY.dump_json(entries))
    moved = [(entry["videos"], entry["movement"]) for entry in entries if entry["movement"] is not None]
    return {
        "svg": None if result is None else drawing.svg(result.graph, picture=drawing.PictureOptions(direction="TB")),
        "labels": sum(len(video.segments) for video in labelled),
        "changes": _changes(previous, None if result is None else result.graph),
        **asdict(stability),
        "trend": [{"videos": videos, "movement": movement} for videos, movement in sorted(moved)],
        "next": [asdict(choice) for choice in rank_videos(unlabelled, labelled, graphs)[:MAX_NEXT]],
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
    told = "; ".join(_KINDS[pair.second].format(pair.before, pair.after) for pair in differences[:MAX_CHANGES])
    more = len(differences) - MAX_CHANGES
    return f"Changed: {told}{f'; and {more} more' if more > 0 else ''}."

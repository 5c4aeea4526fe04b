"""Tasks on datasets: describe, read and export them. Each returns JSON, and runs in a worker process.

An upload lies in a file that is named after its id. Where that name shows up as the name of a task, the name of the
upload takes its place.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from lzma import LZMAError
from pathlib import Path

from msg2.errors import InputError
from msg2.files import safe_names
from msg2.formats import captaincook4d, preview_table, read_all, write
from msg2.formats.captions import CAPTION_SUFFIXES, name_finder
from msg2.formats.columns import EVENT_NAMES, STEP_NAMES
from msg2.formats.data_summary import summarize_task
from msg2.formats.downloads import extract_zip
from msg2.formats.reading import choose_task
from msg2.formats.registry import find_reader
from msg2.formats.source import Source
from msg2.media.video_files import MEDIA_SUFFIXES, VideoFiles, find_video_files
from msg2.server.schemas import DatasetRecord, TablePreviewResponse, Unit
from msg2.server.workers import JsonObject
from msg2.simulation import SimulationOptions, household_world, simulate
from msg2.task import Segment, Task

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

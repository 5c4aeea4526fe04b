"""What the server has others do: each chore runs in a process of its own, reads files or plain values, answers in JSON.

Uploads lie in files that are named after their id; where that name shows up as the name of a task, it is the upload's.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msg2 import assist, drawing
from msg2.errors import InputError
from msg2.files import safe_names, write_together, write_whole
from msg2.graph import SubtaskGraph
from msg2.inference import Knowledge, study
from msg2.inference.majority import merge
from msg2.options import BootstrapOptions, DownloadOptions, DrawOptions
from msg2.readers import captaincook4d, read_all, read_graph
from msg2.readers.registry import reader_of, the_task
from msg2.readers.sources import Source
from msg2.readers.unpacking import unpack
from msg2.server.models import Correction, Job, Learning, Row
from msg2.server.process import Report
from msg2.server.records import Dataset
from msg2.task import Segment, Task, Video
from msg2.worlds import export

GRAPH, PAGE = "graph.json", "page.html"
"""The files of a graph that is kept, beside its record."""


# -- datasets ---------------------------------------------------------------------------------------------------


def is_graph(path: Path, *, report: Report) -> bool:
    """Whether the file is a graph file, by its content; a broken one is one as well."""
    found = Source.at(path).document
    return isinstance(found, dict) and ("preconditions" in found or captaincook4d.is_task_graph(found))


def receive(path: Path, data: Dataset, megabytes: int, *, report: Report) -> dict[str, Any]:
    """As `look_into`, of an upload: a ZIP archive becomes the folder that it holds, in its place."""
    if zipfile.is_zipfile(path):
        report("unpacking")
        folder = path.with_name("unpacked")
        try:
            unpack(path, folder, DownloadOptions(most_bytes=megabytes << 20))
        except OSError as error:
            raise InputError(f"cannot be unpacked ({error.strerror})", where=path) from None
        path.unlink()
        folder.rename(path)
    return look_into(path, data, report=report)


def look_into(path: Path, data: Dataset, *, report: Report) -> dict[str, Any]:
    """What an upload, or data elsewhere, holds: `format` and `tasks`."""
    report("reading")
    format = reader_of(Source.at(path)).READS
    tasks = _tasks(path, data, repeats="keep")
    return {
        "format": format,
        "tasks": [{"name": task.name, "videos": len(task), "steps": list(task.steps)} for task in tasks],
    }


def labels(path: Path, data: Dataset, task: str | None, *, report: Report) -> dict[str, Any]:
    """Every label of a task, video by video."""
    found = the_task(_tasks(path, data, repeats="keep"), task, path)
    videos = [{"video": video.id, "labels": [_row(video.id, one) for one in video.segments]} for video in found]
    return {"task": found.name, "steps": list(found.steps), "videos": videos}


def correct(path: Path, data: Dataset, correction: Correction, target: Path, *, report: Report) -> dict[str, Any]:
    """The data with other labels for one video, as a table at `target`."""
    tasks = _tasks(path, data, repeats="keep")
    task = the_task(tasks, correction.task, path)
    if correction.video not in {video.id for video in task}:
        raise InputError("the task has no such video", where=correction.video)
    video = Video(correction.video, [_segment(row) for row in correction.labels])
    videos = [video if one.id == video.id else one for one in task]
    steps = {*task.steps, *(segment.step for segment in video.segments)}
    corrected = [Task(one.name, steps, videos) if one is task else one for one in tasks]
    if not any(one.segments for task in corrected for one in task):
        raise InputError("no label would be left", hint="remove the data instead")
    write_whole(target, export.as_table(corrected))
    return look_into(target, data, report=report)


def export_labels(path: Path, data: Dataset, suffix: str, folder: Path, *, report: Report) -> str:
    """The data in another format, in a file of `folder`: its name. Formats of many files are packed."""
    stem = safe_names([data.title])[0]
    return _packed(export.write(_tasks(path, data, repeats="keep"), folder / f"{stem}{suffix}"), folder, stem)


def _tasks(path: Path, data: Dataset, **options: Any) -> list[Task]:
    """The tasks at `path`; one that is named after the file is named after the upload instead."""
    tasks = read_all(path, **options, **data.reading.model_dump(exclude_none=True))
    return [Task(data.title, one.steps, one.videos) if one.name == path.name else one for one in tasks]


def _row(video: str, segment: Segment) -> dict[str, Any]:
    row = {"video": video, "step": segment.step, "start": segment.start, "end": segment.end,
           "confidence": segment.confidence, "source": segment.source}  # fmt: skip
    return {key: value for key, value in row.items() if value is not None}


def _segment(row: Row) -> Segment:
    return Segment(row.step, row.start, row.end, row.confidence, row.source)


# -- graphs -----------------------------------------------------------------------------------------------------


def learn(path: Path, data: Dataset, job: Job, place: Path, *, report: Report) -> dict[str, Any]:
    """The graph of a job, with its page, as files in `place`."""
    report("reading")
    reading = _given(repeats=job.repeats, overlap=job.overlap)
    task = the_task(_tasks(path, data, **reading), job.task, path)
    graph = _learnt(task, job, report)
    report("drawing")
    return _keep(graph, place, task)


def keep(graph: dict[str, Any], place: Path, *, report: Report) -> dict[str, Any]:
    """A graph that somebody drew, with its page, as files in `place`; its name is that of who drew it."""
    drawn = SubtaskGraph.from_json(graph)
    return {**_keep(drawn, place), "name": str(drawn.method.get("annotator", ""))}


def keep_file(path: Path, title: str, place: Path, *, report: Report) -> dict[str, Any]:
    """As `keep`, of a graph file; one that does not name its task is named `title`."""
    graph = read_graph(path)
    named = {**graph.to_json(), "task": title} if graph.task == path.stem else graph.to_json()
    return _keep(SubtaskGraph.from_json(named), place)


def merged(paths: Sequence[Path], place: Path, *, report: Report) -> dict[str, Any]:
    """Graphs that are kept as one, by majority, as files in `place`; with the votes."""
    found = merge([read_graph(path) for path in paths])
    return {**_keep(found.graph, place), "votes": [vote.to_json() for vote in found.votes]}


def export_graph(path: Path, suffix: str, folder: Path, *, report: Report) -> str:
    """A graph in another format, in a file of `folder`: its name. Formats of many files are packed."""
    graph = read_graph(path)
    stem = safe_names([graph.task])[0]
    drawing.show(graph, folder / f"{stem}{suffix}")
    return _packed(sorted(folder.iterdir()), folder, stem)


def _learnt(task: Task, how: Learning, report: Report) -> SubtaskGraph:
    options = _given(delta=how.options.delta, alpha=how.options.alpha, recency=how.options.recency)
    if how.options.max_literals is not None:
        options["max_literals"] = None if how.options.max_literals == "none" else how.options.max_literals
    bootstrap = None
    if how.samples is not None or how.confidence is not None:
        bootstrap = BootstrapOptions(**_given(samples=how.samples, confidence=how.confidence))
    told = Knowledge([(a, b) for a, b in how.require], [(a, b) for a, b in how.forbid])
    report("learning")
    found = study(task, how.method, seed=how.seed, knowledge=told, bootstrap=bootstrap, report=report, **options)
    return found.graph


def _keep(graph: SubtaskGraph, place: Path, videos: Task | None = None) -> dict[str, Any]:
    write_together({place / GRAPH: graph.dumps(), place / PAGE: drawing.page(graph, videos)})
    seen = graph.method.get("videos")
    return {
        "task": graph.task,
        "steps": list(graph.steps),
        "edges": len(graph.edges()),
        "videos": len(seen) if isinstance(seen, list) else 0,
    }


# -- questions --------------------------------------------------------------------------------------------------


def infer(how: Learning, rows: Sequence[Row], path: Path, *, report: Report) -> dict[str, Any]:
    """The graph of labels that came with the question."""
    task = _asked(rows, how.task, path, **_given(repeats=how.repeats, overlap=how.overlap))
    return _learnt(task, how, report).to_json()


def next_steps(graph: dict[str, Any], done: Sequence[str], ranker: str, *, report: Report) -> dict[str, Any]:
    """What comes next."""
    learnt = SubtaskGraph.from_json(graph)
    if ranker not in assist.RANKERS:
        raise InputError(f"there is no ranker {ranker!r}", hint=f"there are {', '.join(assist.RANKERS)}")
    ranked = assist.next_steps(learnt, done, assist.RANKERS[ranker](learnt))
    steps = [
        {"step": one.step, "probability": one.probability, "eligible": one.eligible,
         "unmet": [clause.to_json() for clause in one.unmet]}
        for one in ranked
    ]  # fmt: skip
    return {"steps": steps}


def check(graph: dict[str, Any], rows: Sequence[Row], path: Path, *, report: Report) -> dict[str, Any]:
    """What went wrong in labels that came with the question."""
    learnt = SubtaskGraph.from_json(graph)
    return assist.check(learnt, _asked(rows, None, path, repeats="keep")).to_json()


def draw(graph: dict[str, Any], *, report: Report) -> dict[str, Any]:
    """The picture of a graph that is being drawn by hand: all of it, also what follows from the rest."""
    drawn = SubtaskGraph.from_json(graph)
    return {"svg": drawing.svg(drawn, options=DrawOptions(reduce=False)), "graph": drawn.to_json()}


def _asked(rows: Sequence[Row], task: str | None, path: Path, **reading: Any) -> Task:
    """The task of rows of a table. They are written to `path` and read as a table, so that complaints are the same."""
    write_whole(path, "".join(row.model_dump_json(exclude_none=True) + "\n" for row in rows))
    found = read_all(path, **reading)
    if task is not None and len(found) == 1 and all(row.task is None for row in rows):
        return Task(task, found[0].steps, found[0].videos)
    return the_task(found, task, path)


# -- shared -----------------------------------------------------------------------------------------------------


def _given(**values: Any) -> dict[str, Any]:
    """What was given; the rest keeps its defaults."""
    return {name: value for name, value in values.items() if value is not None}


def _packed(files: Sequence[Path], folder: Path, stem: str) -> str:
    """The name, in `folder`, of the only file, or of an archive of all of them."""
    if len(files) == 1:
        return files[0].relative_to(folder).as_posix()
    with zipfile.ZipFile(folder / f"{stem}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, file.relative_to(folder))
    return f"{stem}.zip"

"""Worker tasks on graphs: learn, save, export, draw and question them. Each returns JSON, and runs in the sandbox.

Every function takes a keyword `progress` (see `msg2.progress`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msg2 import assist, drawing
from msg2.files import safe_names, write_together, write_whole
from msg2.formats import read_all, read_graph
from msg2.formats.reading import choose_task
from msg2.graph import SubtaskGraph
from msg2.inference import merge_graphs, run_inference
from msg2.metrics import compare_graphs
from msg2.progress import Progress
from msg2.server.dataset_workers import pack_files, read_tasks, unit_of
from msg2.server.schemas import DatasetRecord, DirectlyFollowsQuery, JobRequest, LabelRow, LearnSettings
from msg2.task import Task

GRAPH_FILE, PAGE_FILE = "graph.json", "page.html"
"""The files of a graph that is kept, beside its record."""


# -- graphs -----------------------------------------------------------------------------------------------------


def learn_graph(
    path: Path, dataset: DatasetRecord, request: JobRequest, folder: Path, *, progress: Progress
) -> dict[str, Any]:
    """Learn the graph of a job, and write it with its page."""
    progress(0, None, "reading")
    task = choose_task(read_tasks(path, dataset, **_reading(request)), request.task, path)
    graph = _learn(task, request, progress)
    progress(0, None, "drawing")
    return _save_graph(graph, folder, task)


def save_drawn_graph(graph: dict[str, Any], folder: Path, *, progress: Progress) -> dict[str, Any]:
    """Write a graph that somebody drew, with its page; its name is that of who drew it."""
    drawn = SubtaskGraph.from_json(graph)
    return {**_save_graph(drawn, folder), "name": str(drawn.method.get("annotator", ""))}


def save_graph_file(path: Path, title: str, folder: Path, *, progress: Progress) -> dict[str, Any]:
    """Write the graph of a graph file, with its page."""
    graph = read_graph(path)
    named = {**graph.to_json(), "task": title} if graph.task == path.stem else graph.to_json()
    return _save_graph(SubtaskGraph.from_json(named), folder)


def save_merged_graph(paths: Sequence[Path], folder: Path, *, progress: Progress) -> dict[str, Any]:
    """Merge graphs by majority, and write the result with its page."""
    result = merge_graphs([read_graph(path) for path in paths])
    return {**_save_graph(result.graph, folder), "votes": [vote.to_json() for vote in result.votes]}


def view_graph(path: Path, top_down: bool, *, progress: Progress) -> dict[str, Any]:
    """Draw a graph, and say what it knows of each step."""
    graph = read_graph(path)
    return {
        "svg": drawing.svg(graph, picture=drawing.PictureOptions(direction="TB" if top_down else "LR")),
        "steps": list(graph.steps),
        "explanations": {name: graph.explain(name).split("\n") for name in graph.steps},
        "arrows": [{"before": edge.before, "after": edge.after, "kind": edge.kind} for edge in graph.edges()],
    }


def compare_graph_files(first: Path, second: Path, *, progress: Progress) -> dict[str, Any]:
    """Tell what two graphs agree and differ in."""
    return compare_graphs(read_graph(first), read_graph(second)).to_json()


def check_dataset(
    path: Path, dataset: DatasetRecord, graph: Path, task: str | None, *, progress: Progress
) -> dict[str, Any]:
    """Check the runs of a dataset against a graph."""
    chosen = choose_task(read_tasks(path, dataset, repeats="keep"), task, path)
    return assist.check(read_graph(graph), chosen).to_json()


def export_graph(path: Path, suffix: str, folder: Path, *, progress: Progress) -> str:
    """Write a graph in another format; where that takes several files, a ZIP archive of them."""
    graph = read_graph(path)
    stem = safe_names([graph.task])[0]
    drawing.show(graph, folder / f"{stem}{suffix}")
    return pack_files(sorted(folder.iterdir()), folder, stem)


def export_directly_follows(
    path: Path, dataset: DatasetRecord, query: DirectlyFollowsQuery, suffix: str, folder: Path, *, progress: Progress
) -> str:
    """Draw how often one step of a dataset came right after another."""
    task = choose_task(read_tasks(path, dataset), query.task, path)
    name = f"{safe_names([task.name])[0]}-directly-follows{suffix}"
    options = drawing.PictureOptions(direction="TB" if query.top_down else "LR")
    drawing.show_directly_follows(task, folder / name, options)
    return name


def _reading(settings: LearnSettings) -> dict[str, Any]:
    return settings.model_dump(include={"repeats", "overlap", "draft_confidence"}, exclude_none=True)


def _learn(task: Task, settings: LearnSettings, progress: Progress) -> SubtaskGraph:
    progress(0, None, "learning")
    return run_inference(
        task, settings.method, seed=settings.seed, constraints=settings.constraints(), samples=settings.samples,
        confidence=settings.confidence, progress=progress, **settings.parse_options(),
    ).graph  # fmt: skip


def _save_graph(graph: SubtaskGraph, folder: Path, videos: Task | None = None) -> dict[str, Any]:
    write_together({folder / GRAPH_FILE: graph.dumps(), folder / PAGE_FILE: drawing.html_page(graph, videos)})
    video_ids = graph.method.get("videos")
    unit = {} if videos is None else {"unit": unit_of(videos)}
    return {
        **unit,
        "task": graph.task,
        "steps": list(graph.steps),
        "edges": len(graph.edges()),
        "videos": len(video_ids) if isinstance(video_ids, list) else 0,
    }


# -- questions --------------------------------------------------------------------------------------------------


def infer_graph(settings: LearnSettings, rows: Sequence[LabelRow], path: Path, *, progress: Progress) -> dict[str, Any]:
    """Learn the graph of labels that came with the request."""
    return _learn(_read_rows(rows, settings.task, path, **_reading(settings)), settings, progress).to_json()


def rank_next_steps(
    graph: dict[str, Any],
    done: Sequence[str],
    ranker: str | None,
    rows: Sequence[LabelRow],
    path: Path,
    *,
    progress: Progress,
) -> dict[str, Any]:
    """Rank the steps that are left."""
    task = _read_rows(rows, None, path) if rows else None
    return {"steps": assist.forecast(SubtaskGraph.from_json(graph), done, ranker, task).to_json()["next"]}


def check_labels(graph: dict[str, Any], rows: Sequence[LabelRow], path: Path, *, progress: Progress) -> dict[str, Any]:
    """Check labels that came with the request against a graph."""
    return assist.check(SubtaskGraph.from_json(graph), _read_rows(rows, None, path, repeats="keep")).to_json()


def draw_graph(graph: dict[str, Any], *, progress: Progress) -> dict[str, Any]:
    """Draw a graph that is being edited by hand: all of it, also what follows from the rest."""
    parsed = SubtaskGraph.from_json(graph)
    return {"svg": drawing.svg(parsed, reduce=False), "graph": parsed.to_json()}


def _read_rows(rows: Sequence[LabelRow], task: str | None, path: Path, **reading: Any) -> Task:
    """Write rows to `path` and read them as a table, so that errors are the same as for a table."""
    write_whole(path, "".join(row.model_dump_json(exclude_none=True) + "\n" for row in rows))
    tasks = read_all(path, **reading)
    if task is not None and len(tasks) == 1 and all(row.task is None for row in rows):
        return Task(task, tasks[0].steps, tasks[0].videos, tasks[0].absent)
    return choose_task(tasks, task, path)

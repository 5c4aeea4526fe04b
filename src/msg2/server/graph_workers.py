"""Tasks on graphs: learn, save, export, draw, question and follow them. Each returns JSON, in a worker process.

Learning, checking and drawing are the functions that the command line calls.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypedDict, cast

from msg2 import assist, drawing
from msg2.assist.assistant import Assistant
from msg2.assist.events import answer_event
from msg2.errors import InputError
from msg2.files import safe_names, write_together, write_whole
from msg2.formats import read_all, read_graph
from msg2.formats.reading import choose_task
from msg2.graph import SubtaskGraph
from msg2.inference import merge_graphs
from msg2.inference.inference import run_inference
from msg2.metrics import compare_graphs
from msg2.options import fields_to_json
from msg2.progress import Progress, no_progress
from msg2.server import schemas
from msg2.server.dataset_workers import pack_files, read_tasks, unit_of
from msg2.server.schemas import DatasetRecord, LabelRow, LearnSettings
from msg2.server.workers import JsonObject
from msg2.task import Task

GRAPH_FILE, PAGE_FILE = "graph.json", "page.html"
"""The files of a graph that is kept, beside its record."""
_MAX_REMEMBERED = 32
"""Live runs that need not be replayed when they are asked again."""


def learn_graph(
    path: Path, dataset: DatasetRecord, request: schemas.JobRequest, folder: Path, *, progress: Progress
) -> JsonObject:
    """Learn the graph of a job, and write it with its page."""
    progress(0, None, "reading")
    task = choose_task(read_tasks(path, dataset, **request.reading()), request.task, path)
    graph = _learn(task, request, progress)
    progress(0, None, "drawing")
    return _save_graph(graph, folder, task)


def save_drawn_graph(graph: JsonObject, folder: Path) -> JsonObject:
    """Write a graph that somebody drew, with its page; its name is that of who drew it."""
    drawn = SubtaskGraph.from_json(graph)
    return {**_save_graph(drawn, folder), "name": str(drawn.method.get("annotator", ""))}


def save_graph_file(path: Path, title: str, folder: Path) -> JsonObject:
    """Write the graph of a graph file, with its page; one that is named after the file gets the title."""
    graph = read_graph(path)
    named = {**graph.to_json(), "task": title} if graph.task == path.stem else graph.to_json()
    return _save_graph(SubtaskGraph.from_json(named), folder)


def save_merged_graph(paths: Sequence[Path], folder: Path) -> JsonObject:
    """Merge graphs by majority, and write the result with its page."""
    result = merge_graphs([read_graph(path) for path in paths])
    return {**_save_graph(result.graph, folder), "votes": [vote.to_json() for vote in result.votes]}


def view_graph(path: Path, top_down: bool) -> schemas.GraphViewResponse:
    """Draw a graph, and say what it knows of each step."""
    graph = read_graph(path)
    return {
        "svg": drawing.svg(graph, picture=drawing.PictureOptions(direction="TB" if top_down else "LR")),
        "steps": list(graph.steps),
        "explanations": {name: graph.explain(name).split("\n") for name in graph.steps},
        "arrows": [{"before": edge.before, "after": edge.after, "kind": edge.kind} for edge in graph.edges()],
    }


def compare_graph_files(first: Path, second: Path) -> JsonObject:
    """Tell what two graphs agree and differ in."""
    return compare_graphs(read_graph(first), read_graph(second)).to_json()


def check_dataset(path: Path, dataset: DatasetRecord, graph: Path, task: str | None) -> JsonObject:
    """Check the runs of a dataset against a graph."""
    chosen = choose_task(read_tasks(path, dataset, repeats="keep"), task, path)
    return assist.check(read_graph(graph), chosen).to_json()


def export_graph(path: Path, suffix: str, folder: Path) -> str:
    """Write a graph in another format; where that takes several files, a ZIP archive of them."""
    graph = read_graph(path)
    stem = safe_names([graph.task])[0]
    drawing.show(graph, folder / f"{stem}{suffix}")
    return pack_files(sorted(folder.iterdir()), folder, stem)


def export_directly_follows(
    path: Path, dataset: DatasetRecord, query: schemas.DirectlyFollowsQuery, suffix: str, folder: Path
) -> str:
    """Draw how often one step of a dataset came right after another."""
    task = choose_task(read_tasks(path, dataset), query.task, path)
    name = f"{safe_names([task.name])[0]}-directly-follows{suffix}"
    options = drawing.PictureOptions(direction="TB" if query.top_down else "LR")
    drawing.show_directly_follows(task, folder / name, options)
    return name


def _learn(task: Task, settings: LearnSettings, progress: Progress) -> SubtaskGraph:
    progress(0, None, "learning")
    return run_inference(
        task, settings.method, seed=settings.seed, constraints=settings.constraints(), samples=settings.samples,
        confidence=settings.confidence, progress=progress, **settings.parse_options(),
    ).graph  # fmt: skip


def _save_graph(graph: SubtaskGraph, folder: Path, videos: Task | None = None) -> JsonObject:
    write_together({folder / GRAPH_FILE: graph.dumps(), folder / PAGE_FILE: drawing.html_page(graph, videos)})
    video_ids = graph.method.get("videos")
    return {
        **({} if videos is None else {"unit": unit_of(videos)}),
        "task": graph.task,
        "steps": list(graph.steps),
        "edges": len(graph.edges()),
        "videos": len(video_ids) if isinstance(video_ids, list) else 0,
    }


def infer_graph(settings: LearnSettings, rows: Sequence[LabelRow], path: Path) -> JsonObject:
    """Learn the graph of labels."""
    return _learn(_read_rows(rows, settings.task, path, **settings.reading()), settings, no_progress).to_json()


def rank_next_steps(
    graph: JsonObject, done: Sequence[str], ranker: str | None, rows: Sequence[LabelRow], path: Path
) -> dict[str, list[schemas.NextStepEntry]]:
    """Rank the steps that are left."""
    task = _read_rows(rows, None, path) if rows else None
    ranked = assist.forecast(SubtaskGraph.from_json(graph), done, ranker, task).to_json()["next"]
    return {"steps": [{**step, "seconds": step.get("seconds")} for step in cast(list[schemas.NextStepEntry], ranked)]}


def check_labels(graph: JsonObject, rows: Sequence[LabelRow], path: Path) -> JsonObject:
    """Check labels against a graph."""
    return assist.check(SubtaskGraph.from_json(graph), _read_rows(rows, None, path, repeats="keep")).to_json()


def draw_graph(graph: JsonObject) -> schemas.DrawResponse:
    """Draw a graph that is being edited by hand: all of it, also what follows from the rest."""
    parsed = SubtaskGraph.from_json(graph)
    return {"svg": drawing.svg(parsed, reduce=False), "graph": parsed.to_json()}


def _read_rows(rows: Sequence[LabelRow], task: str | None, path: Path, **reading: str | float) -> Task:
    """Write rows to `path` and read them as a table, so that errors are the same as for a table."""
    timed = any(row.start is not None or row.end is not None for row in rows)
    times = [{"start": row.start, "end": row.end} if timed else {} for row in rows]
    lines = (json.dumps({**row.model_dump(exclude_none=True), **both}) for row, both in zip(rows, times, strict=True))
    write_whole(path, "".join(f"{line}\n" for line in lines))
    tasks = read_all(path, **reading)
    if task is not None and len(tasks) == 1 and all(row.task is None for row in rows):
        return Task(task, tasks[0].steps, tasks[0].videos, tasks[0].absent)
    return choose_task(tasks, task, path)


@dataclass(frozen=True, slots=True)
class RunSetup:
    """What runs are followed with; it is another one where a file has changed."""

    graph: Path
    data: Path  # that of the graph, where there are no data
    dataset: str | None  # the record of the data, as JSON
    overlap: str | None
    changed: tuple[int, int]  # when the files were written
    most_events: int


class RunOutcome(TypedDict):
    """What came of an event: the answer, the run as it is kept, what was told (or the last of it), and the graph."""

    answer: JsonObject
    saved: JsonObject
    log: list[JsonObject]
    about: JsonObject


class RunFollower:
    """Answers the events of all runs of one graph and its data. What is kept of a run comes with every question."""

    def __init__(self, setup: RunSetup) -> None:
        graph, task = read_graph(setup.graph), None
        if setup.dataset is not None:
            dataset = DatasetRecord.model_validate_json(setup.dataset)
            overlap = {} if setup.overlap is None else {"overlap": setup.overlap}
            tasks = read_tasks(setup.data, dataset, repeats="keep", **overlap)
            task = tasks[0] if len(tasks) == 1 else choose_task(tasks, graph.task, setup.data)
        self._first, self._most_events = Assistant(graph, task), setup.most_events
        answer_event(self._first, {"ask": True})  # learns all that it needs, so that no event waits for that
        self._runs: OrderedDict[str, Assistant] = OrderedDict()

    def answer(self, run: str, saved: JsonObject | None, event: Mapping[str, object], log: bool) -> RunOutcome:
        """Tell a run what happened."""
        assistant = self._take(run, saved)
        if len(assistant.log()) >= self._most_events and not event.keys().isdisjoint(("did", "saw", "accept")):
            what = f"the run has {self._most_events:,} events, and takes no more"
            raise InputError(what, hint="undo some, or open another run")
        answer = answer_event(assistant, event)
        self._runs[run] = assistant
        while len(self._runs) > _MAX_REMEMBERED:
            self._runs.popitem(last=False)
        events = [fields_to_json(entry) for entry in assistant.log()[0 if log else -1 :]]
        graph = assistant.graph
        return {
            "answer": {**answer, "last": events[-1] if events else None},
            "saved": assistant.to_json(),
            "log": events,
            "about": {"task": graph.task, "steps": list(graph.steps), "limitations": assistant.limitations()},
        }

    def _take(self, run: str, saved: JsonObject | None) -> Assistant:
        """Return the run where it was left; it is remembered again only once it has answered."""
        remembered = self._runs.pop(run, None)
        if saved is None:
            return self._first.new_run()
        if remembered is not None and remembered.to_json() == saved:
            return remembered
        assistant = self._first.new_run()
        if saved.get("graph") != assistant.to_json()["graph"]:
            raise InputError("the graph has changed since the run began", hint="open another run")
        try:
            assistant.replay(cast(Sequence[JsonObject], saved["events"]))
        except (KeyError, TypeError, AttributeError):
            raise InputError("is damaged: its events cannot be read", where=f"runs/{run}") from None
        return assistant


make_follower = lru_cache(maxsize=1)(RunFollower)
"""A worker process follows the runs of one setup, and learns from its data once."""


def answer_run(
    setup: RunSetup, run: str, saved: JsonObject | None, event: Mapping[str, object], log: bool
) -> RunOutcome:
    """Tell a live run what happened."""
    return make_follower(setup).answer(run, saved, event, log)

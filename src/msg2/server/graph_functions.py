"""Functions on graphs: learn, save, export, draw, question and follow them. They run in the sandbox and return JSON."""

import json
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias, TypedDict, cast

from msg2 import assist, drawing, formats, inference, metrics
from msg2.assist.assistant import FORMAT
from msg2.assist.events import answer_event
from msg2.errors import InputError, require
from msg2.files import safe_names, write_together
from msg2.formats.reading import choose_task
from msg2.formats.source import Source
from msg2.graph import SubtaskGraph
from msg2.inference.inference import run_inference
from msg2.options import fields_to_json
from msg2.progress import Progress
from msg2.server import schemas
from msg2.server.dataset_functions import Dataset, pack_files, read_task, read_tasks, unit_of
from msg2.server.sandbox import JsonObject, NamedFile
from msg2.task import Task

GRAPH_FILE, PAGE_FILE = "graph.json", "page.html"
"""The files of a graph that is kept, beside its record."""
_MAX_REMEMBERED = 32
"""Live runs that need not be replayed when they are asked again."""


def learn_graph(data: Dataset, request: schemas.JobRequest, folder: Path, *, progress: Progress) -> JsonObject:
    """Learn the graph of a job, and write it with its page."""
    progress(0, None, "reading")
    task = read_task(data, request.task, **request.reading())
    progress(0, None, "learning")
    graph = run_inference(task, progress=progress, **request.arguments()).graph
    progress(0, None, "drawing")
    return _save_graph(graph, folder, task)


def save_drawn_graph(graph: JsonObject, folder: Path) -> JsonObject:
    """Write a graph that somebody drew, with its page; its name is that of who drew it."""
    drawn = SubtaskGraph.from_json(graph)
    return {**_save_graph(drawn, folder), "name": str(drawn.method.get("annotator", ""))}


def save_graph_file(file: NamedFile, folder: Path) -> JsonObject:
    """Write the graph of a graph file, with its page; one that is named after the file gets its usual name."""
    graph = formats.read_graph(file.path)
    task = Path(file.name).stem if graph.task == file.path.stem else graph.task
    return _save_graph(SubtaskGraph.from_json({**graph.to_json(), "task": task}), folder)


def save_merged_graph(paths: Sequence[Path], folder: Path) -> JsonObject:
    """Merge graphs by majority, and write the result with its page."""
    result = inference.merge_graphs([formats.read_graph(path) for path in paths])
    return {**_save_graph(result.graph, folder), "votes": [vote.to_json() for vote in result.votes]}


def view_graph(path: Path, top_down: bool) -> schemas.GraphViewResponse:
    """Draw a graph, and say what it knows of each step."""
    graph = formats.read_graph(path)
    return {
        "svg": drawing.svg(graph, picture=_picture(top_down)),
        "steps": list(graph.steps),
        "explanations": {name: graph.explain(name).split("\n") for name in graph.steps},
        "arrows": [{"before": edge.before, "after": edge.after, "kind": edge.kind} for edge in graph.edges()],
    }


def compare_graph_files(first: Path, second: Path) -> JsonObject:
    """Tell what two graphs agree and differ in."""
    return metrics.compare_graphs(formats.read_graph(first), formats.read_graph(second)).to_json()


def check_dataset(data: Dataset, graph: Path, task: str | None) -> JsonObject:
    """Check the runs of a dataset against a graph."""
    return assist.check(formats.read_graph(graph), read_task(data, task, repeats="keep")).to_json()


def export_graph(path: Path, suffix: str, folder: Path) -> str:
    """Write a graph in another format; where that takes several files, a ZIP archive of them."""
    graph = formats.read_graph(path)
    stem = safe_names([graph.task])[0]
    drawing.show(graph, folder / f"{stem}{suffix}")
    return pack_files(sorted(folder.iterdir()), folder, stem)


def export_directly_follows(data: Dataset, suffix: str, folder: Path, *, task: str | None, top_down: bool) -> str:
    """Draw how often one step of a dataset came right after another."""
    chosen = read_task(data, task)
    name = f"{safe_names([chosen.name])[0]}-directly-follows{suffix}"
    drawing.show_directly_follows(chosen, folder / name, _picture(top_down))
    return name


def _picture(top_down: bool) -> drawing.PictureOptions:
    return drawing.PictureOptions(direction="TB" if top_down else "LR")


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


def infer_graph(request: schemas.InferRequest) -> JsonObject:
    """Learn the graph of labels."""
    task = _read_rows(request.labels, request.task, **request.reading())
    return run_inference(task, **request.arguments()).graph.to_json()


def rank_next_steps(request: schemas.NextStepsRequest) -> dict[str, list[schemas.NextStepEntry]]:
    """Rank the steps that are left."""
    task = _read_rows(request.labels) if request.labels else None
    ranked = assist.forecast(SubtaskGraph.from_json(request.graph), request.done, request.ranker, task).to_json()
    steps = cast(list[schemas.NextStepEntry], ranked["next"])
    return {"steps": [{**step, "seconds": step.get("seconds")} for step in steps]}


def check_labels(request: schemas.CheckRequest) -> JsonObject:
    """Check labels against a graph."""
    return assist.check(SubtaskGraph.from_json(request.graph), _read_rows(request.labels, repeats="keep")).to_json()


def draw_graph(graph: JsonObject) -> schemas.DrawResponse:
    """Draw a graph that is being edited by hand: all of it, also what follows from the rest."""
    parsed = SubtaskGraph.from_json(graph)
    return {"svg": drawing.svg(parsed, reduce=False), "graph": parsed.to_json()}


def _read_rows(rows: Sequence[schemas.LabelRow], name: str | None = None, **reading: str | float) -> Task:
    """Read rows as a table of JSON lines, so that errors are the same as for a table."""
    timed = any(row.start is not None or row.end is not None for row in rows)
    times = [{"start": row.start, "end": row.end} if timed else {} for row in rows]
    lines = (json.dumps({**row.model_dump(exclude_none=True), **both}) for row, both in zip(rows, times, strict=True))
    tasks = formats.read_all(Source(Path("labels"), "\n".join(lines).encode()), **reading)
    if name is not None and all(row.task is None for row in rows):
        return Task(name, tasks[0].steps, tasks[0].videos, tasks[0].absent)
    return choose_task(tasks, name, "labels")


RunQuestion: TypeAlias = tuple[schemas.AssistantOptions, JsonObject | None, JsonObject, bool]
"""The options and the run as it is kept, which come with every question; what happened; whether the log is wanted."""


class RunOutcome(TypedDict):
    """What came of an event: the answer, the run as it is kept, what was told (or the last of it), and the graph."""

    answer: JsonObject
    saved: JsonObject
    log: list[JsonObject]
    about: JsonObject


@lru_cache(maxsize=1)
def _prepare_runs(
    data: Dataset | None, path: Path, overlap: str | None, options: schemas.AssistantOptions
) -> assist.Assistant:
    """Make a run in which nothing has happened; a process is kept for one graph, and learns from its data once."""
    graph, task = formats.read_graph(path), None
    if data is not None:
        tasks = read_tasks(data, repeats="keep", overlap=overlap or "unordered")
        task = tasks[0] if len(tasks) == 1 else choose_task(tasks, graph.task, data.path)
    assistant = assist.Assistant(graph, task, **options.model_dump(exclude_none=True))
    answer_event(assistant, {"ask": True})  # learns all that it needs, so that no event waits for that
    return assistant


_runs: OrderedDict[str, assist.Assistant] = OrderedDict()
"""The runs that were asked last, which need not be replayed."""


def answer_run(data: Dataset | None, path: Path, overlap: str | None, run: str, question: RunQuestion) -> RunOutcome:
    """Tell a live run of a graph file what happened."""
    options, saved, event, log = question
    assistant = _runs.pop(run, None)  # it is remembered again only once it has answered
    if assistant is None or assistant.to_json() != saved:
        assistant = _prepare_runs(data, path, overlap, options).new_run()
        if saved is not None:
            _replay(assistant, saved, run)
    answer = answer_event(assistant, event)
    _runs[run] = assistant
    if len(_runs) > _MAX_REMEMBERED:
        _runs.popitem(last=False)
    events = [fields_to_json(entry) for entry in assistant.log()[0 if log else -1 :]]
    graph = assistant.graph
    return {
        "answer": {**answer, "last": events[-1] if events else None},
        "saved": assistant.to_json(),
        "log": events,
        "about": {"task": graph.task, "steps": list(graph.steps), "limitations": assistant.limitations()},
    }


def _replay(assistant: assist.Assistant, saved: JsonObject, run: str) -> None:
    require(saved.get("format") == FORMAT, "the run was kept by an older version of msg2", hint="open another run")
    same_graph = saved.get("graph") == assistant.to_json()["graph"]
    require(same_graph, "the graph has changed since the run began", hint="open another run")
    try:
        assistant.replay(cast(Sequence[JsonObject], saved["events"]))
    except (KeyError, TypeError, AttributeError):
        raise InputError("is damaged: its events cannot be read", where=f"runs/{run}") from None

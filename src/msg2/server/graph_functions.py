"""Functions on graphs: learn, save, export, draw, question and follow them. They run in the sandbox and return JSON."""

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, cast

from msg2 import assist, drawing, formats, inference, metrics
from msg2.assist.events import answer_event
from msg2.assist.following import unknown_step_error
from msg2.assist.run_log import FORMAT
from msg2.errors import InputError, require
from msg2.files import safe_names, write_together, write_whole
from msg2.formats.reading import choose_task
from msg2.formats.source import Source
from msg2.graph import SubtaskGraph
from msg2.graph.graph_file import ProcedureTexts
from msg2.inference.inference import run_inference
from msg2.options import fields_to_json
from msg2.progress import Progress
from msg2.server import schemas
from msg2.server.dataset_functions import Dataset, pack_files, read_task, read_tasks, unit_of
from msg2.server.sandbox import JsonObject, NamedFile
from msg2.task import Task, Video
from msg2.text import short_repr

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
    earlier = folder.parent / (request.replaces or "") / GRAPH_FILE
    if request.replaces is not None and earlier.is_file():  # what people wrote stays, but is to be reviewed again
        texts = formats.read_graph(earlier).texts
        graph = graph.with_texts(texts.of_steps(graph.index).model_copy(update={"reviewed": None}))
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
        "rules": graph.explain().splitlines(),
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


Recordings: TypeAlias = tuple[Dataset, schemas.JobRequest] | None
"""What a graph was learned from, and how that was read; None where that is not known any more."""


def _read_recordings(recordings: Recordings) -> Task | None:
    if recordings is None:
        return None
    data, job = recordings
    return read_task(data, job.task, **job.reading())


def describe_procedure(path: Path, recordings: Recordings) -> JsonObject:
    """Say what the written procedure of a graph has: its texts, and its steps in order."""
    graph = formats.read_graph(path)
    procedure = drawing.make_procedure(graph, _read_recordings(recordings))
    steps = [{"label": step.label, "name": step.name, "notes": [*step.musts, *step.notes]} for step in procedure.steps]
    texts = graph.texts.model_dump(mode="json")
    return {"title": procedure.title, "status": procedure.status, "texts": texts, "steps": steps}


def save_texts(path: Path, texts: ProcedureTexts) -> None:
    """Write other texts of the written procedure into a graph file."""
    write_whole(path, formats.read_graph(path).with_texts(texts).dumps())


def export_procedure(path: Path, recordings: Recordings, suffix: str, folder: Path) -> str:
    """Write a graph as a procedure for people."""
    graph = formats.read_graph(path)
    return graph.write(folder / f"{safe_names([graph.task])[0]}{suffix}", _read_recordings(recordings)).name


def export_directly_follows(data: Dataset, suffix: str, folder: Path, *, task: str | None, top_down: bool) -> str:
    """Draw how often one step of a dataset came right after another."""
    chosen = read_task(data, task, repeats="keep", ties="file")
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


@dataclass(frozen=True, slots=True)
class RunQuestion:
    """The options and the run as it is kept, which come with every question, and what happened.

    `log`: everything that was told is wanted, not only the last event. `edited`: the graph is another one than before.
    """

    options: schemas.AssistantOptions
    saved: JsonObject | None
    event: JsonObject
    log: bool = False
    edited: bool = False


class RunOutcome(TypedDict):
    """What came of an event.

    The answer and whether it is news to all who listen, the run as it is kept, what was told (or the last of it), what
    was dropped, and the graph.
    """

    answer: JsonObject
    is_new: bool
    saved: JsonObject
    log: list[JsonObject]
    dropped: list[JsonObject]
    about: JsonObject


@lru_cache(maxsize=1)
def _prepare_runs(
    data: Dataset | None, path: Path, order: tuple[tuple[str, str], ...], options: schemas.AssistantOptions
) -> tuple[assist.Assistant, list[InputError]]:
    """Make a run in which nothing has happened, and say what data and options have that the graph does not.

    A process is kept for one graph, and learns from its data once.
    """
    graph, task, problems = formats.read_graph(path), None, []
    if data is not None:
        tasks = read_tasks(data, repeats="keep", **dict(order))
        task = tasks[0] if len(tasks) == 1 else choose_task(tasks, graph.task, data.path)
        where = f"the data of task {short_repr(task.name)}"
        problems += [unknown_step_error(name, graph, where) for name in task.steps if name not in graph.index]
        task = _keep_steps(task, graph) if problems else task
        if problems and not task.videos:
            raise problems[0]
    values = options.model_dump(exclude_none=True)
    if options.confusion is not None:
        counts, known = options.confusion, [*graph.steps, ""]
        named = {*counts, *chain.from_iterable(counts.values())}.difference(known)
        problems += [unknown_step_error(name, graph, "confusion") for name in sorted(named)]
        rows = [name for name in known if name or name in counts]
        values["confusion"] = [[counts.get(row, {}).get(name, 0.0) for name in known] for row in rows]
    assistant = assist.Assistant(graph, task, **values)
    answer_event(assistant, {"ask": True})  # learns all that it needs, so that no event waits for that
    return assistant, problems


def _keep_steps(task: Task, graph: SubtaskGraph) -> Task:
    """Leave out the steps that a graph does not have."""
    runs = [(video, [segment for segment in video.segments if segment.step in graph.index]) for video in task.videos]
    videos = [Video(video.id, segments, video.sentences) for video, segments in runs if segments]
    return Task(task.name, [name for name in task.steps if name in graph.index], videos, task.absent)


_runs: OrderedDict[str, tuple[assist.Assistant, JsonObject]] = OrderedDict()
"""The runs that were asked last, which need not be replayed, with their last answers to frames."""


def answer_run(
    data: Dataset | None, path: Path, order: tuple[tuple[str, str], ...], run: str, question: RunQuestion
) -> RunOutcome:
    """Tell a live run of a graph file what happened."""
    saved, event, dropped = question.saved, question.event, list[JsonObject]()
    assistant, shown = _runs.pop(run, (None, {}))  # it is remembered again only once it has answered
    if assistant is None or question.edited or assistant.to_json() != saved:
        prepared, problems = _prepare_runs(data, path, order, question.options)
        assistant, shown = prepared.new_run(), {}
        if saved is not None:
            dropped = _replay(assistant, saved, run, question.edited)
        elif problems:
            raise problems[0]
    try:
        is_frame = bool(shown) and event.keys() == {"observe", "at"}
        answer = _observe(assistant, event, shown) if is_frame else answer_event(assistant, event)
    except InputError:  # the frames so far are nowhere else
        _runs[run] = assistant, shown
        raise
    now_saved, report = assistant.to_json(), cast(JsonObject, answer.get("report") or {})
    # The report on a frame has its time where a block of frames is complete, and an earlier one else.
    is_new = now_saved != saved or ("observe" in event and report.get("at") == event["at"])
    _runs[run] = assistant, answer if "observe" in event else {}
    if len(_runs) > _MAX_REMEMBERED:
        _runs.popitem(last=False)
    events = [fields_to_json(entry) for entry in assistant.log()[0 if question.log else -1 :]]
    graph = assistant.graph
    return {
        "answer": {**answer, "last": events[-1] if events else None},
        "is_new": is_new,
        "saved": now_saved,
        "log": events,
        "dropped": dropped,
        "about": {"task": graph.task, "steps": list(graph.steps), "limitations": assistant.limitations()},
    }


def _observe(assistant: assist.Assistant, event: JsonObject, shown: JsonObject) -> JsonObject:
    """Answer a frame; most of them change nothing, and are answered with what was shown last."""
    report = assistant.observe(cast(Mapping[str, float], event["observe"]), cast(float, event["at"]))
    answer = answer_event(assistant, {"ask": True}) if report.at == event["at"] else shown
    return {**answer, "report": report.to_json()}


def _replay(assistant: assist.Assistant, saved: JsonObject, run: str, edited: bool) -> list[JsonObject]:
    """Tell what a run was told; if the graph was edited, but for events of steps that are gone, which are returned."""
    require(saved.get("format") == FORMAT, "the run was kept by an older version of msg2", hint="open another run")
    same_graph = edited or saved.get("graph") == assistant.to_json()["graph"]
    hint = "let it take over (POST /api/runs/ID/graph), or open another run"
    require(same_graph, "the graph has changed since the run began", hint=hint)
    kept, dropped = [], []
    try:
        for event in cast(Sequence[dict[str, Any]], saved["events"]):
            known = assistant.graph.index if edited else event["seen"]
            seen = {name: share for name, share in event["seen"].items() if name in known}
            if seen or not event["seen"]:
                kept.append({**event, "seen": seen})
            else:
                dropped.append(fields_to_json(assist.Observation(**event)))
        assistant.replay(kept)
    except (KeyError, TypeError, AttributeError):
        raise InputError("is damaged: its events cannot be read", where=f"runs/{run}") from None
    return dropped

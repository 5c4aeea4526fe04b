"""Graphs over HTTP: learned, drawn by hand, merged, downloaded; and questions of programs, of which nothing is kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from msg2.drawing import SUFFIXES
from msg2.errors import InputError
from msg2.formats.registry import WRITE_SUFFIXES
from msg2.inference import METHODS, Method
from msg2.inference.registry import DEFAULT_METHOD
from msg2.options import option_specs
from msg2.server import graph_workers, schemas
from msg2.server.jobs import JobQueueDep
from msg2.server.schemas import GraphRecord, RecordId
from msg2.server.uploads import DOWNLOAD_SCHEMA, UPLOAD_SCHEMA, export_response, format_parameter, save_body
from msg2.server.workers import JsonObject
from msg2.server.workspace import Workspace, WorkspaceDep, new_id, update_record

router = APIRouter(prefix="/api", tags=["work"])
questions = APIRouter(prefix="/api", tags=["questions"])

_GraphFormat: TypeAlias = Annotated[str, format_parameter(SUFFIXES)]


# -- graphs and jobs --------------------------------------------------------------------------------------------


@router.get("/work")
def list_graphs(workspace: WorkspaceDep, jobs: JobQueueDep) -> schemas.GraphsResponse:
    """All graphs and jobs, the newest first."""
    return schemas.GraphsResponse(work=[jobs.with_progress(record) for record in workspace.graphs.records()])


@router.post("/work", status_code=201)
def add_job(request: schemas.JobRequest, jobs: JobQueueDep) -> GraphRecord:
    """Learn a graph. The job waits for its turn: ask for it again to see how it goes."""
    return jobs.add(request)


@router.post("/given", status_code=201, openapi_extra=UPLOAD_SCHEMA)
async def upload_graph(
    request: Request, name: Annotated[schemas.FileName, Query()], workspace: WorkspaceDep
) -> GraphRecord:
    """Keep a graph file, which is the body of the request."""
    with workspace.scratch_folder() as folder:
        path = await save_body(request, folder / "graph")
        return await run_in_threadpool(workspace.add_graph_file, name, path)


@router.post("/drawn", status_code=201)
def save_drawn_graph(request: schemas.DrawRequest, workspace: WorkspaceDep) -> GraphRecord:
    """Keep a graph that was drawn by hand, in the place of an earlier one where it replaces that."""
    if request.replaces is None:
        record = GraphRecord(id=new_id(), made=time.time(), kind="drawn", state="done")
    elif (record := workspace.graphs.get(request.replaces)).kind != "drawn":
        raise InputError("only a graph that was drawn by hand can be replaced", hint="keep it as a new one")
    return workspace.add_graph(record, graph_workers.save_drawn_graph, request.graph)


@router.post("/merged", status_code=201)
def merge_graphs(request: schemas.MergeRequest, workspace: WorkspaceDep) -> GraphRecord:
    """Merge graphs by majority, and keep the result with the votes."""
    records = [workspace.graphs.get(id) for id in request.work]
    paths = [workspace.graph_file(record.id, graph_workers.GRAPH_FILE) for record in records]
    names = [record.name or record.task for record in records]
    merged = GraphRecord(id=new_id(), made=time.time(), kind="merged", state="done", annotators=names)
    return workspace.add_graph(merged, graph_workers.save_merged_graph, paths)


@router.get("/work/{id}")
def get_graph(id: RecordId, workspace: WorkspaceDep, jobs: JobQueueDep) -> GraphRecord:
    """One graph or job."""
    return jobs.with_progress(workspace.graphs.get(id))


@router.patch("/work/{id}")
def rename_graph(id: RecordId, request: schemas.RenameRequest, workspace: WorkspaceDep) -> GraphRecord:
    """Give a graph a name."""
    workspace.graph_file(id, graph_workers.GRAPH_FILE)  # a job that runs writes its record itself
    return workspace.graphs.put(update_record(workspace.graphs.get(id), title=request.title.strip()))


@router.get("/work/{id}/view")
def view_graph(
    id: RecordId, workspace: WorkspaceDep, top_down: Annotated[bool, Query()] = False
) -> schemas.GraphViewResponse:
    """The diagram of a graph, and what it says of each step."""
    path = workspace.graph_file(id, graph_workers.GRAPH_FILE)
    result = workspace.sandbox.run(graph_workers.view_graph, path, top_down)
    return schemas.GraphViewResponse.model_validate(result.value)


@router.get("/compare")
def compare_graphs(query: Annotated[schemas.CompareQuery, Query()], workspace: WorkspaceDep) -> JsonObject:
    """What two graphs agree and differ in; as `msg2 compare --json`."""
    paths = [workspace.graph_file(id, graph_workers.GRAPH_FILE) for id in (query.first, query.second)]
    return workspace.sandbox.run(graph_workers.compare_graph_files, *paths).value


@router.post("/work/{id}/check")
def check_dataset(id: RecordId, request: schemas.CheckDataRequest, workspace: WorkspaceDep) -> JsonObject:
    """What went wrong in each run of some data; as `msg2 check --json`."""
    path, dataset = workspace.graph_file(id, graph_workers.GRAPH_FILE), workspace.datasets.get(request.data)
    return workspace.run_on_dataset(dataset, graph_workers.check_dataset, path, request.task).value


@router.delete("/work/{id}", status_code=204)
def remove_graph(id: RecordId, jobs: JobQueueDep) -> None:
    """Remove a graph; a job that has not ended is given up."""
    jobs.remove(id)


@router.get("/work/{id}/as/{format}", response_class=Response, responses=DOWNLOAD_SCHEMA)
def download_graph(id: RecordId, format: _GraphFormat, workspace: WorkspaceDep) -> Response:
    """The graph in a format of `msg2 show`; where that takes several files, a ZIP archive of them."""
    path = workspace.graph_file(id, graph_workers.GRAPH_FILE)
    export = partial(workspace.sandbox.run, graph_workers.export_graph, path)
    return export_response(workspace, format, SUFFIXES, "graphs", export)


# -- questions, of which nothing is kept ------------------------------------------------------------------------


@questions.post("/infer")
def infer_graph(request: schemas.InferRequest, workspace: WorkspaceDep) -> JsonObject:
    """The graph of these labels: the content of a graph file."""
    request.parse_options()
    request.constraints()
    return _run_on_labels(workspace, graph_workers.infer_graph, request, request.labels)


@questions.post("/next")
def rank_next_steps(request: schemas.NextStepsRequest, workspace: WorkspaceDep) -> schemas.NextStepsResponse:
    """Rank what comes next. The graph alone gives the order; labelled videos add probabilities and seconds."""
    asked = (request.graph, request.done, request.ranker, request.labels)
    ranked = _run_on_labels(workspace, graph_workers.rank_next_steps, *asked)
    return schemas.NextStepsResponse.model_validate(ranked, strict=False)


@questions.post("/check")
def check_labels(request: schemas.CheckRequest, workspace: WorkspaceDep) -> JsonObject:
    """Every step that began before its precondition held, and the steps that were skipped; as `msg2 check --json`."""
    return _run_on_labels(workspace, graph_workers.check_labels, request.graph, request.labels)


@questions.post("/draw")
def draw_graph(request: schemas.DrawRequest, workspace: WorkspaceDep) -> schemas.DrawResponse:
    """The diagram of a graph; a cycle of needs and order is refused, and named."""
    return schemas.DrawResponse.model_validate(workspace.sandbox.run(graph_workers.draw_graph, request.graph).value)


@questions.get("/choices")
def list_choices() -> schemas.ChoicesResponse:
    """What there is to choose from."""
    return schemas.ChoicesResponse(
        methods={name: asdict(method.options()) for name, method in METHODS.items()},
        method_options={name: _describe_method(method) for name, method in METHODS.items()},
        default=DEFAULT_METHOD,
        graph_formats=[suffix[1:] for suffix in SUFFIXES],
        label_formats=[suffix[1:] for suffix in WRITE_SUFFIXES],
        relations=schemas.RELATIONS,
    )


def _describe_method(method: Method) -> schemas.MethodDescription:
    options = [
        schemas.OptionDescription(
            name=spec.name, kind=spec.kind, choices=list(spec.words), default=spec.default_text, help=spec.help
        )
        for spec in option_specs(method.options)
    ]
    return schemas.MethodDescription(summary=method.summary, options=options)


def _run_on_labels(workspace: Workspace, task: Callable[..., JsonObject], *arguments: object) -> JsonObject:
    """Run a task that takes, last, where it may write the labels that came with the request."""
    with workspace.scratch_folder() as folder:
        path = folder / "labels.jsonl"
        result = workspace.sandbox.run(task, *arguments, path, translate=lambda text: text.replace(str(path), "labels"))
    return result.value

"""Jobs and graphs over HTTP: learned, drawn by hand, merged, downloaded."""

from __future__ import annotations

import time
from functools import partial
from typing import Annotated, Any, TypeAlias, cast

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from msg2.drawing import SUFFIXES
from msg2.errors import InputError
from msg2.server import graph_workers, schemas
from msg2.server.api.dependencies import JobQueueDependency, WorkspaceDependency
from msg2.server.api.file_transfer import DOWNLOAD_SCHEMA, UPLOAD_SCHEMA, export_response, format_schema, save_body
from msg2.server.workspace import new_id, update_record

router = APIRouter(prefix="/api", tags=["work"])

_GraphFormat: TypeAlias = Annotated[str, Path(json_schema_extra=format_schema(SUFFIXES))]


@router.post("/example", status_code=201)
def add_example(workspace: WorkspaceDependency) -> schemas.DatasetRecord:
    """Add the labels of an everyday task, to try everything on."""
    return workspace.add_example()


@router.get("/work")
def list_graphs(workspace: WorkspaceDependency, jobs: JobQueueDependency) -> schemas.GraphsResponse:
    """All graphs and jobs, the newest first."""
    return schemas.GraphsResponse(work=[jobs.with_progress(record) for record in workspace.graphs.records()])


@router.post("/work", status_code=201)
def add_job(request: schemas.JobRequest, jobs: JobQueueDependency) -> schemas.GraphRecord:
    """Learn a graph. The job waits for its turn: ask for it again to see how it goes."""
    return jobs.add(request)


@router.post("/given", status_code=201, openapi_extra=UPLOAD_SCHEMA)
async def upload_graph(
    request: Request, name: Annotated[schemas.FileName, Query()], workspace: WorkspaceDependency
) -> schemas.GraphRecord:
    """Keep a graph file, which is the body of the request."""
    with workspace.scratch_folder() as folder:
        path = await save_body(request, folder / "graph")
        return await run_in_threadpool(workspace.add_graph_file, name, path)


@router.post("/drawn", status_code=201)
def save_drawn_graph(request: schemas.DrawRequest, workspace: WorkspaceDependency) -> schemas.GraphRecord:
    """Keep a graph that was drawn by hand, in the place of an earlier one where it replaces that."""
    if request.replaces is None:
        record = schemas.GraphRecord(id=new_id(), made=time.time(), kind="drawn", state="done")
    elif (record := workspace.graphs.get(request.replaces)).kind != "drawn":
        raise InputError("only a graph that was drawn by hand can be replaced", hint="keep it as a new one")
    return workspace.add_graph(record, graph_workers.save_drawn_graph, request.graph)


@router.post("/merged", status_code=201)
def merge_graphs(request: schemas.MergeRequest, workspace: WorkspaceDependency) -> schemas.GraphRecord:
    """Merge graphs by majority, and keep the result with the votes.

    Parameters
    ----------
    request : MergeRequest
        Which graphs.
    workspace : Workspace
        Of the app.

    Returns
    -------
    GraphRecord
        The merged graph.
    """
    records = [workspace.graphs.get(id) for id in request.work]
    paths = [workspace.graph_file(record.id, graph_workers.GRAPH_FILE) for record in records]
    names = [record.name or record.task for record in records]
    merged = schemas.GraphRecord(id=new_id(), made=time.time(), kind="merged", state="done", annotators=names)
    return workspace.add_graph(merged, graph_workers.save_merged_graph, paths)


@router.get("/work/{id}")
def get_graph(id: schemas.RecordId, workspace: WorkspaceDependency, jobs: JobQueueDependency) -> schemas.GraphRecord:
    """One graph or job."""
    return jobs.with_progress(workspace.graphs.get(id))


@router.patch("/work/{id}")
def rename_graph(
    id: schemas.RecordId, request: schemas.RenameRequest, workspace: WorkspaceDependency
) -> schemas.GraphRecord:
    """Give a graph a name."""
    workspace.graph_file(id, graph_workers.GRAPH_FILE)  # a job that runs writes its record itself
    return workspace.graphs.put(update_record(workspace.graphs.get(id), title=request.title.strip()))


@router.get("/work/{id}/view")
def view_graph(
    id: schemas.RecordId, workspace: WorkspaceDependency, top_down: Annotated[bool, Query()] = False
) -> schemas.GraphViewResponse:
    """The diagram of a graph, and what it says of each step."""
    path = workspace.graph_file(id, graph_workers.GRAPH_FILE)
    return schemas.GraphViewResponse.model_validate(
        workspace.sandbox.run(graph_workers.view_graph, path, top_down).value
    )


@router.get("/compare")
def compare_graphs(query: Annotated[schemas.CompareQuery, Query()], workspace: WorkspaceDependency) -> dict[str, Any]:
    """What two graphs agree and differ in; as `msg2 compare --json`.

    Parameters
    ----------
    query : CompareQuery
        The graphs.
    workspace : Workspace
        Of the app.

    Returns
    -------
    dict
        The differences.
    """
    paths = [workspace.graph_file(id, graph_workers.GRAPH_FILE) for id in (query.first, query.second)]
    return cast(dict[str, Any], workspace.sandbox.run(graph_workers.compare_graph_files, *paths).value)


@router.post("/work/{id}/check")
def check_dataset(
    id: schemas.RecordId, request: schemas.CheckDataRequest, workspace: WorkspaceDependency
) -> dict[str, Any]:
    """What went wrong in each run of some data; as `msg2 check --json`."""
    path, dataset = workspace.graph_file(id, graph_workers.GRAPH_FILE), workspace.datasets.get(request.data)
    result = workspace.run_on_dataset(dataset, graph_workers.check_dataset, path, request.task)
    return cast(dict[str, Any], result.value)


@router.delete("/work/{id}", status_code=204)
def remove_graph(id: schemas.RecordId, jobs: JobQueueDependency) -> None:
    """Remove a graph; a job that has not ended is given up."""
    jobs.remove(id)


@router.get("/work/{id}/as/{format}", response_class=Response, responses=DOWNLOAD_SCHEMA)
def download_graph(id: schemas.RecordId, format: _GraphFormat, workspace: WorkspaceDependency) -> Any:
    """The graph in a format of `msg2 show`; where that takes several files, a ZIP archive of them."""
    path = workspace.graph_file(id, graph_workers.GRAPH_FILE)
    export = partial(workspace.sandbox.run, graph_workers.export_graph, path)
    return export_response(workspace, format, SUFFIXES, "graphs", export)

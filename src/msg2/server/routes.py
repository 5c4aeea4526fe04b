"""Datasets and graphs over HTTP: uploaded, learned, drawn by hand, merged, downloaded; and questions of programs.

The name of a file that is uploaded never becomes a path; one that is downloaded is made of plain letters and digits.
Nothing is kept of a question.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, cast

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as PathParameter
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from msg2.drawing import SUFFIXES
from msg2.drawing.picture import DOT_RENDERERS
from msg2.errors import InputError
from msg2.formats.registry import WRITE_SUFFIXES
from msg2.inference import METHODS
from msg2.inference.registry import DEFAULT_METHOD
from msg2.options import OptionSpec, option_specs
from msg2.server import dataset_workers, graph_workers, schemas
from msg2.server.jobs import JobQueueDep
from msg2.server.schemas import DatasetRecord, GraphRecord, RecordId, TablePreviewResponse
from msg2.server.workers import JsonObject, TaskResult, Value
from msg2.server.workspace import Workspace, WorkspaceDep, new_dataset, new_id, update_record

datasets = APIRouter(prefix="/api", tags=["data"])

_BINARY: JsonObject = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
UPLOAD_SCHEMA = {"requestBody": {"required": True, **_BINARY}}
"""The body of an upload, for the schema."""
DOWNLOAD_SCHEMA: dict[int | str, JsonObject] = {200: _BINARY}
"""The response of a download, for the schema."""


async def save_body(request: Request, path: Path) -> Path:
    """Write the body of a request to a file."""
    try:
        with path.open("wb") as file:
            async for chunk in request.stream():
                file.write(chunk)
    except ClientDisconnect:
        raise InputError("the upload broke off") from None
    return path


def format_parameter(suffixes: Iterable[str]) -> object:
    """Describe the format of a download, which is in the address, by the suffixes that there are."""
    return PathParameter(json_schema_extra={"enum": [suffix[1:] for suffix in suffixes]})


def export_response(
    workspace: Workspace,
    format: str,
    suffixes: Iterable[str],
    content: str,
    export: Callable[[str, Path], TaskResult[str]],
) -> Response:
    """Make the response that has a browser save something that is kept, in one of its formats."""
    if f".{format}" not in suffixes:
        raise InputError(f"there is no format {format!r} of {content}", hint=f"there are {' '.join(suffixes)}")
    with workspace.scratch_folder() as folder:
        file = folder / export(f".{format}", folder).value
        headers = {"Content-Disposition": f'attachment; filename="{file.name}"'}
        return Response(file.read_bytes(), media_type="application/octet-stream", headers=headers)


@datasets.post("/data", status_code=201, openapi_extra=UPLOAD_SCHEMA)
async def upload_dataset(
    request: Request, query: Annotated[schemas.UploadQuery, Query()], workspace: WorkspaceDep
) -> DatasetRecord:
    """A file in any format that msg2 reads, or a ZIP archive of a folder of them, as the body of the request."""
    id = new_id()
    with workspace.datasets.new_folder(id) as folder:
        await save_body(request, folder / id)
        return await run_in_threadpool(workspace.add_upload, id, query)


@datasets.post("/preview", openapi_extra=UPLOAD_SCHEMA)
async def preview_upload(
    request: Request, query: Annotated[schemas.UploadQuery, Query()], workspace: WorkspaceDep
) -> TablePreviewResponse | None:
    """The columns and first rows of a table, which is the body of the request and is not kept; null of other data."""
    with workspace.scratch_folder() as folder:
        path = await save_body(request, folder / "table")
        run = partial(workspace.sandbox.run, path_name=(path, query.name), reads_files=True)
        result = await run_in_threadpool(run, dataset_workers.preview_columns, path, new_dataset(new_id(), query))
        return cast(TablePreviewResponse | None, result.value)


@datasets.get("/data")
def list_datasets(workspace: WorkspaceDep) -> dict[Literal["data"], list[DatasetRecord]]:
    """All data, the newest first."""
    return {"data": workspace.datasets.records()}


@datasets.post("/example", status_code=201)
def add_example(workspace: WorkspaceDep) -> DatasetRecord:
    """Add the labels of an everyday task, to try everything on."""
    return workspace.add_example()


@datasets.get("/data/{id}")
def get_dataset(id: RecordId, workspace: WorkspaceDep) -> DatasetRecord:
    """One dataset."""
    return workspace.datasets.get(id)


@datasets.patch("/data/{id}")
def read_again(id: RecordId, request: schemas.ReadSettings, workspace: WorkspaceDep) -> DatasetRecord:
    """Read a dataset in another way; graphs that were learned from it stay as they are."""
    return workspace.read_again(id, request)


@datasets.get("/data/{id}/preview")
def preview_dataset(id: RecordId, workspace: WorkspaceDep) -> TablePreviewResponse | None:
    """The columns and first rows of a dataset that is a table, as it is read; null of others."""
    return workspace.run_on_dataset(workspace.datasets.get(id), dataset_workers.preview_columns).value


@datasets.delete("/data/{id}", status_code=204)
def remove_dataset(id: RecordId, workspace: WorkspaceDep) -> None:
    """Remove a dataset; the graphs that were learned from it stay, and so does data that lies outside the folder."""
    workspace.datasets.remove(id)


@datasets.get("/data/{id}/labels", response_model_exclude_none=True)
def get_labels(
    id: RecordId, workspace: WorkspaceDep, task: Annotated[schemas.QueryText | None, Query()] = None
) -> schemas.TaskLabelsResponse:
    """Every label of a task, video by video."""
    result = workspace.run_on_dataset(workspace.datasets.get(id), dataset_workers.read_labels, task)
    return schemas.TaskLabelsResponse.model_validate(result.value)


_LabelFormat: TypeAlias = Annotated[str, format_parameter(WRITE_SUFFIXES)]
_PictureFormat: TypeAlias = Annotated[str, format_parameter(DOT_RENDERERS)]


@datasets.get("/data/{id}/as/{format}", response_class=Response, responses=DOWNLOAD_SCHEMA)
def download_labels(id: RecordId, format: _LabelFormat, workspace: WorkspaceDep) -> Response:
    """All labels in another format; where that takes several files, a ZIP archive of them."""
    export = partial(workspace.run_on_dataset, workspace.datasets.get(id), dataset_workers.export_labels)
    return export_response(workspace, format, WRITE_SUFFIXES, "labels", export)


@datasets.get("/data/{id}/directly-follows/as/{format}", response_class=Response, responses=DOWNLOAD_SCHEMA)
def download_directly_follows(
    id: RecordId,
    format: _PictureFormat,
    query: Annotated[schemas.DirectlyFollowsQuery, Query()],
    workspace: WorkspaceDep,
) -> Response:
    """How often one step came right after another, as a picture; as `msg2 show --view directly-follows`."""
    dataset = workspace.datasets.get(id)
    export = partial(workspace.run_on_dataset, dataset, graph_workers.export_directly_follows, query)
    return export_response(workspace, format, DOT_RENDERERS, "this picture", export)


graphs = APIRouter(prefix="/api", tags=["work"])
questions = APIRouter(prefix="/api", tags=["questions"])

_GraphFormat: TypeAlias = Annotated[str, format_parameter(SUFFIXES)]


@graphs.get("/work")
def list_graphs(workspace: WorkspaceDep, jobs: JobQueueDep) -> dict[Literal["work"], list[GraphRecord]]:
    """All graphs and jobs, the newest first."""
    return {"work": [jobs.with_progress(record) for record in workspace.graphs.records()]}


@graphs.post("/work", status_code=201)
def add_job(request: schemas.JobRequest, jobs: JobQueueDep) -> GraphRecord:
    """Learn a graph. The job waits for its turn: ask for it again to see how it goes."""
    return jobs.add(request)


@graphs.post("/given", status_code=201, openapi_extra=UPLOAD_SCHEMA)
async def upload_graph(
    request: Request, name: Annotated[schemas.FileName, Query()], workspace: WorkspaceDep
) -> GraphRecord:
    """Keep a graph file, which is the body of the request."""
    with workspace.scratch_folder() as folder:
        path = await save_body(request, folder / "graph")
        return await run_in_threadpool(workspace.add_graph_file, path, name)


@graphs.post("/drawn", status_code=201)
def save_drawn_graph(request: schemas.DrawRequest, workspace: WorkspaceDep) -> GraphRecord:
    """Keep a graph that was drawn by hand, in the place of an earlier one where it replaces that."""
    if request.replaces is None:
        record = GraphRecord(id=new_id(), made=time.time(), kind="drawn", state="done")
    elif (record := workspace.graphs.get(request.replaces)).kind != "drawn":
        raise InputError("only a graph that was drawn by hand can be replaced", hint="keep it as a new one")
    return workspace.add_graph(record, graph_workers.save_drawn_graph, request.graph)


@graphs.post("/merged", status_code=201)
def merge_graphs(request: schemas.MergeRequest, workspace: WorkspaceDep) -> GraphRecord:
    """Merge graphs by majority, and keep the result with the votes."""
    records = [workspace.graphs.get(id) for id in request.work]
    paths = [workspace.graph_file(record.id, graph_workers.GRAPH_FILE) for record in records]
    names = [record.name or record.task for record in records]
    merged = GraphRecord(id=new_id(), made=time.time(), kind="merged", state="done", annotators=names)
    return workspace.add_graph(merged, graph_workers.save_merged_graph, paths)


@graphs.get("/work/{id}")
def get_graph(id: RecordId, workspace: WorkspaceDep, jobs: JobQueueDep) -> GraphRecord:
    """One graph or job."""
    return jobs.with_progress(workspace.graphs.get(id))


@graphs.patch("/work/{id}")
def rename_graph(id: RecordId, request: schemas.RenameRequest, workspace: WorkspaceDep) -> GraphRecord:
    """Give a graph a name."""
    workspace.graph_file(id, graph_workers.GRAPH_FILE)  # a job that runs writes its record itself
    return workspace.graphs.put(update_record(workspace.graphs.get(id), title=request.title.strip()))


@graphs.get("/work/{id}/view")
def view_graph(
    id: RecordId, workspace: WorkspaceDep, top_down: Annotated[bool, Query()] = False
) -> schemas.GraphViewResponse:
    """The diagram of a graph, and what it says of each step."""
    path = workspace.graph_file(id, graph_workers.GRAPH_FILE)
    return workspace.sandbox.run(graph_workers.view_graph, path, top_down).value


@graphs.get("/compare")
def compare_graphs(query: Annotated[schemas.CompareQuery, Query()], workspace: WorkspaceDep) -> JsonObject:
    """What two graphs agree and differ in; as `msg2 compare --json`."""
    paths = [workspace.graph_file(id, graph_workers.GRAPH_FILE) for id in (query.first, query.second)]
    return workspace.sandbox.run(graph_workers.compare_graph_files, *paths).value


@graphs.post("/work/{id}/check")
def check_dataset(id: RecordId, request: schemas.CheckDataRequest, workspace: WorkspaceDep) -> JsonObject:
    """What went wrong in each run of some data; as `msg2 check --json`."""
    path, dataset = workspace.graph_file(id, graph_workers.GRAPH_FILE), workspace.datasets.get(request.data)
    return workspace.run_on_dataset(dataset, graph_workers.check_dataset, path, request.task).value


@graphs.delete("/work/{id}", status_code=204)
def remove_graph(id: RecordId, jobs: JobQueueDep) -> None:
    """Remove a graph; a job that has not ended is given up."""
    jobs.remove(id)


@graphs.get("/work/{id}/as/{format}", response_class=Response, responses=DOWNLOAD_SCHEMA)
def download_graph(id: RecordId, format: _GraphFormat, workspace: WorkspaceDep) -> Response:
    """The graph in a format of `msg2 show`; where that takes several files, a ZIP archive of them."""
    path = workspace.graph_file(id, graph_workers.GRAPH_FILE)
    export = partial(workspace.sandbox.run, graph_workers.export_graph, path)
    return export_response(workspace, format, SUFFIXES, "graphs", export)


@questions.post("/infer")
def infer_graph(request: schemas.InferRequest, workspace: WorkspaceDep) -> JsonObject:
    """The graph of these labels: the content of a graph file."""
    request.parse_options()
    request.constraints()
    return _run_on_labels(workspace, graph_workers.infer_graph, request, request.labels)


@questions.post("/next")
def rank_next_steps(
    request: schemas.NextStepsRequest, workspace: WorkspaceDep
) -> dict[str, list[schemas.NextStepEntry]]:
    """Rank what comes next. The graph alone gives the order; labelled videos add probabilities and seconds."""
    asked = (request.graph, request.done, request.ranker, request.labels)
    return _run_on_labels(workspace, graph_workers.rank_next_steps, *asked)


@questions.post("/check")
def check_labels(request: schemas.CheckRequest, workspace: WorkspaceDep) -> JsonObject:
    """Every step that began before its precondition held, and the steps that were skipped; as `msg2 check --json`."""
    return _run_on_labels(workspace, graph_workers.check_labels, request.graph, request.labels)


@questions.post("/draw")
def draw_graph(request: schemas.DrawRequest, workspace: WorkspaceDep) -> schemas.DrawResponse:
    """The diagram of a graph; a cycle of needs and order is refused, and named."""
    return workspace.sandbox.run(graph_workers.draw_graph, request.graph).value


@questions.get("/choices")
def list_choices() -> schemas.ChoicesResponse:
    """What there is to choose from."""
    return {
        "methods": {name: asdict(method.options()) for name, method in METHODS.items()},
        "method_options": {
            name: {"summary": method.summary, "options": list(map(_describe_option, option_specs(method.options)))}
            for name, method in METHODS.items()
        },
        "default": DEFAULT_METHOD,
        "graph_formats": [suffix[1:] for suffix in SUFFIXES],
        "label_formats": [suffix[1:] for suffix in WRITE_SUFFIXES],
        "relations": schemas.RELATIONS,
    }


def _describe_option(spec: OptionSpec) -> schemas.OptionDescription:
    words = list(spec.words)
    return {"name": spec.name, "kind": spec.kind, "choices": words, "default": spec.default_text, "help": spec.help}


def _run_on_labels(workspace: Workspace, task: Callable[..., Value], *arguments: object) -> Value:
    """Run a task that takes, last, where it may write the labels that came with the request."""
    with workspace.scratch_folder() as folder:
        path = folder / "labels.jsonl"
        return workspace.sandbox.run(task, *arguments, path, path_name=(path, "labels")).value

"""Datasets and graphs over HTTP: upload, learn, draw by hand, merge, download; and questions of programs.

The name of an uploaded file never becomes a path. Nothing is kept of a question.
"""

import io
import os
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, cast

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi import Path as PathParameter
from starlette.requests import ClientDisconnect

from msg2.drawing import PROCEDURE_SUFFIXES, SUFFIXES
from msg2.drawing.dot import DOT_RENDERERS
from msg2.errors import InputError, require
from msg2.formats.registry import WRITERS
from msg2.inference import METHODS
from msg2.inference.registry import DEFAULT_METHOD
from msg2.options import OptionSpec, option_specs
from msg2.server import dataset_functions, graph_functions, schemas
from msg2.server.jobs import JobQueueDep
from msg2.server.sandbox import JsonObject, NamedFile
from msg2.server.schemas import DatasetRecord, GraphRecord, QueryText, RecordId, TablePreviewResponse
from msg2.server.security import Authenticator
from msg2.server.workspace import Workspace, WorkspaceDep, new_dataset, new_graph, new_upload, update_record

datasets = APIRouter(prefix="/api", tags=["data"])

_BINARY: JsonObject = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
UPLOAD_SCHEMA = {"requestBody": {"required": True, **_BINARY}}
"""The body of an upload, for the schema."""
DOWNLOAD_SCHEMA: dict[int | str, JsonObject] = {200: _BINARY}
"""The response of a download, for the schema."""


async def _save_body(request: Request, workspace: WorkspaceDep) -> AsyncIterator[Path]:
    with workspace.scratch_folder() as folder:
        try:
            with (folder / "body").open("wb") as file:
                async for chunk in request.stream():
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
        except ClientDisconnect:
            raise InputError("the upload broke off") from None
        yield folder / "body"


UploadedFile: TypeAlias = Annotated[Path, Depends(_save_body)]
"""The body of a request as a file, which is gone afterwards."""


def format_parameter(suffixes: Iterable[str]) -> object:
    """Describe the format of a download, which is in the address, by the suffixes that there are."""
    return PathParameter(json_schema_extra={"enum": [suffix[1:] for suffix in suffixes]})


def export_response(
    workspace: Workspace,
    format: str,
    suffixes: Iterable[str],
    content: str,
    export: Callable[..., str],
    *arguments: object,
) -> Response:
    """Make the response that has a browser save something that is kept, in one of its formats."""
    if f".{format}" not in suffixes:
        raise InputError(f"there is no format {format!r} of {content}", hint=f"there are {' '.join(suffixes)}")
    with workspace.scratch_folder() as folder:
        file = folder / workspace.sandbox.call(export, *arguments, f".{format}", folder).value
        headers = {"Content-Disposition": f'attachment; filename="{file.name}"'}
        return Response(file.read_bytes(), media_type="application/octet-stream", headers=headers)


@datasets.post("/data", status_code=201, openapi_extra=UPLOAD_SCHEMA)
def upload_dataset(
    file: UploadedFile, query: Annotated[schemas.UploadQuery, Query()], workspace: WorkspaceDep
) -> DatasetRecord:
    """A file in any format that msg2 reads, or a ZIP archive of a folder of them, as the body of the request."""
    dataset = new_upload(query)
    with workspace.datasets.new_folder(dataset.id):
        file.rename(workspace.dataset(dataset).path)
        return workspace.describe(dataset)


@datasets.post("/preview", openapi_extra=UPLOAD_SCHEMA)
def preview_upload(
    file: UploadedFile, query: Annotated[schemas.UploadQuery, Query()], workspace: WorkspaceDep
) -> TablePreviewResponse | None:
    """The columns and first rows of a table, which is the body of the request and is not kept; null of other data."""
    data = dataset_functions.Dataset(file, query.name, new_upload(query))
    return workspace.sandbox.call(dataset_functions.preview_columns, data).value


@datasets.get("/data")
def list_datasets(workspace: WorkspaceDep) -> dict[Literal["data"], list[DatasetRecord]]:
    """All data, the newest first."""
    return {"data": workspace.datasets.records()}


@datasets.post("/example", status_code=201)
def add_example(workspace: WorkspaceDep) -> DatasetRecord:
    """Add the labels of an everyday task, to try everything on."""
    dataset = new_dataset(f"{dataset_functions.EXAMPLE_TASK} (example).csv")
    with workspace.datasets.new_folder(dataset.id):
        workspace.sandbox.call(dataset_functions.write_example, workspace.dataset(dataset).path)
        return workspace.describe(dataset)


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
    return workspace.sandbox.call(dataset_functions.preview_columns, workspace.dataset(id)).value


@datasets.delete("/data/{id}", status_code=204)
def remove_dataset(id: RecordId, workspace: WorkspaceDep) -> None:
    """Remove a dataset; the graphs that were learned from it stay, and so does data that lies outside the folder."""
    workspace.datasets.remove(id)


@datasets.get("/data/{id}/labels", response_model_exclude_none=True)
def get_labels(id: RecordId, workspace: WorkspaceDep, task: QueryText | None = None) -> schemas.TaskLabelsResponse:
    """Every label of a task, video by video."""
    result = workspace.sandbox.call(dataset_functions.read_labels, workspace.dataset(id), task)
    return schemas.TaskLabelsResponse.model_validate(result.value)


_LabelFormat: TypeAlias = Annotated[str, format_parameter(WRITERS)]
_PictureFormat: TypeAlias = Annotated[str, format_parameter(DOT_RENDERERS)]


@datasets.get("/data/{id}/as/{format}", response_class=Response, responses=DOWNLOAD_SCHEMA)
def download_labels(id: RecordId, format: _LabelFormat, workspace: WorkspaceDep) -> Response:
    """All labels in another format; where that takes several files, a ZIP archive of them."""
    data = workspace.dataset(id)
    return export_response(workspace, format, WRITERS, "labels", dataset_functions.export_labels, data)


@datasets.get("/data/{id}/directly-follows/as/{format}", response_class=Response, responses=DOWNLOAD_SCHEMA)
def download_directly_follows(
    id: RecordId, format: _PictureFormat, workspace: WorkspaceDep, task: QueryText | None = None, top_down: bool = False
) -> Response:
    """How often one step came right after another, as a picture; as `msg2 show --view directly-follows`."""
    draw = partial(graph_functions.export_directly_follows, task=task, top_down=top_down)
    return export_response(workspace, format, DOT_RENDERERS, "this picture", draw, workspace.dataset(id))


graphs = APIRouter(prefix="/api", tags=["work"])
questions = APIRouter(prefix="/api", tags=["questions"])

_ProcedureFormat: TypeAlias = Annotated[str, format_parameter(PROCEDURE_SUFFIXES)]
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
def upload_graph(file: UploadedFile, name: schemas.FileName, workspace: WorkspaceDep) -> GraphRecord:
    """Keep a graph file, which is the body of the request."""
    return workspace.add_graph(new_graph("given", name=name), graph_functions.save_graph_file, NamedFile(file, name))


@graphs.post("/drawn", status_code=201)
def save_drawn_graph(request: schemas.DrawRequest, workspace: WorkspaceDep) -> GraphRecord:
    """Keep a graph that was drawn by hand, in the place of an earlier one where it replaces that."""
    save, graph, save_id = graph_functions.save_drawn_graph, request.graph, request.save_id
    if request.replaces is None:
        return workspace.add_graph(new_graph("drawn", save_id=save_id), save, graph)
    kind, hint = workspace.graphs.get(request.replaces).kind, "keep it as a new one"
    require(kind == "drawn", "only a graph that was drawn by hand can be replaced", hint=hint)
    require(request.version is not None, "needs the version of the graph that it replaces", where="version")
    with workspace.changing_graph(request.replaces, request.version) as record:
        return workspace.add_graph(update_record(record, save_id=save_id), save, graph)


@graphs.post("/merged", status_code=201)
def merge_graphs(request: schemas.MergeRequest, workspace: WorkspaceDep) -> GraphRecord:
    """Merge graphs by majority, and keep the result with the votes."""
    records = [workspace.graphs.get(id) for id in request.work]
    paths = [workspace.graph_file(record.id) for record in records]
    merged = new_graph("merged", annotators=[record.name or record.task for record in records])
    return workspace.add_graph(merged, graph_functions.save_merged_graph, paths)


@graphs.get("/work/{id}")
def get_graph(id: RecordId, workspace: WorkspaceDep, jobs: JobQueueDep) -> GraphRecord:
    """One graph or job."""
    return jobs.with_progress(workspace.graphs.get(id))


@graphs.patch("/work/{id}")
def rename_graph(id: RecordId, request: schemas.RenameRequest, workspace: WorkspaceDep) -> GraphRecord:
    """Give a graph a name."""
    with workspace.changing_graph(id, request.version) as record:
        workspace.graph_file(id)
        require(record.state == "done", "the graph is not there yet")  # a job that runs writes its record itself
        return workspace.graphs.put(update_record(record, title=request.title.strip()))


@graphs.get("/work/{id}/view")
def view_graph(id: RecordId, workspace: WorkspaceDep, top_down: bool = False) -> schemas.GraphViewResponse:
    """The diagram of a graph, and what it says of each step."""
    return workspace.sandbox.call(graph_functions.view_graph, workspace.graph_file(id), top_down).value


@graphs.get("/compare")
def compare_graphs(first: RecordId, second: RecordId, workspace: WorkspaceDep) -> JsonObject:
    """What two graphs agree and differ in; as `msg2 compare --json`."""
    paths = workspace.graph_file(first), workspace.graph_file(second)
    return workspace.sandbox.call(graph_functions.compare_graph_files, *paths).value


@graphs.post("/work/{id}/check")
def check_dataset(id: RecordId, request: schemas.CheckDataRequest, workspace: WorkspaceDep) -> JsonObject:
    """What went wrong in each run of some data; as `msg2 check --json`."""
    path, data = workspace.graph_file(id), workspace.dataset(request.data)
    return workspace.sandbox.call(graph_functions.check_dataset, data, path, request.task).value


@graphs.delete("/work/{id}", status_code=204)
def remove_graph(id: RecordId, jobs: JobQueueDep) -> None:
    """Remove a graph; a job that has not ended is given up."""
    jobs.remove(id)


@graphs.get("/work/{id}/as/{format}", response_class=Response, responses=DOWNLOAD_SCHEMA)
def download_graph(id: RecordId, format: _GraphFormat, workspace: WorkspaceDep) -> Response:
    """The graph in a format of `msg2 show`; where that takes several files, a ZIP archive of them."""
    file = workspace.graph_file(id)
    return export_response(workspace, format, SUFFIXES, "graphs", graph_functions.export_graph, file)


@graphs.get("/work/{id}/procedure")
def get_procedure(id: RecordId, request: Request, workspace: WorkspaceDep) -> schemas.ProcedureResponse:
    """The written procedure of a graph, to be edited, and a link for people who are only to read it."""
    record = workspace.graphs.get(id)
    arguments = workspace.graph_file(id), workspace.recordings(record)
    described = workspace.sandbox.call(graph_functions.describe_procedure, *arguments).value
    authenticator, page = cast(Authenticator | None, request.app.state.authenticator), f"/procedure/{id}"
    link = page if authenticator is None else authenticator.share(page)
    return schemas.ProcedureResponse.model_validate({**described, "version": record.version, "link": link})


@graphs.put("/work/{id}/procedure")
def save_texts(
    id: RecordId, change: schemas.SaveTextsRequest, request: Request, workspace: WorkspaceDep
) -> schemas.ProcedureResponse:
    """Change the texts of a written procedure: what to do, what to be careful about, who has reviewed it."""
    with workspace.changing_graph(id, change.version) as record:
        workspace.sandbox.call(graph_functions.save_texts, workspace.graph_file(id), change.texts)
        workspace.graphs.put(record)
    return get_procedure(id, request, workspace)


@graphs.get("/work/{id}/procedure/as/{format}", response_class=Response, responses=DOWNLOAD_SCHEMA)
def download_procedure(id: RecordId, format: _ProcedureFormat, workspace: WorkspaceDep) -> Response:
    """The written procedure as a file; as `msg2 write`."""
    arguments = workspace.graph_file(id), workspace.recordings(workspace.graphs.get(id))
    export = graph_functions.export_procedure
    return export_response(workspace, format, PROCEDURE_SUFFIXES, "procedures", export, *arguments)


@graphs.get("/qr", response_class=Response, responses={200: {"content": {"image/svg+xml": {}}}})
def draw_qr_code(text: QueryText) -> Response:
    """A QR code, to open an address on a phone."""
    import segno

    picture = io.BytesIO()
    try:
        code = segno.make(text, micro=False)
    except segno.DataOverflowError:
        raise InputError("the text is too long for a QR code") from None
    code.save(picture, kind="svg", scale=4, light="#ffffff")
    return Response(picture.getvalue(), media_type="image/svg+xml")


@questions.post("/infer")
def infer_graph(request: schemas.InferRequest, workspace: WorkspaceDep) -> JsonObject:
    """The graph of these labels: the content of a graph file."""
    request.arguments()  # what cannot be used is refused at once
    return workspace.sandbox.call(graph_functions.infer_graph, request).value


@questions.post("/next")
def rank_next_steps(
    request: schemas.NextStepsRequest, workspace: WorkspaceDep
) -> dict[str, list[schemas.NextStepEntry]]:
    """Rank what comes next. The graph alone gives the order; labelled videos add probabilities and seconds."""
    return workspace.sandbox.call(graph_functions.rank_next_steps, request).value


@questions.post("/check")
def check_labels(request: schemas.CheckRequest, workspace: WorkspaceDep) -> JsonObject:
    """Every step that began before its precondition held, and the steps that were skipped; as `msg2 check --json`."""
    return workspace.sandbox.call(graph_functions.check_labels, request).value


@questions.post("/draw")
def draw_graph(request: schemas.DrawRequest, workspace: WorkspaceDep) -> schemas.DrawResponse:
    """The diagram of a graph; a cycle of needs and order is refused, and named."""
    return workspace.sandbox.call(graph_functions.draw_graph, request.graph).value


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
        "label_formats": [suffix[1:] for suffix in WRITERS],
        "relations": schemas.RELATIONS,
    }


def _describe_option(spec: OptionSpec) -> schemas.OptionDescription:
    words = list(spec.words)
    return {"name": spec.name, "kind": spec.kind, "choices": words, "default": spec.default_text, "help": spec.help}

"""Uploads and downloads: datasets over HTTP, and the bodies of requests and responses that are files.

The name of a file that is uploaded never becomes a path; one that is downloaded is made of plain letters and digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as PathParameter
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from msg2.drawing.picture import DOT_RENDERERS
from msg2.errors import InputError
from msg2.formats.registry import WRITE_SUFFIXES
from msg2.server import dataset_workers, graph_workers, schemas
from msg2.server.schemas import DatasetRecord, RecordId, TablePreviewResponse
from msg2.server.workers import JsonObject, TaskResult
from msg2.server.workspace import Workspace, WorkspaceDep, new_dataset, new_id

router = APIRouter(prefix="/api", tags=["data"])

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


@router.post("/data", status_code=201, openapi_extra=UPLOAD_SCHEMA)
async def upload_dataset(
    request: Request, query: Annotated[schemas.UploadQuery, Query()], workspace: WorkspaceDep
) -> DatasetRecord:
    """A file in any format that msg2 reads, or a ZIP archive of a folder of them, as the body of the request."""
    id = new_id()
    with workspace.datasets.new_folder(id) as folder:
        await save_body(request, folder / id)
        return await run_in_threadpool(workspace.add_upload, id, query)


@router.post("/preview", openapi_extra=UPLOAD_SCHEMA)
async def preview_upload(
    request: Request, query: Annotated[schemas.UploadQuery, Query()], workspace: WorkspaceDep
) -> TablePreviewResponse | None:
    """The columns and first rows of a table, which is the body of the request and is not kept; null of other data."""
    with workspace.scratch_folder() as folder:
        path = await save_body(request, folder / "table")
        preview = partial(workspace.sandbox.run, path_name=(path, query.name), reads_files=True)
        dataset = new_dataset(new_id(), query)
        return (await run_in_threadpool(preview, dataset_workers.preview_columns, path, dataset)).value


@router.get("/data")
def list_datasets(workspace: WorkspaceDep) -> dict[Literal["data"], list[DatasetRecord]]:
    """All data, the newest first."""
    return {"data": workspace.datasets.records()}


@router.post("/example", status_code=201)
def add_example(workspace: WorkspaceDep) -> DatasetRecord:
    """Add the labels of an everyday task, to try everything on."""
    return workspace.add_example()


@router.get("/data/{id}")
def get_dataset(id: RecordId, workspace: WorkspaceDep) -> DatasetRecord:
    """One dataset."""
    return workspace.datasets.get(id)


@router.patch("/data/{id}")
def read_again(id: RecordId, request: schemas.ReadSettings, workspace: WorkspaceDep) -> DatasetRecord:
    """Read a dataset in another way; graphs that were learned from it stay as they are."""
    return workspace.read_again(id, request)


@router.get("/data/{id}/preview")
def preview_dataset(id: RecordId, workspace: WorkspaceDep) -> TablePreviewResponse | None:
    """The columns and first rows of a dataset that is a table, as it is read; null of others."""
    return workspace.run_on_dataset(workspace.datasets.get(id), dataset_workers.preview_columns).value


@router.delete("/data/{id}", status_code=204)
def remove_dataset(id: RecordId, workspace: WorkspaceDep) -> None:
    """Remove a dataset; the graphs that were learned from it stay, and so does data that lies outside the folder."""
    workspace.datasets.remove(id)


@router.get("/data/{id}/labels", response_model_exclude_none=True)
def get_labels(
    id: RecordId, workspace: WorkspaceDep, task: Annotated[schemas.QueryText | None, Query()] = None
) -> schemas.TaskLabelsResponse:
    """Every label of a task, video by video."""
    result = workspace.run_on_dataset(workspace.datasets.get(id), dataset_workers.read_labels, task)
    return schemas.TaskLabelsResponse.model_validate(result.value)


_LabelFormat: TypeAlias = Annotated[str, format_parameter(WRITE_SUFFIXES)]
_PictureFormat: TypeAlias = Annotated[str, format_parameter(DOT_RENDERERS)]


@router.get("/data/{id}/as/{format}", response_class=Response, responses=DOWNLOAD_SCHEMA)
def download_labels(id: RecordId, format: _LabelFormat, workspace: WorkspaceDep) -> Response:
    """All labels in another format; where that takes several files, a ZIP archive of them."""
    export = partial(workspace.run_on_dataset, workspace.datasets.get(id), dataset_workers.export_labels)
    return export_response(workspace, format, WRITE_SUFFIXES, "labels", export)


@router.get("/data/{id}/directly-follows/as/{format}", response_class=Response, responses=DOWNLOAD_SCHEMA)
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

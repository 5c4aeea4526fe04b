"""Datasets over HTTP: uploaded, described, downloaded."""

from __future__ import annotations

import shutil
from functools import partial
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from msg2.drawing.picture import DOT_RENDERERS
from msg2.formats.registry import WRITE_SUFFIXES
from msg2.server import dataset_workers, graph_workers, schemas
from msg2.server.api.dependencies import WorkspaceDependency
from msg2.server.api.file_transfer import DOWNLOAD_SCHEMA, UPLOAD_SCHEMA, export_response, format_schema, save_body
from msg2.server.workspace import new_id

router = APIRouter(prefix="/api/data", tags=["data"])

_LabelFormat: TypeAlias = Annotated[str, Path(json_schema_extra=format_schema(WRITE_SUFFIXES))]
_PictureFormat: TypeAlias = Annotated[str, Path(json_schema_extra=format_schema(DOT_RENDERERS))]


@router.get("")
def list_datasets(workspace: WorkspaceDependency) -> schemas.DatasetsResponse:
    """All data, the newest first."""
    return schemas.DatasetsResponse(data=workspace.datasets.records())


@router.post("", status_code=201, openapi_extra=UPLOAD_SCHEMA)
async def upload_dataset(
    request: Request, query: Annotated[schemas.UploadQuery, Query()], workspace: WorkspaceDependency
) -> schemas.DatasetRecord:
    """A file in any format that msg2 reads, or a ZIP archive of a folder of them, as the body of the request."""
    id = new_id()
    folder = workspace.datasets.folder(id)
    folder.mkdir()
    try:
        await save_body(request, folder / id)
        return await run_in_threadpool(workspace.add_upload, id, query)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


@router.get("/{id}")
def get_dataset(id: schemas.RecordId, workspace: WorkspaceDependency) -> schemas.DatasetRecord:
    """One dataset."""
    return workspace.datasets.get(id)


@router.patch("/{id}")
def read_again(
    id: schemas.RecordId, request: schemas.ReadSettings, workspace: WorkspaceDependency
) -> schemas.DatasetRecord:
    """Read a dataset in another way; graphs that were learned from it stay as they are."""
    return workspace.read_again(id, request)


@router.get("/{id}/preview")
def preview_dataset(id: schemas.RecordId, workspace: WorkspaceDependency) -> schemas.TablePreviewResponse | None:
    """The columns and first rows of a dataset that is a table, as it is read; null of others."""
    found = workspace.run_on_dataset(workspace.datasets.get(id), dataset_workers.preview_columns).value
    return None if found is None else schemas.TablePreviewResponse.model_validate(found)


@router.delete("/{id}", status_code=204)
def remove_dataset(id: schemas.RecordId, workspace: WorkspaceDependency) -> None:
    """Remove a dataset; the graphs that were learned from it stay, and so does data that lies outside the folder."""
    workspace.datasets.remove(id)


@router.get("/{id}/labels", response_model_exclude_none=True)
def get_labels(
    id: schemas.RecordId, workspace: WorkspaceDependency, task: Annotated[schemas.QueryText | None, Query()] = None
) -> schemas.TaskLabelsResponse:
    """Every label of a task, video by video."""
    result = workspace.run_on_dataset(workspace.datasets.get(id), dataset_workers.read_labels, task)
    return schemas.TaskLabelsResponse.model_validate(result.value)


@router.get("/{id}/as/{format}", response_class=Response, responses=DOWNLOAD_SCHEMA)
def download_labels(id: schemas.RecordId, format: _LabelFormat, workspace: WorkspaceDependency) -> Any:
    """All labels in another format; where that takes several files, a ZIP archive of them."""
    export = partial(workspace.run_on_dataset, workspace.datasets.get(id), dataset_workers.export_labels)
    return export_response(workspace, format, WRITE_SUFFIXES, "labels", export)


@router.get("/{id}/directly-follows/as/{format}", response_class=Response, responses=DOWNLOAD_SCHEMA)
def download_directly_follows(
    id: schemas.RecordId,
    format: _PictureFormat,
    query: Annotated[schemas.DirectlyFollowsQuery, Query()],
    workspace: WorkspaceDependency,
) -> Any:
    """How often one step came right after another, as a picture; as `msg2 show --view directly-follows`."""
    worker, dataset = graph_workers.export_directly_follows, workspace.datasets.get(id)
    export = partial(workspace.run_on_dataset, dataset, worker, query)
    return export_response(workspace, format, DOT_RENDERERS, "this picture", export)

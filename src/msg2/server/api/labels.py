"""The workbench over HTTP: what there is to label, saved at every change; captions, videos and the graph so far."""

from __future__ import annotations

import mimetypes
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import FileResponse

from msg2.server import schemas, workbench
from msg2.server.api.dependencies import WorkspaceDependency

router = APIRouter(prefix="/api/data/{id}/workbench", tags=["workbench"])

_VIDEO = {"content": {"video/*": {"schema": {"type": "string", "format": "binary"}}}}
_VIDEO_SCHEMA: dict[int | str, dict[str, Any]] = {200: _VIDEO, 206: {"description": "A part of it.", **_VIDEO}}


@router.get("", response_model_exclude_none=True)
def get_workbench(
    id: schemas.RecordId, query: Annotated[schemas.WorkbenchQuery, Query()], workspace: WorkspaceDependency
) -> schemas.WorkbenchResponse:
    """All videos of a task with the labels of one person, and all drafts."""
    return workbench.open_workbench(workspace, id, query.task, query.person)


@router.put("")
def save_labels(
    id: schemas.RecordId, request: schemas.SaveLabelsRequest, workspace: WorkspaceDependency
) -> schemas.SaveLabelsResponse:
    """All labels of one video by one person. They are on the disk when this is answered."""
    return schemas.SaveLabelsResponse(version=workbench.open_store(workspace, id, request.task).save(request))


@router.post("/steps", status_code=204)
def add_steps(id: schemas.RecordId, request: schemas.AddStepsRequest, workspace: WorkspaceDependency) -> None:
    """Steps that there are beside those of the labels, for everybody."""
    workbench.open_store(workspace, id, request.task).add_steps(request.steps)


@router.post("/drafts", status_code=204)
def add_drafts(id: schemas.RecordId, request: schemas.DraftRequest, workspace: WorkspaceDependency) -> None:
    """Drafts from other data, or made from what is said; what was rejected does not come back."""
    workbench.add_drafts(workspace, id, request)


@router.post("/graph")
def learn_live_graph(
    id: schemas.RecordId, request: schemas.PersonRequest, workspace: WorkspaceDependency
) -> schemas.LiveGraphResponse:
    """The graph of a person's labels so far; whether they are enough, and which video to label next."""
    return workbench.live_graph(workspace, id, request.task, request.person)


@router.post("/table", status_code=201)
def make_table(
    id: schemas.RecordId, request: schemas.PersonRequest, workspace: WorkspaceDependency
) -> schemas.DatasetRecord:
    """A dataset of a person's labels, to learn graphs from and to download; it is brought up to date every time."""
    return workbench.make_table(workspace, id, request.task, request.person)


@router.post("/filled", status_code=201)
def fill_labels(
    id: schemas.RecordId, request: schemas.FillRequest, workspace: WorkspaceDependency
) -> schemas.DatasetRecord:
    """A dataset in which the videos without labels have drafts, from what is said in them; as `msg2 label`."""
    return workbench.fill_labels(workspace, id, request)


@router.get("/agreement")
def get_agreement(
    id: schemas.RecordId, query: Annotated[schemas.AgreementQuery, Query()], workspace: WorkspaceDependency
) -> schemas.AgreementResponse:
    """How far two people agree over the videos that both have saved: Cohen's kappa, step by step."""
    return workbench.agreement(workspace, id, query.task or "", (query.person, query.other))


@router.get("/captions")
def get_captions(
    id: schemas.RecordId, query: Annotated[schemas.WorkbenchVideoQuery, Query()], workspace: WorkspaceDependency
) -> schemas.CaptionsResponse:
    """The captions of a video."""
    return workbench.captions_of(workspace, id, query.task, query.video)


@router.get("/media", response_class=Response, responses=_VIDEO_SCHEMA)
def get_media(
    id: schemas.RecordId, query: Annotated[schemas.WorkbenchVideoQuery, Query()], workspace: WorkspaceDependency
) -> Any:
    """The file of a video, or the part of it that the header `Range` asks for."""
    path = workbench.media_file(workspace, id, query.task, query.video)
    return FileResponse(path, media_type=mimetypes.guess_type(path.name)[0] or "application/octet-stream")

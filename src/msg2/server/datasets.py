"""Datasets over HTTP: uploaded, looked at, corrected, downloaded."""

from __future__ import annotations

import shutil
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from msg2.errors import InputError
from msg2.server import chores
from msg2.server.asking import TheDesk
from msg2.server.downloads import BINARY, Format, attachment
from msg2.server.models import Asked, Correction, Id, Upload
from msg2.server.records import Dataset, Datasets, Labels
from msg2.server.shelf import new_id
from msg2.server.uploads import BODY, written
from msg2.worlds.export import SUFFIXES

router = APIRouter(prefix="/api/data", tags=["data"])


@router.get("")
def datasets(desk: TheDesk) -> Datasets:
    """All data, the newest first."""
    return Datasets(data=desk.data.all())


@router.post("", status_code=201, openapi_extra=BODY)
async def upload(request: Request, asked: Annotated[Upload, Query()], desk: TheDesk) -> Dataset:
    """A file in any format that msg2 reads, or a ZIP archive of a folder of them, as the body of the request."""
    id = new_id()
    place = desk.data.place(id)
    place.mkdir()
    try:
        await written(request, place / id)
        return await run_in_threadpool(desk.keep_upload, id, asked)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise


@router.get("/{id}")
def dataset(id: Id, desk: TheDesk) -> Dataset:
    """One dataset."""
    return desk.data.get(id)


@router.delete("/{id}", status_code=204)
def remove(id: Id, desk: TheDesk) -> None:
    """Remove a dataset; the graphs that were learnt from it stay, and so does data that lies outside the folder."""
    desk.data.remove(id)


@router.get("/{id}/labels", response_model_exclude_none=True)
def labels(id: Id, desk: TheDesk, task: Annotated[Asked | None, Query()] = None) -> Labels:
    """Every label of a task, video by video."""
    data = desk.data.get(id)
    return Labels.model_validate(desk.ask_about(data, chores.labels, task).result)


@router.post("/{id}/labels", status_code=201)
def correct(id: Id, correction: Correction, desk: TheDesk) -> Dataset:
    """Other labels for one video: in a copy of the data or, where it is such a copy already, in itself."""
    return desk.correct(id, correction)


@router.get("/{id}/as/{format}", response_class=Response, responses=BINARY)
def download(
    id: Id, format: Annotated[Format, Path(json_schema_extra={"enum": [s[1:] for s in SUFFIXES]})], desk: TheDesk
) -> Any:
    """All labels in another format; where that takes several files, a ZIP archive of them."""
    data = desk.data.get(id)
    if f".{format}" not in SUFFIXES:
        raise InputError(f"there is no format {format!r} of labels", hint=f"there are {' '.join(SUFFIXES)}")
    with desk.scratch() as folder:
        return attachment(folder, desk.ask_about(data, chores.export_labels, f".{format}", folder).result)

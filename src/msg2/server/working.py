"""Jobs and graphs over HTTP: learnt, drawn by hand, merged, downloaded."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from msg2.drawing import SUFFIXES
from msg2.errors import InputError
from msg2.server import chores
from msg2.server.asking import TheDesk
from msg2.server.downloads import BINARY, Format, attachment
from msg2.server.models import Drawing, FileName, Id, Job, Merge
from msg2.server.records import Work, Works
from msg2.server.shelf import new_id
from msg2.server.uploads import BODY, written

router = APIRouter(prefix="/api", tags=["work"])


@router.get("/work")
def works(desk: TheDesk) -> Works:
    """All graphs and jobs, the newest first."""
    return Works(work=[desk.with_news(work) for work in desk.work.all()])


@router.post("/work", status_code=201)
def begin(job: Job, desk: TheDesk) -> Work:
    """Learn a graph. The job waits for its turn: ask for it again to see how it goes."""
    return desk.add(job)


@router.post("/given", status_code=201, openapi_extra=BODY)
async def add(request: Request, name: Annotated[FileName, Query()], desk: TheDesk) -> Work:
    """Keep a graph file, which is the body of the request."""
    with desk.scratch() as folder:
        return await run_in_threadpool(desk.keep_graph, name, await written(request, folder / "graph"))


@router.post("/drawn", status_code=201)
def keep(drawn: Drawing, desk: TheDesk) -> Work:
    """Keep a graph that was drawn by hand, in the place of an earlier one where it replaces that."""
    if drawn.replaces is None:
        work = Work(id=new_id(), made=time.time(), kind="drawn", state="done")
    elif (work := desk.work.get(drawn.replaces)).kind != "drawn":
        raise InputError("only a graph that was drawn by hand can be replaced", hint="keep it as a new one")
    return desk.keep(work, chores.keep, drawn.graph)


@router.post("/merged", status_code=201)
def merge(asked: Merge, desk: TheDesk) -> Work:
    """Merge graphs by majority per clause, and keep the result with the votes."""
    graphs = [desk.work.get(id) for id in asked.work]
    paths = [desk.file(work.id, chores.GRAPH) for work in graphs]
    names = [work.name or work.task for work in graphs]
    work = Work(id=new_id(), made=time.time(), kind="merged", state="done", annotators=names)
    return desk.keep(work, chores.merged, paths)


@router.get("/work/{id}")
def work(id: Id, desk: TheDesk) -> Work:
    """One graph or job."""
    return desk.with_news(desk.work.get(id))


@router.delete("/work/{id}", status_code=204)
def remove(id: Id, desk: TheDesk) -> None:
    """Remove a graph; a job that has not ended is given up."""
    desk.give_up(id)


@router.get("/work/{id}/as/{format}", response_class=Response, responses=BINARY)
def download(
    id: Id, format: Annotated[Format, Path(json_schema_extra={"enum": [s[1:] for s in SUFFIXES]})], desk: TheDesk
) -> Any:
    """The graph in a format of `msg2 show`; where that takes several files, a ZIP archive of them."""
    path = desk.file(id, chores.GRAPH)
    if f".{format}" not in SUFFIXES:
        raise InputError(f"there is no format {format!r} of graphs", hint=f"there are {' '.join(SUFFIXES)}")
    with desk.scratch() as folder:
        return attachment(folder, desk.ask(chores.export_graph, path, f".{format}", folder).result)

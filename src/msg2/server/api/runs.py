"""Live runs over HTTP: opened, told what happens, listened to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from msg2.server import schemas
from msg2.server.api.dependencies import LiveRunsDependency
from msg2.server.live_runs import LiveRuns, RunListener

router = APIRouter(prefix="/api/runs", tags=["runs"])

_KEEP_ALIVE_SECONDS = 15.0
"""Silence after which a comment is sent: else a proxy may take the stream for dead."""
_STREAM_SCHEMA: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: the data of each is an answer, as events get it, and its id the version. "
        "The last one is of the type `removed`, where the run was.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


class RunStreamResponse(StreamingResponse):
    """What a listener is sent; whatever ends it, the listener is forgotten."""

    def __init__(self, runs: LiveRuns, id: str, listener: RunListener) -> None:
        super().__init__(_messages(listener), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        self._runs, self._id, self._listener = runs, id, listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, as any ASGI application does."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._runs.forget(self._id, self._listener)


async def _messages(listener: RunListener) -> AsyncIterator[str]:
    while True:
        try:
            message = await asyncio.wait_for(listener.receive(), _KEEP_ALIVE_SECONDS)
        except TimeoutError:
            message = ": nothing new\n\n"
        if message is None:
            return
        yield message


@router.get("")
def list_runs(runs: LiveRunsDependency) -> schemas.RunsResponse:
    """All live runs, the newest first."""
    return schemas.RunsResponse(runs=runs.summaries())


@router.post("", status_code=201)
def open_run(request: schemas.OpenRunRequest, runs: LiveRunsDependency) -> schemas.RunResponse:
    """Begin a run of a graph that is kept. The first one learns from the data, which may take seconds."""
    return runs.open(request)


@router.get("/{id}")
def get_run(id: schemas.RecordId, runs: LiveRunsDependency) -> schemas.RunResponse:
    """How a run stands: the present answer, and everything that was told."""
    return runs.get(id)


@router.post("/{id}/events")
def tell_run(id: schemas.RecordId, event: schemas.RunEvent, runs: LiveRunsDependency) -> schemas.RunAnswer:
    """Tell what happened, or ask; an event that is refused changes nothing."""
    return runs.tell(id, event)


@router.get("/{id}/stream", response_class=StreamingResponse, responses=_STREAM_SCHEMA)
async def stream_run(id: schemas.RecordId, runs: LiveRunsDependency) -> Any:
    """The present answer at once, then every new one as it comes, until the run is removed."""
    listener = await run_in_threadpool(runs.listen, id, asyncio.get_running_loop())
    return RunStreamResponse(runs, id, listener)


@router.delete("/{id}", status_code=204)
def remove_run(id: schemas.RecordId, runs: LiveRunsDependency) -> None:
    """Remove a run; its streams end."""
    runs.remove(id)

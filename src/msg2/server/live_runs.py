"""Live runs over HTTP: somebody does a task, tells what is done, and is answered; others listen.

The record of a run is written after every event, before anybody is answered, so a restart goes on with it. What was
learned from the data stays in worker processes, and is learned again where such a process has ended.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from msg2.errors import InputError
from msg2.server import schemas
from msg2.server.graph_workers import GRAPH_FILE, RunOutcome, RunSetup, answer_run
from msg2.server.jobs import QueueFullError
from msg2.server.schemas import RecordId, RunAnswer, RunEvent, RunRecord, RunResponse
from msg2.server.workers import JsonObject, WorkerPool
from msg2.server.workspace import NotFoundError, Workspace, new_id, update_record

_ASK: JsonObject = {"ask": True}
_MAX_UNREAD = 64
"""Messages that wait for one listener; of a slower one the oldest are dropped."""
_KEEP_ALIVE_SECONDS = 15.0
"""Silence after which a comment is sent: else a proxy may take the stream for dead."""
_STREAM: dict[int | str, JsonObject] = {
    200: {
        "description": "Server-sent events: the data of each is an answer, as events get it, and its id the "
        "version. The last one is of the type `removed`, where the run was.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


class RunListener:
    """Somebody who is sent every answer of a run, as server-sent events, in an event loop of their own."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._messages: asyncio.Queue[str | None] = asyncio.Queue(_MAX_UNREAD)

    def send(self, message: str | None) -> None:
        """Send a message, from any thread; None ends the stream."""
        with suppress(RuntimeError):  # the loop has ended, and the listener with it
            self._loop.call_soon_threadsafe(self._put, message)

    async def messages(self) -> AsyncIterator[str]:
        """Wait for one message after the other, until the last."""
        while True:
            try:
                message = await asyncio.wait_for(self._messages.get(), _KEEP_ALIVE_SECONDS)
            except TimeoutError:
                message = ": nothing new\n\n"
            if message is None:
                return
            yield message

    def _put(self, message: str | None) -> None:
        if self._messages.full():
            self._messages.get_nowait()
        self._messages.put_nowait(message)


class LiveRuns:
    """All live runs of a workspace, without HTTP."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace, self._settings = workspace, workspace.settings
        self._records = workspace.runs
        self._pool = WorkerPool(workspace.settings)
        self._changing = threading.Lock()
        """For what follows."""
        self._locks: dict[str, threading.Lock] = {}
        self._listeners: dict[str, list[RunListener]] = {}
        self._opening = 0
        self.router = router = APIRouter(prefix="/api/runs", tags=["runs"])
        router.get("")(self.list_runs)
        router.post("", status_code=201)(self.open_run)
        router.get("/{id}")(self.get_run)
        router.post("/{id}/events")(self.tell_run)
        router.get("/{id}/stream", response_class=StreamingResponse, responses=_STREAM)(self.stream_run)
        router.delete("/{id}", status_code=204)(self.remove_run)

    def close(self) -> None:
        """End all streams and processes."""
        self.end_streams()
        self._pool.close()

    def end_streams(self) -> None:
        """Tell all listeners that the server ends."""
        with self._changing:
            for listener in [listener for listeners in self._listeners.values() for listener in listeners]:
                listener.send(None)

    def list_runs(self) -> dict[Literal["runs"], list[schemas.RunSummary]]:
        """All live runs, the newest first."""
        return {"runs": [record.summary() for record in self._records.records()]}

    def open_run(self, request: schemas.OpenRunRequest) -> RunResponse:
        """Begin a run of a graph that is kept. The first one learns from the data, which may take seconds."""
        with self._changing:
            kept = sum(1 for _ in self._records.root.iterdir())  # to read them all would hold up those who wait
            if self._opening + kept >= self._settings.runs:
                raise QueueFullError("too many runs are kept", hint="remove those that nobody follows")
            self._opening += 1
        try:
            id, data = new_id(), self._choose_data(request)
            outcome = self._ask(id, request.graph, data, None, _ASK, False)
            fields = {"id": id, "made": time.time(), "graph": request.graph, "data": data, "saved": outcome["saved"]}
            record = self._records.put(RunRecord.model_validate({**fields, **outcome["about"]}))
        finally:
            with self._changing:
                self._opening -= 1
        return record.response(_answer(record, outcome), log=[])

    def get_run(self, id: RecordId) -> RunResponse:
        """How a run stands: the present answer, and everything that was told."""
        with self._asked(id, _ASK, log=True) as (record, outcome):
            return record.response(_answer(record, outcome), outcome["log"])

    def tell_run(self, id: RecordId, event: RunEvent) -> RunAnswer:
        """Tell what happened, or ask; an event that is refused changes nothing."""
        with self._asked(id, event) as (record, outcome):
            if outcome["saved"] != record.saved:
                record = update_record(record, saved=outcome["saved"], version=record.version + 1)
                self._records.put(record)
                self._publish(id, _message(record, outcome))
            return _answer(record, outcome)

    async def stream_run(self, id: RecordId) -> Response:
        """The present answer at once, then every new one as it comes, until the run is removed."""
        listener = await run_in_threadpool(self.listen, id, asyncio.get_running_loop())
        return RunStreamResponse(self, id, listener)

    def remove_run(self, id: RecordId) -> None:
        """Remove a run; its streams end."""
        with self._lock(id):
            self._records.remove(id)
            self._publish(id, "event: removed\ndata: {}\n\n")
            self._publish(id, None)
            with self._changing:
                self._locks.pop(id, None)

    def listen(self, id: str, loop: asyncio.AbstractEventLoop) -> RunListener:
        """Add a listener, who is sent the present answer at once."""
        listener = RunListener(loop)
        with self._asked(id, _ASK) as (record, outcome):
            with self._changing:
                if sum(map(len, self._listeners.values())) >= self._settings.listeners:
                    raise QueueFullError("too many are listening", hint="try again later")
                self._listeners.setdefault(id, []).append(listener)
            listener.send(_message(record, outcome))
        return listener

    def forget(self, id: str, listener: RunListener) -> None:
        """Forget a listener who has gone."""
        with self._changing:
            self._listeners[id].remove(listener)
            if not self._listeners[id]:
                del self._listeners[id]

    def _publish(self, id: str, message: str | None) -> None:
        with self._changing:
            for listener in self._listeners.get(id, ()):
                listener.send(message)

    def _lock(self, id: str) -> threading.Lock:
        """The lock of a run, which is there: one event after the other."""
        self._records.get(id)
        with self._changing:
            return self._locks.setdefault(id, threading.Lock())

    def _choose_data(self, request: schemas.OpenRunRequest) -> str | None:
        """The dataset that was asked for or, where the request leaves that open, that the graph was learned from."""
        graph = self._workspace.graphs.get(request.graph)
        if "data" in request.model_fields_set or graph.job is None:
            return request.data
        try:
            return self._workspace.datasets.get(graph.job.data).id
        except NotFoundError:
            return None

    @contextmanager
    def _asked(self, id: str, event: RunEvent, log: bool = False) -> Iterator[tuple[RunRecord, RunOutcome]]:
        """Ask a run; until the end of the block, nobody else does."""
        with self._lock(id):
            record = self._records.get(id)
            try:
                outcome = self._ask(id, record.graph, record.data, record.saved, event, log)
            except NotFoundError:
                what = "the graph of this run, or its data, has been removed"
                raise InputError(what, hint="open another run") from None
            yield record, outcome

    def _ask(self, id: str, graph: str, data: str | None, *question: object) -> RunOutcome:
        """Ask the worker of a graph and its data; where one of these has changed, that is another worker."""
        workspace, record = self._workspace, self._workspace.graphs.get(graph)
        file = workspace.graph_file(graph, GRAPH_FILE)
        dataset = None if data is None else workspace.datasets.get(data)
        path, name = path_name = (file, str(file)) if dataset is None else workspace.dataset_name(dataset)
        try:
            changed = file.stat().st_mtime_ns, path.stat().st_mtime_ns
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror})", where=name) from None
        overlap = None if record.job is None else record.job.overlap
        described = None if dataset is None else dataset.model_dump_json()
        setup = RunSetup(file, path, described, overlap, changed, self._settings.run_events)
        return self._pool.run(setup, answer_run, setup, id, *question, path_name=path_name).value


def _answer(record: RunRecord, outcome: RunOutcome) -> RunAnswer:
    return {"version": record.version, **outcome["answer"]}


def _message(record: RunRecord, outcome: RunOutcome) -> str:
    """An answer as a server-sent event."""
    return f"id: {record.version}\ndata: {json.dumps(_answer(record, outcome))}\n\n"


class RunStreamResponse(StreamingResponse):
    """What a listener is sent; whatever ends it, the listener is forgotten."""

    def __init__(self, runs: LiveRuns, id: str, listener: RunListener) -> None:
        super().__init__(listener.messages(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        self._runs, self._id, self._listener = runs, id, listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, as any ASGI application does."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._runs.forget(self._id, self._listener)

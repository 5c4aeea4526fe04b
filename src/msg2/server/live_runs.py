"""Live runs over HTTP: somebody does a task, tells what is done, and is answered; others listen.

The record of a run is written after every event, before anybody is answered, so a restart goes on with it. What was
learned from the data stays in processes that are kept, and is learned again where such a process has ended.
"""

import asyncio
import json
import logging
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import Literal, TypeAlias
from weakref import WeakSet

from fastapi import APIRouter, Response, WebSocket, WebSocketDisconnect
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocketState

from msg2.errors import InputError
from msg2.server import schemas
from msg2.server.error_statuses import explain_error
from msg2.server.graph_functions import RunOutcome, RunQuestion, answer_run
from msg2.server.jobs import QueueFullError
from msg2.server.sandbox import JsonObject, KeyedLocks
from msg2.server.schemas import RecordId, RunEvent, RunRecord
from msg2.server.workspace import NotFoundError, Workspace, new_id, update_record

_ASK: JsonObject = {"ask": True}
_KEPT = ("did", "began", "saw", "accept", "pause", "resume")
"""Events that make a run longer."""
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
_EVENTS: TypeAdapter[RunEvent] = TypeAdapter(RunEvent)
_End: TypeAlias = Literal["removed", "ended"]
"""Why there are no more answers: the run is gone, or the server or the listener."""

_log = logging.getLogger(__name__)


class RunListener:
    """Somebody who is sent every answer of a run, in an event loop of their own."""

    def __init__(self, run: str) -> None:
        self.run, self._loop = run, asyncio.get_running_loop()
        self._messages: asyncio.Queue[JsonObject | _End] = asyncio.Queue(_MAX_UNREAD)

    def send(self, message: JsonObject | _End) -> None:
        """Send an answer, or say why there are no more; from any thread."""
        with suppress(RuntimeError):  # the loop has ended, and the listener with it
            self._loop.call_soon_threadsafe(self._put, message)

    async def receive(self, seconds: float | None = None) -> JsonObject | _End:
        """Wait for the next message, for so long."""
        return await asyncio.wait_for(self._messages.get(), seconds)

    def _put(self, message: JsonObject | _End) -> None:
        if self._messages.full():
            self._messages.get_nowait()
        self._messages.put_nowait(message)


async def _as_server_sent_events(listener: RunListener) -> AsyncIterator[str]:
    """Write what a listener is sent as server-sent events."""
    while True:
        try:
            message = await listener.receive(_KEEP_ALIVE_SECONDS)
        except TimeoutError:
            yield ": nothing new\n\n"
            continue
        if isinstance(message, str):
            if message == "removed":
                yield "event: removed\ndata: {}\n\n"
            return
        yield f"id: {message['version']}\ndata: {json.dumps(message)}\n\n"


class LiveRuns:
    """All live runs of a workspace, without HTTP."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace, self._settings = workspace, workspace.settings
        self._records = workspace.runs
        self._locks = KeyedLocks()
        """Of runs: one event after the other."""
        self._listeners: WeakSet[RunListener] = WeakSet()
        """Only its stream or socket keeps a listener: whatever ends that, the listener is gone."""
        self._listening = threading.Lock()
        self.router = router = APIRouter(prefix="/api/runs", tags=["runs"])
        router.get("")(self.list_runs)
        router.post("", status_code=201, response_model=schemas.RunResponse)(self.open_run)
        router.get("/{id}", response_model=schemas.RunResponse)(self.get_run)
        router.post("/{id}/events", response_model=schemas.RunAnswer)(self.tell_run)
        router.post("/{id}/graph", response_model=schemas.TakeOverResponse)(self.take_over_run)
        router.get("/{id}/stream", response_class=StreamingResponse, responses=_STREAM)(self.stream_run)
        router.websocket("/{id}/socket")(self.connect_run)
        router.delete("/{id}", status_code=204)(self.remove_run)

    def list_runs(self) -> dict[Literal["runs"], list[schemas.RunSummary]]:
        """All live runs, the newest first."""
        records = self._records.records()
        return {"runs": [schemas.RunSummary.model_validate(record, from_attributes=True) for record in records]}

    def open_run(self, request: schemas.OpenRunRequest) -> JSONResponse:
        """Begin a run of a graph that is kept. The first one learns from the data, which may take seconds."""
        id = new_id()
        with self._records.new_folder(id):
            if sum(1 for _ in self._records.root.iterdir()) > self._settings.runs:
                raise QueueFullError("too many runs are kept", hint="remove those that nobody follows")
            data = self._choose_data(request, None)
            options = schemas.AssistantOptions(**request.model_dump(include=set(schemas.AssistantOptions.model_fields)))
            outcome = self._ask(id, request.graph, data, RunQuestion(options, None, _ASK))
            fields = {"id": id, "made": time.time(), "graph": request.graph, "data": data, "saved": outcome["saved"]}
            record = self._records.put(RunRecord.model_validate({**fields, **outcome["about"], "options": options}))
        return JSONResponse(_run_fields(record, outcome), 201)

    def get_run(self, id: RecordId) -> JSONResponse:
        """How a run stands: the present answer, and everything that was told."""
        with self._asked(id, _ASK, log=True) as (record, outcome):
            return JSONResponse(_run_fields(record, outcome))

    def tell_run(self, id: RecordId, event: RunEvent) -> JSONResponse:
        """Tell what happened, or ask; an event that is refused changes nothing. `…/socket` takes many of them."""
        return JSONResponse(self._tell(id, event))

    def take_over_run(self, id: RecordId, request: schemas.TakeOverRequest) -> JSONResponse:
        """Go on with another graph, or with the same one that was edited. Steps that it does not have are dropped."""
        with self._locks[id]:
            record = self._records.get(id)
            question = RunQuestion(record.options, record.saved, _ASK, log=True, edited=True)
            try:  # "not found" is about the run
                data = self._choose_data(request, record.data)
                outcome = self._ask(id, request.graph, data, question)
            except NotFoundError:
                what = "there is no such graph, or no such data"
                raise InputError(what, hint="see /api/work and /api/data") from None
            changes = {"graph": request.graph, "data": data, "saved": outcome["saved"], **outcome["about"]}
            record = self._records.put(update_record(record, **changes, version=record.version + 1))
            self._publish(id, {**_answer(record, outcome), "graph": request.graph})
        return JSONResponse({**_run_fields(record, outcome), "dropped": outcome["dropped"]})

    async def stream_run(self, id: RecordId) -> Response:
        """The present answer at once, then every new one as it comes, until the run is removed."""
        listener = RunListener(id)
        await run_in_threadpool(self._add, listener)
        events = _as_server_sent_events(listener)
        return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def connect_run(self, socket: WebSocket, id: RecordId) -> None:
        """Events in, answers out, those to what others tell as well; of frames, when a block of them is complete."""
        listener = RunListener(id)
        await run_in_threadpool(self._add, listener)
        await socket.accept()
        telling = asyncio.create_task(self._take_events(socket, listener))
        try:
            with suppress(WebSocketDisconnect):
                while not isinstance(message := await listener.receive(), str):
                    await socket.send_text(json.dumps(message))
                if socket.client_state is WebSocketState.CONNECTED:
                    code, reason = (1000, "the run was removed") if message == "removed" else (1001, "the server ends")
                    await socket.close(code, reason)
        finally:
            telling.cancel()

    def remove_run(self, id: RecordId) -> None:
        """Remove a run; its streams and sockets end."""
        with self._locks[id]:
            self._records.remove(id)
            self._publish(id, "removed")

    def end_streams(self) -> None:
        """Tell all listeners that the server ends."""
        with self._listening:
            for listener in self._listeners:
                listener.send("ended")

    def _tell(self, id: str, event: RunEvent, sender: RunListener | None = None) -> JsonObject:
        """Tell a run what happened, and all listeners what is new; what is not, the sender alone."""
        with self._asked(id, event) as (record, outcome):
            if outcome["is_new"]:
                record = update_record(record, saved=outcome["saved"], version=record.version + 1)
                self._records.put(record)
                self._publish(id, _answer(record, outcome))
            elif sender is not None and "observe" not in event:
                sender.send(_answer(record, outcome))
            return _answer(record, outcome)

    async def _take_events(self, socket: WebSocket, listener: RunListener) -> None:
        """Take one event after the other from a socket, until it is closed; what is wrong is said."""
        while (message := await socket.receive())["type"] == "websocket.receive":
            try:
                text = message.get("text")
                event = _EVENTS.validate_json(message["bytes"] if text is None else text)
                await run_in_threadpool(self._tell, listener.run, event, listener)
            except Exception as error:
                status, problem = explain_error(error)
                if status == 500:
                    _log.error("an event could not be answered", exc_info=error)
                listener.send(schemas.error_response(problem).model_dump())
        listener.send("ended")

    def _add(self, listener: RunListener) -> None:
        """Add a listener, who is sent the present answer at once."""
        with self._asked(listener.run, _ASK) as (record, outcome), self._listening:
            if len(self._listeners) >= self._settings.listeners:
                raise QueueFullError("too many are listening", hint="try again later")
            self._listeners.add(listener)
            listener.send(_answer(record, outcome))

    def _publish(self, id: str, message: JsonObject | _End) -> None:
        with self._listening:
            for listener in self._listeners:
                if listener.run == id:
                    listener.send(message)

    def _choose_data(self, request: schemas.OpenRunRequest | schemas.TakeOverRequest, usual: str | None) -> str | None:
        """The dataset that was asked for or, where the request leaves that open, that the graph was learned from."""
        graph = self._workspace.graphs.get(request.graph)
        if "data" in request.model_fields_set:
            return request.data
        try:
            return usual if graph.job is None else self._workspace.datasets.get(graph.job.data).id
        except NotFoundError:
            return usual

    @contextmanager
    def _asked(self, id: str, event: RunEvent, log: bool = False) -> Iterator[tuple[RunRecord, RunOutcome]]:
        """Ask a run; until the end of the block, nobody else does."""
        with self._locks[id]:
            record, most = self._records.get(id), self._settings.run_events
            if record.events >= most and "correct" not in event and not event.keys().isdisjoint(_KEPT):
                hint = "undo some, or open another run"
                raise InputError(f"the run has {most:,} events, and takes no more", hint=hint)
            try:
                outcome = self._ask(
                    id, record.graph, record.data, RunQuestion(record.options, record.saved, event, log)
                )
            except NotFoundError:
                what = "the graph of this run, or its data, has been removed"
                raise InputError(what, hint="open another run") from None
            yield record, outcome

    def _ask(self, id: str, graph: str, data: str | None, question: RunQuestion) -> RunOutcome:
        """Ask the process of a graph, its data and options; where one of these has changed, that is another process."""
        workspace, job = self._workspace, self._workspace.graphs.get(graph).job
        file, dataset = workspace.graph_file(graph), None if data is None else workspace.dataset(data)
        paths = [file] if dataset is None else [file, dataset.path]
        try:
            changed = tuple(path.stat().st_mtime_ns for path in paths)
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror})", where=(dataset or file).name) from error
        order = (
            () if job is None else tuple(sorted(job.model_dump(include={"overlap", "ties"}, exclude_none=True).items()))
        )
        setup = dataset, file, order
        return workspace.sandbox.call_kept((*setup, question.options, changed), answer_run, *setup, id, question).value


def _answer(record: RunRecord, outcome: RunOutcome) -> JsonObject:
    return {"version": record.version, **outcome["answer"]}


def _run_fields(record: RunRecord, outcome: RunOutcome) -> JsonObject:
    fields = record.model_dump(exclude={"saved"})
    return {**fields, "events": record.events, "answer": _answer(record, outcome), "log": outcome["log"]}

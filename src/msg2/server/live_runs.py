"""Live runs over HTTP: somebody does a task, tells what is done, and is answered; others listen.

The record of a run is written after every event, before anybody is answered, so a restart goes on with it. What was
learned from the data stays in processes that are kept, and is learned again where such a process has ended.
"""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import Literal
from weakref import WeakSet

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from msg2.errors import InputError
from msg2.server import schemas
from msg2.server.graph_functions import RunOutcome, RunQuestion, answer_run
from msg2.server.jobs import QueueFullError
from msg2.server.sandbox import JsonObject, KeyedLocks
from msg2.server.schemas import RecordId, RunAnswer, RunEvent, RunRecord, RunResponse
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


class RunListener:
    """Somebody who is sent every answer of a run, as server-sent events, in an event loop of their own."""

    def __init__(self, run: str, loop: asyncio.AbstractEventLoop) -> None:
        self.run, self._loop = run, loop
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
        self._locks = KeyedLocks()
        """Of runs: one event after the other."""
        self._listeners: WeakSet[RunListener] = WeakSet()
        """Only its stream keeps a listener: whatever ends that, the listener is gone."""
        self._shown: dict[str, JsonObject] = {}
        """The last answers of runs that observe frames, which are not kept."""
        self._listening = threading.Lock()
        self.router = router = APIRouter(prefix="/api/runs", tags=["runs"])
        router.get("")(self.list_runs)
        router.post("", status_code=201)(self.open_run)
        router.get("/{id}")(self.get_run)
        router.post("/{id}/events")(self.tell_run)
        router.get("/{id}/stream", response_class=StreamingResponse, responses=_STREAM)(self.stream_run)
        router.delete("/{id}", status_code=204)(self.remove_run)

    def list_runs(self) -> dict[Literal["runs"], list[schemas.RunSummary]]:
        """All live runs, the newest first."""
        records = self._records.records()
        return {"runs": [schemas.RunSummary.model_validate(record, from_attributes=True) for record in records]}

    def open_run(self, request: schemas.OpenRunRequest) -> RunResponse:
        """Begin a run of a graph that is kept. The first one learns from the data, which may take seconds."""
        id = new_id()
        with self._records.new_folder(id):
            if sum(1 for _ in self._records.root.iterdir()) > self._settings.runs:
                raise QueueFullError("too many runs are kept", hint="remove those that nobody follows")
            data = self._choose_data(request)
            options = schemas.AssistantOptions(**request.model_dump(include=set(schemas.AssistantOptions.model_fields)))
            outcome = self._ask(id, request.graph, data, (options, None, _ASK, False))
            fields = {"id": id, "made": time.time(), "graph": request.graph, "data": data, "saved": outcome["saved"]}
            record = self._records.put(RunRecord.model_validate({**fields, **outcome["about"], "options": options}))
        return _response(record, outcome)

    def get_run(self, id: RecordId) -> RunResponse:
        """How a run stands: the present answer, and everything that was told."""
        with self._asked(id, _ASK, log=True) as (record, outcome):
            return _response(record, outcome)

    def tell_run(self, id: RecordId, event: RunEvent) -> RunAnswer:
        """Tell what happened, or ask; an event that is refused changes nothing."""
        with self._asked(id, event) as (record, outcome):
            seen = "observe" in event and outcome["answer"] != self._shown.get(id)
            if seen:
                self._shown[id] = outcome["answer"]
            if seen or outcome["saved"] != record.saved:
                record = update_record(record, saved=outcome["saved"], version=record.version + 1)
                self._records.put(record)
                self._publish(id, _message(record, outcome))
            return _answer(record, outcome)

    async def stream_run(self, id: RecordId) -> Response:
        """The present answer at once, then every new one as it comes, until the run is removed."""
        listener = RunListener(id, asyncio.get_running_loop())
        await run_in_threadpool(self._add, listener)
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(listener.messages(), media_type="text/event-stream", headers=headers)

    def remove_run(self, id: RecordId) -> None:
        """Remove a run; its streams end."""
        with self._locks[id]:
            self._records.remove(id)
            self._shown.pop(id, None)
            self._publish(id, "event: removed\ndata: {}\n\n", None)

    def end_streams(self) -> None:
        """Tell all listeners that the server ends."""
        with self._listening:
            for listener in self._listeners:
                listener.send(None)

    def _add(self, listener: RunListener) -> None:
        """Add a listener, who is sent the present answer at once."""
        with self._asked(listener.run, _ASK) as (record, outcome), self._listening:
            if len(self._listeners) >= self._settings.listeners:
                raise QueueFullError("too many are listening", hint="try again later")
            self._listeners.add(listener)
            listener.send(_message(record, outcome))

    def _publish(self, id: str, *messages: str | None) -> None:
        with self._listening:
            for listener in self._listeners:
                for message in messages if listener.run == id else ():
                    listener.send(message)

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
        with self._locks[id]:
            record, most = self._records.get(id), self._settings.run_events
            if record.events >= most and "correct" not in event and not event.keys().isdisjoint(_KEPT):
                hint = "undo some, or open another run"
                raise InputError(f"the run has {most:,} events, and takes no more", hint=hint)
            try:
                outcome = self._ask(id, record.graph, record.data, (record.options, record.saved, event, log))
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
            raise InputError(f"cannot be read ({error.strerror})", where=(dataset or file).name) from None
        setup = dataset, file, None if job is None else job.overlap
        return workspace.sandbox.call_kept((*setup, question[0], changed), answer_run, *setup, id, question).value


def _answer(record: RunRecord, outcome: RunOutcome) -> RunAnswer:
    return {"version": record.version, **outcome["answer"]}


def _response(record: RunRecord, outcome: RunOutcome) -> RunResponse:
    fields = record.model_dump(exclude={"saved"})
    return RunResponse(**fields, events=record.events, answer=_answer(record, outcome), log=outcome["log"])


def _message(record: RunRecord, outcome: RunOutcome) -> str:
    """An answer as a server-sent event."""
    return f"id: {record.version}\ndata: {json.dumps(_answer(record, outcome))}\n\n"

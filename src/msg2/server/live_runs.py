"""Live runs: somebody does a task, tells what is done, and is answered; others listen.

The record of a run is written after every event, before anybody is answered, so a restart goes on with it. What was
learned stays in processes, each with a `RunWorker`, and is learned again where such a process has ended.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from contextlib import suppress
from typing import Any

from msg2.errors import InputError
from msg2.server.graph_workers import GRAPH_FILE
from msg2.server.jobs import QueueFullError
from msg2.server.resident_process import ResidentPool, WorkerPlan
from msg2.server.run_workers import RunWorker
from msg2.server.sandbox import TranslateText
from msg2.server.schemas import OpenRunRequest, RunAnswer, RunEvent, RunRecord, RunResponse, RunSummary
from msg2.server.workspace import NotFoundError, Workspace, new_id, update_record

_ASK = {"ask": True}
_MAX_UNREAD = 64
"""Messages that wait for one listener; of a slower one the oldest are dropped."""


class RunListener:
    """Somebody who is sent every answer of a run, as server-sent events, in an event loop of their own."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._messages: asyncio.Queue[str | None] = asyncio.Queue(_MAX_UNREAD)

    def send(self, message: str | None) -> None:
        """Send a message, from any thread; None ends the stream."""
        with suppress(RuntimeError):  # the loop has ended, and the listener with it
            self._loop.call_soon_threadsafe(self._put, message)

    async def receive(self) -> str | None:
        """Wait for the next message."""
        return await self._messages.get()

    def _put(self, message: str | None) -> None:
        if self._messages.full():
            self._messages.get_nowait()
        self._messages.put_nowait(message)


class LiveRuns:
    """All live runs of a workspace, without HTTP."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace, self._settings = workspace, workspace.settings
        self._records = workspace.runs
        self._pool = ResidentPool(workspace.settings)
        self._changing = threading.Lock()
        """For what follows."""
        self._locks: dict[str, threading.Lock] = {}
        self._listeners: dict[str, list[RunListener]] = {}
        self._opening = 0

    def close(self) -> None:
        """End all streams and processes."""
        self.end_streams()
        self._pool.close()

    def end_streams(self) -> None:
        """Tell all listeners that the server ends."""
        with self._changing:
            for listener in [listener for listeners in self._listeners.values() for listener in listeners]:
                listener.send(None)

    # -- runs ---------------------------------------------------------------------------------------------------

    def summaries(self) -> list[RunSummary]:
        """List all runs, the newest first."""
        return [RunSummary(**record.summary()) for record in self._records.records()]

    def open(self, request: OpenRunRequest) -> RunResponse:
        """Begin a run; where nobody follows this graph with these data yet, what they say is learned first."""
        with self._changing:
            kept = sum(1 for _ in self._records.root.iterdir())  # to read them all would hold up those who wait
            if self._opening + kept >= self._settings.runs:
                raise QueueFullError("too many runs are kept", hint="remove those that nobody follows")
            self._opening += 1
        try:
            id, data = new_id(), self._choose_data(request)
            result = self._ask(id, request.graph, data, None, _ASK, False)
            record = RunRecord(
                id=id, made=time.time(), graph=request.graph, data=data, saved=result["saved"], **result["about"]
            )
            self._records.put(record)
        finally:
            with self._changing:
                self._opening -= 1
        return RunResponse(**record.summary(), answer=_answer(record, result), log=[])

    def get(self, id: str) -> RunResponse:
        """Return how a run stands, with everything that was told."""
        with self._lock(id):
            record = self._records.get(id)
            result = self._ask_run(record, _ASK, log=True)
        return RunResponse(**record.summary(), answer=_answer(record, result), log=result["log"])

    def tell(self, id: str, event: RunEvent) -> RunAnswer:
        """Tell a run what happened, and those who listen how it stands now."""
        with self._lock(id):
            record = self._records.get(id)
            result = self._ask_run(record, event)
            if result["saved"] != record.saved:
                record = update_record(record, saved=result["saved"], version=record.version + 1)
                self._records.put(record)
                self._publish(id, _message(record, result))
            return _answer(record, result)

    def remove(self, id: str) -> None:
        """Remove a run; the streams of it end."""
        with self._lock(id):
            self._records.remove(id)
            self._publish(id, "event: removed\ndata: {}\n\n")
            self._publish(id, None)
            with self._changing:
                self._locks.pop(id, None)

    # -- listeners ----------------------------------------------------------------------------------------------

    def listen(self, id: str, loop: asyncio.AbstractEventLoop) -> RunListener:
        """Add a listener, who is sent the present answer at once."""
        listener = RunListener(loop)
        with self._lock(id):
            record = self._records.get(id)
            result = self._ask_run(record, _ASK)
            with self._changing:
                if sum(map(len, self._listeners.values())) >= self._settings.listeners:
                    raise QueueFullError("too many are listening", hint="try again later")
                self._listeners.setdefault(id, []).append(listener)
            listener.send(_message(record, result))
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

    # -- workers ------------------------------------------------------------------------------------------------

    def _lock(self, id: str) -> threading.Lock:
        """The lock of a run, which is there: one event after the other."""
        self._records.get(id)
        with self._changing:
            return self._locks.setdefault(id, threading.Lock())

    def _choose_data(self, request: OpenRunRequest) -> str | None:
        """The dataset that was asked for or, where the request leaves that open, that the graph was learned from."""
        graph = self._workspace.graphs.get(request.graph)
        if "data" in request.model_fields_set or graph.job is None:
            return request.data
        try:
            return self._workspace.datasets.get(graph.job.data).id
        except NotFoundError:
            return None

    def _ask_run(self, record: RunRecord, event: RunEvent, log: bool = False) -> Any:
        try:
            return self._ask(record.id, record.graph, record.data, record.saved, event, log)
        except NotFoundError:
            what = "the graph of this run, or its data, has been removed"
            raise InputError(what, hint="open another run") from None

    def _ask(self, id: str, graph: str, data: str | None, *question: Any) -> Any:
        """Ask the worker of a graph and its data; where one of these has changed, that is another worker."""
        workspace, record = self._workspace, self._workspace.graphs.get(graph)
        paths, dataset = [workspace.graph_file(graph, GRAPH_FILE)], None
        translate: TranslateText = str
        if data is not None:
            dataset = workspace.datasets.get(data)
            paths.append(workspace.dataset_path(dataset))
            translate = workspace.dataset_translator(dataset)
        try:
            key = (graph, data, dataset and dataset.reading, *(path.stat().st_mtime_ns for path in paths))
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror})", where=translate(str(paths[-1]))) from None
        reading = {} if record.job is None else record.job.model_dump(include={"overlap"}, exclude_none=True)
        arguments = (paths[0], paths[1] if dataset else None, dataset, self._settings.run_events, reading)
        return self._pool.ask(key, WorkerPlan(RunWorker, arguments, translate), id, *question)


def _answer(record: RunRecord, result: dict[str, Any]) -> dict[str, Any]:
    return {"version": record.version, **result["answer"]}


def _message(record: RunRecord, result: dict[str, Any]) -> str:
    """An answer as a server-sent event."""
    return f"id: {record.version}\ndata: {json.dumps(_answer(record, result))}\n\n"

"""The job queue: graphs to learn wait here, and are learned in the background.

The record of a job is written before it begins and after it has ended, so an interrupted job begins again.
"""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Annotated, TypeAlias, cast

from fastapi import Depends, Request

from msg2.errors import InputError
from msg2.server import graph_functions
from msg2.server.sandbox import CallCancelledError, JsonObject, Worker, is_disk_full, is_transient
from msg2.server.schemas import GraphRecord, JobRequest, error_response
from msg2.server.workspace import NotFoundError, Workspace, new_graph, update_record

_log = logging.getLogger(__name__)
_PAUSE_SECONDS, _MOST_TRIES = 2.0, 1000
"""Until a job that found no room on the disk, or no free file or process, is tried again; the latter so many times."""


class QueueFullError(InputError):
    """Too much is waiting already."""


class JobQueue:
    """Jobs of a workspace. `start` takes up those that wait; `stop` ends what is running, and keeps it for later."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace, self._settings = workspace, workspace.settings
        self._threads = ThreadPoolExecutor(self._settings.workers, thread_name_prefix="msg2-job")
        self._recording = threading.Lock()
        self._stopping = threading.Event()
        self._cancelled: dict[str, threading.Event] = {}
        self._progress: dict[str, JsonObject] = {}
        """Id of a running job -> the fields of its record that say how far it is."""

    def start(self) -> None:
        """Take up all jobs that were waiting or running when the server ended.

        None is given up for that. Should one of them be what ends the server, the others are done before it: those that
        were begun least often come first, and of these the oldest.
        """
        unfinished = [record for record in self._workspace.graphs.records() if record.state in ("waiting", "running")]
        for record in sorted(unfinished, key=lambda record: (record.attempts, record.made)):
            self._enqueue(record)

    def stop(self) -> None:
        """Stop all that is running; it begins again at the next start."""
        self._stopping.set()
        for cancelled in list(self._cancelled.values()):
            cancelled.set()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def add(self, request: JobRequest) -> GraphRecord:
        """Add a job, which begins when there is a free worker."""
        dataset = self._workspace.datasets.get(request.data)
        request.arguments()  # what cannot be used is refused at once
        if len(self._cancelled) >= self._settings.waiting:
            raise QueueFullError("too many jobs are waiting", hint="try again later")
        task = request.task or (dataset.tasks[0].name if len(dataset.tasks) == 1 else "")
        title = "" if request.replaces is None else self._workspace.graphs.get(request.replaces).title
        record = new_graph("learnt", state="waiting", task=task, name=dataset.name, title=title, job=request)
        return self._enqueue(self._workspace.graphs.put(record))

    def remove(self, id: str) -> None:
        """Remove a graph with its files; a job that has not ended is cancelled."""
        with self._workspace.graph_locks[id], self._recording:
            if id in self._cancelled:
                self._cancelled[id].set()
            self._workspace.graphs.remove(id)

    def with_progress(self, record: GraphRecord) -> GraphRecord:
        """Return the record of a job with what it is doing now, and how far it is."""
        progress = self._progress.get(record.id)
        return record if record.state != "running" or progress is None else update_record(record, **progress)

    def _enqueue(self, record: GraphRecord) -> GraphRecord:
        self._cancelled[record.id] = threading.Event()
        self._threads.submit(self._run, record.id)
        return record

    def _run(self, id: str) -> None:
        """Begin a job and see it to its end, in a thread of its own; where the machine has no room for it, it waits."""
        cancelled, record, tries = self._cancelled[id], None, 0
        try:
            while not cancelled.is_set():
                try:
                    record = record or self._workspace.graphs.get(id)
                    self._run_attempt(record, cancelled)
                    break
                except (InputError, OSError) as error:
                    tries += 1
                    if not is_disk_full(error) and (not is_transient(error) or tries > _MOST_TRIES):
                        raise
                    short = "the disk of the server is full" if is_disk_full(error) else "the server has too much to do"
                if tries == 1:
                    _log.warning("%s: job %s waits", short, id)
                self._progress[id] = {"news": f"{short}: waiting for room", "done": None, "total": None}
                cancelled.wait(_PAUSE_SECONDS)
        except NotFoundError:  # it was removed while it waited
            pass
        except Exception:
            _log.exception("job %s could not be dealt with", id)
        finally:
            self._cancelled.pop(id, None)
            self._progress.pop(id, None)

    def _run_attempt(self, record: GraphRecord, cancelled: threading.Event) -> None:
        graphs, running = self._workspace.graphs, record
        try:
            running = graphs.put(update_record(record, state="running", attempts=record.attempts + 1))
            ended = self._learn(running, cancelled)
        except (InputError, RuntimeError) as error:  # the log says how a process has failed
            if is_disk_full(error) or is_transient(error):
                raise
            problem = error if isinstance(error, InputError) else InputError(f"msg2 has failed at this: {error}")
            ended = update_record(running, state="failed", problem=error_response(problem))
        except CallCancelledError:  # in good order: that is no attempt that failed
            ended = update_record(record, state="waiting")
        with self._recording:
            if self._stopping.is_set() or not cancelled.is_set():
                graphs.put(ended)

    def _learn(self, record: GraphRecord, cancelled: threading.Event) -> GraphRecord:
        assert record.job is not None  # others are kept at once
        data, folder = self._workspace.dataset(record.job.data), self._workspace.graphs.folder(record.id)

        def progress(done: int, total: int | None, message: str) -> None:
            self._progress[record.id] = {"news": message, "done": done, "total": total}

        learn, seconds = graph_functions.learn_graph, self._settings.job_seconds
        with closing(Worker(self._settings.megabytes, cancelled)) as worker:
            result = worker.call(learn, data, record.job, folder, seconds=seconds, progress=progress)
        return update_record(record, **result.value, state="done", remarks=result.messages)


def _get_jobs(request: Request) -> JobQueue:
    return cast(JobQueue, request.app.state.jobs)


JobQueueDep: TypeAlias = Annotated[JobQueue, Depends(_get_jobs)]
"""The job queue of the app that was asked."""

"""The desk behind the app: what is kept, what waits, and what is being worked on.

A job's record is written before it is begun and after it has ended, so whatever happens in between, it is begun again
at the next start. Results are written whole, by the process that made them, before the record says that they are there.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from msg2.errors import InputError
from msg2.options import ServerOptions
from msg2.server import chores, process
from msg2.server.models import Correction, Job, Reading, Upload
from msg2.server.process import Done, Limits, Stopped
from msg2.server.records import Dataset, Problem, Work
from msg2.server.shelf import NotThereError, Record, Shelf, locked, new_id, sweep

_log = logging.getLogger(__name__)

Translate: TypeAlias = Callable[[str], str]


class BusyError(InputError):
    """Too many jobs are waiting already."""


class Desk:
    """Everything the app does, without HTTP. `begin` takes up the jobs that wait; `end` stops and keeps them."""

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        with ExitStack() as undo:
            self._lock = undo.enter_context(locked(options.folder))
            self.data = Shelf(options.folder / "data", Dataset)
            self.work = Shelf(options.folder / "work", Work)
            undo.pop_all()
        self._scratch = options.folder / "scratch"
        sweep(self._scratch)
        self._runners = ThreadPoolExecutor(options.workers, thread_name_prefix="msg2-job")
        self._answering = threading.BoundedSemaphore(options.answers)
        self._correcting, self._recording = threading.Lock(), threading.Lock()
        self._ending = threading.Event()
        self._given_up: dict[str, threading.Event] = {}
        self._news: dict[str, str] = {}

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def begin(self) -> None:
        """Take up all jobs that were waiting or running when the server ended, the oldest first."""
        for work in reversed(self.work.all()):
            if work.state in ("waiting", "running"):
                self._enqueue(work)

    def end(self) -> None:
        """Stop all that is running; it is begun again at the next start."""
        self._ending.set()
        for stop in list(self._given_up.values()):
            stop.set()
        self._runners.shutdown(wait=True, cancel_futures=True)
        self._lock.close()

    # -- questions ----------------------------------------------------------------------------------------------

    def ask(self, chore: process.Chore, *arguments: Any, translate: Translate = str, long: bool = False) -> Done:
        """The answer of a chore that somebody is waiting for; `translate` turns paths into the names people know.

        It may be as `long` as a job where files of any size are read.
        """
        seconds = self.options.job_seconds if long else self.options.answer_seconds
        with self._answering, _translated(translate):
            limits = Limits(seconds, self.options.megabytes)
            done = process.in_a_process(chore, *arguments, limits=limits, stop=self._ending)
        return Done(done.result, [translate(remark) for remark in done.remarks])

    def ask_about(self, data: Dataset, chore: process.Chore, *arguments: Any) -> Done:
        """The answer of a chore about data."""
        return self.ask(chore, self.path(data), data, *arguments, translate=self.translate(data), long=True)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder that is gone afterwards."""
        folder = self._scratch / new_id()
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    # -- data ---------------------------------------------------------------------------------------------------

    def path(self, data: Dataset) -> Path:
        """Where the data lies."""
        return Path(data.path) if data.path is not None else self.data.place(data.id) / data.id

    def translate(self, data: Dataset) -> Translate:
        """Turns the paths of the data in a message into the name that it was uploaded under."""
        path = self.path(data)
        return str if data.path is not None else lambda text: text.replace(str(path), data.name)

    def keep_upload(self, id: str, upload: Upload) -> Dataset:
        """Keep what has been written to the place of a new dataset, if msg2 can read it."""
        reading = Reading.model_validate(upload.model_dump(exclude={"name"}))
        data = Dataset(id=id, made=time.time(), name=upload.name, format="", tasks=[], reading=reading)
        done = self.ask_about(data, chores.receive, self.options.unpacked_megabytes)
        return self.data.put(_updated(data, **done.result, remarks=done.remarks))

    def offer(self, path: Path) -> Dataset | Work:
        """Have data or a graph that lies elsewhere in the app; the same path is the same dataset, or graph."""
        where, name = str(path.resolve()), path.resolve().name
        id = hashlib.sha256(where.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        if self.ask(chores.is_graph, path, long=True).result:
            given = Work(id=id, made=time.time(), kind="given", state="done", name=name)
            return self.keep(given, chores.keep_file, path, path.stem)
        data = Dataset(id=id, made=time.time(), name=name, format="", tasks=[], path=where)
        done = self.ask_about(data, chores.look_into)
        return self.data.put(_updated(data, **done.result, remarks=done.remarks))

    def correct(self, id: str, correction: Correction) -> Dataset:
        """The data with one video corrected: a copy of it or, where it is such a copy already, itself."""
        with self._correcting:
            data = self.data.get(id)
            target = data if data.corrects is not None else _copy(data)
            done = self.ask_about(data, chores.correct, correction, self.path(target))
            return self.data.put(_updated(target, **done.result))

    # -- work ---------------------------------------------------------------------------------------------------

    def add(self, job: Job) -> Work:
        """A new job, which is begun when there is room."""
        data = self.data.get(job.data)
        if len(self._given_up) >= self.options.waiting:
            raise BusyError("too many jobs are waiting", hint="try again later")
        task = job.task or (data.tasks[0].name if len(data.tasks) == 1 else "")
        work = Work(id=new_id(), made=time.time(), kind="learnt", state="waiting", task=task, name=data.name, job=job)
        return self._enqueue(self.work.put(work))

    def keep_graph(self, name: str, path: Path) -> Work:
        """Keep an uploaded graph file."""
        given = Work(id=new_id(), made=time.time(), kind="given", state="done", name=name)
        with _translated(lambda text: text.replace(str(path), name)):
            return self.keep(given, chores.keep_file, path, Path(name).stem)

    def keep(self, work: Work, chore: process.Chore, *arguments: Any) -> Work:
        """Keep a graph that a chore makes at once, in the place of `work`: its last argument."""
        place = self.work.place(work.id)
        fresh = not place.exists()
        place.mkdir(parents=True, exist_ok=True)
        try:
            done = self.ask(chore, *arguments, place)
        except BaseException:
            if fresh:
                shutil.rmtree(place, ignore_errors=True)
            raise
        return self.work.put(_updated(work, **done.result, state="done", remarks=done.remarks))

    def file(self, id: str, name: str) -> Path:
        """A file of a graph that is kept, once it is there."""
        path = self.work.place(self.work.get(id).id) / name
        if not path.is_file():
            raise NotThereError("the graph is not there yet")
        return path

    def give_up(self, id: str) -> None:
        """End a job, if it has not ended, and remove it with its files."""
        with self._recording:
            if id in self._given_up:
                self._given_up[id].set()
            self.work.remove(id)

    def with_news(self, work: Work) -> Work:
        """The record of a job, with what it is doing now."""
        return _updated(work, news=self._news.get(work.id)) if work.state == "running" else work

    def _enqueue(self, work: Work) -> Work:
        self._given_up[work.id] = threading.Event()
        self._runners.submit(self._run, work.id)
        return work

    def _run(self, id: str) -> None:
        """Begin a job and see it to its end; runs in a thread of its own."""
        stop = self._given_up[id]
        try:
            with suppress(NotThereError):
                if not stop.is_set():
                    self._done(self.work.get(id), stop)
        except Exception:
            _log.exception("job %s could not be dealt with", id)
        finally:
            self._given_up.pop(id, None)
            self._news.pop(id, None)

    def _done(self, work: Work, stop: threading.Event) -> None:
        if work.attempts >= self.options.attempts:
            problem = Problem(error=f"the server ended {work.attempts} times in the middle of this job")
            self.work.put(_updated(work, state="failed", problem=problem))
            return
        begun = self.work.put(_updated(work, state="running", attempts=work.attempts + 1))
        try:
            ended = self._learnt(begun, stop)
        except InputError as error:
            ended = _updated(begun, state="failed", problem=problem_of(error))
        except RuntimeError as error:  # the process has failed, and the log says how
            ended = _updated(begun, state="failed", problem=Problem(error=f"msg2 has failed at this: {error}"))
        except Stopped:  # in good order: that is no attempt that failed
            ended = _updated(work, state="waiting")
        with self._recording:
            if self._ending.is_set() or not stop.is_set():
                self.work.put(ended)

    def _learnt(self, work: Work, stop: threading.Event) -> Work:
        assert work.job is not None  # others are kept at once
        data = self.data.get(work.job.data)
        translate = self.translate(data)
        limits = Limits(self.options.job_seconds, self.options.megabytes)

        def report(news: str) -> None:
            self._news[work.id] = news

        arguments = self.path(data), data, work.job, self.work.place(work.id)
        with _translated(translate):
            done = process.in_a_process(chores.learn, *arguments, limits=limits, report=report, stop=stop)
        return _updated(work, **done.result, state="done", remarks=[translate(remark) for remark in done.remarks])


def problem_of(error: InputError) -> Problem:
    """The error as it goes over the wire, each part on one line."""
    what, where, hint = (text and " ".join(text.split())[:1000] for text in (error.what, error.where, error.hint))
    return Problem(error=what or "", where=where, hint=hint)


def _updated(record: Record, **values: Any) -> Record:
    """The record with other values, checked."""
    return type(record).model_validate({**record.model_dump(), **values})


def _copy(data: Dataset) -> Dataset:
    name = f"{data.title}, corrected.csv"
    return Dataset(id=new_id(), made=time.time(), name=name, format="", tasks=[], corrects=data.id)


@contextmanager
def _translated(translate: Translate) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        where, hint = (None if text is None else translate(text) for text in (error.where, error.hint))
        raise InputError(translate(error.what), where=where, hint=hint) from None

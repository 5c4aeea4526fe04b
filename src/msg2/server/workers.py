"""Worker processes: whatever a visitor sends is worked on in one, with limits of time and memory.

A task is a function of a module. It is called with arguments that can be pickled, and its result is plain JSON. Only
JSON comes back, so a process that its input has taken over can lie, but cannot run anything here. A `Sandbox` has a new
worker for every task; a `WorkerPool` keeps workers, so that their tasks find again what they have cached.
"""

from __future__ import annotations

import errno
import json
import logging
import pickle
import signal
import sys
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe, get_all_start_methods, get_context, set_forkserver_preload
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeAlias, TypeVar, cast

from msg2.errors import InputError
from msg2.parallel import exit_with_parent
from msg2.progress import Progress, collect_logs
from msg2.server.settings import ServerSettings

Value = TypeVar("Value")
JsonObject: TypeAlias = dict[str, object]
PathName: TypeAlias = tuple[Path, str]
"""A path, and the name that people know it by, which takes its place in messages."""

_log = logging.getLogger(__name__)
_starting = threading.Lock()  # multiprocessing keeps its children in a global set
_POLL_SECONDS = 0.2
_HINT = "try fewer videos or steps, or a quicker method; the command line has no such limit"


class DiskFullError(InputError):
    """The disk has no room for a file."""


class TaskCancelledError(Exception):
    """The task was ended because the server ends, or because somebody has removed the job."""


@dataclass(frozen=True, slots=True)
class TaskResult(Generic[Value]):
    """What a task returned, and what the library logged meanwhile."""

    value: Value
    messages: list[str]


class Worker:
    """A process that runs one task at a time, and is killed by `close` or by a task that breaks its limits."""

    def __init__(self, megabytes: int, stop: threading.Event | None = None) -> None:
        self._megabytes, self._stop = megabytes, stop or threading.Event()
        set_forkserver_preload(["msg2.server.fork_server"])  # forks of it start in milliseconds
        method = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
        make_process = cast(type[BaseProcess], get_context(method).Process)  # type: ignore[attr-defined]
        self._connection, theirs = Pipe()
        self._process = make_process(target=_serve_tasks, args=(theirs, megabytes), daemon=True)
        with _starting, _without_main_module():
            self._process.start()
        theirs.close()
        self.is_open = True

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill the process."""
        self.is_open = False
        self._process.kill()
        self._process.join()
        self._connection.close()

    def run(
        self,
        task: Callable[..., Value],
        *arguments: object,
        seconds: float,
        progress: Progress | None = None,
        path_name: PathName | None = None,
    ) -> TaskResult[Value]:
        """Run a task, with a keyword `progress` where that is given, and wait for its result."""
        try:
            self._connection.send((task, arguments, progress is not None))
            outcome = self._receive(seconds, progress)
        except (EOFError, OSError):
            self.close()
            what = f"the work broke off, it may have needed more than {self._megabytes:,} MB of memory"
            raise InputError(what, hint=_HINT) from None
        except BaseException:  # the process may still be at work, and would answer the next task with this
            self.close()
            raise

        def translate(text: str) -> str:
            return text if path_name is None else text.replace(str(path_name[0]), path_name[1])

        match outcome:
            case {"refused": [what, where, hint]}:
                raise InputError(translate(what), where=where and translate(where), hint=hint and translate(hint))
            case {"full": True}:
                raise disk_full_error()
            case {"failed": trace}:
                _log.error("a process failed:\n%s", trace)
                raise RuntimeError(trace.strip().splitlines()[-1])
        return TaskResult(outcome["result"], [translate(text) for text in outcome["messages"]])

    def _receive(self, seconds: float, progress: Progress | None) -> dict[str, Any]:
        """Wait for the outcome of a task; progress that is reported meanwhile is passed on."""
        end = time.monotonic() + seconds
        while not self._stop.is_set():
            seconds_left = end - time.monotonic()
            if seconds_left <= 0:
                raise InputError(f"took longer than {seconds:g} seconds", hint=_HINT)
            if self._connection.poll(min(_POLL_SECONDS, seconds_left)):
                message = json.loads(self._connection.recv_bytes())
                if "progress" not in message:
                    return cast(dict[str, Any], message)
                if progress is not None:
                    progress(*message["progress"])
        raise TaskCancelledError


@contextmanager
def _without_main_module() -> Iterator[None]:
    """Hide the program that was started: every process would import it anew, and none needs it."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


class Sandbox:
    """Runs the tasks that a request waits for, so many at a time; `close` ends them all."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._slots = threading.BoundedSemaphore(settings.answers)
        self._closing = threading.Event()

    def run(
        self,
        task: Callable[..., Value],
        *arguments: object,
        path_name: PathName | None = None,
        reads_files: bool = False,
    ) -> TaskResult[Value]:
        """Run a task as soon as there is a slot, and wait for its result."""
        seconds = self._settings.job_seconds if reads_files else self._settings.answer_seconds
        with self._slots, Worker(self._settings.megabytes, self._closing) as worker:
            return worker.run(task, *arguments, seconds=seconds, path_name=path_name)

    def close(self) -> None:
        """End all tasks that are running."""
        self._closing.set()


@dataclass(slots=True)
class _Seat:
    """A place in a pool; its worker is started by the first who asks."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    worker: Worker | None = None
    users: int = 0
    """Who ask it, or wait for that."""


class WorkerPool:
    """Workers that stay, one for each key. A full pool ends the worker that was asked least recently."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._seats: OrderedDict[object, _Seat] = OrderedDict()
        self._changed = threading.Condition()
        self._closing = threading.Event()

    def run(
        self, key: object, task: Callable[..., Value], *arguments: object, path_name: PathName | None = None
    ) -> TaskResult[Value]:
        """Run a task in the worker of this key; the first one of a worker has as long as a job."""
        seat = self._take(key)
        try:
            with seat.lock:
                worker, seconds = seat.worker, self._settings.answer_seconds
                if worker is not None and worker.is_open:
                    return worker.run(task, *arguments, seconds=seconds, path_name=path_name)
                seat.worker = worker = Worker(self._settings.megabytes, self._closing)
                try:
                    return worker.run(task, *arguments, seconds=self._settings.job_seconds, path_name=path_name)
                except BaseException:
                    worker.close()
                    raise
        finally:
            self._give_back(key, seat)

    def close(self) -> None:
        """End all workers; whoever waits for an answer is told so."""
        self._closing.set()
        with self._changed:
            self._changed.wait_for(lambda: all(seat.users == 0 for seat in self._seats.values()))
            for seat in self._seats.values():
                if seat.worker is not None:
                    seat.worker.close()
            self._seats.clear()

    def _take(self, key: object) -> _Seat:
        with self._changed:
            while key not in self._seats and len(self._seats) >= self._settings.models:
                idle = next((other for other, seat in self._seats.items() if seat.users == 0), None)
                if idle is None:
                    self._changed.wait()
                elif (worker := self._seats.pop(idle).worker) is not None:
                    worker.close()
            if self._closing.is_set():
                raise TaskCancelledError
            seat = self._seats.setdefault(key, _Seat())
            self._seats.move_to_end(key)
            seat.users += 1
            return seat

    def _give_back(self, key: object, seat: _Seat) -> None:
        with self._changed:
            seat.users -= 1
            if seat.users == 0 and (seat.worker is None or not seat.worker.is_open):
                self._seats.pop(key)
            self._changed.notify_all()


def is_disk_full(error: BaseException | None) -> bool:
    """Tell whether an error, or what caused it, is that the disk is full."""
    return error is not None and (
        isinstance(error, DiskFullError)
        or (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT))
        or is_disk_full(error.__cause__)
    )


def disk_full_error() -> DiskFullError:
    """Make the error that says so."""
    return DiskFullError("the disk of the server is full", hint="nothing was lost: make room there, and try again")


def _serve_tasks(connection: Connection, megabytes: int) -> None:
    """Run one task after the other, until nobody is left to work for."""
    exit_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # interrupts are for the server
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limits; or a stricter one is set already
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    def report(done: int, total: int | None, message: str) -> None:
        connection.send_bytes(json.dumps({"progress": [done, total, message]}).encode())

    with suppress(EOFError, OSError):
        while True:
            connection.send_bytes(_run_pickled(connection.recv_bytes(), report, megabytes))


def _run_pickled(pickled: bytes, report: Progress, megabytes: int) -> bytes:
    """Run a task, and encode what came of it: its result, or what is wrong."""
    outcome: JsonObject
    try:
        with collect_logs() as logs:
            task, arguments, reports = pickle.loads(pickled)
            result = task(*arguments, progress=report) if reports else task(*arguments)
        messages = list(dict.fromkeys(text for _, text in logs.messages))
        return json.dumps({"result": result, "messages": messages}, allow_nan=False).encode()
    except MemoryError:
        outcome = {"refused": [f"needs more than {megabytes:,} MB of memory", None, _HINT]}
    except RecursionError:
        outcome = {"refused": ["is nested too deeply", None, None]}
    except Exception as error:
        if is_disk_full(error):
            outcome = {"full": True}
        elif isinstance(error, InputError):
            outcome = {"refused": [error.what, error.where, error.hint]}
        else:
            outcome = {"failed": traceback.format_exc()}
    return json.dumps(outcome).encode()

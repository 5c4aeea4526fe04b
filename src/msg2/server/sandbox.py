"""The sandbox: whatever a visitor sends is worked on in a process of its own, with limits of time and memory.

Only JSON comes back, so a process that its input has taken over can lie, but cannot run anything here.
"""

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
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import Pipe, get_all_start_methods, get_context, set_forkserver_preload
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeAlias, TypeVar, cast
from weakref import WeakValueDictionary

from msg2.errors import InputError
from msg2.parallel import exit_with_parent
from msg2.progress import Progress, collect_logs, no_progress
from msg2.server.settings import ServerSettings

Value = TypeVar("Value")
JsonObject: TypeAlias = dict[str, object]

_log = logging.getLogger(__name__)
_starting = threading.Lock()  # multiprocessing keeps its children in a global set
_POLL_SECONDS = 0.2
_HINT = "try fewer videos or steps, or a quicker method; the command line has no such limit"


class DiskFullError(InputError):
    """The disk has no room for a file."""


class CallCancelledError(Exception):
    """The process was ended because the server ends, or because somebody has removed the job."""


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file or folder, and the name that people know it by; messages of a function that gets it say that name."""

    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class CallResult(Generic[Value]):
    """What a function returned, and what the library logged meanwhile."""

    value: Value
    messages: list[str]


class Worker:
    """A process that makes one call at a time. `close` kills it, and so does a call that breaks its limits."""

    def __init__(self, megabytes: int, stop: threading.Event) -> None:
        self._megabytes, self._stop = megabytes, stop
        set_forkserver_preload(["msg2.server.fork_server"])  # forks of it start in milliseconds
        method = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
        make_process = cast(type[BaseProcess], get_context(method).Process)  # type: ignore[attr-defined]
        self._connection, theirs = Pipe()
        self._process = make_process(target=_serve_calls, args=(theirs, megabytes), daemon=True)
        with _starting, _without_main_module():
            self._process.start()
        theirs.close()
        self.is_open = True

    def close(self) -> None:
        """Kill the process."""
        self.is_open = False
        self._process.kill()
        self._process.join()
        self._connection.close()

    def call(
        self, function: Callable[..., Value], *arguments: object, seconds: float, progress: Progress = no_progress
    ) -> CallResult[Value]:
        """Call a function, with a keyword `progress` where that is given, and wait for its result."""
        try:
            self._connection.send((function, arguments, progress is not no_progress))
            outcome = self._receive(seconds, progress)
        except (EOFError, OSError):
            self.close()
            what = f"the work broke off, it may have needed more than {self._megabytes:,} MB of memory"
            raise InputError(what, hint=_HINT) from None
        except BaseException:  # the process may still be at work, and would answer the next call with this
            self.close()
            raise

        def translate(text: str) -> str:
            for file in arguments:
                text = text.replace(str(file.path), file.name) if isinstance(file, NamedFile) else text
            return text

        match outcome:
            case {"refused": [what, where, hint]}:
                raise InputError(translate(what), where=where and translate(where), hint=hint and translate(hint))
            case {"full": True}:
                raise disk_full_error()
            case {"failed": trace}:
                _log.error("a process failed:\n%s", trace)
                raise RuntimeError(trace.strip().splitlines()[-1])
        return CallResult(outcome["result"], [translate(text) for text in outcome["messages"]])

    def _receive(self, seconds: float, progress: Progress) -> dict[str, Any]:
        """Wait for the outcome of a call; progress that is reported meanwhile is passed on."""
        end = time.monotonic() + seconds
        while not self._stop.is_set():
            seconds_left = end - time.monotonic()
            if seconds_left <= 0:
                raise InputError(f"took longer than {seconds:g} seconds", hint=_HINT)
            if self._connection.poll(min(_POLL_SECONDS, seconds_left)):
                message = json.loads(self._connection.recv_bytes())
                if "progress" not in message:
                    return cast(dict[str, Any], message)
                progress(*message["progress"])
        raise CallCancelledError


@contextmanager
def _without_main_module() -> Iterator[None]:
    """Hide the program that was started: every process would import it anew, and none needs it."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


class KeyedLocks:
    """A lock for each key, which is forgotten once nobody holds it or waits for it."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[object, threading.Lock] = WeakValueDictionary()
        self._choosing = threading.Lock()

    def __getitem__(self, key: object) -> threading.Lock:
        with self._choosing:
            return self._locks.setdefault(key, threading.Lock())


class Sandbox:
    """Makes the calls that requests wait for, so many at a time; `close` ends them all."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._closing = threading.Event()
        self._answers = threading.BoundedSemaphore(settings.answers)
        self._models = threading.BoundedSemaphore(settings.models)
        self._turns = KeyedLocks()
        self._changing = threading.Lock()
        """For what follows."""
        self._idle: OrderedDict[object, Worker] = OrderedDict()
        """Workers that are kept and have nothing to do, by key; the one that was asked least recently is the first."""
        self._busy = 0

    def call(self, function: Callable[..., Value], *arguments: object) -> CallResult[Value]:
        """Call a function in a new process; one that reads what somebody has given has as long as a job."""
        reads_files = any(isinstance(argument, NamedFile) for argument in arguments)
        seconds = self._settings.job_seconds if reads_files else self._settings.answer_seconds
        with self._answers, closing(Worker(self._settings.megabytes, self._closing)) as worker:
            return worker.call(function, *arguments, seconds=seconds)

    def call_kept(self, key: object, function: Callable[..., Value], *arguments: object) -> CallResult[Value]:
        """Call a function in the process that is kept for a key; the first call of a process has as long as a job."""
        with self._turns[key], self._models:
            with self._changing:
                worker = self._idle.pop(key, None)
                self._busy += 1
                while len(self._idle) + self._busy > self._settings.models:
                    self._idle.popitem(last=False)[1].close()
            is_new = worker is None
            try:
                worker = worker or Worker(self._settings.megabytes, self._closing)
                seconds = self._settings.job_seconds if is_new else self._settings.answer_seconds
                result = worker.call(function, *arguments, seconds=seconds)
                is_new = False
                return result
            finally:
                with self._changing:
                    self._busy -= 1
                    if worker is not None and (is_new or self._closing.is_set()):
                        worker.close()  # nothing is worth keeping of a process that failed at once
                    elif worker is not None and worker.is_open:
                        self._idle[key] = worker

    def close(self) -> None:
        """End all processes; whoever waits for an answer is told so."""
        with self._changing:
            self._closing.set()
            for worker in self._idle.values():
                worker.close()
            self._idle.clear()


def is_disk_full(error: BaseException | None) -> bool:
    """Tell whether an error, or what caused it, is that the disk is full."""
    return isinstance(error, DiskFullError) or _has_errno(error, errno.ENOSPC, errno.EDQUOT)


def is_transient(error: BaseException | None) -> bool:
    """Tell whether an error, or what caused it, is that the machine has no more files, processes or memory just now."""
    return _has_errno(error, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR)


def _has_errno(error: BaseException | None, *numbers: int) -> bool:
    return error is not None and (
        (isinstance(error, OSError) and error.errno in numbers) or _has_errno(error.__cause__, *numbers)
    )


def disk_full_error() -> InputError:
    """Make the error that says so."""
    return DiskFullError("the disk of the server is full", hint="nothing was lost: make room there, and try again")


def _serve_calls(connection: Connection, megabytes: int) -> None:
    """Make one call after the other, until nobody is left to work for."""
    exit_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM):  # these are for the server, which ends its processes itself
        signal.signal(number, signal.SIG_IGN)
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limits; or a stricter one is set already
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    def report(done: int, total: int | None, message: str) -> None:
        connection.send_bytes(json.dumps({"progress": [done, total, message]}).encode())

    with suppress(EOFError, OSError):
        while True:
            connection.send_bytes(_call_pickled(connection.recv_bytes(), report, megabytes))


def _call_pickled(pickled: bytes, report: Progress, megabytes: int) -> bytes:
    """Call a function, and encode what came of it: its result, or what is wrong."""
    outcome: JsonObject
    try:
        with collect_logs() as logs:
            function, arguments, reports = pickle.loads(pickled)
            result = function(*arguments, progress=report) if reports else function(*arguments)
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

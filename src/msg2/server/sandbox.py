"""Worker tasks in processes of their own, with limits of time and memory: whatever they are given, the server goes on.

Only JSON comes back, so a process that has been taken over by its input can tell lies, but not run anything here.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, TypeAlias, cast

from msg2.errors import InputError
from msg2.progress import Progress, collect_logs, no_progress
from msg2.server.settings import ServerSettings

WorkerTask: TypeAlias = Callable[..., Any]
"""A function of a module, called as `task(*arguments, progress=…)`; its result is plain JSON."""
TranslateText: TypeAlias = Callable[[str], str]
"""Turns the paths in a message into the names that people know."""

_log = logging.getLogger(__name__)
_starting = threading.Lock()  # multiprocessing keeps its children in a global set
_POLL_SECONDS = 0.2
_HINT = "try fewer videos or steps, or a quicker method; the command line has no such limit"


class DiskFullError(InputError):
    """There is no room left for what is to be kept."""


class TaskCancelledError(Exception):
    """The task was ended because the server, or the user, wants it so."""


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Limits of one process."""

    seconds: float
    """On the clock."""
    megabytes: int
    """Of address space."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What a worker task returned, and what the library logged meanwhile."""

    value: Any
    messages: list[str] = field(default_factory=list)


class Sandbox:
    """Runs the worker tasks that somebody is waiting for, so many at a time; `close` ends them all."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._slots = threading.BoundedSemaphore(settings.answers)
        self._closing = threading.Event()

    def run(
        self, task: WorkerTask, *arguments: Any, translate: TranslateText = str, reads_files: bool = False
    ) -> TaskResult:
        """Run a worker task as soon as there is a slot, and wait for its result."""
        seconds = self._settings.job_seconds if reads_files else self._settings.answer_seconds
        limits = ProcessLimits(seconds, self._settings.megabytes)
        with self._slots:
            return run_in_process(task, *arguments, limits=limits, stop=self._closing, translate=translate)

    def close(self) -> None:
        """End all tasks that are running."""
        self._closing.set()


def run_in_process(
    task: WorkerTask,
    *arguments: Any,
    limits: ProcessLimits,
    progress: Progress = no_progress,
    stop: threading.Event | None = None,
    translate: TranslateText = str,
) -> TaskResult:
    """Run a worker task in a process of its own, and wait for its result."""
    with start_process(_run_child, task, arguments, limits.megabytes) as connection:
        return result_of(receive_message(connection, limits, progress, stop), translate)


@contextmanager
def start_process(target: Callable[..., None], *arguments: Any) -> Iterator[Connection]:
    """Start a process, which is killed in the end."""
    context: Any = multiprocessing.get_context(start_method())
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs, *arguments), daemon=True)
    try:
        with _starting:
            process.start()
        theirs.close()
        yield ours
    finally:
        if process.pid is not None:
            process.kill()
            process.join()
        ours.close()


def receive_message(
    connection: Connection,
    limits: ProcessLimits,
    progress: Progress = no_progress,
    stop: threading.Event | None = None,
) -> dict[str, Any]:
    """Wait for what a process has to say."""
    end = time.monotonic() + limits.seconds
    while stop is None or not stop.is_set():
        seconds_left = end - time.monotonic()
        if seconds_left <= 0:
            raise InputError(f"took longer than {limits.seconds:g} seconds", hint=_HINT)
        if connection.poll(min(_POLL_SECONDS, seconds_left)):
            message = _receive(connection, limits)
            if "progress" not in message:
                return message
            progress(*message["progress"])
    raise TaskCancelledError


def start_method() -> str:
    """Choose how processes start: from a server of forks with everything imported, which takes milliseconds, if any."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return "spawn"
    workers = ("fork_server", "graph_workers", "run_workers", "label_workers")
    multiprocessing.set_forkserver_preload([f"msg2.server.{name}" for name in workers])
    return "forkserver"


def _receive(connection: Connection, limits: ProcessLimits) -> dict[str, Any]:
    try:
        return cast(dict[str, Any], json.loads(connection.recv_bytes()))
    except (EOFError, OSError):
        what = f"the work broke off, it may have needed more than {limits.megabytes:,} MB of memory"
        raise InputError(what, hint=_HINT) from None


def result_of(message: dict[str, Any], translate: TranslateText) -> TaskResult:
    """Turn a message of a process into a result, or raise what it says."""
    match message:
        case {"refused": [what, where, hint]}:
            raise InputError(translate(what), where=where and translate(where), hint=hint and translate(hint))
        case {"full": True}:
            raise disk_full_error()
        case {"failed": trace}:
            _log.error("a process failed:\n%s", trace)
            raise RuntimeError(trace.strip().splitlines()[-1])
    return TaskResult(message["result"], [translate(text) for text in message["messages"]])


# -- in the other process ---------------------------------------------------------------------------------------


def _run_child(connection: Connection, task: WorkerTask, arguments: tuple[Any, ...], megabytes: int) -> None:
    threading.Thread(target=_exit_with_parent, args=(connection,), daemon=True).start()
    limit_process(megabytes)

    def progress(done: int, total: int | None, message: str) -> None:
        connection.send_bytes(json.dumps({"progress": [done, total, message]}).encode())

    content = encode_outcome(lambda: task(*arguments, progress=progress), megabytes)
    with contextlib.suppress(OSError):
        connection.send_bytes(content)


def encode_outcome(work: Callable[[], Any], megabytes: int) -> bytes:
    """Do some work, and encode what came of it: its result, or what is wrong."""
    try:
        with collect_logs() as logs:
            result = work()
        messages = list(dict.fromkeys(text for _, text in logs.messages))
        return json.dumps({"result": result, "messages": messages}, allow_nan=False).encode()
    except (InputError, OSError) as error:
        if is_disk_full(error):
            return json.dumps({"full": True}).encode()
        if isinstance(error, InputError):
            return _encode_refusal(error)
        return _encode_failure()
    except MemoryError:
        return _encode_refusal(InputError(f"needs more than {megabytes:,} MB of memory", hint=_HINT))
    except RecursionError:
        return _encode_refusal(InputError("is nested too deeply"))
    except Exception:
        return _encode_failure()


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


def _encode_failure() -> bytes:
    return json.dumps({"failed": traceback.format_exc()}).encode()


def _encode_refusal(error: InputError) -> bytes:
    return json.dumps({"refused": [error.what, error.where, error.hint]}).encode()


def _exit_with_parent(connection: Connection) -> None:
    """Wait for the other end to close: nobody wants the result of a server that has been killed."""
    try:
        connection.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)


def limit_process(megabytes: int) -> None:
    """Limit the memory of this process, and leave interrupts to the server."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    with contextlib.suppress(ValueError, OSError):  # a stricter limit is set already
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

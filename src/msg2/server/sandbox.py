"""Worker tasks in processes of their own, with limits of time and memory: whatever they are given, the server goes on.

Only JSON comes back, so a process that has been taken over by its input can tell lies, but not run anything here.
"""

from __future__ import annotations

import contextlib
import json
import logging
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, TypeAlias, cast

from msg2.errors import InputError
from msg2.logs import collect_logs
from msg2.progress import Progress, no_progress
from msg2.server.settings import ServerSettings

WorkerTask: TypeAlias = Callable[..., Any]
"""A function of a module, called as `task(*arguments, progress=…)`; its result is plain JSON."""
TranslateText: TypeAlias = Callable[[str], str]
"""Turns the paths in a message into the names that people know."""

_log = logging.getLogger(__name__)
_starting = threading.Lock()  # multiprocessing keeps its children in a global set
_POLL_SECONDS = 0.2
_HINT = "try fewer videos or steps, or a quicker method; the command line has no such limit"


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
        """Run a worker task as soon as there is a slot, and wait for its result.

        Parameters
        ----------
        task : WorkerTask
            See there.
        *arguments : object
            Its arguments; they can be pickled.
        translate : TranslateText
            Applied to every message that comes back.
        reads_files : bool
            Whether it reads files of any size: then it may take as long as a job.

        Returns
        -------
        TaskResult
            The result with its messages.

        Raises
        ------
        InputError
            Where the input is wrong, or takes too much time or memory.
        """
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
    """Run a worker task in a process of its own, and wait for its result.

    Parameters
    ----------
    task : WorkerTask
        See there.
    *arguments : object
        Its arguments; they can be pickled.
    limits : ProcessLimits
        Of its time and memory.
    progress : Progress
        Is told how far the task is.
    stop : threading.Event, optional
        Ends the task once it is set.
    translate : TranslateText
        Applied to every message that comes back.

    Returns
    -------
    TaskResult
        The result with its messages.

    Raises
    ------
    InputError
        Where the input is wrong, or takes too much time or memory.
    TaskCancelledError
        Where `stop` was set.
    RuntimeError
        Where the task failed; the log has its traceback.
    """
    context: Any = multiprocessing.get_context(start_method())
    ours, theirs = context.Pipe()
    process = context.Process(target=_run_child, args=(theirs, task, arguments, limits.megabytes), daemon=True)
    end = time.monotonic() + limits.seconds
    try:
        with _starting:
            process.start()
        theirs.close()
        while stop is None or not stop.is_set():
            seconds_left = end - time.monotonic()
            if seconds_left <= 0:
                raise InputError(f"took longer than {limits.seconds:g} seconds", hint=_HINT)
            if ours.poll(min(_POLL_SECONDS, seconds_left)):
                message = _receive(ours, limits)
                if "progress" not in message:
                    return _result_of(message, translate)
                progress(*message["progress"])
        raise TaskCancelledError
    finally:
        if process.pid is not None:
            process.kill()
            process.join()
        ours.close()


def start_method() -> str:
    """Choose how processes start: from a server of forks with everything imported, which takes milliseconds, if any."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return "spawn"
    multiprocessing.set_forkserver_preload(["msg2.server.graph_workers"])
    return "forkserver"


def _receive(connection: Connection, limits: ProcessLimits) -> dict[str, Any]:
    try:
        return cast(dict[str, Any], json.loads(connection.recv_bytes()))
    except (EOFError, OSError):
        what = f"the work broke off, it may have needed more than {limits.megabytes:,} MB of memory"
        raise InputError(what, hint=_HINT) from None


def _result_of(message: dict[str, Any], translate: TranslateText) -> TaskResult:
    match message:
        case {"refused": [what, where, hint]}:
            raise InputError(translate(what), where=where and translate(where), hint=hint and translate(hint))
        case {"failed": trace}:
            _log.error("a process failed:\n%s", trace)
            raise RuntimeError(trace.strip().splitlines()[-1])
    return TaskResult(message["result"], [translate(text) for text in message["messages"]])


# -- in the other process ---------------------------------------------------------------------------------------


def _run_child(connection: Connection, task: WorkerTask, arguments: tuple[Any, ...], megabytes: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the server's to deal with
    threading.Thread(target=_exit_with_parent, args=(connection,), daemon=True).start()
    _limit_memory(megabytes)

    def progress(done: int, total: int | None, message: str) -> None:
        connection.send_bytes(json.dumps({"progress": [done, total, message]}).encode())

    try:
        with collect_logs() as logs:
            result = task(*arguments, progress=progress)
        messages = list(dict.fromkeys(text for _, text in logs.messages))
        content = json.dumps({"result": result, "messages": messages}, allow_nan=False).encode()
    except InputError as error:
        content = _encode_refusal(error)
    except MemoryError:
        content = _encode_refusal(InputError(f"needs more than {megabytes:,} MB of memory", hint=_HINT))
    except RecursionError:
        content = _encode_refusal(InputError("is nested too deeply"))
    except Exception:
        content = json.dumps({"failed": traceback.format_exc()}).encode()
    with contextlib.suppress(OSError):
        connection.send_bytes(content)


def _encode_refusal(error: InputError) -> bytes:
    return json.dumps({"refused": [error.what, error.where, error.hint]}).encode()


def _exit_with_parent(connection: Connection) -> None:
    """Wait for the other end to close: nobody wants the result of a server that has been killed."""
    try:
        connection.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)


def _limit_memory(megabytes: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    with contextlib.suppress(ValueError, OSError):  # a stricter limit is set already
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

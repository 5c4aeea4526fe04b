"""Work in a process of its own, with an end to its time and memory: whatever it is given, the server goes on.

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
from typing import Any, TypeAlias

from msg2.errors import InputError
from msg2.remarks import kept_remarks

Report: TypeAlias = Callable[[str], None]
"""Is told, in words, what is being done."""
Chore: TypeAlias = Callable[..., Any]
"""A function of a module, called as `chore(*arguments, report=…)`; its result is plain JSON."""

_log = logging.getLogger(__name__)
_starting = threading.Lock()  # multiprocessing keeps its children in a global set
_LOOK_SECONDS = 0.2


class Stopped(Exception):  # noqa: N818
    """The work was given up because the server, or the user, wants it so."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one process: seconds on the clock, and megabytes of address space."""

    seconds: float
    megabytes: int


@dataclass(frozen=True, slots=True)
class Done:
    """What came out, and what the library remarked on the way."""

    result: Any
    remarks: list[str] = field(default_factory=list)


def in_a_process(
    chore: Chore,
    *arguments: Any,
    limits: Limits,
    report: Report | None = None,
    stop: threading.Event | None = None,
) -> Done:
    """The result of the chore; `InputError` where the input is wrong, or takes too much time or memory.

    `report` is told the news while it runs, and `stop` ends it with `Stopped`.
    """
    context: Any = multiprocessing.get_context(start_method())
    ours, theirs = context.Pipe()
    process = context.Process(target=_child, args=(theirs, chore, arguments, limits.megabytes), daemon=True)
    end = time.monotonic() + limits.seconds
    try:
        with _starting:
            process.start()
        theirs.close()
        while stop is None or not stop.is_set():
            left = end - time.monotonic()
            if left <= 0:
                raise InputError(f"took longer than {limits.seconds:g} seconds", hint=_SMALLER)
            if ours.poll(min(_LOOK_SECONDS, left)):
                message = _heard(ours, limits)
                if "news" not in message:
                    return _done(message)
                if report is not None:
                    report(message["news"])
        raise Stopped
    finally:
        if process.pid is not None:
            process.kill()
            process.join()
        ours.close()


def start_method() -> str:
    """A server of forks with everything imported, where there is one: a process then starts in milliseconds."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return "spawn"
    multiprocessing.set_forkserver_preload(["msg2.server.chores"])
    return "forkserver"


_SMALLER = "try fewer videos or steps, or a quicker method; the command line has no such limit"


def _heard(connection: Connection, limits: Limits) -> dict[str, Any]:
    try:
        message: dict[str, Any] = json.loads(connection.recv_bytes())
    except (EOFError, OSError):
        what = f"the work broke off, it may have needed more than {limits.megabytes:,} MB of memory"
        raise InputError(what, hint=_SMALLER) from None
    return message


def _done(message: dict[str, Any]) -> Done:
    match message:
        case {"refused": [what, where, hint]}:
            raise InputError(what, where=where, hint=hint)
        case {"failed": trace}:
            _log.error("a process failed:\n%s", trace)
            raise RuntimeError(trace.strip().splitlines()[-1])
    return Done(message["result"], message["remarks"])


# -- in the other process ---------------------------------------------------------------------------------------


def _child(connection: Connection, chore: Chore, arguments: tuple[Any, ...], megabytes: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the server's to deal with
    threading.Thread(target=_end_with_the_server, args=(connection,), daemon=True).start()
    _limit_memory(megabytes)

    def report(news: str) -> None:
        connection.send_bytes(json.dumps({"news": news}).encode())

    message: dict[str, Any]
    try:
        with kept_remarks() as remarks:
            result = chore(*arguments, report=report)
        message = {"result": result, "remarks": list(dict.fromkeys(text for _, text in remarks.kept))}
        content = json.dumps(message, allow_nan=False).encode()
    except InputError as error:
        content = _refusal(error)
    except MemoryError:
        content = _refusal(InputError(f"needs more than {megabytes:,} MB of memory", hint=_SMALLER))
    except RecursionError:
        content = _refusal(InputError("is nested too deeply"))
    except Exception:
        content = json.dumps({"failed": traceback.format_exc()}).encode()
    with contextlib.suppress(OSError):
        connection.send_bytes(content)


def _refusal(error: InputError) -> bytes:
    return json.dumps({"refused": [error.what, error.where, error.hint]}).encode()


def _end_with_the_server(connection: Connection) -> None:
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

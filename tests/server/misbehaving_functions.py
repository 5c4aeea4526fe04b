"""Functions that misbehave; apart, since the process that calls them has to import them."""

from __future__ import annotations

import errno
import os
import signal
from functools import cache

from msg2.errors import InputError


def greedy() -> int:
    return len(bytearray(4_000_000_000))


def fatal() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def deep() -> None:
    deep()


def wrong() -> float:
    return 1 / 0


def endless() -> None:
    while True:
        pass


def echo() -> str:
    return "echo"


def outlive_signals() -> str:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.raise_signal(number)
    return "still here"


def refuse() -> None:
    raise InputError("no such thing")


@cache
def number() -> int:
    """The same one, as long as the process stays."""
    return os.getpid()


def full() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def nearly_full() -> None:
    try:
        full()
    except OSError as error:
        raise InputError("cannot be written") from error

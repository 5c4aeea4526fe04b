"""Worker tasks that misbehave; apart, since the process that does them has to import them."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable

from msg2.errors import InputError


def greedy(progress: object) -> int:
    return len(bytearray(4_000_000_000))


def fatal(progress: object) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def deep(progress: object) -> None:
    deep(progress)


def wrong(progress: object) -> float:
    return 1 / 0


def endless(progress: object) -> None:
    while True:
        pass


def resident() -> Callable[[str], str]:
    """A worker that stays, and does as it is told."""

    def answer(question: str) -> str:
        if question == "refuse":
            raise InputError("no such thing")
        return {"echo": str, "wrong": wrong, "endless": endless, "fatal": fatal}[question](question)  # type: ignore[operator, no-any-return]

    return answer


def unmakeable() -> Callable[[str], str]:
    raise InputError("cannot be made")


def full(progress: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def nearly_full(progress: object) -> None:
    try:
        full(progress)
    except OSError as error:
        raise InputError("cannot be written") from error

"""Worker tasks that misbehave; apart, since the process that does them has to import them."""

from __future__ import annotations

import os
import signal


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

"""Chores that misbehave; apart, since the process that does them has to import them."""

from __future__ import annotations

import os
import signal


def greedy(report: object) -> int:
    return len(bytearray(4_000_000_000))


def fatal(report: object) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def deep(report: object) -> None:
    deep(report)


def wrong(report: object) -> float:
    return 1 / 0


def endless(report: object) -> None:
    while True:
        pass

"""Progress of long work and what is logged meanwhile, for whoever shows it: a progress bar, a web page."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    """A function that is called from time to time while long work goes on."""

    def __call__(self, done: int, total: int | None, message: str) -> None:
        """Show how far the work is."""


def no_progress(done: int, total: int | None, message: str) -> None:
    """Show nothing: the default of every function that takes a `Progress`."""


def prefix_messages(progress: Progress, name: str) -> Progress:
    """Put a name in front of every message: that of the task, where there are several."""
    return lambda done, total, message: progress(done, total, f"{name}: {message}")


LOGGER = logging.getLogger("msg2")


class LogCollector(logging.Handler):
    """A log handler that keeps messages as (level, text)."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[tuple[int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one record."""
        self.messages.append((record.levelno, record.getMessage()))


@contextmanager
def collect_logs() -> Iterator[LogCollector]:
    """Collect what is logged from INFO on, instead of showing it."""
    before, collector = (LOGGER.handlers, LOGGER.propagate), LogCollector()
    LOGGER.handlers, LOGGER.propagate = [collector], False
    try:
        with quiet_logs(logging.INFO):
            yield collector
    finally:
        LOGGER.handlers, LOGGER.propagate = before


@contextmanager
def quiet_logs(level: int = logging.ERROR) -> Iterator[None]:
    """Log errors only, or from another level on: remarks on single graphs would drown a table of many."""
    before = LOGGER.level
    LOGGER.setLevel(level)
    try:
        yield
    finally:
        LOGGER.setLevel(before)

"""What the library remarks with `logging`, kept for whoever shows it: in another process, or after a progress bar."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

LOGGER = logging.getLogger("msg2")


class Remarks(logging.Handler):
    """Keeps remarks as (level, text)."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one record."""
        self.kept.append((record.levelno, record.getMessage()))


@contextmanager
def kept_remarks() -> Iterator[Remarks]:
    """Remarks are kept, from INFO on, and go nowhere else.

    >>> with kept_remarks() as remarks:
    ...     LOGGER.warning("the video has no sound")
    >>> remarks.kept
    [(30, 'the video has no sound')]
    """
    before = LOGGER.handlers, LOGGER.level, LOGGER.propagate
    remarks = Remarks()
    LOGGER.handlers, LOGGER.propagate = [remarks], False
    LOGGER.setLevel(logging.INFO)
    try:
        yield remarks
    finally:
        LOGGER.handlers, LOGGER.propagate = before[0], before[2]
        LOGGER.setLevel(before[1])

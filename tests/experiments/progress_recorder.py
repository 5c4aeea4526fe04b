"""A `Progress` for tests that keeps the messages."""

from __future__ import annotations


class ProgressRecorder(list[str]):
    """The messages, in their order."""

    def __call__(self, done: int, total: int | None, message: str) -> None:
        assert total is None or 0 <= done <= total
        self.append(message)

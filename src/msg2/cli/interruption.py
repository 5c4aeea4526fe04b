"""Stopping a training on the command line: Ctrl-C takes effect where an epoch ends."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import typer

from msg2.cli import console
from msg2.progress import Progress


@contextmanager
def stop_between_epochs(unit: str = "epoch") -> Iterator[Callable[[Progress], Progress]]:
    """Let Ctrl-C stop a training where an epoch ends, so that it can be resumed; a second one stops it at once.

    It gives a function that makes any `Progress` stop the training where that was asked for. `unit` is what is told
    from one call of it to the next.
    """
    before = signal.getsignal(signal.SIGINT)
    asked = False

    def ask(signum: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked and callable(before):
            before(signum, frame)
        asked = True
        if console.err.is_terminal:
            console.print_note(f"stopping when this {unit} is done; Ctrl-C again stops at once")

    def check() -> None:
        if asked:
            raise KeyboardInterrupt

    def interruptible(show: Progress) -> Progress:
        def progress(done: int, total: int | None, message: str) -> None:
            show(done, total, message)
            check()

        return progress

    signal.signal(signal.SIGINT, ask)
    try:
        yield interruptible
        check()
    except KeyboardInterrupt:
        console.print_note("msg2: interrupted; the same command goes on from here")
        raise typer.Exit(130) from None
    finally:
        signal.signal(signal.SIGINT, before)

"""Ctrl-C from the first line on: one line and exit 130, whatever the program is doing.

While modules are imported and while Python ends, there is nothing to undo: the process ends at once. In between, an
exception unwinds what is being done. This module imports nothing that takes time.

Stopping a training on the command line: Ctrl-C takes effect where an epoch ends.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from types import FrameType
from typing import TYPE_CHECKING

import typer

from msg2.cli import console
from msg2.progress import Progress

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


INTERRUPTED = 130
"""The exit status."""


class Interrupted(BaseException):
    """Ctrl-C; a type of its own, since Typer and others have their own opinion of KeyboardInterrupt."""


def end_at_once() -> None:
    """From now on, an interrupt ends the process in its place; it is ignored once Python has let go of all else."""
    signal.signal(signal.SIGINT, _end)
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # Python would restore the default, which kills


def _end(signum: int, frame: FrameType | None) -> None:
    os.write(2, b"msg2: interrupted\n")
    os._exit(INTERRUPTED)


class InterruptHandler:
    """From now on, an interrupt raises `Interrupted`; `asked` tells whether one came, if somebody swallows that."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGINT, self)
        sys.unraisablehook = self._raise_again

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        """Handle the signal."""
        self.asked = True
        raise Interrupted

    def _raise_again(self, lost: UnraisableHookArgs) -> None:
        """Python cannot raise in the middle of a finalizer or callback, and would only print: try a moment later."""
        if not issubclass(lost.exc_type, Interrupted):
            sys.__unraisablehook__(lost)
            return
        again = Timer(0.01, os.kill, (os.getpid(), signal.SIGINT))
        again.daemon = True
        again.start()


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

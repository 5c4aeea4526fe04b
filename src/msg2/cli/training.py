"""Watching a training: its progress bar, its curves, and how it is stopped."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, TypeAlias

import typer

from msg2.cli import console
from msg2.errors import InputError
from msg2.files import safe_names
from msg2.pipeline import standing
from msg2.task import Task

if TYPE_CHECKING:
    from msg2.states.training import Progress

Draw: TypeAlias = "Callable[[Progress], None]"


def task_folders(tasks: Sequence[Task], output: Path) -> list[Path]:
    """Where the results of each task go: the only one to `output`, several to a folder each."""
    if len(tasks) == 1:
        return [output]
    return [output / name for name in safe_names([task.name for task in tasks])]


def following(show: Callable[[int, int, str], None], draw: Draw, check: Callable[[], None]) -> Draw:
    """What a training is to call after every epoch."""

    def report(progress: Progress) -> None:
        show(progress.epoch, progress.epochs, standing(progress))
        draw(progress)
        check()

    return report


@contextmanager
def curves(folder: Path | None) -> Iterator[Draw]:
    """Writes loss and accuracy for TensorBoard into `folder`; nothing where that is None."""
    if folder is None:
        yield lambda progress: None
        return
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise InputError(
            "--tensorboard needs TensorBoard, which is not installed", hint="pip install tensorboard"
        ) from None
    writer = SummaryWriter(str(folder / "tensorboard"))

    def draw(progress: Progress) -> None:
        writer.add_scalar("training loss", progress.loss, progress.epoch)
        if progress.accuracy is not None:
            writer.add_scalar("validation accuracy", progress.accuracy, progress.epoch)

    try:
        yield draw
    finally:
        writer.close()


@contextmanager
def between_epochs() -> Iterator[Callable[[], None]]:
    """Ctrl-C stops a training where an epoch ends, so that it goes on from there; a second one stops it at once.

    What it gives is to be called wherever stopping is fine.
    """
    before = signal.getsignal(signal.SIGINT)
    asked = False

    def ask(signum: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked and callable(before):
            before(signum, frame)
        asked = True
        if console.err.is_terminal:
            console.tell("stopping when this epoch is done; Ctrl-C again stops at once")

    def check() -> None:
        if asked:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, ask)
    try:
        yield check
        check()
    except KeyboardInterrupt:
        console.tell("msg2: interrupted; the same command goes on from here")
        raise typer.Exit(130) from None
    finally:
        signal.signal(signal.SIGINT, before)

"""Talk to the user: results on stdout, the rest on stderr, errors as one to three lines; Ctrl-C in a training."""

import json
import logging
import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import FrameType

import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from msg2.cli import INTERRUPTED
from msg2.errors import InputError
from msg2.progress import LOGGER, LogCollector
from msg2.progress import Progress as ShowProgress
from msg2.text import escape_control_characters, one_line, truncate

out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)
if not out.is_terminal:
    out.width = 1_000_000  # a pipe has no width: rows stay on one line, for grep and awk


def print_line(*lines: str) -> None:
    """Lines of the result; they are data, never markup or control codes."""
    for line in lines:
        out.print(Text(escape_control_characters(line)))


def print_note(text: str) -> None:
    """A remark beside the result, on stderr."""
    err.print(Text(escape_control_characters(text)))


def print_json(value: Mapping[str, object]) -> None:
    """One JSON object on stdout and nothing else."""
    typer.echo(json.dumps(value, ensure_ascii=not out.encoding.startswith("utf"), indent=2, allow_nan=False))


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None, *, whole: bool = False
) -> None:
    """Print a table, numbers to the right. Cells are data, never markup; long ones but paths are cut unless `whole`."""
    heading = None if title is None else Text(_format_cell(title))
    table = Table(title=heading, title_justify="left", header_style="bold", box=None, pad_edge=False)
    listed = [list(map(str, row)) if whole else [_format_cell(value) for value in row] for row in rows]
    for index, column in enumerate(columns):
        numeric = all(row[index].replace("%", "").replace(".", "").strip("-–<> ").isdigit() or row[index] in ("", "N/A")
                      for row in listed)  # fmt: skip
        table.add_column(Text(column), justify="right" if numeric and listed else "left", overflow="fold")
    for row in listed:
        table.add_row(*map(Text, row))
    out.print(table)


def print_records(records: Sequence[Mapping[str, object]]) -> None:
    """Print a table of records that all have the same columns."""
    print_table([*records[0]], [[*record.values()] for record in records])


def _format_cell(value: object) -> str:
    if value is None:
        return "N/A"
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return f"{value:.4f}".rstrip("0").rstrip(".") if abs(value) < 1 else f"{value:.2f}"
    if isinstance(value, Path):
        return escape_control_characters(str(value))
    return truncate(one_line(str(value)), 60) if value != "" else ""


def format_percent(share: float | None) -> str:
    """A share of one as a percentage with two digits; N/A where there is none."""
    return "N/A" if share is None else f"{100 * share:.2f}"


def format_probability(share: float) -> str:
    """A probability as a whole percentage, but for what only rounding would make impossible or certain.

    >>> [format_probability(share) for share in (0.0, 0.0004, 0.345, 0.996, 1.0)]
    ['0', '<1', '34', '>99', '100']
    """
    percent = f"{100 * share:.0f}"
    if percent == "0" and share > 0:
        return "<1"
    return ">99" if percent == "100" and share < 1 else percent


def format_clock(seconds: float) -> str:
    """A time of a video as players show it.

    >>> format_clock(216.8), format_clock(9000)
    ('3:36', '2:30:00')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def format_paths(paths: Sequence[Path]) -> str:
    """What was written: the names of the files, or how many there are in which folder.

    >>> format_paths([Path("out/a/v1.eaf"), Path("out/b/v2.eaf"), Path("out/b/v3.eaf")])
    '3 files in out'
    """
    if len(paths) < 3:
        return ", ".join(map(str, paths))
    return f"{len(paths)} files in {os.path.commonpath(paths)}"


SHOWN_AFTER_SECONDS = 0.5
"""What takes less than this has no progress bar: it would only flicker."""


class _LateProgress(Progress):
    @cached_property
    def _begun(self) -> float:
        return time.monotonic()

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bar; at first, an empty line in its place."""
        if time.monotonic() - self._begun < SHOWN_AFTER_SECONDS:
            return [Text("")]
        return super().get_renderables()


@contextmanager
def progress_bar(doing: str) -> Iterator[ShowProgress]:
    """Show a progress bar on stderr; call it with what is done, of how much, and the news."""
    shown = _LateProgress(
        TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[count]}"),
        TextColumn("{task.fields[news]}", markup=False), TimeElapsedColumn(), TimeRemainingColumn(),
        console=err, transient=True, disable=not err.is_terminal,
    )  # fmt: skip
    line = shown.add_task(truncate(one_line(doing), 30), total=None, news="", count="")

    def update(done: int, total: int | None, message: str) -> None:
        count = f"{done}" if total is None else f"{done}/{total}"
        started = shown.tasks[0].total is not None and done >= shown.tasks[0].completed
        show = shown.update if started else shown.reset  # what was done before says nothing about the speed
        show(line, completed=done, total=total, news=message, count=count)

    with shown:
        yield update


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn an option that cannot be used into a usage error (exit 2)."""
    try:
        yield
    except InputError as error:
        raise typer.BadParameter(str(error)) from error


def keep_logs() -> None:
    """Keep what the library logs, from INFO on, for `finish`: an error is to stand alone, a bar not to be broken."""
    LOGGER.handlers, LOGGER.propagate = [LogCollector()], False
    LOGGER.setLevel(logging.INFO)


def print_logs_at_once() -> None:
    """What the library logs is told as it comes: a server has no end to wait for."""
    LOGGER.handlers = [_LogPrinter()]


class _LogPrinter(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        print_note(_format_log(record.levelno, self.format(record)))


def finish(*_: object, **__: object) -> None:
    """What follows a command that has succeeded: the result is out, the remarks come after it."""
    out.file.flush()
    for handler in LOGGER.handlers:
        for level, remark in dict.fromkeys(handler.messages) if isinstance(handler, LogCollector) else ():
            print_note(one_line(_format_log(level, remark)))


def _format_log(level: int, remark: str) -> str:
    return f"warning: {remark}" if level >= logging.WARNING else remark


def discard_output() -> None:
    """Forget output that cannot be written; otherwise Python tries again, and complains, when it exits."""
    try:
        out.file.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.file.fileno())


@contextmanager
def training_bar(doing: str, unit: str = "epoch") -> Iterator[ShowProgress]:
    """Show a progress bar that Ctrl-C ends after the current `unit`, so that you can resume; twice, at once."""
    asked = False

    def ask(signum: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked and callable(before):
            before(signum, frame)
        asked = True
        if err.is_terminal:
            print_note(f"stopping when this {unit} is done; Ctrl-C again stops at once")

    def stop_if_asked() -> None:
        if asked:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, ask)
    try:
        with progress_bar(doing) as show:

            def progress(done: int, total: int | None, message: str) -> None:
                show(done, total, message)
                stop_if_asked()

            yield progress
        stop_if_asked()
    except KeyboardInterrupt:
        print_note("msg2: interrupted; the same command goes on from here")
        raise typer.Exit(INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGINT, before)

"""Talking to the user: results on stdout, everything else on stderr, errors as one to three lines."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from msg2.drawing.text import cut, one_line, printable
from msg2.errors import InputError
from msg2.remarks import Remarks

out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)
if not out.is_terminal:
    out.width = 1_000_000  # a pipe has no width: rows stay on one line, for grep and awk

Item = TypeVar("Item")


def accept_any_text() -> None:
    """Escape characters that the encoding of the output lacks, instead of failing on them."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(text: str) -> None:
    """A line of the result; `text` is data, never markup or control codes."""
    out.print(Text(printable(text)))


def tell(text: str) -> None:
    """A remark beside the result, on stderr."""
    err.print(Text(printable(text)))


def say_json(value: dict[str, Any]) -> None:
    """One JSON object on stdout and nothing else."""
    in_full = out.encoding.startswith("utf")
    typer.echo(json.dumps(value, ensure_ascii=not in_full, indent=2, allow_nan=False))


def say_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None) -> None:
    """A table; numbers to the right. Cells are data, never markup, and long ones (but no paths) are cut."""
    heading = None if title is None else Text(_cell(title))
    table = Table(title=heading, title_justify="left", header_style="bold", box=None, pad_edge=False)
    listed = [[_cell(value) for value in row] for row in rows]
    for index, column in enumerate(columns):
        numeric = all(row[index].replace("%", "").replace(".", "").strip("-– ").isdigit() or row[index] in ("", "N/A")
                      for row in listed)  # fmt: skip
        table.add_column(Text(column), justify="right" if numeric and listed else "left", overflow="fold")
    for row in listed:
        table.add_row(*map(Text, row))
    out.print(table)


def _cell(value: object) -> str:
    if value is None:
        return "N/A"
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return f"{value:.4f}".rstrip("0").rstrip(".") if abs(value) < 1 else f"{value:.2f}"
    if isinstance(value, Path):
        return printable(str(value))
    return cut(one_line(str(value)), 60) if value != "" else ""


def percent(share: float | None) -> str:
    """A share of one as a percentage with two digits; N/A where there is none."""
    return "N/A" if share is None else f"{100 * share:.2f}"


def files(paths: Sequence[Path]) -> str:
    """What was written: the names of the files, or how many there are in which folder.

    >>> files([Path("out/a/v1.eaf"), Path("out/b/v2.eaf"), Path("out/b/v3.eaf")])
    '3 files in out'
    """
    if len(paths) < 3:
        return ", ".join(map(str, paths))
    return f"{len(paths)} files in {os.path.commonpath(paths)}"


def progress(items: Iterable[Item], doing: str, total: int) -> Iterator[Item]:
    """`items`, with a progress bar on stderr where someone is looking and there is more than one."""
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=err, transient=True, disable=not err.is_terminal or total < 2,
    )  # fmt: skip
    with bar:
        yield from bar.track(items, total=total, description=doing)


@contextmanager
def bar(doing: str) -> Iterator[Callable[[int, int, str], None]]:
    """A progress bar on stderr, where someone is looking; call it with what is done, of how much, and the news."""
    shown = Progress(
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[news]}", markup=False), TimeRemainingColumn(),
        console=err, transient=True, disable=not err.is_terminal,
    )  # fmt: skip
    line = shown.add_task(cut(one_line(doing), 30), total=None, news="")

    def update(done: int, total: int, news: str) -> None:
        if shown.tasks[0].total is None:  # what was done before says nothing about the speed
            shown.reset(line, completed=done, total=total, news=news)
        else:
            shown.update(line, completed=done, total=total, news=news)

    with shown:
        yield update


@contextmanager
def status(doing: str) -> Iterator[Callable[[str], None]]:
    """A line on stderr that says what is being done, where someone is looking; call it with the news."""
    with err.status(doing) as line:
        yield lambda news: line.update(Text(f"{doing}: {news}"))


@contextmanager
def cells(doing: str) -> Iterator[Callable[[str], None]]:
    """As `status`; news that begin with "3 of 7 …" become a bar."""
    with ExitStack() as stack:
        line = stack.enter_context(status(doing))
        shown: list[Callable[[int, int, str], None]] = []

        def report(news: str) -> None:
            counted = re.match(r"(\d+) of (\d+) ", news)
            if counted is None:
                line(news)
                return
            if not shown:
                stack.pop_all().close()
                shown.append(stack.enter_context(bar(doing)))
            shown[0](int(counted[1]), int(counted[2]), news[counted.end() :])

        yield report


@contextmanager
def without_remarks() -> Iterator[None]:
    """Remarks on single graphs would drown a table of many."""
    logger = logging.getLogger("msg2")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def usage() -> Iterator[None]:
    """Turn an option that cannot be used into a usage error (exit 2)."""
    try:
        yield
    except InputError as error:
        raise typer.BadParameter(str(error)) from error


def keep_remarks() -> None:
    """Keep what the library logs, from INFO on, for `finish`: an error is to stand alone, a bar not to be broken."""
    logger = logging.getLogger("msg2")
    logger.handlers = [Remarks()]
    logger.setLevel(logging.INFO)
    logger.propagate = False


def tell_remarks_at_once() -> None:
    """What the library logs is told as it comes: a server has no end to wait for."""
    logging.getLogger("msg2").handlers = [_Teller()]


class _Teller(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        tell(_worded(record.levelno, self.format(record)))


def finish(*_: object, **__: object) -> None:
    """What follows a command that has succeeded: the result is out, the remarks come after it."""
    out.file.flush()
    for handler in logging.getLogger("msg2").handlers:
        for level, remark in dict.fromkeys(handler.kept) if isinstance(handler, Remarks) else ():
            tell(one_line(_worded(level, remark)))


def _worded(level: int, remark: str) -> str:
    return f"warning: {remark}" if level >= logging.WARNING else remark


def drop_output() -> None:
    """Forget what cannot be written, or Python would try again, and complain, at its very end."""
    try:
        out.file.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.file.fileno())

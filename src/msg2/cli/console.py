"""Talking to the user: results on stdout, everything else on stderr, errors as one to three lines."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from msg2.errors import InputError

out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)

Item = TypeVar("Item")


def say(text: str) -> None:
    """A line of the result; `text` is data, never markup."""
    out.print(escape(text), emoji=False)


def tell(text: str) -> None:
    """A remark beside the result, on stderr."""
    err.print(escape(text), emoji=False)


def say_json(value: dict[str, Any]) -> None:
    """One JSON object on stdout and nothing else."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))


def say_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None) -> None:
    """A table; numbers to the right. Cells are data, never markup, and long ones are cut."""
    table = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    listed = [[_cell(value) for value in row] for row in rows]
    for index, column in enumerate(columns):
        numeric = all(row[index].replace("%", "").replace(".", "").strip("-– ").isdigit() or row[index] in ("", "N/A")
                      for row in listed)  # fmt: skip
        table.add_column(escape(column), justify="right" if numeric and listed else "left", overflow="fold")
    for row in listed:
        table.add_row(*(escape(cell) for cell in row))
    out.print(table, emoji=False)


def _cell(value: object) -> str:
    if value is None:
        return "N/A"
    if isinstance(value, float):
        return f"{value:.4f}".rstrip("0").rstrip(".") if abs(value) < 1 else f"{value:.2f}"
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else text[:59] + "…"


def percent(share: float | None) -> str:
    """A share of one as a percentage with two digits; N/A where there is none."""
    return "N/A" if share is None else f"{100 * share:.2f}"


def progress(items: Iterable[Item], doing: str, total: int) -> Iterator[Item]:
    """`items`, with a progress bar on stderr where someone is looking and there is more than one."""
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=err, transient=True, disable=not err.is_terminal or total < 2,
    )  # fmt: skip
    with bar:
        yield from bar.track(items, total=total, description=doing)


@contextmanager
def usage() -> Iterator[None]:
    """Turn an option that cannot be used into a usage error (exit 2)."""
    try:
        yield
    except InputError as error:
        raise typer.BadParameter(str(error)) from error


class _Remarks(logging.Handler):
    """Remarks of the library, as lines on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        prefix = "warning: " if record.levelno >= logging.WARNING else ""
        tell(prefix + record.getMessage())


def show_remarks() -> None:
    """Show what the library logs, from INFO on."""
    logger = logging.getLogger("msg2")
    logger.handlers = [_Remarks()]
    logger.setLevel(logging.INFO)
    logger.propagate = False

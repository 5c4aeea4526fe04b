"""Results as tables: the same numbers as Markdown for people and as JSON for programs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from msg2.errors import MissingExtraError
from msg2.files import write_whole

_log = logging.getLogger(__name__)

Value: TypeAlias = str | float | int | None


class Dot(NamedTuple):
    """A value in a chart, the ends of its whisker, and what the paper prints for it."""

    value: float
    low: float | None = None
    high: float | None = None
    printed: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns; numbers are kept as they are and rounded only in Markdown. None is N/A."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]
    notes: Sequence[str] = ()

    def to_markdown(self) -> str:
        """The table with its title and notes.

        >>> print(Table("T", ["method", "f1"], [["a", 81.25], ["b", None]]).to_markdown())
        ### T
        <BLANKLINE>
        | method | f1 |
        |---|---:|
        | a | 81.25 |
        | b | N/A |
        <BLANKLINE>
        """
        numeric = [all(not isinstance(row[i], str) for row in self.rows) for i in range(len(self.columns))]
        lines = [f"### {self.title}", "", _markdown_row(self.columns)]
        lines.append("|" + "|".join("---:" if right else "---" for right in numeric) + "|")
        lines += [_markdown_row([_format_value(cell) for cell in row]) for row in self.rows]
        return "\n".join([*lines, "", *(f"{note}\n" for note in self.notes)])

    def dots(self, column: str, *, spread: bool = False, printed: str | None = None) -> dict[str, Dot]:
        """The numbers of a column by the first one; their `spread` is in the next, the paper's are in `printed`.

        Parameters
        ----------
        column : str
            Name of the column.
        spread : bool
            Whether the next column is its spread.
        printed : str or None
            Name of the column with the paper's numbers; None: there is none.

        Returns
        -------
        mapping
            By the first value of the row.

        >>> Table("T", ["method", "f1", "±"], [["a", 80.0, 1.0], ["b", None, None]]).dots("f1", spread=True)
        {'a': Dot(value=80.0, low=79.0, high=81.0, printed=None)}
        """
        place, beside = (self.columns.index(name) for name in (column, printed or column))
        found = {}
        for row in self.rows:
            value = _number(row[place])
            if value is not None:
                apart = _number(row[place + 1]) if spread else None
                low, high = (None, None) if apart is None else (value - apart, value + apart)
                found[str(row[0])] = Dot(value, low, high, _number(row[beside]) if printed else None)
        return found


@dataclass(frozen=True, slots=True)
class Result:
    """What an experiment found; `facts` are seeds, options and whatever else makes it repeatable."""

    experiment: str
    tables: Sequence[Table]
    facts: Mapping[str, Any] = field(default_factory=dict)
    chart: Mapping[str, Mapping[str, Dot]] = field(default_factory=dict)
    """What is best looked at: panel -> row -> value."""

    def to_markdown(self) -> str:
        """All tables."""
        return "\n".join(table.to_markdown() for table in self.tables)

    def to_json(self) -> dict[str, Any]:
        """Every number, unrounded."""
        return {
            "experiment": self.experiment,
            "facts": dict(self.facts),
            "tables": [asdict(table) for table in self.tables],
        }


def save_plot(path: Path, draw: Callable[[], bytes]) -> None:
    """Write a plot beside the tables; where plots cannot be drawn, warn: the tables are worth having.

    Parameters
    ----------
    path : Path
        The file to write.
    draw : callable
        Returns the content of the file; it may raise `MissingExtraError`.
    """
    try:
        write_whole(path, draw())
    except MissingExtraError as missing:
        _log.warning("%s", missing)


def _number(cell: Value) -> float | None:
    return cell if isinstance(cell, float | int) else None


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _format_value(cell: Value) -> str:
    if cell is None:
        return "N/A"
    return f"{cell:.2f}" if isinstance(cell, float) else str(cell)

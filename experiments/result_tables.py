"""Results as tables: the same numbers as Markdown for people and as JSON for programs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from msg2.benchmarking import Dot, Value
from msg2.benchmarking import ResultTable as Table
from msg2.errors import MissingExtraError
from msg2.files import write_whole

__all__ = ["Dot", "Result", "Table", "Value", "save_plot"]

_log = logging.getLogger(__name__)


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

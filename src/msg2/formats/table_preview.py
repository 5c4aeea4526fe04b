"""What a table looks like before it is read: its first rows, and which column is taken for what.

With it, an app can ask which column is which, and show what the answer means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from msg2.errors import InputError
from msg2.formats import registry, step_table
from msg2.formats.columns import (
    EVENT_NAMES,
    STEP_NAMES,
    ColumnMapping,
    RoleNames,
    format_columns,
    is_event_log,
    is_log_header,
    is_step_header,
    match_columns,
    match_event_columns,
    match_step_columns,
    parse_columns,
)
from msg2.formats.event_log import EVENT_TABLES
from msg2.formats.source import Source
from msg2.formats.tables import Table, open_table


@dataclass(frozen=True, slots=True)
class TablePreview:
    """A table as it would be read."""

    kind: Literal["steps", "events"]
    """A table of steps, or an event log."""
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """The first ones below the header, as text."""
    columns: Mapping[str, str]
    """What was found: "step" -> "Step name"; where there is a problem, what was found nevertheless."""
    choices: tuple[str, ...]
    """What a column can be in a table of this kind."""
    assumptions: tuple[str, ...]
    """What is assumed of the header, in words."""
    problem: str | None
    """Why the header is not enough, in words; None where it is."""


def preview_table(
    path: str | Path | Source, columns: str | Mapping[str, str] | None = None, rows: int = 5
) -> TablePreview | None:
    """Look at the head of a table: delimited text, or an Excel workbook.

    Parameters
    ----------
    path : str, Path or Source
        The file.
    columns : str or mapping of str to str, optional
        What the user says about its columns.
    rows : int
        How many rows are shown.

    Returns
    -------
    TablePreview or None
        None of data in another format, whose columns nobody has to name.

    Raises
    ------
    InputError
        Where the file cannot be read, or `columns` makes no sense whatever the table.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     table = Path(folder, "log.csv")
    ...     _ = table.write_text("Case ID;Activity;When\\n7;pack;1.2.2024\\n")
    ...     found = preview_table(table)
    >>> found.kind, found.columns, found.rows, found.problem
    ('events', {'case': 'Case ID', 'activity': 'Activity'}, (('7', 'pack', '1.2.2024'),), None)
    """
    source = path if isinstance(path, Source) else Source.of_data(path)
    given = parse_columns(format_columns(columns))
    if source.is_folder or source.kind in ("JSON lines", "parquet"):
        return None
    reader = registry.find_reader(source, format_columns(columns))
    if reader not in (EVENT_TABLES, step_table.READER):
        return None

    table = open_table(source, lambda cells: is_log_header(cells, given) or is_step_header(cells, given))
    shown = tuple(tuple(cells) for _, cells in islice(table.text_rows(), rows))
    is_log = is_event_log(given) if given else reader is EVENT_TABLES or _looks_like_log(table.header)
    names = EVENT_NAMES if is_log else STEP_NAMES
    try:
        mapping, problem = _match(table, given, is_log), None
    except InputError as error:
        mapping, problem = ColumnMapping(_guess_columns(table.header, names, given), (), ()), error.what
    assumptions = (*table.assumptions, *mapping.assumptions)
    kind: Literal["steps", "events"] = "events" if is_log else "steps"
    return TablePreview(kind, table.header, shown, mapping.columns, tuple(names), assumptions, problem)


def _looks_like_log(header: Sequence[str]) -> bool:
    """Whether more of what every table needs is found as columns of a log than as columns of a table of steps."""
    log, steps = _guess_columns(header, EVENT_NAMES, {}), _guess_columns(header, STEP_NAMES, {})
    return len(log.keys() & {"case", "activity"}) > len(steps.keys() & {"video", "step"})


def _guess_columns(header: Sequence[str], names: RoleNames, given: Mapping[str, str]) -> dict[str, str]:
    """What can be told of the columns, each by itself, where something is wrong with others."""
    found: dict[str, str] = {}
    for role in names:
        with suppress(InputError):
            found |= match_columns(header, {role: names[role]}, given).columns
    return found


def _match(table: Table, given: Mapping[str, str], is_log: bool) -> ColumnMapping:
    if is_log:
        return match_event_columns(table.header, given, table.where)
    return match_step_columns(table.header, given, table.where, ("video", "step"))

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
from msg2.formats import event_csv, registry, step_table
from msg2.formats.column_roles import (
    EVENT_NAMES,
    STEP_NAMES,
    ColumnMapping,
    Names,
    format_columns,
    is_event_log,
    match_columns,
    parse_columns,
)
from msg2.formats.delimited_reader import CellTable, open_table
from msg2.formats.source import Source
from msg2.formats.table_rows import check_columns, is_header, is_parquet, match_step_columns


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
    if source.is_folder or source.is_json_lines or is_parquet(source):
        return None
    reader = registry.find_reader(source, format_columns(columns))
    if reader not in (event_csv, step_table):
        return None

    def fits(cells: Sequence[str]) -> bool:
        return event_csv.is_log_header(cells, given) or is_header(cells, given)

    with open_table(source, fits) as table:
        shown = tuple(tuple(cells) for _, cells in islice(table.rows, rows))
        is_log = is_event_log(given) if given else reader is event_csv or _looks_like_log(table.header)
        names = EVENT_NAMES if is_log else STEP_NAMES
        try:
            found, problem = _find_columns(source, table, given, is_log), None
        except InputError as error:
            found, problem = ColumnMapping(_guess_columns(table.header, names, given), (), ()), error.what
        assumptions = (*table.assumptions, *found.assumptions)
        kind: Literal["steps", "events"] = "events" if is_log else "steps"
        return TablePreview(kind, table.header, shown, found.columns, tuple(names), assumptions, problem)


def _looks_like_log(header: Sequence[str]) -> bool:
    """Whether more of what every table needs is found as columns of a log than as columns of a table of steps."""
    log, steps = _guess_columns(header, EVENT_NAMES, {}), _guess_columns(header, STEP_NAMES, {})
    return len(log.keys() & {"case", "activity"}) > len(steps.keys() & {"video", "step"})


def _guess_columns(header: Sequence[str], names: Names, given: Mapping[str, str]) -> dict[str, str]:
    """What can be told of the columns, each by itself, where something is wrong with others."""
    found: dict[str, str] = {}
    for role in names:
        with suppress(InputError):
            found |= match_columns(header, {role: names[role]}, given).columns
    return found


def _find_columns(source: Source, table: CellTable, given: Mapping[str, str], is_log: bool) -> ColumnMapping:
    where = source.row(table.line)
    if is_log:
        return event_csv.find_event_columns(table.header, given, where)
    return check_columns(match_step_columns(table.header, given, where), table.header, ("video", "step"), where)

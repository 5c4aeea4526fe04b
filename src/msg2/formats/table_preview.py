"""What a table looks like before it is read: its first rows, and which column is taken for what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from msg2.errors import InputError
from msg2.formats import columns as roles
from msg2.formats import registry, step_table
from msg2.formats.columns import EVENT_NAMES, STEP_NAMES
from msg2.formats.event_log import EVENT_TABLES
from msg2.formats.source import Source
from msg2.formats.tables import open_table


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
    text = roles.format_columns(columns)
    given = roles.parse_columns(text)
    if source.is_folder or source.kind in ("JSON lines", "parquet"):
        return None
    reader = registry.find_reader(source, text)
    if reader not in (EVENT_TABLES, step_table.READER):
        return None

    table = open_table(source, lambda cells: roles.is_log_header(cells, given) or roles.is_step_header(cells, given))
    header = table.header
    shown = tuple(tuple(cells) for _, cells in islice(table.text_rows(), rows))
    if given:
        is_log = roles.is_event_log(given)
    else:  # a log, where more of what every table needs is found as its columns
        log, steps = _guess_columns(header, EVENT_NAMES, {}), _guess_columns(header, STEP_NAMES, {})
        more_of_log = len(log.keys() & {"case", "activity"}) > len(steps.keys() & {"video", "step"})
        is_log = reader is EVENT_TABLES or more_of_log
    names, match = (EVENT_NAMES, roles.match_event_columns) if is_log else (STEP_NAMES, roles.match_step_columns)
    try:
        mapping, problem = match(header, given, table.where), None
    except InputError as error:
        mapping, problem = roles.ColumnMapping(_guess_columns(header, names, given), ()), error.what
    assumptions = (*table.assumptions, *mapping.assumptions)
    kind: Literal["steps", "events"] = "events" if is_log else "steps"
    return TablePreview(kind, header, shown, mapping.columns, tuple(names), assumptions, problem)


def _guess_columns(header: Sequence[str], names: roles.RoleNames, given: Mapping[str, str]) -> dict[str, str]:
    """What can be told of the columns, each by itself, where something is wrong with others."""
    found: dict[str, str] = {}
    for role in names:
        with suppress(InputError):
            found |= roles.match_columns(header, {role: names[role]}, given).columns
    return found

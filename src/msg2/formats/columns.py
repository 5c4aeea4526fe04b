"""Which column of a table is which: as the user says, else by its exact name, else by a name that means nothing else.

Names are compared without case, spaces and punctuation. A table is one of steps, or an event log; `column_names.json`
has the names of their columns, those of logs as Disco, Celonis and pm4py have them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Literal

from msg2.errors import InputError, require
from msg2.text import join_names, short_repr

COLUMNS_HINT = 'say which is which: --columns "video=…,step=…", of an event log "case=…,activity=…,time=…"'


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """What every column that is used is."""

    columns: Mapping[str, str]  # what it is -> the column, as the file names it
    unused: tuple[str, ...]
    assumptions: tuple[str, ...] = ()  # what was guessed, in words; that `Step` is the step goes without saying


@dataclass(frozen=True, slots=True)
class TableKind:
    """A kind of table: what its columns can be (their roles), and which names mean what."""

    name: Literal["steps", "events"]
    names: Mapping[str, Sequence[str]]  # role -> names that mean it, see `normalize_name`
    required: Sequence[str]  # the roles that every table has
    telling: Sequence[str]  # those by which its header is recognised
    standard: Mapping[str, str]  # role -> the name of the XES standard, which needs no note
    chosen: Mapping[str, str] = field(default_factory=dict)  # role -> the column that the user says it is

    def for_user(self, columns: str | None) -> TableKind:
        """The same kind of table, with columns as the user names them."""
        return self if columns is None else replace(self, chosen=parse_columns(columns))

    def fits(self, cells: Sequence[str]) -> bool:
        """Whether some cells could be the header of such a table."""
        matched = {normalize_name(cell) for cell in cells}
        known = {role: [normalize_name(self.chosen[role])] for role in self.telling if role in self.chosen}
        return all(matched.intersection(known.get(role, self.names[role])) for role in self.telling)

    def match(self, header: Sequence[str], where: str, required: Sequence[str] | None = None) -> ColumnMapping:
        """Find out which column is which; refuse a table without those that are required."""
        chosen = {role: name for role, name in self.standard.items() if name in header} | dict(self.chosen)
        matched: dict[str, str] = {}
        guesses = []
        for role, names in self.names.items():
            if not (wanted := chosen.get(role, role)):
                continue
            fitting = [column for column in header if column == wanted]
            if not fitting:
                known = [normalize_name(wanted)] if role in chosen else names
                others = [column for column in header if column not in chosen.values()]
                fitting = [column for column in others if normalize_name(column) in known]
                if role not in chosen and fitting and normalize_name(fitting[0]) != role:
                    guesses.append(f"{short_repr(fitting[0])} is the {role}")
            if role in chosen and not fitting:
                hint = f"the columns are {join_names(header, limit=30)}"
                raise InputError(f"there is no column {short_repr(wanted)}", where=where, hint=hint)
            if len(set(fitting)) > 1:
                what = f"the columns {join_names(fitting, limit=30)} could each be the {role}"
                raise InputError(what, where=where, hint=f'say which it is: --columns "{role}={fitting[0]}"')
            if len(fitting) > 1:
                what = f"the column {short_repr(fitting[0])} is there twice"
                raise InputError(what, where=where, hint="rename or remove one")
            if fitting and fitting[0] in matched.values():
                what = f"the column {short_repr(fitting[0])} is given twice"
                raise InputError(what, where=where, hint="name a column once in --columns")
            if fitting:
                matched[role] = fitting[0]
        for role in self.required if required is None else required:
            if role not in matched:
                columns = ", ".join(short_repr(column, 30) for column in header[:10])
                hint = f"the columns are {columns}; {COLUMNS_HINT}"
                raise InputError(f"the column {role!r} is missing", where=where, hint=hint)
        if self.name == "steps" and required != () and "end" in matched and "start" not in matched:
            what = "there is a column 'end', but no column 'start'"
            raise InputError(what, where=where, hint="give both, in seconds, or only the start, or neither")
        unused = tuple(dict.fromkeys(column for column in header if column and column not in matched.values()))
        return ColumnMapping(matched, unused, (f"the column {', '.join(guesses)}",) if guesses else ())


_KINDS = json.loads(files("msg2.formats").joinpath("column_names.json").read_text("utf-8"))
STEPS, EVENTS = TableKind("steps", **_KINDS["steps"]), TableKind("events", **_KINDS["events"])


def normalize_name(column: str) -> str:
    """A column's name without case, spaces and punctuation."""
    return re.sub(r"[\W_]+", "", column).casefold()


def format_columns(columns: str | Mapping[str, str] | None) -> str | None:
    """Check what the user says about columns, and write it as the command line takes it; Python may have a mapping."""
    if isinstance(columns, Mapping):
        columns = ",".join(f"{role}={column}" for role, column in columns.items())
    if isinstance(columns, str):
        parse_columns(columns)
    return columns


def parse_columns(text: str) -> dict[str, str]:
    """Parse what the user says about columns: ``case=Order,activity=Task``."""
    pairs = [part.partition("=") for part in re.split(r",(?=\s*\w+\s*=)", text)]
    chosen = {role.strip().casefold(): column.strip() for role, _, column in pairs}
    for role in chosen:
        if role not in {*STEPS.names, *EVENTS.names} or "=" not in text:
            hint = "write video=…,step=…,start=…,end=… for a table of steps, case=…,activity=…,time=…,end=… for a log"
            raise InputError(f"columns is {short_repr(text)}, {short_repr(role)} is no column that is used", hint=hint)
    require(len(chosen) >= len(pairs), f"columns is {short_repr(text)}, something is there twice")
    if not any(chosen.keys() <= set(kind.names) for kind in (STEPS, EVENTS)):
        hint = "video and step are columns of a table of steps, case and activity of an event log: give one kind"
        raise InputError(f"columns is {short_repr(text)}, which mixes two kinds of tables", hint=hint)
    return chosen

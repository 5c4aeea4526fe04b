"""Times and numbers as tables have them: seconds, milliseconds, `m:ss`, decimal commas, dates, numbers since 1970.

What a number means must not depend on the row: a file that writes its times in two ways is refused. Points in time of
event logs are whole microseconds since 1970.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from msg2.errors import InputError
from msg2.text import short_repr

_CLOCK = re.compile(r"(?:(\d{1,6}):)?(\d{1,6}):(\d{1,2}(?:[.,]\d{1,9})?)")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,(\d+)")

_NUMBER = re.compile(r"-?\d{1,25}(?:\.\d{1,25})?")
_DATE = re.compile(
    r"(?P<a>\d{1,4})(?P<mark>[./-])(?P<b>\d{1,2})(?P=mark)(?P<c>\d{1,4})"
    r"(?:[ T]+(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"\s*(?P<half>[AaPp][Mm])?)?"
)  # a date as people and spreadsheets write it: 2024/05/13, 13.05.2024, 13/05/2024 or 5/13/2024, maybe with a time
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_UNITS = (
    (10**11, 10**6, "seconds since 1970"),
    (10**14, 10**3, "milliseconds since 1970"),
    (10**17, 1, "microseconds since 1970"),
    (10**25, Decimal("0.001"), "nanoseconds since 1970"),
)
"""A number below the first is that many of the second, in microseconds: seconds reach the year 5138 before they are
taken for milliseconds, and milliseconds begin in 1973."""


# -- seconds of a video -----------------------------------------------------------------------------------------


def parse_clock(text: str) -> float | None:
    """The seconds of `m:ss`, `h:mm:ss` or either with a fraction; None where the text is something else."""
    match = _CLOCK.fullmatch(text.replace(",", "."))
    if match is None:
        return None
    hours, minutes, seconds = match.groups()
    if float(seconds) >= 60 or (hours is not None and int(minutes) >= 60):
        return None
    # Whole microseconds, so that 0:01:30.5 is the number that 90.5 is.
    return round((int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds)) * 1e6) / 1e6


@dataclass(slots=True)
class NumberParser:
    """Parses the numbers of one table, and notes how they are written."""

    separator: str  # what separates the cells of a text; empty where cells are numbers already
    milliseconds: Collection[str] = ()  # the roles whose columns are in milliseconds
    _notation: str | None = None  # how the times so far are written, in words
    _mark: str = ""  # the decimal mark of the numbers so far

    @property
    def assumptions(self) -> list[str]:
        """How numbers were understood, where that is not by the rules of the format."""
        commas = ["numbers have a decimal comma"] * (self._mark == ",")
        return [*commas, *["times with colons are m:ss or h:mm:ss"] * (self._notation == "with colons")]

    def parse(self, role: str, cell: object) -> float | None:
        """The confidence, or the time in seconds, in a cell; None of an empty one."""
        if role == "confidence":
            return self._parse_number(role, cell)
        seconds = parse_clock(cell.strip()) if isinstance(cell, str) and self.separator else None
        notation = "with colons" if seconds is not None else self.unit(role)
        if seconds is None:
            seconds = self._parse_number(role, cell)
        if seconds:  # nothing is nothing in any unit
            self.require_notation(role, cell, notation)
        return seconds / 1000 if seconds and notation == "in milliseconds" else seconds

    def unit(self, role: str) -> str:
        """The unit of numbers in a column of times, in words."""
        return "in milliseconds" if role in self.milliseconds else "in seconds"

    def require_notation(self, role: str, cell: object, notation: str) -> None:
        """Refuse a time that is written in another way than those before it."""
        if self._notation not in (None, notation):
            what = f"the {role} {short_repr(str(cell))} is written {notation}, the times above {self._notation}"
            raise InputError(what, hint="write all times of a file in the same way")
        self._notation = notation

    def _parse_number(self, name: str, cell: object) -> float | None:
        if cell is None:
            return None
        if isinstance(cell, str) and self.separator:
            return self._parse_text(name, cell.strip())
        if not isinstance(cell, int | float) or isinstance(cell, bool):
            raise InputError(f"the {name} {short_repr(str(cell))} is not a number")
        try:
            return float(cell)
        except OverflowError:
            return float("inf")  # Segment says what is wrong with it

    def _parse_text(self, name: str, text: str) -> float | None:
        if not text:
            return None
        comma = _DECIMAL_COMMA.fullmatch(text)
        thousands = comma is not None and len(comma[1]) == 3 and not text.lstrip("+-").startswith("0,")
        if thousands and not self.separator.startswith(";"):
            hint = "write 1500, or 1.5 with a decimal point"
            raise InputError(f"the {name} {short_repr(text)} has a decimal comma or is in thousands", hint=hint)
        mark = "," if comma else "." if "." in text else ""
        if mark and self._mark not in ("", mark):
            what = f"the {name} {short_repr(text)} has another decimal mark than the numbers above"
            raise InputError(what, hint="write all numbers of a file with a decimal point")
        self._mark = mark or self._mark
        try:
            if "_" not in text:  # float() takes 1_000, a table does not
                return float(text.replace(",", ".") if comma else text)
        except ValueError:
            pass
        hint = "give seconds with a decimal point, such as 90.5, or 1:30.5"
        if name == "confidence":
            hint = "give a number in 0 … 1"
        elif re.fullmatch(r"\d+:\d+:\d+[:;]\d+", text):
            hint = "times with frames have no length of their own: write 0:01:30.5, or seconds such as 90.5"
        elif re.match(r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{4}", text):
            hint = "is it an event log? then say so: --columns case=…,activity=…,time=…"
        raise InputError(f"the {name} {short_repr(text)} is not a number", hint=hint)


# -- points in time ---------------------------------------------------------------------------------------------


def parse_timestamp(text: str, day_first: bool | None = None) -> tuple[str, int]:
    """How a point in time is written, in words, and its microseconds since 1970."""
    text = text.strip()
    if text[4:5] != "-" and _NUMBER.fullmatch(text):
        number = Decimal(text)
        _, unit, kind = next(entry for entry in _UNITS if abs(number) < entry[0])
        if abs(number * unit) >= 2**63:
            raise InputError(f"the time {short_repr(text)} is too far from 1970")
        return kind, int(number * unit)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        date = _parse_date(text, day_first)
        if date is None:
            hint = "write times as 2024-05-01T12:00:00+02:00, or as seconds since 1970"
            raise InputError(f"the time {short_repr(text)} is not a point in time", hint=hint) from None
        time = date
    if time.tzinfo is None:
        return "times without a time zone", (time.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
    return "times with a time zone", (time - _EPOCH) // _MICROSECOND


def _parse_date(text: str, day_first: bool | None) -> datetime | None:
    """The point in time of a date as a spreadsheet writes it; None where the text is something else."""
    date = _DATE.fullmatch(text)
    if date is None or (len(date["a"]) == 4) == (len(date["c"]) == 4):
        return None
    year, month, day = date.group("a", "b", "c")
    if len(year) < 4:
        if day_first is None and (day_first := _day_first(date)) is None:
            what = f"the time {short_repr(text)} may have the day first or the month"
            raise InputError(what, hint="no row of the file tells; write times as 2024-05-01 12:00:00")
        day, month, year = date.group("a", "b", "c") if day_first else date.group("b", "a", "c")
    hour = int(date["hour"] or 0)
    if date["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (date["half"].lower() == "pm")
    clock = (hour, int(date["minute"] or 0), int(date["second"] or 0), int((date["fraction"] or "0")[:6].ljust(6, "0")))
    try:
        return datetime(int(year), int(month), int(day), *clock)
    except ValueError:
        return None


def _day_first(date: re.Match[str]) -> bool | None:
    """Whether the day comes first in a date with the year last, where that can be told."""
    if date["mark"] == "." or int(date["a"]) > 12:
        return True
    return False if int(date["b"]) > 12 else None


def find_day_first(texts: Iterable[str]) -> bool | None:
    """Whether the day comes first in dates such as 5/6/2024, by the first one that tells; None where none does."""
    dates = (date for text in texts if (date := _DATE.fullmatch(text.strip())) and len(date["a"]) < 4)
    return next((first for date in dates if (first := _day_first(date)) is not None), None)
